"""The vocabulary of a problem's data: the given one, or one learned from a sample of
the training text.
"""

import functools
import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from t2tlite.console import say
from t2tlite.data.checked_pairs import Pair
from t2tlite.data.problem import Problem
from t2tlite.vocabularies.encoders import open_encoder
from t2tlite.vocabularies.normalisation import NFKC, normalise, words
from t2tlite.vocabularies.sentencepiece_encoder import (
    PIECES,
    VocabularySizeError,
    train_sentencepiece,
)

# about 700,000 pairs of news text; more would hardly change a vocabulary
SAMPLE_CHARACTERS = 200_000_000
MAX_TEXT_CHARACTERS = 10_000  # kept of each text
# ASCII without white space that may still be a word or an ordinary address
MAX_WORD_CHARACTERS = 200
# bytes that Python needs for the two texts of a pair besides their characters
PAIR_OVERHEAD = 120


class TextSample:
    """A sample of the training pairs, from everywhere and bounded in memory: all, or
    every second, fourth, eighth and so on.
    """

    def __init__(self, limit: int = SAMPLE_CHARACTERS):
        """An empty sample of at most `limit` characters, PAIR_OVERHEAD added for each
        pair.
        """
        self.pairs: list[Pair] = []
        self._limit = limit
        self._offered = 0
        self._step = 1
        self._size = 0

    def add(self, pairs: Iterable[Pair]) -> None:
        """Offers pairs that have text on both sides."""
        for source, target in pairs:
            if self._offered % self._step == 0:
                pair = (source[:MAX_TEXT_CHARACTERS], target[:MAX_TEXT_CHARACTERS])
                self.pairs.append(pair)
                self._size += _size(pair)
            self._offered += 1
            while self._size > self._limit and len(self.pairs) > 1:
                self._step *= 2
                self.pairs = self.pairs[::2]
                self._size = sum(map(_size, self.pairs))


def _size(pair: Pair) -> int:
    return len(pair[0]) + len(pair[1]) + PAIR_OVERHEAD


def learn_vocabulary(
    problem: Problem,
    pairs: Sequence[Pair],
    corpus_pairs: int,
    symbols: Iterable[str],
    path: Path,
) -> None:
    """Learns a vocabulary shared by source and target from pairs that both have text,
    and writes it to `path`.

    The default size follows from the training pairs, `corpus_pairs`; a corpus too small
    for it yields the largest vocabulary possible, and one whose characters need more a
    larger one. Pairs with a word of more than MAX_WORD_CHARACTERS, or with more words
    than `max_length` tokens, are not learned from, unless most pairs are such.

    Raises as `train_sentencepiece`.
    """
    vocab_size = problem.vocab_size
    kind = problem.vocab_type
    if kind == PIECES:
        kind = "pieces"
        vocab_size = vocab_size or default_vocab_size(corpus_pairs)
    say(f"learning {vocab_size or 'all'} {kind} ...")
    usual = [pair for pair in pairs if _is_usual(pair, problem.max_length)]
    if 2 * len(usual) >= len(pairs):
        pairs = usual
    texts: list[str] = []
    for pair in pairs:
        texts += pair
    learn = functools.partial(
        train_sentencepiece,
        texts,
        path=path,
        symbols=tuple(symbols),
        normalization=problem.normalization,
        vocab_type=problem.vocab_type,
    )
    if problem.vocab_size in (0, type(problem).vocab_size):
        _learn_fitting(learn, vocab_size)
    else:
        learn(vocab_size=vocab_size)


def default_vocab_size(pairs: int) -> int:
    """Pieces for this number of training pairs: 50 times its square root, rounded down
    to thousands, from 1,000 to 32,000.

    >>> [default_vocab_size(pairs) for pairs in (300, 2_000, 29_000, 4_500_000)]
    [1000, 2000, 8000, 32000]
    """
    return min(max(50 * math.isqrt(pairs) // 1000, 1), 32) * 1000


def _learn_fitting(learn: Callable[..., None], vocab_size: int) -> None:
    """Learns the vocabulary of the size nearest to `vocab_size` that the text
    allows.
    """
    try:
        return learn(vocab_size=vocab_size)
    except VocabularySizeError as error:
        size = error.largest or vocab_size
        if error.smallest is not None:
            # half of the default is for pieces of several characters
            size = error.smallest + vocab_size // 2
    try:
        learn(vocab_size=size)
    except VocabularySizeError as error:
        learn(vocab_size=error.largest or size - vocab_size // 2)


def _is_usual(pair: Pair, max_length: int) -> bool:
    """Whether a vocabulary should learn from a pair: neither side has a word such as an
    address with base64, or more words than the tokens it may have, with EOS. Only
    ASCII counts: in other scripts words may have no spaces.
    """
    for text in pair:
        parts = text.split()
        if max_length and len(parts) >= max_length:
            return False
        longest = max(parts, key=len, default="")
        if len(longest.encode("ascii", "ignore")) > MAX_WORD_CHARACTERS:
            return False
    return True


def given_vocabularies(problem: Problem) -> list[Path]:
    """The files that `vocab_file` names. Raises ValueError or FileNotFoundError for
    wrong options of the vocabulary, or a damaged one.
    """
    paths = [Path(name).expanduser() for name in problem.vocab_file]
    given = ",".join(map(str, paths))
    if len(paths) > 2 or (paths and problem.normalization == NFKC):
        raise ValueError(
            "vocab_file must be one, or source's and target's, without normalization="
            f"{NFKC}. Received: {given}, {problem.normalization}."
        )
    encoders = list(map(open_encoder, paths))
    normal: set[str] = set()
    for symbol in problem.user_symbols:
        is_piece = words(symbol) == [symbol]
        for encoder in encoders:
            ids = encoder.encode(symbol)
            is_piece &= len(ids) == 1 and ids != [encoder.unknown]
        before = len(normal)
        normal.add(normalise(symbol, problem.normalization))
        if not is_piece or len(normal) == before:
            raise ValueError(
                "user_symbols must differ, without white space, and be pieces of"
                f" vocab_file if that is given. Received: {symbol!r}."
            )
    return paths


def vocabulary_names(given: Sequence[Path]) -> list[str]:
    """The names of the vocabulary files in the data: one, or the source's and the
    target's.
    """
    if len(given) == 2:
        source, target = given
        return [f"vocab.source{source.suffix}", f"vocab.target{target.suffix}"]
    return [f"vocab{path.suffix}" for path in given] or ["vocab.model"]
