"""Learning the vocabulary from a sample of the training text that fits in memory, however much text there is."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from pathlib import Path

from t2tlite.data.text_encoder import train_sentencepiece

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

        Each of `symbols` is a piece where a word begins with it.

        Raises:
            ValueError: `vocab_size` does not suit the text.
            OSError: the file cannot be written.
        """
        train_sentencepiece(self.sentences(), vocab_size, path, symbols)


def _size(source: str, target: str) -> int:
    return len(source) + len(target) + 2 * TEXT_OVERHEAD
