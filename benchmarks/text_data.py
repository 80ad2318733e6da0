"""What both benchmarks start from: two text files as token ids over a joint vocabulary."""

from __future__ import annotations

import argparse
from pathlib import Path

from t2tlite.data.text_encoder import SentencePieceEncoder, train_sentencepiece
from t2tlite.data.text_files import read_parallel


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments that say what to measure."""
    parser.add_argument("--source", required=True, help="source text, one sentence a line")
    parser.add_argument("--target", required=True, help="its translation")
    parser.add_argument("--hparams_set", default="transformer_base")
    parser.add_argument("--hparams", default="", help="changes to the set, field=value,...")
    parser.add_argument("--vocab_size", type=int, default=8000)


def encode(args: argparse.Namespace, folder: Path) -> tuple[list[list[int]], list[list[int]]]:
    """Learns a vocabulary from both files and encodes them with it."""
    pairs = list(read_parallel([args.source], [args.target]))
    sources, targets = zip(*pairs, strict=True)
    train_sentencepiece([*sources, *targets], args.vocab_size, folder / "vocab.model")
    encoder = SentencePieceEncoder(folder / "vocab.model")
    return encoder.encode_batch(sources), encoder.encode_batch(targets)
