"""The content of a sentence in any language: clauses, made of a verb, noun phrases and
adverbials.
"""

from __future__ import annotations

from dataclasses import dataclass

from t2tlite.problems.grammar.lexicon import (
    ADVERBS,
    NOTHING,
    QUESTIONS,
    UNSAID,
    Expression,
    Word,
)

# determiners of what is new, so that it follows German "nie"
NEW = ("a", "", "many", "every")


@dataclass(slots=True, eq=False)
class Nominal:
    """A noun with its determiner, adjective and the phrases after it."""

    # a label: "" for none, "owner" for Anna's, "23"; with "a" the noun is singular
    determiner: str
    noun: Word
    plural: bool = False
    is_none: bool = False  # "not a" or "no", German "kein"
    adjective: Word | None = None
    owner: Phrase | None = None
    place: PrepositionalPhrase | None = None
    # without its subject (who sleeps) or its object (whom I see)
    relative: Clause | None = None

    kind = "nominal"

    @property
    def person(self) -> int:
        return 3 if self.plural else 1

    @property
    def is_human(self) -> bool:
        return "p" in self.noun.label

    @property
    def is_new(self) -> bool:
        return self.determiner in NEW or self.determiner.isdigit()


@dataclass(slots=True, eq=False)
class Coordination:
    """Two noun phrases with "and" between them."""

    first: Phrase
    second: Phrase

    kind = "pair"
    person = 3


Phrase = Nominal | Word | Coordination


@dataclass(slots=True, eq=False)
class PrepositionalPhrase:
    """A noun phrase after a preposition."""

    preposition: Expression
    phrase: Phrase


@dataclass(slots=True, eq=False)
class Clause:
    """A verb with its subject, objects, adverbials and further clauses."""

    verb: Word
    tense: str  # PRESENT, PAST or FUTURE
    # UNSAID is not said: who sleeps? the cat that sleeps, tries to sleep
    subject: Phrase = UNSAID
    object: Phrase | None = None
    recipient: Phrase | None = None
    goal: PrepositionalPhrase | None = None  # required by the verb
    place: PrepositionalPhrase | None = None  # any other
    adjective: Word | None = None  # of the subject, after "be"
    degree: Expression = NOTHING  # of the adjective: very, too
    than: Phrase | None = None  # the subject is compared with it
    time: Expression = NOTHING
    frequency: str = ""  # often, always, sometimes; only without negation
    negation: str = ""  # not, never
    modal: Word | None = None
    infinitive: Clause | None = None  # tries, begins, forgets TO OPEN THE DOOR
    # a verb with the same subject: opens the door AND SEES THE DOG
    second: Clause | None = None
    following: Clause | None = None  # a clause of the same rank, after its conjunction
    subordinate: Clause | None = None
    fronted: bool = False  # the time or the subordinate clause stands first
    conjunction: Expression = NOTHING  # joins this clause to another
    question: str = ""  # its label
    antecedent: Nominal | None = None  # of a relative clause

    @property
    def person(self) -> int:
        """That of the finite verb."""
        is_said = self.subject is not UNSAID
        return (self.subject if is_said else self.antecedent or UNSAID).person

    @property
    def question_word(self) -> Expression:
        return QUESTIONS[self.question]

    @property
    def adverb(self) -> Expression:
        """The negation or the frequency, without words if there is neither."""
        return ADVERBS[self.negation or self.frequency]
