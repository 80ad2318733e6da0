"""Decoding speed: sentences a second.

    python benchmarks/decode_throughput.py --source=test.en --target=test.de --vocab_files train.en train.de \\
        --sentences=256 --batch=32 --steps=32

Every sentence is decoded for exactly --steps positions (EOS is masked), so that untrained weights cost what
trained ones do. The first batch (tracing) does not count. Prints one line that begins RESULT.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
import text_data

from t2tlite.quiet import quiet_stderr

with quiet_stderr():
    import tensorflow as tf

import t2tlite.hparams  # noqa: F401  registers the sets
from t2tlite import registry
from t2tlite.decoding.beam_search import beam_search
from t2tlite.models.transformer import build_transformer
from t2tlite.tokens import EOS
from t2tlite.types import DecodingCache, Tensor


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    text_data.add_arguments(parser)
    parser.add_argument("--sentences", type=int, default=256)
    parser.add_argument("--batch", type=int, default=32, help="sentences decoded together")
    parser.add_argument("--steps", type=int, default=32, help="positions decoded of each sentence")
    parser.add_argument("--beam_size", type=int, default=4)
    parser.add_argument("--profile", help="folder for a TensorFlow profile of one more batch")
    args = parser.parse_args()
    hparams = registry.hparams(args.hparams_set).override(args.hparams)
    with tempfile.TemporaryDirectory() as folder:
        sources, _ = text_data.encode(args, Path(folder))
    sources = sorted(sources[: args.sentences], key=len, reverse=True)
    batches = [pad(sources[i : i + args.batch]) for i in range(0, len(sources), args.batch)]
    model = build_transformer(hparams, args.vocab_size, args.vocab_size)
    forbidden = tf.one_hot(EOS, args.vocab_size, on_value=-1e9, off_value=0.0)

    def decode_step(*arguments: Tensor) -> tuple[Tensor, DecodingCache]:
        logits, cache = model.decode_step(*arguments)
        return logits + forbidden, cache

    def search(inputs: Tensor, length: Tensor) -> Tensor:
        cache = model.start_decoding(inputs, args.beam_size, length)
        limits = tf.fill(tf.shape(inputs)[:1], length)
        return beam_search(decode_step, cache, max_lengths=limits, beam_size=args.beam_size, length=length, alpha=0.6)[
            0
        ]

    if hparams.jit_compile:
        search = tf.function(search, jit_compile=True)
    else:
        search = tf.function(
            search, input_signature=(tf.TensorSpec((None, None), tf.int32), tf.TensorSpec((), tf.int32))
        )
    length = args.steps if hparams.jit_compile else np.int32(args.steps)
    search(batches[-1], length)
    start = time.perf_counter()
    found = [search(batch, length).numpy() for batch in batches]
    seconds = time.perf_counter() - start
    if args.profile:
        with tf.profiler.experimental.Profile(args.profile):
            search(batches[0], length).numpy()
    decoded = int(np.mean([np.count_nonzero(ids[:, 0]) / len(ids) for ids in found]))
    print(
        f"RESULT t2tlite decode {args.hparams_set} {hparams.dtype_policy} beam {args.beam_size} batch {args.batch}: "
        f"{len(sources)} sentences of {decoded} steps in {seconds:.1f} s, {len(sources) / seconds:.2f} sentences/s"
    )


def pad(rows: list[list[int]]) -> np.ndarray:
    """Rows with their EOS, padded to the longest: int32 [rows, width]."""
    block: np.ndarray = np.zeros((len(rows), max(map(len, rows)) + 1), np.int32)
    for at, row in enumerate(rows):
        block[at, : len(row)] = row
        block[at, len(row)] = EOS
    return block


if __name__ == "__main__":
    main()
