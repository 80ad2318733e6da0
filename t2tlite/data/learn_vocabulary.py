"""The vocabulary of a problem's data: the given one, or one learned from a sample of
the training text.
"""

import functools
import itertools
import math
import random
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from t2tlite.console import say
from t2tlite.data.checked_pairs import Pair
from t2tlite.data.problem import Problem
from t2tlite.vocabularies.encoders import open_encoder
from t2tlite.vocabularies.normalisation import NFKC, is_blank, normalise, words
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
        self._numbered: list[tuple[float, Pair]] = []

    def add(self, pairs: Iterable[Pair]) -> int:
        """Offers the pairs that have text on both sides; returns their number."""
        offered = 0
        for source, target in pairs:
            if is_blank(source) or is_blank(target):
                continue
            offered += 1
            number = self._random.random()
            if number < self._threshold:
                pair = (source[:MAX_TEXT_CHARACTERS], target[:MAX_TEXT_CHARACTERS])
                self._numbered.append((number, pair))
                self._size += _size(pair)
            while self._size > self._limit and len(self._numbered) > 1:
                self._threshold /= 2
                self._numbered = [
                    row for row in self._numbered if row[0] < self._threshold
                ]
                self._size = sum(map(_size, self.pairs()))
        return offered

    def pairs(self) -> list[Pair]:
        return [pair for _, pair in self._numbered]


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
    larger one. Pairs with a word of more than MAX_WORD_CHARACTERS are not learned from,
    unless most have one; nor are pairs with more words than `max_length` tokens, unless
    all have more.

    Raises as `train_sentencepiece`.
    """
    vocab_size = problem.vocab_size
    if not vocab_size and problem.vocab_type == PIECES:
        vocab_size = default_vocab_size(corpus_pairs)
    kind = "pieces" if problem.vocab_type == PIECES else problem.vocab_type
    say(f"learning {vocab_size or 'all'} {kind} ...")
    usual = [pair for pair in pairs if not _has_long_word(pair)]
    if 2 * len(usual) >= len(pairs):
        pairs = usual
    short = [pair for pair in pairs if _may_be_kept(pair, problem.max_length)]
    texts = list(itertools.chain.from_iterable(short or pairs))
    learn = functools.partial(
        train_sentencepiece,
        texts,
        path=path,
        symbols=tuple(symbols),
        normalization=problem.normalization,
        vocab_type=problem.vocab_type,
    )
    if problem.vocab_size == type(problem).vocab_size:
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


def check_vocabulary_options(problem: Problem) -> None:
    """Raises ValueError or FileNotFoundError for wrong options, or a damaged
    vocabulary.
    """
    given = ",".join(map(str, problem.vocab_file))
    if len(problem.vocab_file) > 2:
        raise ValueError(
            "vocab_file must be one vocabulary for source and target, or one for each. "
            f"Received: {given}."
        )
    symbols = problem.user_symbols
    are_words = all(words(symbol) == [symbol] for symbol in symbols)
    normal = {normalise(symbol, problem.normalization) for symbol in symbols}
    if not are_words or len(normal) < len(symbols):
        raise ValueError(
            "user_symbols must be different strings without white space. Received:"
            f" {','.join(symbols)!r}."
        )
    if problem.normalization == NFKC and given:
        raise ValueError(
            f"normalization={NFKC} is for vocabularies that are learned. Received:"
            f" vocab_file={given}, which has a rule of its own."
        )
    for path in given_vocabularies(problem):
        encoder = open_encoder(path)
        for symbol in symbols:
            if len(encoder.encode(symbol)) != 1:
                raise ValueError(
                    "user_symbols must be pieces of vocab_file if that is given."
                    f" Received: {symbol!r}, which {path} splits."
                )


def given_vocabularies(problem: Problem) -> list[Path]:
    """The files that `vocab_file` names."""
    return [Path(name).expanduser() for name in problem.vocab_file]


def vocabulary_names(problem: Problem) -> list[str]:
    """The names of the vocabulary files in a problem's data: one, or the source's and
    the target's.
    """
    endings = [Path(name).suffix for name in problem.vocab_file] or [".model"]
    stems = ["vocab"] if len(endings) == 1 else ["vocab.source", "vocab.target"]
    return [stem + ending for stem, ending in zip(stems, endings, strict=True)]


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


def _has_long_word(pair: Pair) -> bool:
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


def _may_be_kept(pair: Pair, max_length: int) -> bool:
    """Whether the words of a pair are no more than the tokens it may have, with EOS."""
    longer = max(len(text.split()) for text in pair)
    return not max_length or longer < max_length


def _size(pair: Pair) -> int:
    """Characters of a pair, and PAIR_OVERHEAD."""
    return len(pair[0]) + len(pair[1]) + PAIR_OVERHEAD
