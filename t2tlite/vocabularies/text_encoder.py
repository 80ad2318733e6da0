"""The interface of both types of vocabulary, and their checks of text and ids.

In every vocabulary the padding token has id 0 and the end-of-sentence token (EOS) id 1.
`encode` adds neither: the token store appends EOS, and batches are padded. `decode`
ends at EOS and skips padding.
"""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, ClassVar, Protocol

from t2tlite.types import EOS, PAD
from t2tlite.vocabularies.normalisation import NONE

LINE_SPACES = re.compile("[\n ]+")


class TextEncoder(Protocol):
    """A vocabulary: text to token ids and back. Encoders can be pickled.

    Attributes:
        type: the type as manifests record it.
        ending: that of the names of its files.
        path: the vocabulary file.
        vocab_size: the number of ids.
        normalization: the rule that it applies to text, one of NORMALIZATIONS in
            normalisation.py.
        unknown: the id of text that the vocabulary cannot spell, if there may be such.
    """

    type: ClassVar[str]
    ending: ClassVar[str]
    path: Path
    vocab_size: int
    normalization: str = NONE
    unknown: int | None = None

    def __init__(self, path: str | Path) -> None:
        """Loads a vocabulary file."""

    def normalise(self, text: str) -> str:
        """The text as the vocabulary reads it. Texts with equal results have equal
        ids.
        """

    def is_blank(self, text: str) -> bool:
        """Whether the vocabulary reads nothing but white space in a text."""
        return not self.normalise(text).strip()

    def encode_batch(
        self, texts: Sequence[str], num_threads: int = 1
    ) -> list[list[int]]:
        """The token ids of each text, without EOS; an empty list for the empty text.
        Subword vocabularies use one thread.

        Raises ValueError if a text contains a lone surrogate, or a character that a
        damaged vocabulary cannot encode.
        """

    def decode(self, ids: Iterable[int]) -> str:
        """The text of `ids` up to the first EOS, without padding. Accepts any ids in
        range, as a model may emit any.

        Raises ValueError if an id before EOS is negative, or `vocab_size` or more.
        """

    def text(self, ids: Iterable[int]) -> str:
        """The text of ids from a model: `decode` on one line, without double spaces or
        white space at the ends.

        A model may emit white space in places where no text has it, such as
        SentencePiece's space before a word without the word.
        """
        return LINE_SPACES.sub(" ", self.decode(ids)).strip()

    def pieces(self, ids: Iterable[int]) -> list[str]:
        """The piece of each id, EOS and padding included. Raises ValueError for an id
        out of range.
        """

    def encode(self, text: str) -> list[int]:
        return self.encode_batch([text])[0]

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.path,)


def text_ids(ids: Iterable[int], vocab_size: int) -> list[int]:
    """The ids before the first EOS, without padding. Raises as `ids_in_range`."""
    text = []
    for i in ids:
        if i == EOS:
            break
        if i != PAD:
            text.append(i)
    return ids_in_range(text, vocab_size)


def ids_in_range(ids: Iterable[int], vocab_size: int) -> list[int]:
    """The ids as a list. Raises ValueError if an id is negative, or `vocab_size` or
    more.
    """
    numbers = list(map(int, ids))
    for i in numbers:
        if not 0 <= i < vocab_size:
            most = vocab_size - 1
            raise ValueError(f"A token id must be from 0 to {most}. Received: {i}.")
    return numbers


def check_unicode(text: str) -> None:
    """Raises ValueError if `text` cannot be written in UTF-8 because it contains a lone
    surrogate.
    """
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(
            "Text must be Unicode without lone surrogates, as UTF-8 is. Received:"
            f" {text[error.start]!a} at character {error.start + 1} of {text[:80]!a}."
        ) from error
