"""Training speed: source and target tokens a second, padding left out.

    python benchmarks/train_throughput.py --source=train.en --target=train.de --hparams_set=transformer_base --steps=12

The first --warm steps (tracing, memory) do not count. Prints a line for each step, and one that begins RESULT.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import text_data

from t2tlite.quiet import quiet_stderr

with quiet_stderr():
    import tensorflow as tf

import t2tlite.hparams  # noqa: F401  registers the sets
from t2tlite import registry
from t2tlite.config import HParams
from t2tlite.data.batch_plan import training_plan
from t2tlite.data.input_pipeline import distribute
from t2tlite.data.token_store import TokenStore, write_shard
from t2tlite.models.transformer import build_transformer
from t2tlite.training.train_step import make_optimizer, make_train_step


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    text_data.add_arguments(parser)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--warm", type=int, default=4)
    parser.add_argument("--profile", help="folder for a TensorFlow profile of three more steps")
    args = parser.parse_args()
    hparams = registry.hparams(args.hparams_set).override(args.hparams)
    with tempfile.TemporaryDirectory() as folder:
        shard = Path(folder) / "train.arrow"
        write_shard(shard, *text_data.encode(args, Path(folder)), vocab_size=args.vocab_size)
        measure(hparams, TokenStore([shard]), args)


def measure(hparams: HParams, store: TokenStore, args: argparse.Namespace) -> None:
    """Trains a few steps."""
    gpus = tf.config.list_physical_devices("GPU")
    strategy = tf.distribute.MirroredStrategy([f"GPU:{i}" for i in range(len(gpus))] or ["CPU:0"])
    plan = training_plan(hparams, store.source_lengths, store.target_lengths, strategy.num_replicas_in_sync, seed=1)
    with strategy.scope():
        model = build_transformer(hparams, args.vocab_size, args.vocab_size)
        optimizer = make_optimizer(hparams)
        optimizer.build(model.trainable_variables)
    train_step = make_train_step(strategy, model, optimizer, hparams)
    extra = 3 if args.profile else 0
    batches = iter(distribute(strategy, store, plan, 0, args.steps + extra, hparams.accumulate_steps))
    seconds = tokens = positions = 0.0
    for step in range(args.steps):
        start = time.perf_counter()
        result = train_step(batches)
        loss, took = float(result.loss), time.perf_counter() - start
        print(f"step {step + 1} loss {loss:.3f} {took:.2f} s, {float(result.tokens) / took:,.0f} tokens/s", flush=True)
        if step >= args.warm:
            seconds, tokens = seconds + took, tokens + float(result.tokens)
            positions += float(result.positions)
    if args.profile:
        with tf.profiler.experimental.Profile(args.profile):
            for _ in range(extra):
                float(train_step(batches).loss)
    print(
        f"RESULT t2tlite train {args.hparams_set} {hparams.dtype_policy}: {model.count_params():,} parameters, "
        f"{seconds / (args.steps - args.warm):.2f} s/step, {tokens / seconds:,.0f} source+target tokens/s, "
        f"padding {1 - tokens / positions:.1%}"
    )


if __name__ == "__main__":
    main()
