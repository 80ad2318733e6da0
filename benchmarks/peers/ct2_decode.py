"""CTranslate2: beam search.

    python -m peers.ct2_decode JOB --dtype=int8     # in the folder benchmarks

Weights are random, and every sentence takes exactly the job's steps.
"""

from __future__ import annotations

import tempfile

import ctranslate2
import numpy as np
from ctranslate2.specs import TransformerSpec
from program import CORES, PAD, Job, measure_decoding, peer_arguments


def make_spec(job: Job) -> TransformerSpec:
    """A post-norm Transformer with shared embeddings and random weights, in
    CTranslate2's format.
    """
    random = np.random.default_rng(1)
    size, filter_size = job.hidden_size, job.filter_size

    def fill_linear(linear, rows, columns, bias=False):
        limit = np.sqrt(6 / (rows + columns))
        linear.weight = random.uniform(-limit, limit, (rows, columns)).astype(
            np.float32
        )
        if bias:
            linear.bias = np.zeros(rows, np.float32)

    def fill_norm(norm):
        norm.gamma, norm.beta = np.ones(size, np.float32), np.zeros(size, np.float32)

    spec = TransformerSpec.from_config(
        (job.num_layers, job.num_layers), job.num_heads, pre_norm=False
    )
    for layer in (*spec.encoder.layer, *spec.decoder.layer):
        # queries, keys and values together; output
        attentions = {layer.self_attention: (3 * size, size)}
        if hasattr(layer, "attention"):
            # queries; keys and values; output
            attentions[layer.attention] = (size, 2 * size, size)
        for attention, rows in attentions.items():
            for linear, outputs in zip(attention.linear, rows, strict=True):
                fill_linear(linear, outputs, size)
            fill_norm(attention.layer_norm)
        fill_linear(layer.ffn.linear_0, filter_size, size, bias=True)
        fill_linear(layer.ffn.linear_1, size, filter_size, bias=True)
        fill_norm(layer.ffn.layer_norm)
    embedding = random.normal(0, size**-0.5, (job.vocab_size, size)).astype(np.float32)
    spec.encoder.embeddings[0].weight = spec.decoder.embeddings.weight = embedding
    spec.decoder.projection.weight = embedding
    return spec


def main() -> None:
    """Decodes the batches of the job."""
    job, dtype = peer_arguments(__doc__, ["float32", "int8", "bfloat16"])
    tokens = [
        "<blank>",
        "</s>",
        "<s>",
        "<unk>",
        *(f"token{i}" for i in range(4, job.vocab_size)),
    ]
    spec = make_spec(job)
    spec.register_source_vocabulary(tokens)
    spec.register_target_vocabulary(tokens)
    spec.validate()
    spec.optimize(quantization="float32")
    with tempfile.TemporaryDirectory() as folder:
        spec.save(folder)
        translator = ctranslate2.Translator(
            folder, compute_type=dtype, inter_threads=1, intra_threads=CORES
        )

    def decode(inputs: np.ndarray) -> int:
        sentences = []
        for row in inputs:
            sentences.append([tokens[i] for i in row if i != PAD])
        results = translator.translate_batch(
            sentences,
            beam_size=job.beam_size,
            length_penalty=0.6,
            min_decoding_length=job.steps,
            max_decoding_length=job.steps,
        )
        return len(results[0].hypotheses[0])

    measure_decoding(f"CTranslate2 {ctranslate2.__version__}", dtype, job, decode)


if __name__ == "__main__":
    main()
