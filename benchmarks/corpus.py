"""The hparam set and the corpus with which t2tlite's programs measure. The corpus is
random token ids, or made from two text files.

Random sentences have log-normal lengths and ids that are as unequally frequent as words
(Zipf's law); with the default arguments the lengths are those of news in word pieces.
The same arguments give the same corpus.
"""

# N pairs

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import program

from t2tlite import registry
from t2tlite.config import HParams
from t2tlite.data.encode_shards import CHUNK_PAIRS
from t2tlite.data.token_store import TokenStore, write_shard
from t2tlite.files.text_files import read_lines, read_parallel
from t2tlite.vocabularies.sentencepiece_encoder import (
    SentencePieceEncoder,
    train_sentencepiece,
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments that choose hparams and corpus."""
    parser.add_argument("--hparams_set", default="transformer_base")
    parser.add_argument(
        "--hparams", default="", help="changes to the set, field=value,..."
    )
    parser.add_argument("--vocab_size", type=int, default=8000)
    parser.add_argument(
        "--pairs", type=int, default=20_000, help="random sentence pairs"
    )
    parser.add_argument(
        "--mean_length",
        type=float,
        default=28,
        help="of a random sentence, in tokens with EOS",
    )
    parser.add_argument(
        "--spread",
        type=float,
        default=0.5,
        help="standard deviation of log length; 0: all are equal",
    )
    parser.add_argument(
        "--source", help="source text, one sentence a line, instead of random ids"
    )
    parser.add_argument("--target", help="its translation")
    parser.add_argument(
        "--vocab_files",
        nargs="*",
        help="text to learn the vocabulary from (default: both files)",
    )


def read_hparams(args: argparse.Namespace) -> HParams:
    """Returns the hparams that the arguments name."""
    import t2tlite.hparams  # noqa: F401  registers the sets

    return registry.get_hparams(args.hparams_set).override(args.hparams)


def make_store(args: argparse.Namespace, folder: Path) -> TokenStore:
    """Writes the corpus as token shards in `folder` and opens them."""
    if args.source:
        sources, targets = zip(
            *read_parallel([args.source], [args.target]), strict=True
        )
        text = [
            line for path in args.vocab_files or () for line in read_lines(path)
        ] or [*sources, *targets]
        train_sentencepiece(text, args.vocab_size, folder / "vocab.model")
        encoder = SentencePieceEncoder(folder / "vocab.model")
        chunks = [(encoder.encode_batch(sources), encoder.encode_batch(targets))]
    else:
        random = np.random.default_rng(1)
        sizes = [
            min(CHUNK_PAIRS, args.pairs - first)
            for first in range(0, args.pairs, CHUNK_PAIRS)
        ]
        chunks = (
            random_pairs(random, size, args.vocab_size, args.mean_length, args.spread)
            for size in sizes
        )
    paths = []
    for number, (source_ids, target_ids) in enumerate(chunks):
        paths.append(folder / f"train-{number:05d}.arrow")
        write_shard(paths[-1], source_ids, target_ids, args.vocab_size)
    return TokenStore(paths)


def make_job(
    args: argparse.Namespace,
    hparams: HParams,
    warm: int,
    batches: Sequence[tuple[np.ndarray, np.ndarray]],
    **decoding: int,
) -> program.Job:
    """Returns the job. If --save_job names a file, also writes it, for the programs of
    other projects.
    """
    job = program.Job(
        hidden_size=hparams.hidden_size,
        filter_size=hparams.filter_size,
        num_layers=hparams.num_hidden_layers,
        num_heads=hparams.num_heads,
        vocab_size=args.vocab_size,
        warm=warm,
        batches=batches,
        **decoding,
    )
    if args.save_job:
        program.save_job(args.save_job, job)
    return job


def random_pairs(
    random: np.random.Generator,
    pairs: int,
    vocab_size: int,
    mean_length: float,
    spread: float,
) -> tuple[list[list[int]], list[list[int]]]:
    """Sources and targets as ids without EOS; `mean_length` counts the EOS.

    The two lengths of a pair are the product of one factor for both sides and one of
    its own, which varies a quarter as much. The probability of an id is about
    proportional to its inverse.
    """
    shared = random.normal(0, spread, pairs)
    sides = []
    for _ in range(2):
        # so that the mean is right
        logs = (
            shared + random.normal(0, spread / 4, pairs) - spread**2 * (1 + 1 / 16) / 2
        )
        # [N], without EOS
        lengths = np.clip(np.rint(mean_length * np.exp(logs)), 2, 1024).astype(int) - 1
        # 2, ..., vocab_size - 1
        ids = 1 + np.floor((vocab_size - 1) ** random.random(lengths.sum())).astype(int)
        sides.append([row.tolist() for row in np.split(ids, np.cumsum(lengths)[:-1])])
    return sides[0], sides[1]
