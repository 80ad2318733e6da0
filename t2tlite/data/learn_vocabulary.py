"""The vocabulary of a problem's data: a given one, or one learned from a sample of the training text.

The sample fits in memory, however much text there is.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from pathlib import Path

from t2tlite.data.problem import Problem
from t2tlite.files.atomic_file import copy_file
from t2tlite.vocabularies.encoders import ENDINGS, open_encoder, vocabulary_type
from t2tlite.vocabularies.sentencepiece_encoder import train_sentencepiece
from t2tlite.vocabularies.subword_builder import build_subwords

SAMPLE_CHARACTERS = 200_000_000  # some 700,000 pairs of news text: more than a byte-pair vocabulary still learns from
LONGEST_TEXT = 10_000  # characters kept of one text
TEXT_OVERHEAD = 60  # bytes that Python spends on a text beside its characters


class TextSample:
    """A uniform sample of all pairs added, bounded in memory, the same for the same pairs.

    Each pair draws a number below 1 and stays while that is below a threshold; whenever the sample outgrows its
    limit, the threshold is halved and the pairs above it leave.
    """

    def __init__(self, limit: int = SAMPLE_CHARACTERS, seed: int = 1):
        """Starts an empty sample.

        Args:
            limit: characters to keep at most, counting TEXT_OVERHEAD for every text.
            seed: of the draw.
        """
        self._limit = limit
        self._random = random.Random(seed)
        self._threshold = 1.0
        self._size = 0
        self._pairs: list[tuple[float, str, str]] = []  # (number drawn, source, target)

    def __len__(self) -> int:
        return len(self._pairs)

    def add(self, source: str, target: str) -> None:
        """Offers a pair to the sample."""
        drawn = self._random.random()
        if drawn >= self._threshold:
            return
        source, target = source[:LONGEST_TEXT], target[:LONGEST_TEXT]
        self._pairs.append((drawn, source, target))
        self._size += _size(source, target)
        while self._size > self._limit and len(self._pairs) > 1:
            self._threshold /= 2
            self._pairs = [pair for pair in self._pairs if pair[0] < self._threshold]
            self._size = sum(_size(source, target) for _, source, target in self._pairs)

    def sentences(self) -> Iterator[str]:
        """Every text of the sample: of each pair the source, then the target."""
        for _, source, target in self._pairs:
            yield source
            yield target

    def learn_vocabulary(self, vocab_size: int, path: Path, symbols: Sequence[str] = ()) -> None:
        """Writes a vocabulary of `vocab_size` pieces, shared by source and target, to `path`.

        Each of `symbols` is a piece where a word begins with it. A path that ends in .subwords gets a vocabulary of
        tensor2tensor's kind: of about that size, and without `symbols`, since it never cuts a word from a bracket.

        Raises:
            ValueError: `vocab_size` does not suit the text.
            OSError: the file cannot be written.
        """
        if vocabulary_type(path) == "subwords":
            build_subwords((text.strip() for text in self.sentences()), vocab_size, path)
        else:
            train_sentencepiece(self.sentences(), vocab_size, path, symbols)


def check_vocabulary_options(problem: Problem) -> None:
    """Checks `vocab_type` and `vocab_file`, and that a given vocabulary can be read.

    Raises:
        ValueError: a bad option, or a damaged file.
        FileNotFoundError: there is no such file.
    """
    if problem.vocab_type not in ENDINGS:
        raise ValueError(f"vocab_type must be one of {', '.join(ENDINGS)}. Received: {problem.vocab_type!r}.")
    if isinstance(problem.vocab_file, str) or len(problem.vocab_file) > 2:
        raise ValueError(
            "vocab_file must be one vocabulary for source and target, or one for each. Received: "
            f"{problem.vocab_file!r}."
        )
    for name in problem.vocab_file:
        open_encoder(Path(name).expanduser())


def vocabulary_names(problem: Problem) -> list[str]:
    """The names of the vocabulary files in a problem's data: one, or the source's and the target's."""
    endings = [Path(name).suffix for name in problem.vocab_file] or [ENDINGS[problem.vocab_type]]
    if len(endings) == 1:
        return [f"vocab{endings[0]}"]
    return [f"vocab.{side}{ending}" for side, ending in zip(("source", "target"), endings, strict=True)]


def copy_vocabularies(problem: Problem, folder: Path) -> None:
    """Copies the vocabularies given as `vocab_file` into a problem's data."""
    for given, name in zip(problem.vocab_file, vocabulary_names(problem), strict=True):
        copy_file(Path(given).expanduser(), folder / name)


def _size(source: str, target: str) -> int:
    return len(source) + len(target) + 2 * TEXT_OVERHEAD
