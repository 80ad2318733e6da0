"""Text to decode: as token ids within the limit, and its origin."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from t2tlite.vocabularies.encoders import TextEncoder

# An upper bound of the number of tokens of a text, without encoding it. tensor2tensor's
# subwords may spell an ASCII character as \126;_; NFKC may make 33 bytes out of 3.
ASCII_TOKENS = 6  # of an ASCII character
FURTHER_BYTE_TOKENS = 17  # of each further byte of another character, in UTF-8


class Origin(NamedTuple):
    """The file and line where sentences begin, for error messages.

    Attributes:
        file: the file's name; "" if there is none.
        before: the number of lines before the first sentence.
    """

    file: str = ""
    before: int = 0

    def line(self, index: int) -> str:
        """The file and line of the sentence at `index`."""
        number = f"line {self.before + index + 1}"
        return f"{self.file}, {number}" if self.file else number

    def after(self, count: int) -> Origin:
        """The origin of the sentences after the first `count`."""
        return self._replace(before=self.before + count)


NO_FILE = Origin()


class TooLong(ValueError):
    """A sentence has more tokens than can be decoded."""


def encode_within(
    limit: int, encoder: TextEncoder, sentences: Sequence[str], origin: Origin = NO_FILE
) -> list[list[int]]:
    """The token ids of each sentence; raises TooLong, naming the line, if one has more
    than `limit`.
    """
    encoded = encoder.encode_batch(sentences)
    for i, ids in enumerate(encoded):
        if len(ids) > limit:
            raise TooLong(
                f"A sentence must have at most {limit:,} tokens. Received:"
                f" {origin.line(i)} with {len(ids):,} tokens, beginning"
                f" {sentences[i][:40]!r}. Split it, or leave it blank."
            )
    return encoded


def check_lengths(
    limit: int, encoder: TextEncoder, sentences: Iterable[str], origin: Origin
) -> None:
    """Raises TooLong as `encode_within`; encodes, which is slow, only what may be
    too long.
    """
    for i, sentence in enumerate(sentences):
        further_bytes = len(sentence.encode(errors="surrogatepass")) - len(sentence)
        most = ASCII_TOKENS * len(sentence) + FURTHER_BYTE_TOKENS * further_bytes
        if most >= limit:
            encode_within(limit, encoder, [sentence], origin.after(i))


def evenly_spaced(count: int, wanted: int) -> list[int]:
    """`wanted` indices of `count` sentences, evenly spaced; all if there are no
    more.
    """
    if count <= wanted:
        return list(range(count))
    return [i * count // wanted for i in range(wanted)]
