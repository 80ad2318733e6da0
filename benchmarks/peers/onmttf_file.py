"""OpenNMT-tf: a file translated with the weights of a t2tlite run.

python -m peers.onmttf_file JOB OUTPUTS       # in the folder benchmarks
"""

from __future__ import annotations

import sys
from collections.abc import Iterable

from peers import onmttf
from peers.file_job import FileJob, decode_file
from program import EOS, Job

import numpy as np  # isort: skip
import tensorflow as tf  # isort: skip  after opennmt, which sets its logging

START, END = 1, 2  # OpenNMT-tf's <s> and </s>; all later ids are t2tlite's and 1


def main() -> None:
    """Translates the file of the job."""
    job = FileJob(sys.argv[1])
    settings, weights = job.settings, job.weights
    limits = {
        "maximum_decoding_length": (
            max(map(len, job.sentences)) + settings["extra_length"]
        )
    }
    size = Job(
        settings["hidden_size"],
        settings["filter_size"],
        settings["layers"],
        settings["heads"],
        settings["vocab_size"] + 2,
        0,
        [],
    )
    model = onmttf.make_model(
        size,
        pre_norm=True,
        beam_width=settings["beam_size"],
        length_penalty=settings["alpha"],
        **limits,
    )
    table = tf.constant(job.positions)
    for stack in (model.encoder, model.decoder):
        stack.position_encoder._encode = lambda positions, depth: tf.gather(
            table, tf.convert_to_tensor(positions) - 1
        )

    @tf.function(input_signature=(tf.TensorSpec((None, None), tf.int32),))
    def infer(inputs: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        output = model.infer(
            {
                "ids": inputs,
                "length": tf.math.count_nonzero(inputs, axis=1, dtype=tf.int32),
            }
        )
        return output["tokens"], output["length"]

    def translate(ids: np.ndarray) -> list[list[int]]:
        tokens, lengths = infer(np.where(ids == 0, 0, ids + 1))
        best = zip(tokens[:, 0].numpy(), lengths[:, 0].numpy(), strict=True)
        return [token_ids(row[:length]) for row, length in best]

    model.create_variables()
    copy_weights(model, weights)
    decode_file(translate, job)


def token_ids(names: Iterable[bytes]) -> list[int]:
    """Returns the ids of tokens called token1, token2, ..."""
    return [int(name.removeprefix(b"token")) - 1 for name in names]


def copy_weights(model, weights: dict[str, np.ndarray]) -> None:  # type: ignore[no-untyped-def]
    """Gives OpenNMT-tf's model the weights of a run."""
    embedding = weights["embedding/weight"]
    zero = np.zeros((1, embedding.shape[1]), np.float32)
    # padding, <s>, </s>, the others, unknown
    used = [zero, zero, embedding[EOS : EOS + 1], embedding[2:], zero]
    model.features_inputter.embedding.assign(np.concatenate(used))
    output = model.decoder.output_layer
    never = np.zeros(output.bias.shape[0], np.float32)
    never[[0, START, -1]] = -1e9
    output.bias.assign(never)
    for name, stack in (("encoder", model.encoder), ("decoder", model.decoder)):
        copy_norm(stack.layer_norm, weights, f"{name}_norm")
        for i, layer in enumerate(stack.layers):
            parts = {"self_attention": layer.self_attention}
            if name == "decoder":
                parts["cross_attention"] = layer.attention[0]
            for kind, part in parts.items():
                copy_norm(
                    part.input_layer_norm, weights, f"{name}_{i}/{kind}_residual/norm"
                )
                attention = part.layer
                for here, there in (
                    (attention.linear_queries, "query"),
                    (attention.linear_keys, "key"),
                    (attention.linear_values, "value"),
                    (attention.linear_output, "output_transform"),
                ):
                    here.kernel.assign(weights[f"{name}_{i}/{kind}/{there}/kernel"])
                    here.bias.assign(tf.zeros_like(here.bias))
            copy_norm(
                layer.ffn.input_layer_norm,
                weights,
                f"{name}_{i}/feed_forward_residual/norm",
            )
            for here, there in (
                (layer.ffn.layer.inner, "inner"),
                (layer.ffn.layer.outer, "outer"),
            ):
                here.kernel.assign(weights[f"{name}_{i}/feed_forward/{there}/kernel"])
                here.bias.assign(weights[f"{name}_{i}/feed_forward/{there}/bias"])


def copy_norm(norm, weights: dict[str, np.ndarray], name: str) -> None:  # type: ignore[no-untyped-def]
    """Gives a layer normalisation its weights."""
    norm.gamma.assign(weights[f"{name}/gamma"])
    norm.beta.assign(weights[f"{name}/beta"])


if __name__ == "__main__":
    main()
