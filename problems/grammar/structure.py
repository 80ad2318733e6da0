"""What a sentence says, whatever the language: clauses, made of a verb, noun phrases
and adverbials.
"""

from __future__ import annotations

from dataclasses import dataclass

from t2tlite.problems.grammar.lexicon import (
    ADVERBS,
    GAP,
    NOTHING,
    Expression,
    Name,
    Verb,
    Word,
)

# determiners that negation turns into German "kein", French "de"
INDEFINITE = ("a", "")


@dataclass(slots=True, eq=False)
class Nominal:
    """A noun phrase: a noun with what stands before and after it."""

    # its label: "" for none, "owner" for Anna's, "23"; with "a" the noun is singular
    determiner: str
    noun: Word
    plural: bool = False
    adjective: Word | None = None
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
    """A verb and what goes with it."""

    verb: Verb
    tense: str  # PRESENT, PAST or FUTURE
    # which is not said: who sleeps? the cat that sleeps, tries to sleep
    subject: Phrase = GAP
    object: Phrase | None = None
    recipient: Phrase | None = None
    goal: Place | None = None  # required by the verb
    place: Place | None = None  # any other
    adjective: Word | None = None  # what "be" says of the subject
    degree: Expression = NOTHING  # of the adjective: very, too
    than: Phrase | None = None  # what the subject is compared with
    time: Expression = NOTHING
    frequency: str = ""  # often, always, sometimes; only without negation
    negation: str = ""  # not, never
    modal: Verb | None = None
    infinitive: Clause | None = None  # what one tries, begins, forgets to do
    # a verb with the same subject: opens the door AND SEES THE DOG
    second: Clause | None = None
    following: Clause | None = None  # a clause of the same rank, after its conjunction
    subordinate: Clause | None = None
    fronted: bool = False  # the time or the subordinate clause stands first
    conjunction: Expression = NOTHING  # what joins this clause to another
    question: str = ""  # its label

    @property
    def adverb(self) -> Expression:
        """The negation or the frequency, without words if there is neither."""
        return ADVERBS[self.negation or self.frequency]


def joined(*words: str) -> str:
    """The words with spaces between them; empty ones are left out."""
    return " ".join(filter(None, words))
