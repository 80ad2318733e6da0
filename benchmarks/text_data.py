"""What both benchmarks start from: two text files as token ids over a joint vocabulary."""

from __future__ import annotations

import argparse
from pathlib import Path

from t2tlite.files.text_files import read_lines, read_parallel
from t2tlite.vocabularies.sentencepiece_encoder import SentencePieceEncoder, train_sentencepiece


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments that say what to measure."""
    parser.add_argument("--source", required=True, help="source text, one sentence a line")
    parser.add_argument("--target", required=True, help="its translation")
    parser.add_argument("--hparams_set", default="transformer_base")
    parser.add_argument("--hparams", default="", help="changes to the set, field=value,...")
    parser.add_argument("--vocab_size", type=int, default=8000)
    parser.add_argument("--vocab_files", nargs="*", help="text to learn the vocabulary from (default: both files)")


def encode(args: argparse.Namespace, folder: Path) -> tuple[list[list[int]], list[list[int]]]:
    """Learns a vocabulary and encodes both files with it."""
    pairs = list(read_parallel([args.source], [args.target]))
    sources, targets = zip(*pairs, strict=True)
    text = [line for path in args.vocab_files or () for line in read_lines(path)] or [*sources, *targets]
    train_sentencepiece(text, args.vocab_size, folder / "vocab.model")
    encoder = SentencePieceEncoder(folder / "vocab.model")
    return encoder.encode_batch(sources), encoder.encode_batch(targets)
