"""The forms that rules.txt calls by name, and the sentences made of its rules: in
English as a tree in the Penn Treebank's brackets, in German as text.
"""

import functools
import re

from t2tlite.problems.grammar.rules import WORDS, Language, Phrase

LEAF = re.compile(r" ([^() ]+)\)")
SPELLINGS = {" .": ".", " ?": "?", " ,": ",", " 's": "'s", "can not ": "cannot "}
AUXILIARIES = {verb["english"]["base"]: verb for verb in WORDS["auxiliary"]}
ENDINGS = {name: word for word in WORDS["endings"] for name in word["labels"]}
CONTRACTIONS = {"in dem": "im", "in das": "ins", "zu dem": "zum", "zu der": "zur"}


def english_tree(clause: Phrase) -> str:
    """The constituency tree of a sentence, its first word capitalised."""
    tree = ENGLISH.sentence(clause)
    return LEAF.sub(lambda leaf: f" {leaf[1][0].upper()}{leaf[1][1:]})", tree, count=1)


def spelled(tree: str) -> str:
    """The sentence that the leaves spell: `(S (NP (PRP He)) (VP (MD can) (RB not) ...`
    -> `He cannot ...`
    """
    text = " ".join(LEAF.findall(tree))
    for split, whole in SPELLINGS.items():
        text = text.replace(split, whole)
    return text


def german_text(clause: Phrase) -> str:
    """The sentence, with capital and punctuation."""
    text = re.sub("( *,)+", ",", GERMAN.sentence(clause)).strip(" ,")
    for words, whole in CONTRACTIONS.items():
        text = text.replace(f" {words} ", f" {whole} ")
    return text[0].upper() + text[1:] + ("?" if clause.get("question") else ".")


def _form(language: str, phrase: Phrase, case: str) -> str:
    """A name or pronoun."""
    form: str = phrase["word"][language][case]
    return form


def _conjugated(language: str, tense: str, clause: Phrase, name: str) -> str:
    """The present or past of the verb in a field of a clause, or of an auxiliary."""
    verb = clause.get(name) or AUXILIARIES[name]
    forms = verb[language][tense].split("/")
    person = min(int(clause["person"]), len(forms) - 1)
    return forms[person]


def _english_finite(clause: Phrase, name: str) -> str:
    """A verb in the tense of its clause, present or past."""
    tense = "past" if clause["tense"] == "past" else "present"
    tag = "VBZ" if clause["person"] == "1" else "VBP"
    if tense == "past":
        tag = "VBD"
    return f"({tag} {_conjugated('english', tense, clause, name)})"


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


ENGLISH = Language(
    "english",
    {
        "finite": _english_finite,
        "form": functools.partial(_form, "english"),
        "vowel": _before_vowel,
    },
)
GERMAN = Language(
    "german",
    {
        "form": functools.partial(_form, "german"),
        "in_past": functools.partial(_conjugated, "german", "past"),
        "in_present": functools.partial(_conjugated, "german", "present"),
        "relative_pronoun": functools.partial(_ending, "relative"),
        "words": _german_words,
    },
)
