"""Says a clause in a language by the rules of rules.txt: in English as a tree in the
Penn Treebank's brackets, in German as text.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from typing import Any

from t2tlite.problems.grammar import lexicon
from t2tlite.problems.grammar.lexicon import (
    PAST,
    TENSES,
    UNSAID,
    Expression,
    Word,
)
from t2tlite.problems.grammar.structure import Clause, Nominal, PrepositionalPhrase

CASES = ("nominative", "accusative", "dative", "genitive")
GENDERS = ("der", "die", "das", "plural")
AUXILIARIES = {verb.name: verb for verb in lexicon.VERBS["auxiliary"]}
SLOT = re.compile(r"{([\w.]+):?(\w*)}")
LEAF = re.compile(r" ([^() ]+)\)")
SPELLINGS = {" .": ".", " ?": "?", " ,": ",", " 's": "'s", "can not ": "cannot "}
CONTRACTIONS = {"in dem": "im", "in das": "ins", "zu dem": "zum", "zu der": "zur"}

# What a clause or phrase has in a case: a text, a field, or whether a condition holds.
Getter = Callable[[Any, str], Any]


class Realiser:
    """The rules of a language, "english" or "german", and the forms that they name."""

    def __init__(
        self,
        language: str,
        forms: Mapping[str, Getter],
        finite: Callable[[Word, str, int], str],
    ) -> None:
        self._language = language
        self._finite = finite
        self._texts = dict(forms)
        self._template = functools.cache(self._parsed)
        rules = []
        for section, rows in lexicon.read_tables("rules.txt").items():
            section_language, _, name = section.partition(" ")
            if section_language == language:
                lines: list[Any] = []
                rules.append((lines, rows))
                self._texts[name] = functools.partial(_constituent, lines)
        for lines, rows in rules:
            for conditions, text in rows:
                tests = [self._test(condition) for condition in conditions.split()]
                lines.append((tests, *self._template(text)))

    def sentence(self, clause: Clause) -> str:
        """A whole sentence, neither spelled nor capitalised."""
        return re.sub(r" +(?=[ )])", "", self._texts["sentence"](clause, ""))

    def _test(self, condition: str) -> tuple[Getter, str | bool]:
        """A condition, and the value that it requires, or whether it requires any:
        `negation=not`, `fronted`, `!fronted`.
        """
        path, _, required = condition.lstrip("!").partition("=")
        return self._value(path), required or not condition.startswith("!")

    def _parsed(self, text: str) -> tuple[str, list[Getter]]:
        """A text with %s for each of its slots, and what these say."""
        slots = [self._slot(*match) for match in SLOT.findall(text)]
        return SLOT.sub("%s", text), slots

    def _slot(self, path: str, own_case: str) -> Getter:
        """What a slot says: `{verb}`, `{subject:nominative}`, `{second.middle}`."""
        value = self._value(path, own_case)
        if path.split(".")[-1] in self._texts:
            return value

        def say(node: Any, case: str) -> str:
            content = value(node, case)
            if isinstance(content, str):
                return content
            return self._say(content, node, own_case or case) if content else ""

        return say

    def _value(self, path: str, own_case: str = "") -> Getter:
        """The constituent, form, auxiliary or field that a path names."""
        *owners, name = path.split(".")
        find = self._texts.get(name) or _field(name)

        def value(node: Any, case: str) -> Any:
            for owner in owners:
                node = getattr(node, owner, None)
            return find(node, own_case or case) if node else ""

        return value if owners or own_case else find

    def _say(self, content: Any, clause: Any, case: str) -> str:
        if isinstance(content, Expression):
            text, slots = self._template(getattr(content, self._language))
            return text % tuple([slot(clause, case) for slot in slots])
        if isinstance(content, PrepositionalPhrase):
            return self._say(content.preposition, content, case)
        if isinstance(content, Word) and not content.kind:
            tense = case if case in TENSES else clause.tense
            return self._finite(content, tense, clause.person)
        return self._texts["noun_phrase"](content, case)


def _constituent(lines: list[Any], node: Any, case: str) -> str:
    """A constituent by the first rule whose conditions hold; or nothing."""
    for tests, text, slots in lines:
        for value, required in tests:
            actual = value(node, case)
            if actual != required and bool(actual) is not required:
                break
        else:
            return (text % tuple([slot(node, case) for slot in slots])).strip()
    return ""


def _field(name: str) -> Getter:
    """A field of a clause or phrase, one of several forms, or an auxiliary."""
    if name == "case":
        return lambda node, case: getattr(node, name, case)
    if name in AUXILIARIES:
        return lambda node, case: AUXILIARIES[name]
    if name.isdigit():
        return lambda node, case: node[int(name)]
    return lambda node, case: getattr(node, name, None)


def spelled(tree: str) -> str:
    """The sentence that the leaves spell: `(S (NP (PRP He)) (VP (MD can) (RB not) ...`
    -> `He cannot ...`
    """
    text = " ".join(LEAF.findall(tree))
    for split, whole in SPELLINGS.items():
        text = text.replace(split, whole)
    return text


def english_tree(clause: Clause) -> str:
    """The constituency tree of a sentence, its first word capitalised."""
    tree = ENGLISH.sentence(clause)
    return LEAF.sub(lambda leaf: f" {leaf[1][0].upper()}{leaf[1][1:]})", tree, count=1)


def german_text(clause: Clause) -> str:
    """The sentence, with capital and punctuation."""
    text = re.sub("( *,)+", ",", GERMAN.sentence(clause)).strip(" ,")
    for words, whole in CONTRACTIONS.items():
        text = text.replace(f" {words} ", f" {whole} ")
    return text[0].upper() + text[1:] + ("?" if clause.question else ".")


def _english_finite(verb: Word, tense: str, person: int) -> str:
    tag = "VBZ" if person == 1 else "VBP"
    if tense == PAST:
        tag = "VBD"
    return f"({tag} {verb.english.finite(tense, person)})"


def _english_words(phrase: Nominal, _: str) -> str:
    """Determiner, adjective and noun."""
    tag, *words = lexicon.determiner(phrase.determiner).english
    next_word = (phrase.adjective or phrase.noun).english[0]
    determiner = f"({tag} {words[-phrase.plural]})" if tag else ""
    if phrase.determiner == "a" and next_word[0] in "aeiou":
        determiner = "(DT an)"
    adjective = f"(JJ {next_word})" if phrase.adjective else ""
    tag = "NNS" if phrase.plural else "NN"
    return f"{determiner} {adjective} ({tag} {phrase.noun.english[phrase.plural]})"


def _german_words(phrase: Nominal, case: str) -> str:
    """Article, adjective and noun, with their endings."""
    label = "no" if phrase.is_none else phrase.determiner
    stem, article_endings, endings = lexicon.determiner(label).german
    article = stem + _ending(article_endings, phrase, case)
    if isinstance(phrase.owner, Word):
        article = phrase.owner.german[0] + "s"
        endings = "strong"
    adjective = ""
    if phrase.adjective:
        adjective = phrase.adjective.german[1] + _ending(endings, phrase, case)
    noun = phrase.noun.german[1 + CASES.index(case) + 4 * phrase.plural]
    return f"{article} {adjective} {noun}"


def _relative_pronoun(clause: Clause, _: str) -> str:
    phrase: Any = clause.antecedent
    case = clause.verb.german.case or "accusative"
    if clause.subject is UNSAID:
        case = "nominative"
    if case == "dative" and phrase.plural:
        return "denen"
    return _ending("the", phrase, case)


def _ending(table: str, phrase: Nominal, case: str) -> str:
    """The ending for the gender, or the plural, and the case."""
    gender = GENDERS.index("plural" if phrase.plural else phrase.noun.german[0])
    return lexicon.INFLECTIONS[table][gender][CASES.index(case)]


ENGLISH = Realiser(
    "english",
    {
        "form": lambda name, case: name.english.at(CASES.index(case)),
        "words": _english_words,
    },
    _english_finite,
)
GERMAN = Realiser(
    "german",
    {
        "form": lambda name, case: name.german.at(CASES.index(case)),
        "words": _german_words,
        "relative_pronoun": _relative_pronoun,
    },
    lambda verb, tense, person: verb.german.finite(tense, person),
)
