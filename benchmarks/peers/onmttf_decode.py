"""OpenNMT-tf: beam search.

    python -m peers.onmttf_decode JOB       # in the folder benchmarks

Weights are random, and every sentence takes exactly the job's steps.
"""

from __future__ import annotations

from peers import onmttf
from program import measure_decoding, peer_arguments

import tensorflow as tf  # isort: skip  after opennmt, which sets its logging


def main() -> None:
    """Decodes the batches of the job."""
    job, dtype = peer_arguments(__doc__, ["float32"])
    limits = {
        "minimum_decoding_length": job.steps,
        "maximum_decoding_length": job.steps,
    }
    model = onmttf.make_model(
        job, beam_width=job.beam_size, length_penalty=0.6, **limits
    )

    @tf.function(input_signature=(tf.TensorSpec((None, None), tf.int32),))
    def decode(inputs: tf.Tensor) -> tf.Tensor:
        features = {
            "ids": inputs,
            "length": tf.math.count_nonzero(inputs, axis=1, dtype=tf.int32),
        }
        return model.infer(features)["length"]

    measure_decoding(onmttf.NAME, dtype, job, lambda inputs: int(decode(inputs)[0, 0]))


if __name__ == "__main__":
    main()
