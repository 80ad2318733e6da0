"""The words of the grammar in three languages, read from lexicon.txt, which explains
its columns.
"""

from __future__ import annotations

import importlib.resources
import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

PRESENT, PAST, FUTURE = TENSES = ("present", "past", "future")


@dataclass(frozen=True, eq=False)
class Expression:
    """Words that do not change; English is a tree."""

    english: str
    german: str
    french: str


@dataclass(frozen=True, eq=False)
class Word:
    """A noun, an adjective or a determiner: its label and forms, whose order
    lexicon.txt explains.
    """

    label: str
    english: tuple[str, ...]
    german: tuple[str, ...]
    french: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Name(Word):
    """The name of a person or a city; `person` is its verb's form: 0 as I, 1 as he, 2
    as we, 3 as they.
    """

    person: int
    plural: bool
    feminine: bool


class Pronoun(Name):
    """A personal pronoun."""


@dataclass(frozen=True, eq=False)
class Conjugation:
    """A verb in one language."""

    infinitive: str
    present: str  # I/he/we/they
    past: str = ""  # in German and French only if it is used in place of the perfect
    participle: str = ""
    future: str = ""  # the French stem
    particle: str = ""  # turn ON, AUF|machen
    preposition: str = ""  # look FOR, AUF ... warten, répondre À, essayer DE
    case: str = "accusative"  # of its object in German
    perfect: str = "have"  # or "be": ist gegangen, est allé

    def finite(self, tense: str, person: int) -> str:
        """The form of the past or else of the present for I, he, we or they."""
        forms = (self.past if tense == PAST else self.present).split("/")
        return forms[min(person, len(forms) - 1)]


@dataclass(frozen=True, eq=False)
class Verb:
    """A verb, the nouns that can be its object, and its traits, which lexicon.txt
    explains.
    """

    english: Conjugation
    german: Conjugation
    french: Conjugation
    objects: tuple[Word, ...]
    traits: frozenset[str]


N = TypeVar("N", bound=Name)


def suiting(words: Sequence[Word], kinds: str) -> tuple[Word, ...]:
    """The nouns or adjectives of one of these kinds."""
    return tuple(word for word in words if set(word.label) & set(kinds))


def read_tables(name: str) -> dict[str, list[list[str]]]:
    """The columns of each line of a text file beside this one, by "[section]"."""
    text = (
        importlib.resources.files(__package__)
        .joinpath(name)
        .read_text(encoding="utf-8")
    )
    tables: dict[str, list[list[str]]] = {}
    for line in text.splitlines():
        if line.startswith("["):
            rows = tables[line.strip("[]")] = []
        elif line and not line.startswith("#"):
            rows.append([column.strip() for column in line.split("|")])
    return tables


def _forms(columns: Sequence[str], count: int = 1) -> list[tuple[str, ...]]:
    """The forms in each column, `count` times the same if there is one."""
    forms = []
    for column in columns:
        words = tuple(_unescaped(form) for form in column.split())
        forms.append(words * count if len(words) == 1 else words)
    return forms


def _unescaped(form: str) -> str:
    """A form as it is said: `-` stands for none, `_` for a space."""
    return "" if form == "-" else form.replace("_", " ")


def _name(cls: type[N], label: str, *columns: str) -> N:
    english, german, french = _forms(columns, 4)
    return cls(
        label,
        english,
        german,
        french,
        int(label[0]),
        "plural" in label,
        "feminine" in label,
    )


def _conjugation(column: str, names: str) -> Conjugation:
    """A verb's column: forms with these names, then options: `gehe/geht/gehen gegangen
    perfect=be`.
    """
    forms = []
    options = {}
    for word in column.split():
        name, equals, value = word.partition("=")
        if equals:
            options[name] = value
        else:
            forms.append(word)
    given = dict(zip(names.split(), forms, strict=True))
    given.setdefault("infinitive", given["present"].split("/")[-1])
    return Conjugation(**(given | options))


def _verb(label: str, english: str, german: str, french: str) -> Verb:
    kinds, *traits = label.split()
    return Verb(
        _conjugation(english, "present past"),
        _conjugation(german, "present participle"),
        _conjugation(french, "infinitive present participle future"),
        suiting(NOUNS, kinds),
        frozenset(traits),
    )


def _expressions(section: str) -> dict[str, Expression]:
    return {label: Expression(*columns) for label, *columns in _TABLES[section]}


def _adverbials(*texts: str) -> tuple[Expression, ...]:
    """The adverbials that a line of the section "times" stands for: `in {number}
    {unit}` -> in two days, ...
    """
    slots = re.findall(r"{(\w+)}", texts[0])
    choices = [_FILLERS[slot] for slot in slots]
    adverbials = []
    for rows in itertools.product(*choices):
        fillers = dict(zip(slots, rows, strict=True))  # each in three languages
        translations = []
        for language, text in enumerate(texts):
            words = {slot: row[language] for slot, row in fillers.items()}
            translations.append(text.format(**words))
        adverbials.append(Expression(*translations))
    return tuple(adverbials)


def determiner(label: str) -> Word:
    """A determiner; a number from 100 is written in digits."""
    if label in DETERMINERS:
        return DETERMINERS[label]
    german = (label, "none", "strong")
    return Word(label, ("CD", label), german, (label,) * 6)


_TABLES = read_tables("lexicon.txt")
ADJECTIVES = tuple(
    Word(label, *_forms(columns)) for label, *columns in _TABLES["adjectives"]
)
NOUNS = tuple(Word(label, *_forms(columns)) for label, *columns in _TABLES["nouns"])
NOUNS_OF = {kind: suiting(NOUNS, letters) for kind, letters in _TABLES["kinds"]}
ADJECTIVES_OF = {noun: suiting(ADJECTIVES, noun.label) for noun in NOUNS}
DETERMINERS = {
    row[0]: Word(row[0], *_forms(row[1:], 6))
    for row in _TABLES["determiners"] + _TABLES["numbers"]
}
PEOPLE = tuple(_name(Name, *row) for row in _TABLES["people"])
CITIES = tuple(_name(Name, *row) for row in _TABLES["cities"])
# I, he, she, we, they; GAP: not said
*PRONOUNS, GAP = (_name(Pronoun, *row) for row in _TABLES["pronouns"])
# German, by gender (masculine, feminine, neuter, plural), then case.
ENDINGS = {label: _forms(columns) for label, *columns in _TABLES["endings"]}
PREPOSITIONS = _expressions("prepositions")
CONJUNCTIONS = _expressions("conjunctions")
QUESTIONS = _expressions("questions")
ADVERBS = _expressions("adverbs")
NOTHING = ADVERBS[""]
# By section: transitive, motion, modal, ...
VERBS = {}
for _section, _rows in _TABLES.items():
    if _section.endswith(" verbs"):
        VERBS[_section.removesuffix(" verbs")] = tuple(_verb(*row) for row in _rows)
BE, HAVE, DO = VERBS["auxiliary"]
CAN, MUST, WANT = VERBS["modal"]
_NUMBERS = [determiner(str(number)) for number in range(2, 11)]
_YEARS = [str(year) for year in range(1950, 2026)]
# What a slot of an adverbial may hold, in three languages.
_FILLERS = {
    "number": [[word.english[1], word.german[0], word.french[0]] for word in _NUMBERS],
    "unit": [row[1:] for row in _TABLES["units"]],
    "weekday": [row[1:] for row in _TABLES["weekdays"]],
    "year": [[year] * 3 for year in _YEARS],
}
# Groups of adverbials, of which one is drawn, then one of its members.
TIMES: dict[str, list[tuple[Expression, ...]]] = {tense: [] for tense in TENSES}
for _tenses, *_texts in _TABLES["times"]:
    for _tense in _tenses.split():
        TIMES[_tense].append(_adverbials(*_texts))
