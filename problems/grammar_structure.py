"""What a sentence of the embedded grammar says, before it is said in English, German or French.

A `Sentence` holds clauses, a `Clause` a verb and noun phrases. Drawing one (grammar_sample) and saying it
(grammar_english, grammar_german, grammar_french) are apart, so that all languages say the same.
"""

from __future__ import annotations

import dataclasses

from t2tlite.problems.grammar_verbs import Conjunction, Modal, Verb
from t2tlite.problems.grammar_words import Adjective, Adverbial, Name, Noun, Preposition


@dataclasses.dataclass(frozen=True, eq=False)
class Pronoun:
    """A personal pronoun; `index` is its place in each language's table: I, he, she, we, they."""

    index: int
    person: int  # as in Nominal
    plural: bool
    feminine: bool = False


PRONOUNS = (
    Pronoun(0, 0, False),
    Pronoun(1, 1, False),
    Pronoun(2, 1, False, feminine=True),
    Pronoun(3, 2, True),
    Pronoun(4, 3, True),
)


@dataclasses.dataclass(slots=True, eq=False)
class Nominal:
    """A noun with what goes before and after it.

    Attributes:
        determiner: the, a, this, every, many, which, my, his, her, our, their, "number", "owner" (Anna's), or "" for
            none. With "a" the noun is singular.
        person: which form the verb takes: 0 as I, 1 as he, 2 as we, 3 as they.
        feminine: French gender.
    """

    determiner: str
    noun: Noun
    plural: bool = False
    adjective: Adjective | None = None
    number: int = 0
    owner: Phrase | None = None
    place: Place | None = None
    relative: Relative | None = None

    @property
    def person(self) -> int:
        return 3 if self.plural else 1

    @property
    def feminine(self) -> bool:
        return self.noun.french_feminine

    @property
    def indefinite(self) -> bool:
        """Whether negation turns its article into German "kein", French "de"."""
        return self.determiner in ("a", "")


@dataclasses.dataclass(slots=True, eq=False)
class Pair:
    """Two noun phrases with "and" between them."""

    first: Phrase
    second: Phrase

    person = 3
    plural = True

    @property
    def feminine(self) -> bool:
        return self.first.feminine and self.second.feminine


Phrase = Nominal | Name | Pronoun | Pair


@dataclasses.dataclass(slots=True, eq=False)
class Place:
    """A preposition with its noun phrase."""

    preposition: Preposition
    phrase: Phrase


@dataclasses.dataclass(slots=True, eq=False)
class Relative:
    """A relative clause: `clause` lacks its subject ("who sleeps") or its object ("whom I see")."""

    clause: Clause
    object_gap: bool


@dataclasses.dataclass(slots=True, eq=False)
class Predicate:
    """What "be" says of its subject: old, very old, older than the church."""

    adjective: Adjective
    degree: str = ""  # very, too
    than: Phrase | None = None


@dataclasses.dataclass(slots=True, eq=False)
class Subordinate:
    """A clause after a conjunction, before or after the clause it belongs to."""

    conjunction: Conjunction
    clause: Clause
    fronted: bool = False


@dataclasses.dataclass(slots=True, eq=False)
class Clause:
    """A verb and what goes with it.

    Attributes:
        subject: None in a relative clause that asks for it, in an infinitive and in a second clause that shares it.
        negation: "", not or never; never stands where `frequency` does.
        place: in, with or for something; `goal` is a place that the verb requires.
        infinitive: a clause without subject or tense, and the French preposition before it (tries TO SEE).
        second: another clause with the same subject (opens the door AND SEES THE DOG).
        question: "", yes, where, why, when, who (the subject), what or which (the object).
    """

    verb: Verb
    tense: int
    subject: Phrase | None = None
    object: Phrase | None = None
    recipient: Phrase | None = None
    goal: Place | None = None
    place: Place | None = None
    predicate: Predicate | None = None
    time: Adverbial | None = None
    time_fronted: bool = False
    frequency: Adverbial | None = None
    negation: str = ""
    modal: Modal | None = None
    infinitive: tuple[Clause, str] | None = None
    subordinate: Subordinate | None = None
    second: Clause | None = None
    question: str = ""


@dataclasses.dataclass(slots=True, eq=False)
class Sentence:
    """A clause, or two with and / but between them."""

    first: Clause
    conjunction: str = ""
    second: Clause | None = None
