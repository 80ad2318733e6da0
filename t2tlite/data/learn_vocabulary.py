"""The vocabulary of a problem's data: the given one, or one learned from a sample of
the training text.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator, Sequence
from pathlib import Path

from t2tlite.data.problem import Problem
from t2tlite.vocabularies.encoders import ENDINGS, open_encoder, vocabulary_type
from t2tlite.vocabularies.normalisation import NFC, NFKC, normalise, words
from t2tlite.vocabularies.sentencepiece_encoder import (
    MAX_VOCAB_SIZE,
    VocabularySizeError,
    train_sentencepiece,
)
from t2tlite.vocabularies.subword_builder import build_subwords

# some 700,000 pairs of news text; more would hardly change a vocabulary
SAMPLE_CHARACTERS = 200_000_000
MAX_TEXT_CHARACTERS = 10_000  # kept of each text
# characters; all pieces that they can have are learned within seconds
SMALL_TEXT = 5_000_000
# bytes that Python needs for the two texts of a pair in addition to their characters
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
        # (random number, source, target)
        self._pairs: list[tuple[float, str, str]] = []

    def add(self, source: str, target: str) -> None:
        """Offers a pair to the sample."""
        pair = (
            self._random.random(),
            source[:MAX_TEXT_CHARACTERS],
            target[:MAX_TEXT_CHARACTERS],
        )
        if pair[0] < self._threshold:
            self._pairs.append(pair)
            self._size += _size(pair)
        while self._size > self._limit and len(self._pairs) > 1:
            self._threshold /= 2
            self._pairs = [pair for pair in self._pairs if pair[0] < self._threshold]
            self._size = sum(map(_size, self._pairs))

    def sentences(self) -> Iterator[str]:
        """Every text of the sample: of each pair the source, then the target."""
        return itertools.chain.from_iterable(
            (source, target) for _, source, target in self._pairs
        )

    def learn_vocabulary(
        self,
        vocab_size: int,
        path: Path,
        symbols: Sequence[str] = (),
        shrink: bool = False,
        normalization: str = NFC,
    ) -> None:
        """Learns a vocabulary shared by source and target, and writes it to `path`,
        whose ending determines its type.

        With `shrink`, text that is too small for `vocab_size` pieces gives as many as
        it allows. For the other arguments and the errors see `train_sentencepiece` and
        `build_subwords`; a VocabularySizeError names both bounds. A .subwords
        vocabulary has no symbols, since it never separates a bracket from a word, and
        small text always gives fewer subtokens.
        """
        if vocabulary_type(path) == "subwords":
            build_subwords(
                (text.strip() for text in self.sentences()), vocab_size, path
            )
            return
        try:
            self._train(vocab_size, path, symbols, normalization)
        except VocabularySizeError as error:
            if error.largest is None or not shrink:
                raise self._both_bounds(
                    error, vocab_size, path, symbols, normalization
                ) from error
            self._train(error.largest, path, symbols, normalization)

    def _train(
        self, vocab_size: int, path: Path, symbols: Sequence[str], normalization: str
    ) -> None:
        train_sentencepiece(self.sentences(), vocab_size, path, symbols, normalization)

    def _both_bounds(
        self,
        known: VocabularySizeError,
        vocab_size: int,
        path: Path,
        symbols: Sequence[str],
        normalization: str,
    ) -> VocabularySizeError:
        """The error with both bounds; learning an impossible vocabulary reveals the
        unknown one.
        """
        smallest, largest = known.smallest, known.largest
        try:
            if smallest is None:
                self._train(1, path, symbols, normalization)
            elif self._size <= SMALL_TEXT:
                self._train(MAX_VOCAB_SIZE, path, symbols, normalization)
        except VocabularySizeError as error:
            smallest, largest = smallest or error.smallest, largest or error.largest
        return VocabularySizeError(vocab_size, len(symbols), smallest, largest)


def default_vocab_size(pairs: int) -> int:
    """Pieces for so many training pairs: 50 for each of their square root, in
    thousands, from 1,000 to 32,000.

    >>> [default_vocab_size(pairs) for pairs in (300, 2_000, 29_000, 4_500_000)]
    [1000, 2000, 8000, 32000]
    """
    return min(max(50 * math.isqrt(pairs) // 1000, 1), 32) * 1000


def check_vocabulary_options(problem: Problem) -> None:
    """Raises ValueError or FileNotFoundError for wrong options, or a damaged
    vocabulary.
    """
    if problem.vocab_type not in ENDINGS:
        raise ValueError(
            f"vocab_type must be one of {', '.join(ENDINGS)}. Received:"
            f" {problem.vocab_type!r}."
        )
    if len(problem.vocab_file) > 2:
        raise ValueError(
            "vocab_file must be one vocabulary for source and target, or one for each. "
            f"Received: {problem.vocab_file!r}."
        )
    _check_symbols(problem)
    _check_normalization(problem)
    for name in problem.vocab_file:
        encoder = open_encoder(Path(name).expanduser())
        for symbol in problem.user_symbols:
            if len(encoder.encode(symbol)) != 1:
                raise ValueError(
                    "user_symbols must be pieces of vocab_file if that is given."
                    f" Received: {symbol!r}, which {name} splits. Leave it out, or let"
                    " a vocabulary be learned."
                )


def _check_normalization(problem: Problem) -> None:
    """Raises ValueError for a rule that the vocabulary would not have."""
    if problem.normalization != NFKC:
        return
    if problem.vocab_file:
        received = f"vocab_file={','.join(problem.vocab_file)}"
    elif problem.vocab_type != "sentencepiece":
        received = f"vocab_type={problem.vocab_type}"
    else:
        return
    raise ValueError(
        f"normalization={NFKC} is a rule of vocabularies that are learned with"
        f" vocab_type=sentencepiece. Received: {received}, which has a rule of its own."
        " Leave normalization out."
    )


def _check_symbols(problem: Problem) -> None:
    symbols, received = problem.user_symbols, ",".join(problem.user_symbols)
    are_words = all(words(symbol) == [symbol] for symbol in symbols)
    normal = {normalise(symbol, problem.normalization) for symbol in symbols}
    if not are_words or len(normal) < len(symbols):
        raise ValueError(
            "user_symbols must be different strings without white space. Received:"
            f" {received!r}."
        )
    if symbols and problem.vocab_type != "sentencepiece":
        raise ValueError(
            f"user_symbols need vocab_type=sentencepiece. Received: {received} with"
            f" {problem.vocab_type}."
        )


def vocabulary_names(problem: Problem) -> list[str]:
    """The names of the vocabulary files in a problem's data: one, or the source's and
    the target's.
    """
    endings = [Path(name).suffix for name in problem.vocab_file] or [
        ENDINGS[problem.vocab_type]
    ]
    sides = [""] if len(endings) == 1 else [".source", ".target"]
    return [f"vocab{side}{ending}" for side, ending in zip(sides, endings, strict=True)]


def _size(pair: tuple[float, str, str]) -> int:
    return len(pair[1]) + len(pair[2]) + PAIR_OVERHEAD
