"""Splits text into sentences. The sentences and the text between them, joined, are the
text again.

sentencex, a splitter with rules and abbreviations for about 300 languages, splits each
line. This module then applies rules of its own:

- A line break always ends a sentence.
- Characters that the rule for text removes, such as a zero-width space, are ignored.
- A sentence ends before white space, or behind a full stop that needs none, such as 。.
  The next sentence does not begin in lower case.
- The number of a list item, such as `2.` or `b)`, belongs to the sentence behind it. In
  languages that write ordinal numbers with a full stop, no sentence ends there
  (`am 3. Mai`).
- A sentence in brackets ends behind its bracket: `(See there.) Then go.`
- Text without a letter or digit is not a sentence. It is between sentences, like emoji
  and bullets at either end of a sentence.
"""

import functools
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import sentencex

from t2tlite.vocabularies.normalisation import (
    IGNORED,
    JOINER,
    NON_JOINER,
    REMOVED,
    words,
)

# Letters and digits of every script; not invisible fillers, which Unicode counts as
# letters, nor the digit of an emoji such as 1️⃣
LETTER_OR_DIGIT = re.compile(r"[^\W_\u115f\u1160\u3164\uffa0](?!\ufe0f?\u20e3)")

# Characters that sentencex reads at once. Its time grows with the square of the length
# if nearly all characters are quotation marks.
WINDOW = 4000
WHITE_SPACE = re.compile(r"\s")
OPENING = "\"'“‘«([„‚¿¡›»–—-"  # what a sentence may begin with before its first letter
BEGINNING = re.compile(rf"\s*[{re.escape(OPENING)}]{{0,8}}\s*(\S)")
# where a sentence may end without white space behind it
ENDS_WITHOUT_SPACE = re.compile(r"[^\x00-\x7f…«»‹›“”„‘’‚\s]\W*\Z")
LIST_NUMBER = re.compile(r"\s*[(\[]?(\d{1,3}(?:\.\d{1,3})*|[A-Za-z]|[IVXivx]+)[.)]\s*")
ORDINAL = re.compile(r"(?<![\d.,])\d{1,3}\.\s*\Z")
ORDINAL_LANGUAGES = frozenset(
    "bs cs da de et eu fi fo hr hu is lb lt lv nb nn no pl sk sl sr tr".split()
)
# unknown to sentencex
ABBREVIATIONS = {
    "fr": frozenset("M MM Mme Mmes Mlle Mlles Mgr Me Dr Pr St Ste".split()),
}
# Texts have names and dates of other languages. So a capitalised short word that is an
# abbreviation in one of these languages is one in all: Okt. 2020, Acme Corp.
COMMON_LANGUAGES = ("en", "de", "fr")
SHORT_NAME = re.compile(r"\w[^\w(]+([A-ZÄÖÜÉ][a-zäöüßéè]{2,4})\.\s*\Z")
LAST_WORD = re.compile(r"(\w+)\.\s*\Z")
LOOK_BEHIND = 40  # characters before a boundary that are looked at
BRACKETED = re.compile(r"\s*[(\[][^()\[\]]*[.!?…][\"'”’»]?[)\]]\s+(?=\S)")

INVISIBLE = f"{REMOVED}{NON_JOINER}{JOINER}"
BULLET = re.compile(rf"[*•‣◦⁃∙·▪▫●○■□◆◇►▶–—#>~=|_{INVISIBLE}-]*+[\s{INVISIBLE}]++")
# White space and parts of emoji. Other invisible characters belong to the sentence,
# whose vocabulary removes them.
ASIDE = (
    f"[\\s{JOINER}©®™\u2300-\u23ff\u2500-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff"
    "\U000e0020-\U000e007f]"
)
SELECTOR = "[\ufe0e\ufe0f\u20e3]"  # behind an emoji, or a digit such as 1️⃣
ASIDES = re.compile(f"(?:{ASIDE}|{SELECTOR})*+")
REVERSED_ASIDES = re.compile(f"(?:{SELECTOR}*+{ASIDE})*+")


class Segment(NamedTuple):
    """A sentence and the text before it."""

    before: str  # without a letter or digit
    sentence: str  # without line breaks, and without white space at either end


class SplitText(NamedTuple):
    """A text in sentences; `join` of its own sentences is the text."""

    segments: list[Segment]
    after: str  # what stands behind the last sentence, without a letter or digit

    def join(self, sentences: Sequence[str]) -> str:
        """The text with other sentences in place of its own."""
        parts = []
        for segment, sentence in zip(self.segments, sentences, strict=True):
            parts += [segment.before, sentence]
        return "".join([*parts, self.after])


def split_text(text: str, language: str = "en") -> SplitText:
    """Splits a text in a language into sentences.

    A language that sentencex does not know is split as a related one, or as English.

    >>> split = split_text("Hello.  How are you? 😀\\n")
    >>> [segment.sentence for segment in split.segments]
    ['Hello.', 'How are you?']
    >>> split.after
    ' 😀\\n'
    """
    segments: list[Segment] = []
    between: list[str] = []  # since the last sentence
    for line in text.splitlines(keepends=True):
        is_first = True
        for piece in _pieces(line, language):
            start, end = _sentence_span(piece, is_first)
            between.append(piece[:start])
            if start < end:
                segments.append(Segment("".join(between), piece[start:end]))
                between.clear()
                is_first = False
            between.append(piece[end:])
    return SplitText(segments, "".join(between))


def _pieces(line: str, language: str) -> Iterator[str]:
    """Cuts a line where sentences begin. Invisible characters between two sentences
    belong to the second.
    """
    code = re.split("[-_]", language)[0].lower()
    hidden = {ignored.start() for ignored in IGNORED.finditer(line)}
    places = [place for place in range(len(line)) if place not in hidden]
    visible = IGNORED.sub("", line).rstrip()
    visible_start = 0
    start = 0
    for visible_end in _boundaries(visible, code):
        if _separates(visible, visible_start, visible_end, code):
            end = places[visible_end - 1] + 1
            yield line[start:end]
            visible_start = visible_end
            start = end
    yield line[start:]


def _boundaries(line: str, code: str) -> Iterator[int]:
    """Yields the offsets where sentencex begins a sentence, and those behind sentences
    in brackets.
    """
    start = 0
    while start < len(line):
        lengths = _lengths(code, line[start : start + WINDOW])
        is_last = start + WINDOW >= len(line)
        if not is_last and len(lengths) > 1 and 2 * lengths[-1] < WINDOW:
            lengths[-1] = 0  # is read again with what follows
        for number, length in enumerate(lengths):
            if number:
                yield start
            end = start + length
            while bracketed := BRACKETED.match(line, start, end):
                start = bracketed.end()
                yield start
            start = end


def _lengths(code: str, line: str) -> list[int]:
    """The lengths of the sentences of a line, by sentencex alone.

    sentencex gets every white space as a space: some of its rules (those for initials
    in Portuguese) panic at a no-break space. If another rule panics, the line is one
    sentence.
    """
    try:
        return [
            len(piece) for piece in sentencex.segment(code, WHITE_SPACE.sub(" ", line))
        ]
    except BaseException as error:  # a panic in Rust is not an Exception
        if type(error).__name__ != "PanicException":
            raise
        return [len(line)]


def _separates(line: str, start: int, end: int, code: str) -> bool:
    """Whether a sentence that begins at `start` ends before the boundary at `end`."""
    behind = line[max(start, end - LOOK_BEHIND) : end]
    has_space = behind[-1:].isspace() or line[end : end + 1].isspace()
    if not has_space and not ENDS_WITHOUT_SPACE.search(behind):
        return False
    beginning = BEGINNING.match(line, end)
    if beginning is None or beginning[1].islower():
        return False
    number = LIST_NUMBER.fullmatch(line, start, end)
    if number and (start == 0 or number[1][0].isdigit()):
        return False
    if code in ORDINAL_LANGUAGES and ORDINAL.search(behind):
        return not beginning[1].isalpha()
    word = LAST_WORD.search(behind)
    if word and word[1] in ABBREVIATIONS.get(code, ()):
        return False
    name = SHORT_NAME.search(line, max(start, end - LOOK_BEHIND), end)
    return not (name and _is_abbreviation(name[1], beginning[1].isdigit()))


@functools.lru_cache(maxsize=4096)
def _is_abbreviation(word: str, before_digit: bool) -> bool:
    """Whether a word with a full stop is an abbreviation in a common language."""
    text = f"Xy {word}. {'2000' if before_digit else 'Xyz'}"
    return any(len(sentencex.segment(code, text)) == 1 for code in COMMON_LANGUAGES)


def _sentence_span(piece: str, begins_line: bool) -> tuple[int, int]:
    """Where the sentence of a piece is, without the emoji, the bullets and the white
    space around it; an empty span if it has no letter or digit.
    """
    asides = ASIDES.match(piece)
    asides_behind = REVERSED_ASIDES.match(piece[::-1])
    if not LETTER_OR_DIGIT.search(piece) or not asides or not asides_behind:
        return len(piece), len(piece)
    start = asides.end()
    if begins_line and (bullet := BULLET.match(piece, start)):
        start = bullet.end()
    return start, len(piece) - asides_behind.end()


END_MARKS = frozenset(".!?…。！？")
# brackets and quotation marks that only close, in Unicode and as treebanks write them
CLOSING = frozenset(
    {"''", "'", "”", "’", "›", ")", "]", "}", "-RRB-", "-RSB-", "-RCB-"}
)
# quotation marks that open or close, by language: "a", «a», »a«, “a”, „a“
EITHER = frozenset({'"', "«", "»", "“"})
QUOTATION_MARKS = EITHER | {"``", "''", "`", "„", "‚", "‘", "’", "‹", "›", "”"}


def parsed_sentences(text: str) -> list[str]:
    """The sentences of a text to parse, whose words and punctuation are separated by
    spaces.

    A sentence ends behind a full stop, question or exclamation mark and what closes it,
    such as quotation marks. A word in lower case continues it.

    >>> parsed_sentences("He said : `` Stop ! '' She left .")
    ["He said : `` Stop ! ''", 'She left .']
    """
    sentences: list[list[str]] = []
    for line in text.splitlines():
        sentences.append([])
        has_ended = False
        marks = 0  # quotation marks of the line
        for word in words(line):
            is_end = END_MARKS.issuperset(word)
            is_quotation_end = word in EITHER and marks % 2 == 1
            closes = is_end or is_quotation_end or word in CLOSING
            if has_ended and not closes and not word[0].islower():
                sentences.append([])
            has_ended = closes and (has_ended or is_end)
            marks += word in QUOTATION_MARKS
            sentences[-1].append(word)
    return [" ".join(sentence) for sentence in sentences if sentence]
