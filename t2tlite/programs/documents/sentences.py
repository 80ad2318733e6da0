"""Splits text into sentences. The sentences and the text between them, joined, are the
text again.

A line break ends a sentence. Within a line sentencex, a splitter with rules and
abbreviations for about 300 languages, says where sentences begin. Of these places
remain those behind white space, or behind a full stop that needs none, such as 。.
Before a word in lower case no sentence begins, nor behind the number of a list item,
such as `2.`, or behind an ordinal number of a language that writes a full stop there
(`am 3. Mai`). Characters that the rule for text removes, such as a zero-width space,
are ignored.

Text without a letter, such as `12:30`, or of addresses alone is between sentences, and
so are emoji and bullets at either end of a sentence.
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import sentencex

from t2tlite.vocabularies.normalisation import IGNORED, JOINER, REMOVED, words

# Letters and digits of every script; not invisible fillers, which Unicode counts as
# letters, nor the digit of an emoji such as 1️⃣
LETTER_OR_DIGIT = re.compile(r"[^\W_\u115f\u1160\u3164\uffa0](?!\ufe0f?\u20e3)")

# Of the web, up to a script that is written without spaces, and of e-mail
ADDRESS = re.compile(
    r"(?:https?://|www\.)[!-~\xa1-\u0dff]+"
    r"|(?<![\w.+-])[\w.+-]++@[\w-]+(?:\.[\w-]+)+",
    re.ASCII,
)

# Characters that sentencex reads at once. Its time grows with the square of the length
# if nearly all characters are quotation marks.
WINDOW = 4000
# what a sentence begins with, up to its first letter
BEGINNING = re.compile(r"\s*+[\"'“‘«(\[„‚¿¡›»–—-]{0,8}+\s*+(\S)")
# where a sentence may end without white space behind it
ENDS_WITHOUT_SPACE = re.compile(r"[^\x00-\x7f…«»‹›“”„‘’‚\s]\W*\Z")
LIST_NUMBER = re.compile(r"\s*[(\[]?(?:\d{1,3}|[A-Za-z]|[IVXivx]+)[.)]\s*")
ORDINAL = re.compile(r"(?<![\d.,])\d{1,3}\.\s*\Z")
ORDINAL_LANGUAGES = frozenset(
    "bs cs da de et eu fi fo hr hu is lb lt lv nb nn no pl sk sl sr tr".split()
)
# unknown to sentencex
FRENCH_ABBREVIATION = re.compile(r"\b(?:MM?|M[ml]les?|M[mg]es?|Mgr|[DP]r|Ste?)\.\s*\Z")
LOOK_BEHIND = 40  # characters before a boundary that are looked at

PICTOGRAMS = "©®™\u2300-\u23ff\u2500-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff"
ASIDE = rf"[\s{PICTOGRAMS}{JOINER}\ufe0e\ufe0f\U000e0020-\U000e007f]"
BULLET = rf"[*•‣◦⁃∙·–—#>~=|_{REMOVED}-]++(?=\s)"
ASIDES_BEFORE = re.compile(rf"\A(?:{ASIDE}|{BULLET})*+")
# of a sentence read backwards
ASIDES_BEHIND = re.compile(rf"\A{ASIDE}*+")


class Segment(NamedTuple):
    """A sentence and the text before it."""

    before: str  # not translated
    sentence: str  # without line breaks, and without white space at either end


class SplitText(NamedTuple):
    """A text in sentences; `join` of its own sentences is the text."""

    segments: list[Segment]
    after: str  # what stands behind the last sentence, not translated

    def join(self, sentences: Sequence[str]) -> str:
        """The text with other sentences in place of its own."""
        parts = []
        for segment, sentence in zip(self.segments, sentences, strict=True):
            parts += [segment.before, sentence]
        return "".join([*parts, self.after])


def has_letter(text: str) -> bool:
    """Whether a text has a letter outside of addresses."""
    return any(map(str.isalpha, ADDRESS.sub("", text)))


def split_text(text: str, language: str = "en", numbers: bool = False) -> SplitText:
    """Splits a text in a language into sentences, with `numbers` also those without a
    letter.

    A language that sentencex does not know is split as a related one, or as English.

    >>> split = split_text("Hello.  How are you? 😀\\n")
    >>> [segment.sentence for segment in split.segments]
    ['Hello.', 'How are you?']
    >>> split.after
    ' 😀\\n'
    """
    code = re.split("[-_]", language)[0].lower()
    segments = []
    between = ""  # since the last sentence
    for line in text.splitlines(keepends=True):
        for piece in _pieces(line, code):
            sentence = ""
            is_language = numbers or has_letter(piece)
            if is_language and LETTER_OR_DIGIT.search(piece):
                sentence = ASIDES_BEFORE.sub("", piece)
                sentence = ASIDES_BEHIND.sub("", sentence[::-1])[::-1]
            if not sentence:
                between += piece
                continue
            before, _, after = piece.partition(sentence)
            segments.append(Segment(between + before, sentence))
            between = after
    return SplitText(segments, between)


def _pieces(line: str, code: str) -> Iterator[str]:
    """Cuts a line where sentences begin. Invisible characters between two sentences
    belong to the second.
    """
    hidden = set(map(re.Match.start, IGNORED.finditer(line)))
    places = sorted(set(range(len(line))) - hidden)
    visible = IGNORED.sub("", line)
    start = 0
    visible_start = 0
    for visible_end in _boundaries(visible, code):
        if _separates(visible, visible_start, visible_end, code):
            end = places[visible_end - 1] + 1
            yield line[start:end]
            start = end
            visible_start = visible_end
    yield line[start:]


def _boundaries(line: str, code: str) -> Iterator[int]:
    """Yields the offsets behind the sentences of a line, by sentencex alone.

    sentencex gets every white space as a space: some of its rules (those for initials
    in Portuguese) panic at a no-break space.
    """
    line = re.sub(r"\s", " ", line)
    start = 0
    while start < len(line):
        pieces = sentencex.segment(code, line[start : start + WINDOW])
        is_last = start + WINDOW >= len(line)
        if not is_last and 2 * len(pieces[-1]) < WINDOW:
            pieces.pop()  # it is read again with what follows
        for piece in pieces:
            start += len(piece)
            yield start


def _separates(line: str, start: int, end: int, code: str) -> bool:
    """Whether a sentence that begins at `start` ends before the boundary at `end`."""
    beginning = BEGINNING.match(line, end)
    if beginning is None or beginning[1].islower():
        return False
    behind = line[max(start, end - LOOK_BEHIND) : end]
    has_space = behind[-1:].isspace() or line[end].isspace()
    if not has_space and not ENDS_WITHOUT_SPACE.search(behind):
        return False
    if LIST_NUMBER.fullmatch(line, start, end):
        return False
    if code in ORDINAL_LANGUAGES and ORDINAL.search(behind):
        return not beginning[1].isalpha()
    return code != "fr" or not FRENCH_ABBREVIATION.search(behind)


END_MARKS = frozenset(".!?…。！？")
# brackets and quotation marks that only close, in Unicode and as treebanks write them
CLOSING = frozenset("'' ' ” ’ › ) ] } -RRB- -RSB- -RCB-".split())
# quotation marks that open or close, by language: "a", «a», »a«, “a”, „a“
EITHER = frozenset('" « » “'.split())
QUOTATION_MARKS = EITHER.union("`` '' ` „ ‚ ‘ ’ ‹ › ”".split())


def parsed_sentences(text: str) -> list[str]:
    """The sentences of a text to parse, whose words and punctuation are separated by
    spaces.

    A sentence ends behind a full stop, question or exclamation mark and what closes it,
    such as quotation marks. A word in lower case continues it.

    >>> parsed_sentences("He said : `` Stop ! '' She left .")
    ["He said : `` Stop ! ''", 'She left .']
    """
    sentences: list[str] = []
    for line in text.splitlines():
        sentence: list[str] = []
        has_ended = False
        marks = 0  # quotation marks of the line
        for word in words(line):
            is_end = END_MARKS.issuperset(word)
            is_quotation_end = word in EITHER and marks % 2 == 1
            closes = is_end or is_quotation_end or word in CLOSING
            if has_ended and not closes and not word[0].islower():
                sentences.append(" ".join(sentence))
                sentence = []
            has_ended = closes and (has_ended or is_end)
            marks += word in QUOTATION_MARKS
            sentence.append(word)
        if sentence:
            sentences.append(" ".join(sentence))
    return sentences
