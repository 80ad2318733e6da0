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
    """Words that do not change; the English ones are a tree."""

    english: str
    german: str
    french: str


@dataclass(frozen=True, eq=False)
class Lexeme:
    """A noun, an adjective or a determiner: its label and its forms in the order that
    lexicon.txt explains.
    """

    label: str
    english: tuple[str, ...]
    german: tuple[str, ...]
    french: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Name(Lexeme):
    """The name of a person or a city. Its verb has the form of `person`: 0 for I, 1 for
    he, 2 for we, 3 for they.
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
    past: str = ""  # in German and French: only if it replaces the perfect
    participle: str = ""
    future: str = ""  # the French stem
    particle: str = ""  # turn ON, AUF|machen
    preposition: str = ""  # look FOR, AUF ... warten, répondre À, essayer DE
    case: str = "accusative"  # of its object in German
    perfect: str = "have"  # or "be": ist gegangen, est allé

    def finite(self, tense: str, person: int) -> str:
        """The form for I, he, we or they: of the past, or of the present in any other
        tense.
        """
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
    objects: tuple[Lexeme, ...]
    traits: frozenset[str]


N = TypeVar("N", bound=Name)


def suiting(words: Sequence[Lexeme], kinds: str) -> tuple[Lexeme, ...]:
    """The nouns or adjectives of one of these kinds."""
    return tuple(word for word in words if set(word.label) & set(kinds))


def read_tables(name: str) -> dict[str, list[list[str]]]:
    """Reads a text file beside this one: the columns of each line, by "[section]"."""
    file = importlib.resources.files(__package__).joinpath(name)
    tables: dict[str, list[list[str]]] = {}
    for line in file.read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            rows = tables[line.strip("[]")] = []
        elif line and not line.startswith("#"):
            rows.append(list(map(str.strip, line.split("|"))))
    return tables


def _lexemes(section: str, count: int = 1) -> list[Lexeme]:
    """The lexemes in a section."""
    lexemes = []
    for label, *columns in _TABLES[section]:
        lexemes.append(Lexeme(label, *_forms(columns, count)))
    return lexemes


def _forms(columns: Sequence[str], count: int = 1) -> list[tuple[str, ...]]:
    """The forms in each column; a single form stands for `count` equal ones."""
    forms = []
    for column in columns:
        words = tuple(map(_unescaped, column.split()))
        forms.append(words * count if len(words) == 1 else words)
    return forms


def _unescaped(form: str) -> str:
    """The spelling of a form: `-` stands for none, `_` for a space."""
    return "" if form == "-" else form.replace("_", " ")


def _names(cls: type[N], section: str) -> list[N]:
    """The names in a section."""
    names = []
    for label, *columns in _TABLES[section]:
        english, german, french = _forms(columns, 4)
        name = cls(
            label,
            english,
            german,
            french,
            person=int(label[0]),
            plural="plural" in label,
            feminine="feminine" in label,
        )
        names.append(name)
    return names


def _conjugation(column: str, names: str) -> Conjugation:
    """A verb's column: forms with these names, then options, as in `gehe/geht/gehen
    gegangen perfect=be`.
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


def _verbs(section: str) -> tuple[Verb, ...]:
    """The verbs in a section."""
    verbs = []
    for label, english, german, french in _TABLES[section]:
        kinds, *traits = label.split()
        verb = Verb(
            _conjugation(english, "present past"),
            _conjugation(german, "present participle"),
            _conjugation(french, "infinitive present participle future"),
            suiting(NOUNS, kinds),
            frozenset(traits),
        )
        verbs.append(verb)
    return tuple(verbs)


def _expressions(section: str) -> dict[str, Expression]:
    """The expressions in a section, by label."""
    return {label: Expression(*columns) for label, *columns in _TABLES[section]}


def _adverbials(*texts: str) -> tuple[Expression, ...]:
    """The adverbials in a line of the section "times": `in {number} {unit}` stands for
    in two days, in two weeks, ...
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


def determiner(label: str) -> Lexeme:
    """A determiner; a number from 100 is written in digits."""
    if label in DETERMINERS:
        return DETERMINERS[label]
    german = (label, "none", "strong")
    return Lexeme(label, ("CD", label), german, (label,) * 6)


_TABLES = read_tables("lexicon.txt")
ADJECTIVES = _lexemes("adjectives")
NOUNS = _lexemes("nouns")
NOUNS_OF = {kind: suiting(NOUNS, letters) for kind, letters in _TABLES["kinds"]}
ADJECTIVES_OF = {noun: suiting(ADJECTIVES, noun.label) for noun in NOUNS}
_DETERMINERS = _lexemes("determiners", count=6) + _lexemes("numbers", count=6)
DETERMINERS = {lexeme.label: lexeme for lexeme in _DETERMINERS}
PEOPLE = _names(Name, "people")
CITIES = _names(Name, "cities")
# I, he, she, we, they; GAP: not said
*PRONOUNS, GAP = _names(Pronoun, "pronouns")
# German, by gender (masculine, feminine, neuter, plural), then case.
ENDINGS = {label: _forms(columns) for label, *columns in _TABLES["endings"]}
PREPOSITIONS = _expressions("prepositions")
CONJUNCTIONS = _expressions("conjunctions")
QUESTIONS = _expressions("questions")
ADVERBS = _expressions("adverbs")
NOTHING = ADVERBS[""]
# By section: transitive, motion, modal, ...
VERBS = {}
for _section in _TABLES:
    if _section.endswith(" verbs"):
        VERBS[_section.removesuffix(" verbs")] = _verbs(_section)
BE, HAVE, DO = VERBS["auxiliary"]
CAN, MUST, WANT = VERBS["modal"]
# By slot of an adverbial: its possible words, each in three languages.
_FILLERS: dict[str, list[Sequence[str]]] = {
    "number": [],
    "unit": [translations for _, *translations in _TABLES["units"]],
    "weekday": [],
    "year": [],
}
for _number in range(2, 11):
    _word = determiner(str(_number))
    _FILLERS["number"].append((_word.english[1], _word.german[0], _word.french[0]))
for _, *_weekday in _TABLES["weekdays"]:
    _FILLERS["weekday"].append(_weekday)
for _year in range(1950, 2026):
    _FILLERS["year"].append((str(_year),) * 3)
# Groups of adverbials by tense: first a group is drawn, then one of its members.
TIMES: dict[str, list[tuple[Expression, ...]]] = {tense: [] for tense in TENSES}
for _tenses, *_texts in _TABLES["times"]:
    for _tense in _tenses.split():
        TIMES[_tense].append(_adverbials(*_texts))
