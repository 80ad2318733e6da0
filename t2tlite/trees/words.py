"""The words and tags of the Penn Treebank: raw text as its words, and the tags that fit
a word.
"""

import re
import unicodedata

from t2tlite.trees.tree import EMPTY_TAG, ROOT, split_tokens
from t2tlite.vocabularies.normalisation import IGNORED, words

NORMALISED_TAG = "XX"
# The tags that EVALB removes with their words under COLLINS.prm. Normalised trees keep
# them: EVALB could not score trees without them.
PUNCTUATION_TAGS = frozenset({",", ":", "``", "''", "."})
# The tag of words that are punctuation in every sentence. Others are not: ' closes a
# quotation or is a possessive (POS), - is a dash or joins two words (HYPH).
PUNCTUATION_WORDS = {
    **dict.fromkeys([","], ","),
    **dict.fromkeys([".", "!", "?"], "."),
    **dict.fromkeys([":", ";", "--", "...", "\u2014", "\u2026"], ":"),
    **dict.fromkeys(["``", "\u201c"], "``"),
    **dict.fromkeys(["''", '"', "\u201d"], "''"),
}
# Unicode's categories of dashes, quotation marks and other punctuation
PUNCTUATION_CATEGORIES = frozenset({"Pd", "Pi", "Pf", "Po"})
# of these categories, but with other tags: NN for %, HYPH or SYM for /
SYMBOLS = frozenset("%‰/\\#&*@′″†‡§¶")
# of other categories, but used as a quotation mark and as the mark of a list's item
OTHER_MARKS = frozenset("`+")
# also valid for such words: NNS for the " of 5 "
SYMBOL_TAGS = frozenset({"HYPH", "NFP", "NNS", "SYM"})

# The rules of the Treebank's own tokenisation script, in its order. The spaces that
# they insert are merged at the end.
RULES = [
    (re.compile(r'(^|[\s(\[{<-])["“]'), r"\1 `` "),
    (re.compile(r'["”]'), " '' "),
    (re.compile(r"(^|[\s(\[{<-])[‘`](?=\w)"), r"\1 ` "),
    (re.compile(r"’"), "'"),
    (re.compile(r"\.{3}|…"), " ... "),
    (re.compile(r"([;@#$%&?!])"), r" \1 "),
    (re.compile(r"([,:])(?!\d)|(?<!\d)([,:])"), r" \1\2 "),  # not in 1,000 or 10:30
    # the sentence's end; brackets and quotes may follow
    (re.compile(r"(?<=[^.])\.(?=[\])}>\s']*$)"), " . "),
    (re.compile(r"([\[\](){}<>]|--+|—)"), r" \1 "),
    (re.compile(r"(?<=[^'\s])'(?=\s|$)"), " ' "),
    (re.compile(r"(?<=\w)('(?:s|m|d|ll|re|ve)|n't)(?=\W|$)", re.IGNORECASE), r" \1 "),
    (re.compile(r"\b(can)(not)\b", re.IGNORECASE), r"\1 \2"),
    (re.compile(r"\b(gon|wan)(na)\b", re.IGNORECASE), r"\1 \2"),
]


def penn_words(text: str) -> str:
    """Splits a sentence of English text into the Treebank's words, with single spaces
    between them.

    >>> penn_words('"I can\\'t," he said (at 10:30), "pay $1,000."')
    "`` I ca n't , '' he said ( at 10:30 ) , `` pay $ 1,000 . ''"
    """
    text = IGNORED.sub("", text)  # a zero-width character would hide the last full stop
    for pattern, replacement in RULES:
        text = pattern.sub(replacement, text)
    return " ".join(words(text))


def may_be_punctuation(word: str) -> bool:
    """Whether a word can have one of PUNCTUATION_TAGS: it has no letter or digit, and
    is not made of brackets and symbols alone, such as [, %, / or =.
    """
    if any(map(str.isalnum, word)):
        return False
    for character in set(word) - SYMBOLS:
        category = unicodedata.category(character)
        if category in PUNCTUATION_CATEGORIES or character in OTHER_MARKS:
            return True
    return False


def tree_word(word: str) -> str:
    """The word as trees write it: -LRB- and -RRB- for round brackets, U+FFFD for NUL.

    Raises ValueError if the word is empty or contains white space.
    """
    if split_tokens(word) != [word]:
        raise ValueError(
            f"A word must be text without white space. Received: {word!r}."
        )
    return word.replace("(", "-LRB-").replace(")", "-RRB-").replace("\0", "\ufffd")


def fitting_tag(word: str, tag: str) -> str:
    """Returns the tag, or a better one if EVALB would remove the word because of it, or
    would count punctuation as a word.

    EVALB removes the words of certain tags from both trees, and can compare the trees
    only if the remaining words are the same. Therefore

    - a punctuation tag on a word that is not punctuation (`may_be_punctuation`) becomes
      XX; so does TOP, and so does -NONE- unless the word looks like a trace (`*T*-1`,
      `0`);
    - a word that is always punctuation (PUNCTUATION_WORDS) gets its Penn Treebank tag,
      unless it has a punctuation tag or one of SYMBOL_TAGS.
    """
    if tag in PUNCTUATION_TAGS:
        return tag if may_be_punctuation(word) else NORMALISED_TAG
    if tag == ROOT or (tag == EMPTY_TAG and not word.startswith(("*", "0"))):
        tag = NORMALISED_TAG
    return tag if tag in SYMBOL_TAGS else PUNCTUATION_WORDS.get(word, tag)
