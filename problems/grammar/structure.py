"""The content of a sentence in any language: clauses, made of a verb, noun phrases and
adverbials.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeGuard

from t2tlite.problems.grammar.lexicon import (
    ADVERBS,
    GAP,
    NOTHING,
    Expression,
    Lexeme,
    Name,
    Verb,
)

# determiners that negation turns into German "kein", French "de"
INDEFINITE = ("a", "")


@dataclass(slots=True, eq=False)
class Nominal:
    """A noun with its determiner, adjective and the phrases after it."""

    # a label: "" for none, "owner" for Anna's, "23"; with "a" the noun is singular
    determiner: str
    noun: Lexeme
    plural: bool = False
    adjective: Lexeme | None = None
    owner: Phrase | None = None
    place: Place | None = None
    # without its subject (who sleeps) or its object (whom I see)
    relative: Clause | None = None

    @property
    def person(self) -> int:
        return 3 if self.plural else 1

    @property
    def feminine(self) -> bool:
        return self.noun.french[0] == "f"


@dataclass(slots=True, eq=False)
class Pair:
    """Two noun phrases with "and" between them."""

    first: Phrase
    second: Phrase

    person = 3
    plural = True

    @property
    def feminine(self) -> bool:
        return self.first.feminine and self.second.feminine


Phrase = Nominal | Name | Pair


@dataclass(slots=True, eq=False)
class Place:
    """A noun phrase after a preposition."""

    preposition: Expression
    phrase: Phrase


@dataclass(slots=True, eq=False)
class Clause:
    """A verb with its subject, objects, adverbials and further clauses."""

    verb: Verb
    tense: str  # PRESENT, PAST or FUTURE
    # GAP is not said: who sleeps? the cat that sleeps, tries to sleep
    subject: Phrase = GAP
    object: Phrase | None = None
    recipient: Phrase | None = None
    goal: Place | None = None  # required by the verb
    place: Place | None = None  # any other
    adjective: Lexeme | None = None  # of the subject, after "be"
    degree: Expression = NOTHING  # of the adjective: very, too
    than: Phrase | None = None  # the subject is compared with it
    time: Expression = NOTHING
    frequency: str = ""  # often, always, sometimes; only without negation
    negation: str = ""  # not, never
    modal: Verb | None = None
    infinitive: Clause | None = None  # tries, begins, forgets TO OPEN THE DOOR
    # a verb with the same subject: opens the door AND SEES THE DOG
    second: Clause | None = None
    following: Clause | None = None  # a clause of the same rank, after its conjunction
    subordinate: Clause | None = None
    fronted: bool = False  # the time or the subordinate clause stands first
    conjunction: Expression = NOTHING  # joins this clause to another
    question: str = ""  # its label

    @property
    def adverb(self) -> Expression:
        """The negation or the frequency, without words if there is neither."""
        return ADVERBS[self.negation or self.frequency]


def is_indefinite(phrase: Phrase | None) -> TypeGuard[Nominal]:
    """Whether negation changes the determiner of a phrase, to kein or de."""
    return isinstance(phrase, Nominal) and phrase.determiner in INDEFINITE


def joined(*words: str) -> str:
    """Joins the words with spaces; empty words are left out."""
    return " ".join(filter(None, words))
