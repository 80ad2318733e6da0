"""The vocabulary of a problem's data: the given one, or one learned from a sample of
the training text.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import random
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from t2tlite.data.encode_shards import LengthLimits, texts_of
from t2tlite.data.problem import Problem
from t2tlite.vocabularies.encoders import open_encoder
from t2tlite.vocabularies.normalisation import NFC, NFKC, is_blank, normalise, words
from t2tlite.vocabularies.sentencepiece_encoder import (
    PIECES,
    VocabularySizeError,
    train_sentencepiece,
)
from t2tlite.vocabularies.text_encoder import TextEncoder

# about 700,000 pairs of news text; more would hardly change a vocabulary
SAMPLE_CHARACTERS = 200_000_000
MAX_TEXT_CHARACTERS = 10_000  # kept of each text
# ASCII without white space that may still be a word or an ordinary address
MAX_WORD_CHARACTERS = 200
BATCH_PAIRS = 1000  # encoded together to find their lengths
# characters; all pieces that they can have are learned within seconds
SMALL_TEXT = 5_000_000
# bytes that Python needs for the two texts of a pair besides their characters
PAIR_OVERHEAD = 120


class TextSample:
    """A uniform sample of training pairs, bounded in memory and the same for the same
    pairs.

    Each pair draws a random number below 1 and is kept while this number is below a
    threshold. Whenever the sample exceeds its limit, the threshold is halved and the
    pairs above it are removed.
    """

    def __init__(self, limit: int = SAMPLE_CHARACTERS):
        """An empty sample of at most `limit` characters, PAIR_OVERHEAD added for each
        pair.
        """
        self._limit = limit
        self._random = random.Random(1)
        self._threshold = 1.0
        self._size = 0
        # each with its random number
        self._pairs: list[tuple[float, tuple[str, str]]] = []

    def add(self, source: str, target: str) -> None:
        """Offers a pair to the sample."""
        pair = (source[:MAX_TEXT_CHARACTERS], target[:MAX_TEXT_CHARACTERS])
        number = self._random.random()
        if number < self._threshold:
            self._pairs.append((number, pair))
            self._size += _pair_size(pair)
        while self._size > self._limit and len(self._pairs) > 1:
            self._threshold /= 2
            self._remove_above_threshold()

    def add_all(self, pairs: Iterable[tuple[str, str]]) -> int:
        """Offers the pairs that have text on both sides; returns their number."""
        count = 0
        for source, target in pairs:
            if not (is_blank(source) or is_blank(target)):
                self.add(source, target)
                count += 1
        return count

    def sentences(self) -> Iterator[str]:
        """Yields every text of the sample: of each pair the source, then the target."""
        for _, pair in self._pairs:
            yield from pair

    def learn_vocabulary(
        self,
        vocab_size: int,
        path: Path,
        symbols: Sequence[str] = (),
        fit: bool = False,
        limits: LengthLimits | None = None,
        normalization: str = NFC,
        vocab_type: str = PIECES,
    ) -> None:
        """Learns a vocabulary shared by source and target, and writes it to `path`.

        With `fit`, a corpus too small for `vocab_size` yields the largest vocabulary
        possible, and one whose characters need more a larger one.
        Pairs with a word of more than MAX_WORD_CHARACTERS are not learned from, unless
        most have one; nor are pairs that `limits` drop, by their lengths in a first
        vocabulary, unless all are dropped.

        For the other arguments and the errors see `train_sentencepiece`.
        """
        pairs = []
        usual = []
        for _, pair in self._pairs:
            pairs.append(pair)
            if not _has_long_word(pair):
                usual.append(pair)
        if 2 * len(usual) >= len(pairs):
            pairs = usual
        text = _Text(pairs, symbols, normalization, vocab_type)
        if limits is not None and any(limits.may_drop(pair) for pair in pairs):
            with tempfile.TemporaryDirectory() as folder:
                first = Path(folder) / path.name
                text.some().learn_fitting(vocab_size, first)
                kept = text.within(limits, open_encoder(first))
            text = kept if kept.pairs else text
        if fit:
            text.learn_fitting(vocab_size, path)
        else:
            text.learn(vocab_size, path)

    def _remove_above_threshold(self) -> None:
        kept = []
        self._size = 0
        for number, pair in self._pairs:
            if number < self._threshold:
                kept.append((number, pair))
                self._size += _pair_size(pair)
        self._pairs = kept


@dataclasses.dataclass(frozen=True)
class _Text:
    """Pairs to learn a vocabulary from."""

    pairs: list[tuple[str, str]]
    symbols: Sequence[str]
    normalization: str
    vocab_type: str

    def some(self) -> _Text:
        """Its first pairs, of SMALL_TEXT characters."""
        first = self.pairs[:1]
        size = _pair_size(first[0])
        for pair in self.pairs[1:]:
            size += _pair_size(pair)
            if size > SMALL_TEXT:
                break
            first.append(pair)
        return dataclasses.replace(self, pairs=first)

    def within(self, limits: LengthLimits, encoder: TextEncoder) -> _Text:
        """The pairs whose lengths in this vocabulary are within the limits."""
        kept = []
        for start in range(0, len(self.pairs), BATCH_PAIRS):
            batch = self.pairs[start : start + BATCH_PAIRS]
            doubtful = [pair for pair in batch if limits.may_drop(pair)]
            source_texts, target_texts = texts_of(doubtful)
            sources = encoder.encode_batch(source_texts)
            targets = encoder.encode_batch(target_texts)
            dropped = set()
            for pair, source, target in zip(doubtful, sources, targets, strict=True):
                if limits.reason_to_drop(pair, len(source), len(target)):
                    dropped.add(pair)
            kept += [pair for pair in batch if pair not in dropped]
        return dataclasses.replace(self, pairs=kept)

    def learn_fitting(self, vocab_size: int, path: Path) -> None:
        """Learns the vocabulary of the size nearest to `vocab_size` that the text
        allows.
        """
        try:
            self.learn(vocab_size, path)
        except VocabularySizeError as error:
            if error.smallest is None:
                self.learn(error.largest or vocab_size, path)
                return
            needed = error.smallest
        else:
            return
        try:
            # half of the default is for pieces of several characters
            self.learn(needed + vocab_size // 2, path)
        except VocabularySizeError as error:
            self.learn(error.largest or needed, path)

    def learn(self, vocab_size: int, path: Path) -> None:
        """Learns a vocabulary of this size."""
        sentences = itertools.chain.from_iterable(self.pairs)
        train_sentencepiece(
            sentences,
            vocab_size,
            path,
            self.symbols,
            self.normalization,
            self.vocab_type,
        )


def _has_long_word(pair: tuple[str, str]) -> bool:
    """Whether a text has a word that a vocabulary should not learn from, such as an
    address with base64. Only ASCII counts: in other scripts words may have no spaces.
    """
    for text in pair:
        if len(text) <= MAX_WORD_CHARACTERS:
            continue
        longest = max(text.split(), key=len, default="")
        if len(longest.encode("ascii", "ignore")) > MAX_WORD_CHARACTERS:
            return True
    return False


def default_vocab_size(pairs: int) -> int:
    """Pieces for this number of training pairs: 50 times its square root, rounded down
    to thousands, from 1,000 to 32,000.

    >>> [default_vocab_size(pairs) for pairs in (300, 2_000, 29_000, 4_500_000)]
    [1000, 2000, 8000, 32000]
    """
    return min(max(50 * math.isqrt(pairs) // 1000, 1), 32) * 1000


def check_vocabulary_options(problem: Problem) -> None:
    """Raises ValueError or FileNotFoundError for wrong options, or a damaged
    vocabulary.
    """
    if len(problem.vocab_file) > 2:
        raise ValueError(
            "vocab_file must be one vocabulary for source and target, or one for each. "
            f"Received: {problem.vocab_file!r}."
        )
    symbols = problem.user_symbols
    are_words = all(words(symbol) == [symbol] for symbol in symbols)
    normal = {normalise(symbol, problem.normalization) for symbol in symbols}
    if not are_words or len(normal) < len(symbols):
        raise ValueError(
            "user_symbols must be different strings without white space. Received:"
            f" {','.join(symbols)!r}."
        )
    if problem.normalization == NFKC and problem.vocab_file:
        raise ValueError(
            f"normalization={NFKC} is for vocabularies that are learned. Received:"
            f" vocab_file={','.join(problem.vocab_file)}, which has a rule of its own."
        )
    for name in problem.vocab_file:
        encoder = open_encoder(Path(name).expanduser())
        for symbol in symbols:
            if len(encoder.encode(symbol)) != 1:
                raise ValueError(
                    "user_symbols must be pieces of vocab_file if that is given."
                    f" Received: {symbol!r}, which {name} splits."
                )


def vocabulary_names(problem: Problem) -> list[str]:
    """The names of the vocabulary files in a problem's data: one, or the source's and
    the target's.
    """
    if not problem.vocab_file:
        return ["vocab.model"]
    endings = [Path(name).suffix for name in problem.vocab_file]
    if len(endings) == 1:
        return [f"vocab{endings[0]}"]
    source, target = endings
    return [f"vocab.source{source}", f"vocab.target{target}"]


def _pair_size(pair: tuple[str, str]) -> int:
    """Characters of a pair, and PAIR_OVERHEAD."""
    return len(pair[0]) + len(pair[1]) + PAIR_OVERHEAD
