"""Splits text into sentences, so that they and the white space between them make the same text again.

A sentence ends at a line break, or at a full stop, question mark, exclamation mark or ellipsis that white space and
the beginning of a sentence follow. Not every full stop is one: those of common abbreviations, of initials and of
German ordinal numbers are left alone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

ABBREVIATIONS = frozenset(
    # English
    "mr mrs ms dr prof st jr sr vs etc e.g i.e cf no vol fig pp ca approx dept est gen gov hon inc ltd rev sgt capt "
    # German
    "bzw z.b z d.h d u.a u usw evtl ggf hr fr nr str tel s.o s.u o.ä abb bd bspw sog vgl zzgl inkl mio mrd geb gest "
    # French
    "m mm mme mlle p.ex env av éd".split()
)
CLOSING = "\"'”’»)]›“"  # what may follow the last full stop of a sentence
OPENING = "\"'“‘«([„‚¿¡›»-–—"  # what a sentence may begin with before its first letter
END = re.compile(rf"[.!?…]+[{re.escape(CLOSING)}]*(?=\s)|[。！？]+[」』）”’]*")
BEGINNING = re.compile(rf"\s*[{re.escape(OPENING)}]*\s*(\w|\S)")
WORD_BEFORE = re.compile(r"\S+\Z")
ORDINAL = re.compile(r"\d{1,2}\.")


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
        parts = (segment.before + text for segment, text in zip(self.segments, sentences, strict=True))
        return "".join(parts) + self.after


def split_text(text: str) -> SplitText:
    """The sentences of a text, each with the white space before it.

    >>> split_text("Hello there.  How are you?\\n").segments
    [Segment(before='', sentence='Hello there.'), Segment(before='  ', sentence='How are you?')]
    """
    segments, waiting = [], ""
    for line in text.splitlines(keepends=True):
        for piece in _sentences(line):
            sentence = piece.strip()
            start = piece.index(sentence)
            waiting += piece[:start]
            if sentence:
                segments.append(Segment(waiting, sentence))
                waiting = ""
            waiting += piece[start + len(sentence) :]
    return SplitText(segments, waiting)


def _sentences(line: str) -> list[str]:
    """A line cut behind the end of each sentence; the parts, with their white space, make the line."""
    cuts = [0]
    for found in END.finditer(line):
        if _is_end(line[cuts[-1] : found.end()], found.group(), line, found.end()):
            cuts.append(found.end())
    return [line[start:end] for start, end in zip(cuts, [*cuts[1:], len(line)], strict=True)]


def _is_end(so_far: str, mark: str, line: str, end: int) -> bool:
    """Whether the mark ends a sentence, with `so_far` up to and including it, and the line continuing at `end`."""
    beginning = BEGINNING.match(line, end)
    if beginning is None:
        return False  # nothing follows
    first = beginning.group(1)
    if first.islower():
        return False
    if mark != ".":
        return True
    words = so_far[:-1].split()
    last = words[-1].lstrip(OPENING) if words else ""
    if len(last) == 1 and last.isalpha() and last.isupper():
        return False  # an initial: J. Smith
    if len(words) > 1 and last.isdigit() and len(last) <= 2 and not first.isdigit():
        return False  # an ordinal number: am 3. Mai
    return last.lower() not in ABBREVIATIONS
