r"""tensor2tensor's subword vocabularies: text to token ids and back, with the same ids
as its SubwordTextEncoder.

Text becomes ids in three steps, each of which is reversible:

    "Hello, snake_case world"
    tokens       Hello|, |snake|_|case|world       runs of letters and digits, of others
    escaped      Hello_|, _|snake_|\u_|case_|world_
    subtokens    Hel|lo_|, _|sna|ke_|\u_|case_|world_

The space between two words is not a token; decoding inserts one between two tokens that
both begin with a letter or digit. `_` marks the end of a token.
"""

import functools
import itertools
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from t2tlite.files.text_files import read_lines
from t2tlite.vocabularies.text_encoder import (
    TextEncoder,
    check_unicode,
    ids_in_range,
    text_ids,
)

# The first two lines of a vocabulary. tensor2tensor's builder writes the first spelling
# of each; some files have the second.
PAD_SUBTOKENS = "<pad>_", "<pad>"
EOS_SUBTOKENS = "<EOS>_", "<EOS>"

# Escaping needs these, so every vocabulary has them in its alphabet.
ESCAPE_CHARACTERS = frozenset("\\_u;0123456789")

# Letters and digits are Unicode's categories L and N; \w matches these and `_`.
TOKEN_RUNS = re.compile(r"[^\W_]+|[\W_]+")
ESCAPES = re.compile(r"\\u|\\\\|\\([0-9]+);")
# decoded from a number that is not a character
NO_CHARACTER = "\u3013"

# The number of tokens whose ids are cached, in about 30 MB. In 400,000 English and
# German sentences, 98 % of the tokens are repetitions.
CACHED_TOKENS = 2**17
# of a token; a longer one is not a word, and would occupy memory
MAX_CACHED_CHARACTERS = 64


def tokenize(text: str) -> list[str]:
    """Splits text into runs of letters and digits and runs of other characters.

    A run that is a single space is left out, except at either end of the text.
    """
    tokens = TOKEN_RUNS.findall(text)
    inner = [token for token in tokens[1:-1] if token != " "]
    return tokens[:1] + inner + tokens[1:][-1:]


def join_tokens(tokens: Sequence[str]) -> str:
    """Joins non-empty tokens, with a space between two that both begin with a letter or
    digit.
    """
    text = "".join(tokens[:1])
    for previous, token in itertools.pairwise(tokens):
        if previous[0].isalnum() and token[0].isalnum():
            text += " "
        text += token
    return text


def escape(token: str, alphabet: frozenset[str]) -> str:
    r"""Writes a token in the characters of `alphabet`, with `_` appended.

    `\` becomes `\\`, and `_` becomes `\u`. A character outside `alphabet` becomes its
    number: `\10;` is a line feed.
    """
    token = token.replace("\\", "\\\\").replace("_", "\\u")
    for character in set(token) - alphabet:
        token = token.replace(character, f"\\{ord(character)};")
    return f"{token}_"


def unescape_token(escaped: str) -> str:
    """Reverses `escape`; `escaped` does not have the `_` at its end.

    The number of a lone surrogate, or a number beyond Unicode, becomes U+3013.
    """
    return ESCAPES.sub(_character, escaped)


def _character(escape: re.Match[str]) -> str:
    if escape[1] is None:
        return "_" if escape[0] == "\\u" else "\\"
    try:
        character = chr(int(escape[1]))
        # not for a lone surrogate
        character.encode()
    except (ValueError, OverflowError):
        # beyond Unicode, or too large for chr or int
        return NO_CHARACTER
    return character


class SubwordEncoder(TextEncoder):
    r"""A vocabulary file of tensor2tensor's: text to token ids and back.

    Every line of the file is a subtoken, usually in quotes; line n, counted from 0, has
    id n. As in tensor2tensor, carriage returns are removed, an empty line is never
    used, and the later of two equal lines is used.

    White space at both ends of a text is removed first, as tensor2tensor's problems and
    its decoder do. `decode(encode(text))` is then the same text for any Unicode text:
    characters that the vocabulary lacks are spelled as their numbers, `\8364;`. Ids and
    decoded text equal those of tensor2tensor, except that `decode`

    - stops at the first EOS and skips padding; tensor2tensor writes `<EOS>` and
      `<pad>`;
    - raises ValueError for ids out of range; tensor2tensor writes nothing for them;
    - decodes the number of a lone surrogate, `\55296;`, to U+3013, as both programs do
      with numbers beyond Unicode.

    Example, with a vocabulary in which `walk` is 2, `ing_` is 3 and `._` is 4:

        encode("walking.")              # [2, 3, 4]
        decode([2, 3, 4, 1, 0, 0])      # "walking."
        pieces([2, 3, 4, 1])            # ["walk", "ing_", "._", "<EOS>_"]
    """

    type = "subwords"
    ending = ".subwords"

    def __init__(self, path: str | Path):
        """Loads a `.subwords` file, in about 20 milliseconds.

        Raises FileNotFoundError, or ValueError if it is not UTF-8, its first two lines
        are not the padding and EOS tokens, or no subtoken ends a word.
        """
        self.path = Path(path)
        self._subtokens = _read_subtokens(self.path)
        self.vocab_size = len(self._subtokens)
        self._ids = {subtoken: i for i, subtoken in enumerate(self._subtokens)}
        # of the subtokens that begin with two characters, the length of the longest
        self._longest: dict[str, int] = {}
        for subtoken in self._subtokens:
            length = max(len(subtoken), self._longest.get(subtoken[:2], 1))
            self._longest[subtoken[:2]] = length
        self._alphabet = ESCAPE_CHARACTERS.union(*self._subtokens)
        self._cached_token = functools.lru_cache(CACHED_TOKENS)(self._encode_token)

    def normalise(self, text: str) -> str:
        return text.strip()

    def encode_batch(
        self, texts: Sequence[str], num_threads: int = 1
    ) -> list[list[int]]:
        return [self.token_ids(self.normalise(text)) for text in texts]

    def token_ids(self, text: str) -> list[int]:
        """The ids of `encode`, plus ids of white space at both ends, as in
        tensor2tensor's own encoder.
        """
        check_unicode(text)
        ids: list[int] = []
        for token in tokenize(text):
            if len(token) > MAX_CACHED_CHARACTERS:
                ids += self._encode_token(token)
            else:
                ids += self._cached_token(token)
        return ids

    def decode(self, ids: Iterable[int]) -> str:
        escaped = "".join(self.pieces(text_ids(ids, self.vocab_size)))
        tokens = map(unescape_token, escaped.split("_"))
        return join_tokens([token for token in tokens if token])

    def pieces(self, ids: Iterable[int]) -> list[str]:
        return [self._subtokens[i] for i in ids_in_range(ids, self.vocab_size)]

    def _encode_token(self, token: str) -> tuple[int, ...]:
        """Takes, from left to right, the longest subtoken that matches."""
        escaped = escape(token, self._alphabet)
        ids = []
        start = 0
        while start < len(escaped):
            longest = self._longest.get(escaped[start : start + 2], 1)
            match = escaped[start : start + longest]
            while match and match not in self._ids:
                match = match[:-1]
            if not match:
                raise ValueError(
                    f"Each character must be a subtoken of {self.path}. Received:"
                    f" {escaped[start]!r}, of {token[:40]!r}."
                )
            ids.append(self._ids[match])
            start += len(match)
        return tuple(ids)


def _read_subtokens(path: Path) -> list[str]:
    """Reads and checks the subtokens in a vocabulary file."""
    subtokens = []
    for line in read_lines(path):
        line = line.replace("\r", "").rstrip()
        if line[:1] in ("'", '"') and line[0] == line[-1]:
            line = line[1:-1]
        subtokens.append(line)
    pad, eos = [*subtokens, "", ""][:2]
    has_ends = any(subtoken.endswith("_") for subtoken in subtokens[2:])
    if pad not in PAD_SUBTOKENS or eos not in EOS_SUBTOKENS or not has_ends:
        raise ValueError(
            f"{path} must begin with {PAD_SUBTOKENS[0]!r} and {EOS_SUBTOKENS[0]!r}, and"
            f" others end with '_'. Received: {pad[:40]!r} and {eos[:40]!r}."
        )
    return subtokens
