"""The forms that rules.txt calls by name, and the sentences made of its rules: in
English as a tree in the Penn Treebank's brackets, in German as text.
"""

import dataclasses
import re
import zlib
from functools import cached_property, partial

from t2tlite.problems.grammar.rules import WORDS, Language, Phrase

LEAF = re.compile(r" ([^() ]+)\)")
SPELLINGS = {
    " .": ".",
    " ?": "?",
    " ,": ",",
    " 's": "'s",
    "can not ": "cannot ",
}
ENDINGS = {name: word for word in WORDS["endings"] for name in word["labels"]}
CONTRACTIONS = {
    "in dem": "im",
    "in das": "ins",
    "zu dem": "zum",
    "zu der": "zur",
}


@dataclasses.dataclass(frozen=True)
class GrammarSentence:
    """A clause as a sentence; each language is realised when it is first used."""

    clause: Phrase

    @cached_property
    def tree(self) -> str:
        """The English constituency tree in the Penn Treebank's brackets, on one
        line.
        """
        tree = ENGLISH.sentence(self.clause)
        word = LEAF.search(tree)
        start = word.start(1) if word else 0
        return tree[:start] + tree[start].upper() + tree[start + 1 :]

    @cached_property
    def english(self) -> str:
        """What the leaves of the tree spell: `(S (NP (PRP He)) (VP (MD can) (RB not)
        ...` -> `He cannot ...`
        """
        text = " ".join(LEAF.findall(self.tree))
        for split, whole in SPELLINGS.items():
            text = text.replace(split, whole)
        return text

    @cached_property
    def german(self) -> str:
        """The sentence, with capital and punctuation."""
        text = re.sub("( *,)+", ",", GERMAN.sentence(self.clause)).strip(" ,")
        for words, whole in CONTRACTIONS.items():
            text = text.replace(f" {words} ", f" {whole} ")
        end = "?" if self.clause.get("question") else "."
        return text[0].upper() + text[1:] + end

    @cached_property
    def split(self) -> str:
        """The split of this sentence, whatever the size of the data: 5% dev, 5% test,
        the rest train.
        """
        percent = zlib.crc32(self.english.encode()) % 100
        if percent < 5:
            return "dev"
        return "test" if percent < 10 else "train"


def _english_finite(clause: Phrase, name: str) -> str:
    """A verb in the tense of its clause, present or past."""
    tense = "past" if clause["tense"] == "past" else "present"
    tag = "VBZ" if clause["person"] == "1" else "VBP"
    if tense == "past":
        tag = "VBD"
    return f"({tag} {ENGLISH.conjugated(tense, clause, name)})"


def _before_vowel(phrase: Phrase, _: str) -> bool:
    """Whether what follows the determiner begins with a vowel."""
    word = phrase["noun"]["english"]["singular"]
    if "adjective" in phrase:
        word = phrase["adjective"]["english"]["word"]
    return word[0] in "aeiou"


def _german_words(phrase: Phrase, case: str) -> str:
    """Article, adjective and noun, with their endings."""
    determiner = phrase["determiner"]["german"]
    article = determiner["stem"] + _ending(determiner["endings"], phrase, case)
    endings = determiner["adjective"]
    owner = phrase.get("owner", {})
    if "word" in owner:
        article = owner["word"]["german"]["nominative"] + "s"
        endings = "strong"
    adjective = ""
    if "adjective" in phrase:
        stem = phrase["adjective"]["german"]["stem"]
        adjective = stem + _ending(endings, phrase, case)
    number = "plural_" if "plural" in phrase else ""
    noun = phrase["noun"]["german"][number + case]
    return f"{article} {adjective} {noun}"


def _ending(table: str, phrase: Phrase, case: str) -> str:
    """The ending for the gender, or the plural, and the case."""
    gender = "plural" if "plural" in phrase else phrase["noun"]["german"]["gender"]
    return ENDINGS[table][gender][case]


ENGLISH = Language("english", {"finite": _english_finite, "vowel": _before_vowel})
GERMAN = Language(
    "german",
    {"relative_pronoun": partial(_ending, "relative"), "words": _german_words},
)
