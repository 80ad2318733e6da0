"""The input pipeline alone: how many source and target tokens per second it can feed to
a model, padding not counted.

    python benchmarks/input_throughput.py --pairs=300000 --batches=500

Batches are taken inside a compiled function, as a training step takes them. The first
tenth of them does not count. Prints one line that begins RESULT.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import corpus
import numpy as np
import program

from t2tlite.machine import quiet_stderr

with quiet_stderr():
    import tensorflow as tf

from t2tlite.data.batch_plan import training_plan
from t2tlite.data.input_pipeline import Part, distribute
from t2tlite.data.token_store import TokenStore
from t2tlite.types import Tensor


def main(argv: Sequence[str] | None = None) -> None:
    """Measures and prints."""
    parser = program.argument_parser(__doc__)
    corpus.add_arguments(parser)
    parser.add_argument("--batches", type=int, default=2000, help="in all")
    args = parser.parse_args(argv)
    hparams = corpus.read_hparams(args)
    strategy = tf.distribute.MirroredStrategy(["CPU:0"])

    @tf.function(reduce_retracing=True)
    def take(parts: Iterator[Part]) -> Tensor:
        return strategy.run(lambda part: part.tokens, args=(next(parts),))

    with tempfile.TemporaryDirectory() as folder:
        corpus.make_store(args, Path(folder))
        start = time.perf_counter()
        store = TokenStore(sorted(Path(folder).glob("*.arrow")))
        plan = training_plan(
            hparams, store.source_lengths, store.target_lengths, 1, seed=1
        )
        parts = iter(distribute(strategy, store, plan, 0, args.batches))
        take(parts)
        first_batch = time.perf_counter()
        warm = args.batches // 10
        for _ in range(1, warm):
            take(parts)
        begin = time.perf_counter()
        for _ in range(warm, args.batches):
            take(parts)
        seconds = time.perf_counter() - begin
    indices = np.concatenate([plan.batch(k).indices for k in range(warm, args.batches)])
    tokens = int(
        store.source_lengths[indices].sum() + store.target_lengths[indices].sum()
    )
    program.report(
        program="t2tlite",
        pairs=len(store),
        tokens_per_second=tokens / seconds,
        # shards opened, batches planned, epoch shuffled
        seconds_to_first_batch=first_batch - start,
    )


if __name__ == "__main__":
    main()
