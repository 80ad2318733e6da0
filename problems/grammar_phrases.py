"""Draws the parts of a sentence of the embedded grammar: noun phrases, places, and a verb with its objects."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

from t2tlite.problems.grammar_structure import PRONOUNS, Clause, Nominal, Pair, Phrase, Place, Pronoun, Relative
from t2tlite.problems.grammar_verbs import BARE_SUITS, DITRANSITIVE, INTRANSITIVE, LOCATIVE, MOTION, TRANSITIVE, Verb
from t2tlite.problems.grammar_words import (
    CITIES,
    FROM,
    IN,
    IN_CITY,
    INTO,
    NOUNS,
    PAST,
    PEOPLE,
    PRESENT,
    TO,
    TO_CITY,
    Noun,
)

T = TypeVar("T")

_OWNERS = ("my", "my", "his", "her", "our", "their")


def _nouns(kinds: str) -> tuple[Noun, ...]:
    return tuple(noun for noun in NOUNS if set(noun.kinds) & set(kinds))


PERSONS, ANIMALS, THINGS, PLACES, _GOALS = map(_nouns, ("p", "a", "rtdof", "l", "g"))
INSIDES = tuple(noun for noun in PLACES if noun.english[0] not in ("station", "market"))
_DWELLINGS = tuple(noun for noun in PLACES if noun.english[0] in ("house", "city", "village", "hotel"))


def _can_be_owned(noun: Noun) -> bool:
    return "p" not in noun.kinds or "h" in noun.kinds


def is_speaker(phrase: Phrase | None) -> bool:
    """Whether the phrase is I or we."""
    return isinstance(phrase, Pronoun) and phrase.person in (0, 2)


class PhraseSampler:
    """Draws parts of sentences from a random number generator; the same generator, the same parts."""

    def __init__(self, generator: random.Random):
        self.random = generator.random

    def choice(self, items: Sequence[T]) -> T:
        """One of the items; random.choice, but three times as fast."""
        return items[int(self.random() * len(items))]

    def event(self, tense: int, negation: str = "", heavy: bool = False) -> Clause:
        """A verb with its objects, without subject and adverbials."""
        roll = self.random()
        if roll < 0.62:
            clause = Clause(self.choice(TRANSITIVE), tense, negation=negation)
            clause.object = self.object_of(clause.verb, negation, heavy and not negation)
        elif roll < 0.74:
            clause = Clause(self.choice(INTRANSITIVE), tense, negation=negation)
        elif roll < 0.84:
            clause = Clause(self.choice(DITRANSITIVE), tense, negation=negation)
            clause.object = self.nominal(clause.verb.objects, counted=not negation)
            clause.recipient = self.person(pairs=False, counted=not negation, indefinite=not negation)
        elif roll < 0.94:
            clause = Clause(self.choice(MOTION), tense, negation=negation)
            clause.goal = self.goal_of(clause.verb)
        else:
            clause = Clause(self.choice(LOCATIVE), tense, negation=negation)
            clause.goal = self.inside(_DWELLINGS)
        return clause

    def nominal(
        self,
        nouns: Sequence[Noun],
        bare: bool = False,
        counted: bool = True,
        indefinite: bool = True,
        heavy: bool = False,
    ) -> Nominal:
        """One of the nouns with a determiner and perhaps an adjective and a relative clause.

        Args:
            nouns: to choose from.
            bare: whether it may go without determiner, as plurals and mass nouns do ("buys apples").
            counted: whether it may go with a number, many or every.
            indefinite: whether it may go with "a".
            heavy: whether it may have a relative clause.
        """
        noun = self.choice(nouns)
        roll = self.random()
        owned = _can_be_owned(noun)
        phrase = Nominal("the", noun)
        if noun.mass:
            phrase.determiner = "" if bare and roll < 0.6 else "the" if roll < 0.85 else self.choice(_OWNERS)
        elif roll < 0.40 or (not indefinite and roll < 0.6):
            phrase.plural = self.random() < 0.22
        elif roll < 0.60:
            phrase.determiner = "a"
        elif roll < 0.74 and owned:
            phrase.determiner, phrase.plural = self.choice(_OWNERS), self.random() < 0.2
        elif roll < 0.81:
            phrase.determiner, phrase.plural = "this", self.random() < 0.25
        elif roll < 0.86 and owned:
            owner = self.choice(PEOPLE) if self.random() < 0.5 else Nominal("the", self.choice(PERSONS))
            phrase.determiner, phrase.owner = "owner", owner
        elif bare and roll < 0.91:
            phrase.determiner, phrase.plural = "", True
        elif counted and roll < 0.96:
            phrase.determiner, phrase.plural = "number", True
            phrase.number = 2 + int(98 * self.random()) if self.random() < 0.85 else 100 + int(900 * self.random())
        elif counted:
            phrase.determiner, phrase.plural = ("many", True) if roll < 0.98 else ("every", False)
        self.add_adjective(phrase, 0.3)
        if heavy and phrase.determiner in ("the", "a", "this") and self.random() < 0.15:
            self.add_relative(phrase)
        return phrase

    def person(self, pairs: bool = True, counted: bool = True, indefinite: bool = True, heavy: bool = False) -> Phrase:
        """A name, a pronoun, a noun or two of them, for people."""
        roll = self.random()
        if roll < 0.22:
            return self.choice(PEOPLE)
        if roll < 0.44:
            return self.choice(PRONOUNS)
        if pairs and roll < 0.50:
            first = self.choice(PEOPLE) if self.random() < 0.5 else self.plain(PERSONS)
            return Pair(first, self.plain(PERSONS))
        return self.nominal(PERSONS, counted=counted, indefinite=indefinite, heavy=heavy)

    def plain(self, nouns: Sequence[Noun]) -> Nominal:
        noun = self.choice(nouns)
        return Nominal(self.choice(_OWNERS) if _can_be_owned(noun) and self.random() < 0.5 else "the", noun)

    def object_of(self, verb: Verb, negation: str, heavy: bool) -> Phrase:
        animate = "p" in verb.objects[0].kinds
        if animate and self.random() < (0.8 if verb.objects[-1] in PERSONS + ANIMALS else 0.2):
            return self.person(
                pairs=not negation and not verb.german_preposition and not verb.french_indirect,
                counted=not negation,
                indefinite=not (negation and (verb.german_preposition or verb.french_indirect)),
                heavy=heavy,
            )
        bare = verb.english in BARE_SUITS and not verb.english_preposition
        indefinite = not (negation and (verb.german_preposition or verb.french_indirect))
        return self.nominal(verb.objects, bare=bare, counted=not negation, indefinite=indefinite, heavy=heavy)

    def subject_of(self, *clauses: Clause, counted: bool = True, heavy: bool = False) -> Phrase:
        """A person who does what the clauses say; not I nor we where that would call for "myself"."""
        subject = self.person(counted=counted, heavy=heavy)
        if is_speaker(subject) and any(is_speaker(c.object) or is_speaker(c.recipient) for c in clauses):
            return self.choice(PEOPLE)
        return subject

    def add_adjective(self, phrase: Nominal, probability: float) -> None:
        if self.random() < probability and phrase.noun.adjectives:
            phrase.adjective = self.choice(phrase.noun.adjectives)

    def add_relative(self, phrase: Nominal) -> None:
        tense = PRESENT if self.random() < 0.4 else PAST
        kinds = phrase.noun.kinds
        if "p" in kinds and self.random() < 0.5:
            phrase.relative = Relative(self.event(tense), object_gap=False)
            return
        verbs = [verb for verb in TRANSITIVE if phrase.noun in verb.objects]
        if verbs:
            subject = self.person(pairs=False, counted=False)
            phrase.relative = Relative(Clause(self.choice(verbs), tense, subject), object_gap=True)

    def inside(self, nouns: Sequence[Noun]) -> Place:
        if self.random() < 0.4:
            return Place(IN_CITY, self.choice(CITIES))
        return Place(IN, self.nominal(nouns, counted=False))

    def goal_of(self, verb: Verb) -> Place:
        roll = self.random()
        if roll < 0.3 and verb.english == "come":
            return Place(FROM, self.choice(CITIES) if roll < 0.1 else self.nominal(INSIDES, counted=False))
        if roll < 0.5 and verb.english != "run":
            return Place(TO_CITY, self.choice(CITIES))
        if roll < 0.75:
            return Place(TO, self.plain(_GOALS))
        return Place(INTO, self.nominal(INSIDES, counted=False))
