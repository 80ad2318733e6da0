"""OpenNMT-tf: training.

    python -m peers.onmttf_train JOB        # in the folder benchmarks

The model, its loss, and the function that updates the weights are OpenNMT-tf's; the
batches are the job's.
"""

from __future__ import annotations

from peers import onmttf
from program import EOS, measure_training, peer_arguments

import tensorflow as tf  # isort: skip  after opennmt, which sets its logging


def main() -> None:
    """Trains on the batches of the job."""
    job, dtype = peer_arguments(__doc__, ["float32"])
    model = onmttf.make_model(job, label_smoothing=0.1, average_loss_in_time=True)
    optimizer = tf.keras.optimizers.legacy.Adam(
        1e-4, beta_1=0.9, beta_2=0.98, epsilon=1e-9
    )
    ids = tf.TensorSpec((None, None), tf.int32)

    @tf.function(input_signature=(ids, ids))
    def train(inputs: tf.Tensor, targets: tf.Tensor) -> tf.Tensor:
        features = {
            "ids": inputs,
            "length": tf.math.count_nonzero(inputs, axis=1, dtype=tf.int32),
        }
        previous = tf.concat(
            [tf.fill((tf.shape(targets)[0], 1), EOS), targets[:, :-1]], axis=1
        )
        length = tf.math.count_nonzero(targets, axis=1, dtype=tf.int32)
        labels = {"ids": previous, "ids_out": targets, "length": length}
        return model.train(features, labels, optimizer)

    measure_training(
        onmttf.NAME, dtype, job, lambda inputs, targets: float(train(inputs, targets))
    )


if __name__ == "__main__":
    main()
