"""Hugging Face: a file translated by M2M100, a pre-norm Transformer, with the weights
of a t2tlite run.

python -m peers.hf_file JOB OUTPUTS       # in the folder benchmarks
"""

from __future__ import annotations

import sys

import numpy as np
import torch
import transformers
from peers.file_job import FileJob, decode_file
from program import CORES, EOS, PAD


def main() -> None:
    """Translates the file of the job."""
    job = FileJob(sys.argv[1])
    settings = job.settings
    start = settings["vocab_size"]  # an id of its own, whose embedding is zero
    torch.set_num_threads(CORES)
    sides = {
        f"{side}_{name}": settings[key]
        for side in ("encoder", "decoder")
        for name, key in (
            ("layers", "layers"),
            ("ffn_dim", "filter_size"),
            ("attention_heads", "heads"),
        )
    }
    config = transformers.M2M100Config(
        vocab_size=start + 1,
        d_model=settings["hidden_size"],
        activation_function="relu",
        scale_embedding=True,
        tie_word_embeddings=False,
        pad_token_id=PAD,
        eos_token_id=EOS,
        forced_eos_token_id=None,
        decoder_start_token_id=start,
        max_position_embeddings=len(job.positions),
        **sides,
    )
    model = transformers.M2M100ForConditionalGeneration(config).eval()
    copy_weights(model, job)

    def translate(ids: np.ndarray) -> list[list[int]]:
        inputs = torch.from_numpy(ids).long()
        with torch.inference_mode():
            rows = model.generate(
                inputs,
                attention_mask=(inputs != PAD).long(),
                num_beams=settings["beam_size"],
                length_penalty=settings["alpha"],
                do_sample=False,
                max_new_tokens=ids.shape[1] + settings["extra_length"],
                suppress_tokens=[PAD, start],
            )
        return [without_padding(row[1:].tolist()) for row in rows]

    decode_file(translate, job)


def without_padding(ids: list[int]) -> list[int]:
    return [i for i in ids if i not in (PAD, EOS)]


def copy_weights(
    model: transformers.M2M100ForConditionalGeneration, job: FileJob
) -> None:
    """Gives M2M100 the weights of a run: matrices are transposed, attention's biases
    are zero.
    """
    weights = {name: torch.from_numpy(value) for name, value in job.weights.items()}
    state = {
        name: torch.zeros_like(value) for name, value in model.state_dict().items()
    }
    embedding = weights["embedding/weight"]
    zero = torch.zeros(1, embedding.shape[1])
    inputs, outputs = (
        torch.cat([zero, embedding[1:], zero]),
        torch.cat([embedding, zero]),
    )
    for name in (
        "model.shared",
        "model.encoder.embed_tokens",
        "model.decoder.embed_tokens",
    ):
        state[f"{name}.weight"] = inputs
    state["lm_head.weight"] = outputs
    attention = {
        "query": "q_proj",
        "key": "k_proj",
        "value": "v_proj",
        "output_transform": "out_proj",
    }
    blocks = {"self_attention": "self_attn", "cross_attention": "encoder_attn"}
    for ours, value in weights.items():
        layer, *rest = ours.split("/")
        if layer == "embedding":
            continue
        side, _, number = layer.partition("_")
        theirs = [f"model.{side}", *([] if number == "norm" else ["layers", number])]
        last = {"gamma": "weight", "beta": "bias", "kernel": "weight", "bias": "bias"}[
            rest[-1]
        ]
        if number == "norm":
            theirs += ["layer_norm"]
        elif rest[0].endswith("_residual"):
            block = rest[0].removesuffix("_residual")
            theirs += [
                f"{blocks[block]}_layer_norm" if block in blocks else "final_layer_norm"
            ]
        elif rest[0] == "feed_forward":
            theirs += [{"inner": "fc1", "outer": "fc2"}[rest[1]]]
        else:
            theirs += [blocks[rest[0]], attention[rest[1]]]
        name = ".".join([*theirs, last])
        if name not in state:
            raise ValueError(
                f"M2M100 must have a weight for {ours}. Received: no {name}."
            )
        state[name] = value.T.contiguous() if rest[-1] == "kernel" else value
    model.load_state_dict(state)
    # positions begin at PAD + 1
    table = torch.cat(
        [torch.zeros(1, inputs.shape[1]), torch.from_numpy(job.positions)]
    )
    for stack in (model.model.encoder, model.model.decoder):
        stack.embed_positions.weights = torch.nn.Buffer(table, persistent=False)


if __name__ == "__main__":
    main()
