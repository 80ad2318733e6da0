"""Splits text into sentences, so that they and the white space between them make the
same text again.

A sentence ends at a line break, or at a full stop, question mark, exclamation mark or
ellipsis that white space and the beginning of a sentence follow. The full stops of
common abbreviations, of initials and of German ordinal numbers are left alone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

ABBREVIATIONS = frozenset(
    # English
    "mr mrs ms dr prof st jr sr vs etc e.g i.e cf no vol fig pp ca approx dept est gen"
    " gov hon inc ltd rev sgt capt "
    # German
    "bzw z.b z d.h d u.a u usw evtl ggf hr fr nr str tel s.o s.u o.ä abb bd bspw sog"
    " vgl zzgl inkl mio mrd geb gest "
    # French
    "m mm mme mlle p.ex env av éd".split()
)
CLOSING = "\"'”’»)]›“"  # what may follow the last full stop of a sentence
OPENING = "\"'“‘«([„‚¿¡›»-–—"  # what a sentence may begin with before its first letter
# Each expression looks at a character a limited number of times, so any text is split
# in linear time: a run of marks is matched from its start alone, and no optional part
# of BEGINNING can match what the one before it can.
END = re.compile(
    rf"(?<![.!?…])[.!?…]+[{re.escape(CLOSING)}]*(?=\s)|[。！？]+[」』）”’]*"
)
VISIBLE = re.compile(r"\S")
BEGINNING = re.compile(rf"\s*(?:[{re.escape(OPENING)}]+\s*)?(\S)")


class Segment(NamedTuple):
    """A sentence and the white space before it."""

    before: str
    sentence: str  # without line breaks, and without white space at either end


class SplitText(NamedTuple):
    """A text in sentences: `join` of the sentences themselves is the text."""

    segments: list[Segment]
    after: str  # white space at the end

    def join(self, sentences: Sequence[str]) -> str:
        """The text with these in place of its sentences."""
        parts = (
            segment.before + text
            for segment, text in zip(self.segments, sentences, strict=True)
        )
        return "".join(parts) + self.after


def split_text(text: str) -> SplitText:
    """The sentences of a text, each with the white space before it.

    >>> [segment.sentence for segment in split_text("Hello.  How are you?\\n").segments]
    ['Hello.', 'How are you?']
    """
    segments: list[Segment] = []
    spaces: list[str] = []  # since the last sentence
    for line in text.splitlines(keepends=True):
        for piece in _sentences(line):
            sentence = piece.strip()
            start = len(piece) - len(piece.lstrip())
            spaces.append(piece[:start])
            if sentence:
                segments.append(Segment("".join(spaces), sentence))
                spaces.clear()
            spaces.append(piece[start + len(sentence) :])
    return SplitText(segments, "".join(spaces))


def _sentences(line: str) -> list[str]:
    """A line cut behind the end of each sentence; the parts, with their white space,
    make the line.
    """
    cuts, first = [0], _text_start(line, 0)
    for mark in END.finditer(line):
        if _is_end(line, first, mark):
            cuts.append(mark.end())
            first = _text_start(line, mark.end())
    return [
        line[start:end] for start, end in zip(cuts, [*cuts[1:], len(line)], strict=True)
    ]


def _text_start(line: str, start: int) -> int:
    """Where the first word at or after `start` begins."""
    word = VISIBLE.search(line, start)
    return word.start() if word else len(line)


def _is_end(line: str, start: int, mark: re.Match[str]) -> bool:
    """Whether the mark ends a sentence of the line, whose first word begins at
    `start`.
    """
    beginning = BEGINNING.match(line, mark.end())
    if beginning is None:
        return False  # nothing follows
    following = beginning.group(1)
    if following.islower():
        return False
    if mark.group() != ".":
        return True
    word_start = _word_start(line, start, mark.start())
    word = line[word_start : mark.start()].strip().lstrip(OPENING)
    if len(word) == 1 and word.isalpha() and word.isupper():
        return False  # an initial: J. Smith
    if (
        word.isdigit()
        and len(word) <= 2
        and not following.isdigit()
        and word_start > start
    ):
        return False  # an ordinal number: am 3. Mai
    return word.lower() not in ABBREVIATIONS


def _word_start(line: str, start: int, end: int) -> int:
    """Where the last word before `end` begins, or `start` if there is none."""
    while end > start and line[end - 1].isspace():
        end -= 1
    while end > start and not line[end - 1].isspace():
        end -= 1
    return end
