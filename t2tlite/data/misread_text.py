"""Notices text that a file holds otherwise than was meant: a header line, columns of
numbers, quotes that a program's export added, sentences that end in CR.
"""

import collections
import re
from collections.abc import Sequence

from t2tlite.console import counted, say
from t2tlite.data.language_codes import CODES

# a text that is a number or a date, or in quotes
ODD = re.compile(r'(?P<numbers>[+-]?[\d.,:/-]*\d)|(?P<quotes>".+")', re.DOTALL)
ODD_TEXTS = {
    "numbers": "are numbers. Check that these are the right columns.",
    "quotes": "are in quotes, which the model learns to write. If an export added them,"
    " export again without quotes.",
}
SHARE = 0.5  # of the texts of a side; fewer may be meant
# the names of columns; each may have a number, or be of several words
HEADER_WORDS = {
    *"source src target tgt trg text sentence translation input inputs output".split(),
    *"outputs targets original reference".split(),
    *CODES,
    *CODES.values(),
}


class MisreadText:
    """What a split's texts look like, side by side."""

    def __init__(self) -> None:
        self._pairs = 0
        self._header = ""
        self._broken = 0  # pairs with a CR
        self._odd: collections.Counter[tuple[str, str]] = collections.Counter()

    def add(self, pairs: Sequence[tuple[str, str]]) -> None:
        """Looks at the next pairs of the split."""
        if not self._pairs and pairs and all(map(_is_header, pairs[0])):
            self._header = " | ".join(pairs[0])
        self._pairs += len(pairs)
        for pair in pairs:
            self._broken += "\r" in pair[0] or "\r" in pair[1]
            for side, text in zip(("source", "target"), pair, strict=True):
                match = ODD.fullmatch(text)
                if match and match.lastgroup:
                    self._odd[match.lastgroup, side] += 1

    def report(self, split: str) -> None:
        """Says what was found, and what to do."""
        if self._header:
            say(
                f"{split}: the first pair seems to be a header, {self._header}. If so,"
                " remove it: tail -n +2 OLD > NEW."
            )
        for (kind, side), count in sorted(self._odd.items()):
            if count > SHARE * self._pairs:
                texts = counted(self._pairs, side)
                say(f"{split}: {count:,} of {texts} {ODD_TEXTS[kind]}")
        if self._broken:
            say(
                f"{split}: {counted(self._broken, 'pair')} with a carriage return (CR)"
                " inside a text, where no line ends. If sentences end there, make them"
                " lines: tr '\\r' '\\n' < OLD > NEW."
            )


def _is_header(text: str) -> bool:
    words = re.findall(r"[^\W\d_]+", text.lower())
    return bool(words) and HEADER_WORDS.issuperset(words)
