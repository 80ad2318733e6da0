"""The words of the grammar in English and German, read from lexicon.txt, which explains
its columns.
"""

from __future__ import annotations

import collections
import importlib.resources
import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass

PRESENT, PAST, FUTURE = TENSES = ("present", "past", "future")


@dataclass(frozen=True, eq=False)
class Expression:
    """Words that do not change; the English ones are a tree."""

    english: str
    german: str


@dataclass(frozen=True, eq=False)
class Lexeme:
    """A noun, an adjective or a determiner: its label and its forms in the order that
    lexicon.txt explains.
    """

    label: str
    english: tuple[str, ...]
    german: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class ProperName(Lexeme):
    """The name of a person or a city, or a pronoun. Its verb has the form of `person`:
    0 for I, 1 for he, 2 for we, 3 for they.
    """

    kind: str

    @property
    def person(self) -> int:
        return int(self.label)


@dataclass(frozen=True, eq=False)
class Conjugation:
    """A verb in one language."""

    infinitive: str
    present: str  # I/he/we/they
    past: str = ""  # in German: only if it replaces the perfect
    participle: str = ""
    particle: str = ""  # turn ON, AUF|machen
    preposition: str = ""  # look FOR, AUF ... warten
    case: str = "accusative"  # of its object in German
    perfect: str = "have"  # or "be": ist gegangen

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
    objects: tuple[Lexeme, ...]
    traits: frozenset[str]

    @property
    def name(self) -> str:
        return self.english.infinitive


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


def _lexemes(section: str) -> list[Lexeme]:
    """The lexemes in a section."""
    lexemes = []
    for label, *columns in _TABLES[section]:
        lexemes.append(Lexeme(label, *map(_forms, columns)))
    return lexemes


def _forms(column: str) -> tuple[str, ...]:
    """The forms in a column; `-` stands for an empty one."""
    return tuple(form.strip("-") for form in column.split())


def _names(section: str, kind: str) -> list[ProperName]:
    """The names in a section."""
    names = []
    for label, english, german in _TABLES[section]:
        names.append(ProperName(label, _cases(english), _cases(german), kind))
    return names


def _cases(column: str) -> tuple[str, ...]:
    """The forms of a name in each case; a single one stands for all."""
    forms = _forms(column)
    return forms * 4 if len(forms) == 1 else forms


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
    for label, english, german in _TABLES[section]:
        kinds, *traits = label.split()
        verb = Verb(
            _conjugation(english, "present past"),
            _conjugation(german, "present participle"),
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
        words = zip(*rows, strict=True) if rows else [(), ()]  # English, then German
        translations = []
        for text, fillers in zip(texts, words, strict=True):
            translations.append(text.format(**dict(zip(slots, fillers, strict=True))))
        adverbials.append(Expression(*translations))
    return tuple(adverbials)


def determiner(label: str) -> Lexeme:
    """A determiner; a number from 100 is written in digits."""
    if label in DETERMINERS:
        return DETERMINERS[label]
    return Lexeme(label, ("CD", label), (label, "none", "strong"))


_TABLES = read_tables("lexicon.txt")
ADJECTIVES = _lexemes("adjectives")
NOUNS = _lexemes("nouns")
NOUNS_OF = {kind: suiting(NOUNS, letters) for kind, letters in _TABLES["kinds"]}
ADJECTIVES_OF = {noun: suiting(ADJECTIVES, noun.label) for noun in NOUNS}
DETERMINERS = {}
for _lexeme in _lexemes("determiners") + _lexemes("numbers"):
    DETERMINERS[_lexeme.label] = _lexeme
PEOPLE = _names("people", "name")
CITIES = _names("cities", "name")
PRONOUNS = _names("pronouns", "pronoun")  # I, he, she, we, they
UNSAID = ProperName("1", ("",), ("",), "unsaid")  # a subject that is not said
# German, by gender (masculine, feminine, neuter, plural), then case.
INFLECTIONS = {}
for _label, *_columns in _TABLES["endings"]:
    INFLECTIONS[_label] = [_forms(_column) for _column in _columns]
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
BE = VERBS["auxiliary"][0]
CAN, MUST, WANT = VERBS["modal"]
# By slot of an adverbial: its possible words, each in both languages.
_FILLERS = collections.defaultdict(list)
for _slot, *_words in _TABLES["fillers"]:
    _FILLERS[_slot].append(_words)
for _year in range(1950, 2026):
    _FILLERS["year"].append([str(_year), str(_year)])
# Groups of adverbials by tense: first a group is drawn, then one of its members.
TIMES: dict[str, list[tuple[Expression, ...]]] = {tense: [] for tense in TENSES}
for _tenses, *_texts in _TABLES["times"]:
    for _tense in _tenses.split():
        TIMES[_tense].append(_adverbials(*_texts))
