"""What a problem must say: where its sentence pairs come from, and how they are decoded.

A problem knows text and nothing else. `data/generate.py` turns its text into a vocabulary and token shards,
and from then on the manifest in the data directory stands for the problem.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from t2tlite import registry

SPLITS = ("train", "dev", "test")


@dataclasses.dataclass(frozen=True)
class Problem:
    """Sentence pairs of two languages, in the splits train, dev and test.

    A subclass is a frozen dataclass whose fields are its options: a command-line flag of the same name sets each.

    Attributes:
        vocab_size: number of pieces in the vocabulary that source and target share; about as many where it is of
            tensor2tensor's kind.
        vocab_type: "sentencepiece", or "subwords" for a vocabulary of tensor2tensor's kind.
        vocab_file: use this vocabulary (a .model or .subwords file) instead of learning one; two files where source
            and target have one each. `vocab_size` and `vocab_type` are then of no account.
        max_length: drop training pairs with a side longer than this many tokens, end mark included; 0 keeps all.
        max_length_ratio: drop training pairs one side of which has more than this many times the tokens of the
            other; 0 keeps all.
        reverse: swap source and target, as the name's ending `_rev` asks. Both directions share one data directory.
    """

    vocab_size: int = 32000
    vocab_type: str = "sentencepiece"
    vocab_file: tuple[str, ...] = ()
    max_length: int = 0
    max_length_ratio: float = 0.0
    reverse: bool = False

    task: ClassVar[str] = "translation"  # or "parsing": the target is a tree, see data/linearise.py
    source_language: ClassVar[str] = ""  # a sacrebleu / ISO 639-1 code, "" where it does not matter
    target_language: ClassVar[str] = ""
    decode_defaults: ClassVar[dict[str, float]] = {"beam_size": 4, "alpha": 0.6, "extra_length": 50}

    def name(self) -> str:
        """The name of the data: the registered name without `_rev`."""
        return registry.snake_case(type(self).__name__)

    def splits(self) -> tuple[str, ...]:
        """The splits there are: train and dev at least."""
        return SPLITS

    def pairs(self, split: str, tmp_dir: Path | None) -> Iterator[tuple[str, str]]:
        """Yields (source, target) of a split, always the same pairs in the same order.

        Neither text holds a line break. Never reversed: the data directory holds one direction.

        Args:
            split: one of `splits()`.
            tmp_dir: where raw files lie or are downloaded to (--tmp_dir).

        Raises:
            ValueError: bad input; the message names file and line.
            FileNotFoundError: a file is missing; the message says where it was looked for and how to get it.
        """
        raise NotImplementedError

    def symbols(self, tmp_dir: Path | None) -> tuple[str, ...]:
        """Strings that are one piece of the vocabulary wherever a word begins with one, such as labelled brackets."""
        return ()

    def files(self, tmp_dir: Path | None) -> list[Path]:
        """The raw files that `pairs` reads, for the manifest to record; none for generated data."""
        return []
