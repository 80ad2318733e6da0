"""Notices text that a file holds otherwise than was meant: a header line, columns of
numbers, quotes that a program's export added, sentences that end in CR.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from t2tlite.console import counted, say
from t2tlite.data.language_codes import CODES

SIDES = ("source", "target")
NUMBER = re.compile(r"[+-]?[\d.,:/-]*\d")  # a column of ids, scores or dates
SHARE = 0.5  # of the texts of a side; fewer may be meant
# the names of columns; each may have a number, or be of several words
HEADER_WORDS = {
    *("source", "src", "target", "tgt", "trg", "text", "sentence", "translation"),
    *("input", "inputs", "output", "outputs", "targets", "original", "reference"),
    *CODES,
    *CODES.values(),
}


class MisreadText:
    """What a split's texts look like, side by side."""

    def __init__(self) -> None:
        self._pairs = 0
        self._header = ""
        self._broken = 0  # pairs with a CR
        self._numbers = dict.fromkeys(SIDES, 0)
        self._quoted = dict.fromkeys(SIDES, 0)

    def add(self, pairs: Sequence[tuple[str, str]]) -> None:
        """Looks at the next pairs of the split."""
        if not self._pairs and pairs and all(map(_is_header, pairs[0])):
            self._header = " | ".join(pairs[0])
        self._pairs += len(pairs)
        for pair in pairs:
            self._broken += "\r" in pair[0] or "\r" in pair[1]
            for side, text in zip(SIDES, pair, strict=True):
                if text[:1] == '"':
                    self._quoted[side] += len(text) > 1 and text[-1] == '"'
                elif text[-1:].isdecimal():
                    self._numbers[side] += NUMBER.fullmatch(text) is not None

    def report(self, split: str) -> None:
        """Says what was found, and what to do."""
        if self._header:
            say(
                f"{split}: the first pair seems to be a header, {self._header}. If so,"
                " remove it: tail -n +2 OLD > NEW."
            )
        for side, count in self._numbers.items():
            if count > SHARE * self._pairs:
                say(
                    f"{split}: {count:,} of {counted(self._pairs, side)} are numbers."
                    " Check that these are the right columns."
                )
        for side, count in self._quoted.items():
            if count > SHARE * self._pairs:
                say(
                    f"{split}: {count:,} of {counted(self._pairs, side)} are in quotes,"
                    " which the model learns to write. If an export added them, export"
                    " again without quotes."
                )
        if self._broken:
            say(
                f"{split}: {counted(self._broken, 'pair')} with a carriage return (CR)"
                " inside a text, where no line ends. If sentences end there, make them"
                " lines: tr '\\r' '\\n' < OLD > NEW."
            )


def _is_header(text: str) -> bool:
    words = re.findall(r"[^\W\d_]+", text.lower())
    return bool(words) and HEADER_WORDS.issuperset(words)
