r"""tensor2tensor's subword vocabularies: text to token ids and back, id for id as its SubwordTextEncoder does it.

Text becomes ids in three steps, each of which can be undone:

    "Hello, snake_case world"
    tokens       Hello|, |snake|_|case|world       runs of letters and digits, runs of anything else
    escaped      Hello_|, _|snake_|\u_|case_|world_
    subtokens    Hel|lo_|, _|sna|ke_|\u_|case_|world_

The space between two words is no token; it is put back between two tokens that both begin with a letter or digit. `_`
ends a token, and so says where it joins the next one.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any

from t2tlite.files.text_files import read_lines
from t2tlite.vocabularies.sentencepiece_encoder import EOS, PAD, check_unicode

# What the first two lines hold: tensor2tensor's builder writes the first of each, and some files have the second.
PAD_MARKS = "<pad>_", "<pad>"
EOS_MARKS = "<EOS>_", "<EOS>"

# Escaping needs these, so every vocabulary has them in its alphabet.
ESCAPE_CHARACTERS = frozenset("\\_u;0123456789")

# Letters and digits are Unicode's categories L and N, which is what \w takes besides `_`.
TOKENS = re.compile(r"[^\W_]+|[\W_]+")
ESCAPES = re.compile(r"\\u|\\\\|\\([0-9]+);")
NO_CHARACTER = "\u3013"  # stands for a number that no character has

# How many tokens' ids are remembered, which takes some 30 MB. Text repeats itself: of the tokens in 400,000 English and
# German sentences, 98 % had been there before.
CACHED_TOKENS = 2**17


def tokenize(text: str) -> list[str]:
    """Cuts text into runs of letters and digits and runs of anything else, less the single spaces between words.

    A single space at either end of the text is a token.
    """
    tokens = TOKENS.findall(text)
    return tokens[:1] + [token for token in tokens[1:-1] if token != " "] + tokens[1:][-1:]


def join_tokens(tokens: Sequence[str]) -> str:
    """The text of tokens: a space between two that both begin with a letter or digit. No token may be empty."""
    text = list(tokens[:1])
    for previous, token in itertools.pairwise(tokens):
        text.append(f" {token}" if previous[0].isalnum() and token[0].isalnum() else token)
    return "".join(text)


def escape(token: str, alphabet: frozenset[str]) -> str:
    r"""Spells a token in the characters of `alphabet`, with `_` at its end.

    `\` becomes `\\`, `_` becomes `\u`, and a character that is not in `alphabet` its number: a line feed `\10;`.
    """
    token = token.replace("\\", "\\\\").replace("_", "\\u")
    if not alphabet.issuperset(token):
        token = "".join(c if c in alphabet else f"\\{ord(c)};" for c in token)
    return f"{token}_"


def unescape(escaped: str) -> str:
    """The token that was escaped, given without the `_` at its end. A number that no character has becomes U+3013."""
    return ESCAPES.sub(_character, escaped) if "\\" in escaped else escaped


def _character(found: re.Match[str]) -> str:
    if found[1] is None:
        return "_" if found[0] == "\\u" else "\\"
    try:
        character = chr(int(found[1]))
    except (ValueError, OverflowError):  # beyond Unicode; beyond what chr or int can take
        return NO_CHARACTER
    return NO_CHARACTER if "\ud800" <= character <= "\udfff" else character


def longest_matches(escaped: str, subtokens: Collection[str], longest: int) -> list[str]:
    """Cuts an escaped token into subtokens, each the longest one that fits, from left to right.

    Args:
        escaped: the token.
        subtokens: a set, or a dict whose keys they are.
        longest: the number of characters of the longest one.

    Raises:
        KeyError: there is none for a character, which is the argument.
    """
    matches = []
    start = 0
    while start < len(escaped):
        match = escaped[start : start + longest]
        while match not in subtokens:
            if len(match) == 1:
                raise KeyError(match)
            match = match[:-1]
        matches.append(match)
        start += len(match)
    return matches


class SubwordEncoder:
    r"""A vocabulary file of tensor2tensor's: text in, token ids out, and back.

    Every line of the file is a subtoken, mostly in quotes; line n, counted from 0, is id n. As in tensor2tensor,
    carriage returns are left out, a line without content is never used, and of two equal lines the later one is.

    Text survives `decode(encode(text))` exactly, whatever its characters: those that the vocabulary lacks are spelt as
    their numbers, `\8364;`. What does not survive: lone surrogates, which are not text in UTF-8, are a ValueError.

    Ids are tensor2tensor's, and so is decoded text, except that `decode`

    - stops at the first end mark and skips padding, which tensor2tensor writes out as `<EOS>` and `<pad>`;
    - refuses ids out of range, for which tensor2tensor writes nothing;
    - makes U+3013 of `\55296;`, the number of a lone surrogate, as both make of numbers beyond Unicode.

    Encoders can be pickled, and load in some 20 milliseconds.

    Example, with a vocabulary in which `walk` is 2, `ing_` is 3 and `._` is 4:

        encode("walking.")              # [2, 3, 4]
        decode([2, 3, 4, 1, 0, 0])      # "walking."

    Attributes:
        path: the vocabulary file.
        vocab_size: number of ids.
    """

    def __init__(self, path: str | Path):
        """Loads a `.subwords` file.

        Raises:
            FileNotFoundError: there is no such file.
            ValueError: it is not UTF-8, or its first two lines are not the marks of padding and end.
        """
        self.path = Path(path)
        self._subtokens = _read_subtokens(self.path)
        self.vocab_size = len(self._subtokens)
        self._ids = {subtoken: i for i, subtoken in enumerate(self._subtokens)}
        self._longest = max(map(len, self._ids))
        self._alphabet = ESCAPE_CHARACTERS.union(*self._subtokens)
        self._token_ids = functools.lru_cache(CACHED_TOKENS)(self._encode_token)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.path,)

    def encode(self, text: str) -> list[int]:
        """Token ids of `text`, without the end mark; none for the empty text.

        Raises:
            ValueError: `text` holds a lone surrogate, or needs a character that is no subtoken of the file.
        """
        check_unicode(text)
        return list(itertools.chain.from_iterable(map(self._token_ids, tokenize(text))))

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """`encode` of each text."""
        return [self.encode(text) for text in texts]

    def decode(self, ids: Iterable[int]) -> str:
        """The text of `ids` up to the first end mark; padding is skipped.

        Raises:
            ValueError: an id is negative, or `vocab_size` or more.
        """
        content = (i for i in itertools.takewhile(lambda i: i != EOS, ids) if i != PAD)
        tokens = map(unescape, "".join(self.pieces(content)).split("_"))
        return join_tokens([token for token in tokens if token])

    def decode_batch(self, ids: Iterable[Iterable[int]]) -> list[str]:
        """`decode` of each row."""
        return [self.decode(row) for row in ids]

    def pieces(self, ids: Iterable[int]) -> list[str]:
        r"""The subtoken of each id as the file has it, marks included: `_` ends a token, `\u` stands for `_` itself.

        Raises:
            ValueError: an id is negative, or `vocab_size` or more.
        """
        return [self._subtokens[self._checked(i)] for i in ids]

    def _checked(self, i: int) -> int:
        if not 0 <= i < self.vocab_size:
            raise ValueError(f"A token id must be at least 0 and less than {self.vocab_size}. Received: {i}.")
        return i

    def _encode_token(self, token: str) -> tuple[int, ...]:
        try:
            matches = longest_matches(escape(token, self._alphabet), self._ids, self._longest)
        except KeyError as error:
            raise ValueError(
                "A vocabulary must have the characters of its subtokens, and those of escapes (\\_u;0123456789), as "
                f"subtokens of their own. Received: {self.path}, which lacks {error.args[0]!r}, so that "
                f"{token[:40]!r} cannot be encoded. Use the vocabulary as it was built."
            ) from error
        return tuple(self._ids[match] for match in matches)


def _read_subtokens(path: Path) -> list[str]:
    subtokens = [_without_quotes(line.replace("\r", "").rstrip()) for line in read_lines(path)]
    marks = subtokens[:2]
    if len(marks) < 2 or marks[PAD] not in PAD_MARKS or marks[EOS] not in EOS_MARKS:
        received = " and ".join(repr(mark[:40]) for mark in marks) or "an empty file"
        raise ValueError(
            f"A subword vocabulary's first two lines must be {PAD_MARKS[0]!r} and {EOS_MARKS[0]!r}. Received: "
            f"{received} in {path}. Use a vocabulary that tensor2tensor or t2t-datagen wrote."
        )
    if not any(subtoken.endswith("_") for subtoken in subtokens[2:]):
        raise ValueError(
            f"A subword vocabulary must have subtokens that end a word, with '_' at their end. Received: {path}, which "
            "has none: a list of whole words perhaps, which t2tlite cannot read."
        )
    return subtokens


def _without_quotes(line: str) -> str:
    """A line without the pair of quotes around it, if there is one."""
    return line[1:-1] if line[:1] in ("'", '"') and line[0] == line[-1] else line
