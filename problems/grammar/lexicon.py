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
from functools import cached_property

PRESENT, PAST, FUTURE = TENSES = ("present", "past", "future")


class Forms(tuple[str, ...]):
    """The forms of a word in one language, and the options of a verb."""

    infinitive: str
    past = ""  # in German: only if it replaces the perfect
    particle = ""  # turn ON, AUF|machen
    preposition = ""  # look FOR, AUF ... warten
    case = ""  # of its object in German, if it is not the accusative
    perfect = ""  # in German: be, if it is not "have"

    def __new__(cls, column: str) -> Forms:
        """What a column says: forms, then options, as in `gehe/geht/gehen gegangen
        perfect=be`. `-` stands for an empty form.
        """
        words = [word.strip("-") for word in column.split()]
        forms = super().__new__(cls, [word for word in words if "=" not in word])
        forms.infinitive = "".join(forms[:1]).split("/")[-1]
        for word in words[len(forms) :]:
            option, _, value = word.partition("=")
            setattr(forms, option, value)
        return forms

    def at(self, index: int) -> str:
        """The form with this index; the last one stands for all after it."""
        return self[min(index, len(self) - 1)]

    def finite(self, tense: str, person: int) -> str:
        """Of a verb: the form for I, he, we or they, of the past, or of the present in
        any other tense.
        """
        forms = self[0]
        if tense == PAST:
            forms = self.past or self[1]
        persons = forms.split("/")
        return persons[min(person, len(persons) - 1)]


@dataclass(frozen=True, eq=False)
class Expression:
    """Words that do not change; the English ones are a tree."""

    english: str
    german: str


@dataclass(frozen=True, eq=False)
class Word:
    """A word. Its label says how it is used, as lexicon.txt explains."""

    label: str
    english: Forms
    german: Forms
    kind: str = ""  # name, pronoun, or unsaid

    @property
    def person(self) -> int:
        """Of a name: the form of its verb, 0 for I, 1 for he, 2 for we, 3 for they."""
        return int(self.label)

    @property
    def name(self) -> str:
        """Of a verb."""
        return self.english.infinitive

    @cached_property
    def objects(self) -> tuple[Word, ...]:
        """The nouns that can be the object of a verb."""
        return suiting(NOUNS, self.label.split()[0])

    @cached_property
    def traits(self) -> list[str]:
        """What else lexicon.txt says of a verb."""
        return self.label.split()[1:]


def suiting(words: Sequence[Word], kinds: str) -> tuple[Word, ...]:
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


def _words(section: str, kind: str = "") -> tuple[Word, ...]:
    words = []
    for label, english, german in _TABLES[section]:
        words.append(Word(label, Forms(english), Forms(german), kind))
    return tuple(words)


def _expressions(section: str) -> dict[str, Expression]:
    """The expressions in a section, by label."""
    return {label: Expression(*columns) for label, *columns in _TABLES[section]}


def _adverbials(*texts: str) -> tuple[Expression, ...]:
    """The adverbials in a line of the section "times": `in {number} {unit}` stands for
    in two days, in two weeks, ...
    """
    slots = re.findall(r"{(\w+)}", texts[0])
    adverbials = []
    for rows in itertools.product(*map(_FILLERS.__getitem__, slots)):
        translations = []
        for language, text in enumerate(texts):
            words = [row[language] for row in rows]
            translations.append(text.format(**dict(zip(slots, words, strict=True))))
        adverbials.append(Expression(*translations))
    return tuple(adverbials)


def determiner(label: str) -> Word:
    """A determiner; a number from 100 is written in digits."""
    if label in DETERMINERS:
        return DETERMINERS[label]
    return Word(label, Forms(f"CD {label}"), Forms(f"{label} none strong"))


_TABLES = read_tables("lexicon.txt")
ADJECTIVES = _words("adjectives")
NOUNS = _words("nouns")
NOUNS_OF = {kind: suiting(NOUNS, letters) for kind, letters in _TABLES["kinds"]}
ADJECTIVES_OF = {noun: suiting(ADJECTIVES, noun.label) for noun in NOUNS}
DETERMINERS = {word.label: word for word in _words("determiners") + _words("numbers")}
PEOPLE = _words("people", "name")
CITIES = _words("cities", "name")
PRONOUNS = _words("pronouns", "pronoun")  # I, he, she, we, they
UNSAID = Word("1", Forms("-"), Forms("-"), "unsaid")  # a subject that is not said
# German, by gender (masculine, feminine, neuter, plural), then case.
INFLECTIONS = {label: list(map(Forms, rows)) for label, *rows in _TABLES["endings"]}
PREPOSITIONS = _expressions("prepositions")
CONJUNCTIONS = _expressions("conjunctions")
QUESTIONS = _expressions("questions")
ADVERBS = _expressions("adverbs")
NOTHING = ADVERBS[""]
# By section: transitive, motion, modal, ...
VERBS = {}
for _section in _TABLES:
    if _section.endswith(" verbs"):
        VERBS[_section.removesuffix(" verbs")] = _words(_section)
BE = VERBS["auxiliary"][0]
CAN, MUST, WANT = VERBS["modal"]
# By slot of an adverbial: its possible words, each in both languages.
_FILLERS = collections.defaultdict(list)
for _slot, *_translations in _TABLES["fillers"]:
    _FILLERS[_slot].append(_translations)
for _year in range(1950, 2026):
    _FILLERS["year"].append([str(_year), str(_year)])
# Groups of adverbials by tense: first a group is drawn, then one of its members.
TIMES: dict[str, list[tuple[Expression, ...]]] = {tense: [] for tense in TENSES}
for _tenses, *_texts in _TABLES["times"]:
    for _tense in _tenses.split():
        TIMES[_tense].append(_adverbials(*_texts))
