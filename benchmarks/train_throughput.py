"""Training: source and target tokens per second, padding not counted, and peak memory.

    python benchmarks/train_throughput.py --hparams_set=transformer_base --steps=12
    python benchmarks/train_throughput.py --source=train.en --target=train.de \\
        --hparams=dtype_policy=mixed_bfloat16

The first --warm steps (tracing, memory) do not count. Prints a line for each step, and
one that begins RESULT.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path

import corpus
import numpy as np
import program

from t2tlite.machine import quiet_stderr

with quiet_stderr():
    import tensorflow as tf

from t2tlite.config import HParams
from t2tlite.data.batch_plan import training_plan
from t2tlite.data.input_pipeline import distribute, load_part
from t2tlite.data.token_store import TokenStore
from t2tlite.models.transformer import Transformer
from t2tlite.training.learning_rates import make_optimizer
from t2tlite.training.strategy import make_strategy, with_choices
from t2tlite.training.train_step import make_train_step


def main(argv: Sequence[str] | None = None) -> None:
    """Measures and prints."""
    parser = program.argument_parser(__doc__)
    corpus.add_arguments(parser)
    parser.add_argument("--steps", type=int, default=12, help="in all")
    parser.add_argument(
        "--warm", type=int, default=4, help="steps at the start that do not count"
    )
    parser.add_argument(
        "--replicas",
        type=int,
        help="logical CPU devices (default: every GPU, or the CPU)",
    )
    parser.add_argument(
        "--save_job", help="file for the batches, for a program of another project"
    )
    parser.add_argument(
        "--profile", help="folder for a TensorFlow profile of three more steps"
    )
    args = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        measure(corpus.read_hparams(args), corpus.make_store(args, Path(folder)), args)


def measure(hparams: HParams, store: TokenStore, args: argparse.Namespace) -> None:
    """Trains a few steps."""
    strategy = logical_devices(args.replicas) if args.replicas else make_strategy()
    hparams = with_choices(hparams, strategy, hparams.train_steps)
    plan = training_plan(
        hparams,
        store.source_lengths,
        store.target_lengths,
        strategy.num_replicas_in_sync,
        seed=1,
    )
    whole_batches = (
        load_part(store, plan, step, 0, 1, 1) for step in range(args.steps)
    )
    pairs = [(part.inputs[0], part.targets[0]) for part in whole_batches]
    job = corpus.make_job(args, hparams, args.warm, pairs)
    with strategy.scope():
        model = Transformer.from_hparams(hparams, args.vocab_size, args.vocab_size)
        optimizer = make_optimizer(model)
    train_step = make_train_step(strategy, model, optimizer)
    extra = 3 if args.profile else 0
    parts = iter(
        distribute(
            strategy, store, plan, 0, args.steps + extra, hparams.accumulate_steps
        )
    )

    def step(inputs: np.ndarray, targets: np.ndarray) -> float:
        # the pipeline makes the same batch, and its time counts
        return float(train_step(parts).loss)

    program.measure_training("t2tlite", hparams.dtype_policy, job, step)
    for device in tf.config.list_logical_devices("GPU"):
        peak = tf.config.experimental.get_memory_info(device.name)["peak"] / 2**20
        print(f"Peak memory of {device.name}: {peak:,.0f} MB")
    if args.profile:
        with tf.profiler.experimental.Profile(args.profile):
            for _ in range(extra):
                float(train_step(parts).loss)


def logical_devices(replicas: int) -> tf.distribute.Strategy:
    """Makes a strategy for data-parallel training on logical devices that share the
    cores of the CPU.
    """
    (cpu,) = tf.config.list_physical_devices("CPU")
    if len(tf.config.get_logical_device_configuration(cpu) or ()) < replicas:
        tf.config.set_logical_device_configuration(
            cpu, [tf.config.LogicalDeviceConfiguration()] * replicas
        )
    return tf.distribute.MirroredStrategy([f"CPU:{i}" for i in range(replicas)])


if __name__ == "__main__":
    main()
