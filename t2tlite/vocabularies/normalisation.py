"""The rule by which a vocabulary reads text, as a function and as the map in a
SentencePiece model.

1. Unicode's NFC: a letter and its accents become one character if Unicode has one. The
   rule nfkc applies NFKC, which also makes full-width letters, ligatures and
   superscripts plain.
2. Zero-width characters, soft hyphens and byte order marks are removed. The zero-width
   joiner and non-joiner stay where spelling needs them: directly behind a letter or
   mark of an Arabic or Indic script. The joiner also stays behind an emoji.
3. White space, as `str.isspace` defines it, becomes a space; so does U+2581, which
   SentencePiece writes for a space. Several spaces become one. Spaces at either end are
   removed.

Everything else stays. A zero-width character between a letter and its accent keeps
them apart. The SentencePiece model contains steps 2 and 3, and step 1 as far as a table
of strings can express it, so every program that reads the model applies them.
`SentencePieceEncoder` and the graph of a SavedModel first compute step 1 exactly.
"""

import itertools
import re
import unicodedata
from collections.abc import Iterator, Mapping

NFC, NFKC, NONE = "nfc", "nfkc", "none"
# of t2t-datagen; NONE leaves text as it is
NORMALIZATIONS = (NFC, NFKC, NONE)

# Zero-width characters, soft hyphens and byte order marks, without variation selectors
# and tags, which are parts of emoji.
REMOVED = (
    "\u00ad\u034f\u061c\u180e\u200b\u200e\u200f"
    # embeddings and overrides of direction, invisible operators, isolates
    "\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff\ufff9-\ufffb"
)
NON_JOINER, JOINER = "\u200c", "\u200d"
# Both joiners stay behind these letters and marks: blocks of scripts that join letters.
JOINING = (
    "\u0600-\u06ff\u0700-\u077f\u0780-\u07ff\u0840-\u08ff"  # Arabic, Syriac, N'Ko
    "\u0900-\u0dff"  # from Devanagari to Sinhala
    "\u1000-\u109f\u1780-\u17ff\u1800-\u18af"  # Burmese, Khmer, Mongolian
    "\ua8e0-\ua8ff\uabc0-\uabff\ufb50-\ufdff\ufe70-\ufefe"
)
# The joiner stays behind these: emoji, and the selector of their coloured form.
EMOJI = "\u2600-\u27bf\u2b00-\u2bff\ufe0f\U0001f300-\U0001faff"
# for the space before a word in a piece of SentencePiece
SPACE_MARK = "\u2581"
# the characters that `str.isspace` accepts
PLAIN_SPACES = "\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
SPACES = PLAIN_SPACES + SPACE_MARK

# The compatibility characters of Unicode 14 to 16. The map leaves them out, so that it
# does not depend on the version of Python.
NEWER = "\ua7f1-\ua7f4\U00010780-\U000107bf\U0001cc00-\U0001ceff\U0001e030-\U0001e08f"
# the ranges with decompositions, without those of Hangul
DECOMPOSABLE = "\xa0-\uabff\uf900-\U0002ffff"
# Hangul's syllables
SYLLABLES = "\uac00-\ud7a3"

MAY_BE_IGNORED = re.compile(f"[{REMOVED}{NON_JOINER}{JOINER}]")
# those of REMOVED that are also in the blocks of JOINING
BEFORE_JOINER = re.compile(f"[\u061c\u180e]+(?=[{NON_JOINER}{JOINER}])")
VISIBLE = re.compile(f"[^{REMOVED}{NON_JOINER}{JOINER}{SPACES}]")
IGNORED = re.compile(
    f"[{REMOVED}]|(?<![{JOINING}]){NON_JOINER}|(?<![{JOINING}{EMOJI}]){JOINER}"
)
WHITE_SPACE = re.compile(f"[{SPACES}]+")


def compose(text: str, normalization: str) -> str:
    """Applies step 1 of the rule, and what SentencePiece's table of strings cannot:
    U+2581 is a space also before a user-defined symbol, and a joiner has nothing before
    it that step 2 removes.
    """
    if normalization == NONE or text.isascii():
        return text
    text = BEFORE_JOINER.sub("", text.replace(SPACE_MARK, " "))
    return unicodedata.normalize("NFC" if normalization == NFC else "NFKC", text)


def normalise(text: str, normalization: str = NFC) -> str:
    """The text as a vocabulary with this normalization reads it.

    >>> normalise("  cafe\\u0301\\u00a0au\\u00ad\\tlait ")
    'café au lait'
    """
    if normalization == NONE:
        return text
    composed = compose(text, normalization)
    if MAY_BE_IGNORED.search(composed):
        composed = IGNORED.sub("", composed)
    return " ".join(composed.replace(SPACE_MARK, " ").split())


def words(text: str) -> list[str]:
    """Splits a text at white space, and leaves out words without a visible character.

    >>> words("10\\u00a0000 \\u200b co\\u00adop")
    ['10', '000', 'co\\xadop']
    """
    return [word for word in WHITE_SPACE.split(text) if VISIBLE.search(word)]


def is_blank(text: str) -> bool:
    """Whether a text has only white space and characters that the rule removes."""
    return not VISIBLE.search(text)


def normalization_map(normalization: str) -> Mapping[str, str]:
    """The replacement of each string in a SentencePiece model, for NFC or NFKC."""
    rules = dict.fromkeys([*_in_class(REMOVED), NON_JOINER, JOINER], "")
    rules |= dict.fromkeys(_in_class(SPACES), " ")
    newer = re.compile(f"[{NEWER}]")
    for character in _in_class(DECOMPOSABLE):
        if unicodedata.decomposition(character) and not newer.match(character):
            composed = compose(character, normalization)
            for spelling in {character, *_spellings(character)}:
                rules[spelling] = WHITE_SPACE.sub(" ", composed)
    for syllable in _in_class(SYLLABLES):
        rules[unicodedata.normalize("NFD", syllable)] = syllable
    rules = {key: value for key, value in rules.items() if key != value}
    joining = re.compile(f"[{JOINING}]")
    # longer strings, so that they are replaced before a joiner alone
    for written in {*_in_class(JOINING), *filter(joining.match, rules)}:
        for joiner in (NON_JOINER, JOINER):
            rules[written + joiner] = rules.get(written, written) + joiner
    for character in _in_class(EMOJI):
        rules[character + JOINER] = character + JOINER
    return rules


def _in_class(ranges: str) -> Iterator[str]:
    """Yields the characters in ranges, written as in a regular expression."""
    for first, last in re.findall("(?s)(.)(?:-(.))?", ranges):
        for code in range(ord(first), ord(last or first) + 1):
            yield chr(code)


def _spellings(character: str) -> set[str]:
    """The strings that are canonically equivalent to a composed character: `ệ` is e
    with two marks in either order, or ê or ẹ with one.
    """
    decomposed = unicodedata.normalize("NFD", character)
    spellings: set[str] = set()
    for order in itertools.permutations(decomposed[1:]):
        waiting = ["".join((decomposed[0], *order))]
        while waiting:
            spelling = waiting.pop()
            if unicodedata.normalize("NFD", spelling) == decomposed:
                spellings.add(spelling)
            for end in range(2, len(spelling)):
                start = unicodedata.normalize("NFC", spelling[:end])
                if len(start) == 1:
                    waiting.append(start + spelling[end:])
    return spellings
