"""From raw text to words and punctuation separated by spaces, as the Penn Treebank
writes them.
"""

from __future__ import annotations

import re

from t2tlite.vocabularies.normalisation import IGNORED, words

# In this order; the rules are those of the Treebank's own tokenisation script. A rule's
# spaces are merged at the end.
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
GLUED = re.compile(r"\w[.,;:!?]$")


def penn_words(text: str) -> str:
    """The words of a sentence of English text, separated by single spaces.

    >>> penn_words('"I can\\'t," he said (at 10:30), "pay $1,000."')
    "`` I ca n't , '' he said ( at 10:30 ) , `` pay $ 1,000 . ''"
    """
    text = IGNORED.sub("", text)  # a zero-width character would hide the last full stop
    for pattern, replacement in RULES:
        text = pattern.sub(replacement, text)
    return " ".join(words(text))


def ends_in_punctuation(word: str) -> bool:
    """Whether a last word has its punctuation still attached, as in `sleeps.`"""
    return GLUED.search(word) is not None
