"""Draws clauses and noun phrases, with the probabilities in probabilities.txt."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

from t2tlite.problems.grammar import lexicon
from t2tlite.problems.grammar.lexicon import (
    ADJECTIVES_OF,
    CAN,
    MUST,
    NOUNS_OF,
    PAST,
    PEOPLE,
    PRESENT,
    VERBS,
    WANT,
    Lexeme,
    Verb,
)
from t2tlite.problems.grammar.structure import (
    Clause,
    Coordination,
    Nominal,
    Phrase,
    PrepositionalPhrase,
)

T = TypeVar("T")

PERSONS = NOUNS_OF["person"]
OWNED = frozenset(NOUNS_OF["owned"])
MASS = frozenset(NOUNS_OF["mass"])
SPEAKERS = (0, 2)  # the persons of I and we
# determiners of a noun that may have a relative clause
BEFORE_RELATIVE = ("the", "a", "this")


def _limits(rows: list[list[str]]) -> list[tuple[float, str, str]]:
    """A table of probabilities.txt as limits, values and conditions. A random number
    below a limit draws its value, if its condition is met.
    """
    total = sum(int(row[0]) for row in rows)
    limits = []
    limit = 0
    for weight, value, *condition in rows:
        limit += int(weight)
        limits.append((limit / total, value, "".join(condition)))
    return limits


TABLES = {}
for _name, _rows in lexicon.read_tables("probabilities.txt").items():
    TABLES[_name] = _limits(_rows)


class ClauseSampler:
    """Draws clauses from a random number generator; equal generators give equal
    clauses.
    """

    def __init__(self, generator: random.Random):
        self.random = generator.random

    def choice(self, items: Sequence[T]) -> T:
        """One of the items, three times as fast as random.choice."""
        return items[int(self.random() * len(items))]

    def draw(self, table: str, **conditions: bool) -> str:
        """A value from a table of probabilities.txt. The arguments say which conditions
        are met.
        """
        roll = self.random()
        for limit, value, needed in TABLES[table]:
            if roll < limit and (not needed or conditions[needed]):
                return value
        raise ValueError(
            f"The last line of [{table}] in probabilities.txt must have no condition."
            " Remove it."
        )

    def clause(
        self,
        tense: str,
        adverbials: bool = False,
        heavy: bool = False,
        negatable: bool = True,
    ) -> Clause:
        """A clause that may have a time and a place (`adverbials`), relative clauses
        (`heavy`), "not" and modals (`negatable`).
        """
        if self.random() < 0.15:
            return self.copula(tense, heavy, negatable)
        negation = self.draw("negation")
        clause = self.event(tense, negation if negatable else "", heavy)
        positive = not clause.negation
        if "animals" in clause.verb.traits and self.random() < 0.25:
            clause.subject = self.nominal(NOUNS_OF["animal"], counted=False)
        else:
            clause.subject = self.subject_of(clause, heavy=heavy, counted=positive)
        modal = negatable and tense == PRESENT and negation != "never"
        if modal and self.random() < 0.3:
            clause.modal = self.modal(negation)
        if adverbials:
            self.add_adverbials(clause)
        return clause

    def modal(self, negation: str) -> Verb:
        if not negation:
            return self.choice((CAN, MUST, WANT))
        if self.random() < 0.6:
            return CAN
        return self.choice((CAN, WANT, WANT))  # "must not" does not negate "must"

    def copula(self, tense: str, heavy: bool, negatable: bool) -> Clause:
        """A clause with "be": someone or something is tired, very old, older than
        something else.
        """
        clause = Clause(lexicon.BE, tense)
        nouns = NOUNS_OF[self.draw("copula subject")]
        if nouns is PERSONS:
            clause.subject = self.person(counted=False)
            adjectives = lexicon.suiting(lexicon.ADJECTIVES, "p")
        else:
            thing = self.nominal(nouns, counted=False)
            clause.subject = thing
            adjectives = ADJECTIVES_OF[thing.noun]
            if heavy and self.random() < 0.25 and thing.noun in NOUNS_OF["lying"]:
                thing.place = self.place("on or under", "support")
            elif heavy:
                self.add_relative(thing, 0.5)
        if isinstance(clause.subject, Nominal):
            clause.subject.adjective = None
        adjective = self.choice(adjectives)
        clause.adjective = adjective
        comparable = bool(adjective.english[1])
        kind = self.draw("predicate", comparable=comparable, negatable=negatable)
        if kind == "than":
            others = [noun for noun in nouns if adjective in ADJECTIVES_OF[noun]]
            clause.than = self.nominal(others, counted=False, indefinite=False)
            clause.than.adjective = None
        elif kind == "not":
            clause.negation = kind
        else:
            clause.degree = lexicon.ADVERBS[kind]
        return clause

    def event(self, tense: str, negation: str = "", heavy: bool = False) -> Clause:
        """A verb with its objects, without subject and adverbials."""
        kind = self.draw("event")
        clause = Clause(self.choice(VERBS[kind]), tense, negation=negation)
        positive = not negation
        if kind == "transitive":
            clause.object = self.object_of(clause.verb, positive, heavy and positive)
        elif kind == "ditransitive":
            clause.object = self.nominal(clause.verb.objects, counted=positive)
            clause.recipient = self.person(
                pairs=False, counted=positive, indefinite=positive
            )
        elif kind == "motion":
            verb = clause.verb.name
            clause.goal = self.place(
                "goal", "inside", come=verb == "come", not_run=verb != "run"
            )
        elif kind == "locative":
            clause.goal = self.place("in", "dwelling")
        if negation == "not" and isinstance(clause.object, Nominal):
            clause.object.is_none = clause.object.determiner in ("a", "")
        return clause

    def object_of(self, verb: Verb, positive: bool, heavy: bool) -> Phrase:
        """An object of a verb: whom or what one sees, buys, calls, ..."""
        direct = "indirect" not in verb.traits
        indefinite = positive or direct
        if verb.objects[0] in PERSONS:
            is_animate = verb.objects[-1] in PERSONS + NOUNS_OF["animal"]
            if self.random() < (0.8 if is_animate else 0.2):
                pairs = positive and direct
                return self.person(
                    pairs, heavy, counted=positive, indefinite=indefinite
                )
        bare = "bare" in verb.traits
        return self.nominal(
            verb.objects, heavy, bare=bare, counted=positive, indefinite=indefinite
        )

    def subject_of(self, *clauses: Clause, **options: bool) -> Phrase:
        """A person who does what the clauses say, but neither I nor we if the object
        would then be "myself".
        """
        subject = self.person(**options)
        others = set()
        for clause in clauses:
            for phrase in (clause.object, clause.recipient):
                if phrase:
                    others.add(phrase.person)
        if subject.person in SPEAKERS and others.intersection(SPEAKERS):
            return self.choice(PEOPLE)
        return subject

    def person(
        self, pairs: bool = True, heavy: bool = False, **allowed: bool
    ) -> Phrase:
        """A name, a pronoun, a noun or (`pairs`) two of them, for people; `heavy` and
        `allowed` as in `nominal`.
        """
        kind = self.draw("person", pairs=pairs)
        if kind == "name":
            return self.choice(PEOPLE)
        if kind == "pronoun":
            return self.choice(lexicon.PRONOUNS)
        if kind == "pair":
            first = self.choice(PEOPLE) if self.random() < 0.5 else self.plain(PERSONS)
            return Coordination(first, self.plain(PERSONS))
        return self.nominal(PERSONS, heavy, **allowed)

    def nominal(
        self, nouns: Sequence[Lexeme], heavy: bool = False, **allowed: bool
    ) -> Nominal:
        """One of the nouns with a determiner and perhaps an adjective and, if `heavy`,
        a relative clause.

        By default it is `allowed` to be `indefinite` (with "a") and `counted` (with a
        number, many or every), but not `bare` (without determiner, as in "buys
        apples").
        """
        noun = self.choice(nouns)
        conditions = {"bare": False, "indefinite": True, "counted": True}
        conditions["owned"] = noun in OWNED
        table = "mass determiner" if noun in MASS else "determiner"
        determiner, plurals = self.draw(table, **(conditions | allowed)).split()
        phrase = Nominal(determiner.strip("-"), noun)
        if determiner == "possessive":
            phrase.determiner = self.draw("possessive")
        if plurals in ("0", "100"):
            phrase.plural = plurals == "100"
        else:
            phrase.plural = self.random() < int(plurals) / 100
        if determiner == "owner":
            if self.random() < 0.5:
                phrase.owner = self.choice(PEOPLE)
            else:
                phrase.owner = Nominal("the", self.choice(PERSONS))
        elif determiner == "number":
            first, count = (2, 98) if self.random() < 0.85 else (100, 900)
            phrase.determiner = str(first + int(count * self.random()))
        self.add_adjective(phrase)
        if heavy:
            self.add_relative(phrase, 0.15)
        return phrase

    def plain(self, nouns: Sequence[Lexeme]) -> Nominal:
        """One of the nouns after the, my, his, her, our or their."""
        noun = self.choice(nouns)
        determiner = "the"
        if noun in OWNED and self.random() < 0.5:
            determiner = self.draw("possessive")
        return Nominal(determiner, noun)

    def add_adjective(self, phrase: Nominal) -> None:
        """Perhaps adds an adjective."""
        adjectives = ADJECTIVES_OF[phrase.noun]
        if self.random() < 0.3 and adjectives:
            phrase.adjective = self.choice(adjectives)

    def add_relative(self, phrase: Nominal, probability: float) -> None:
        """Perhaps adds a subject or object relative clause."""
        if phrase.determiner not in BEFORE_RELATIVE or self.random() >= probability:
            return
        tense = PRESENT if self.random() < 0.4 else PAST
        if phrase.noun in PERSONS and self.random() < 0.5:
            phrase.relative = self.event(tense)
            phrase.relative.antecedent = phrase
            return
        verbs = [verb for verb in VERBS["transitive"] if phrase.noun in verb.objects]
        if verbs:
            subject = self.person(pairs=False, counted=False)
            phrase.relative = Clause(self.choice(verbs), tense, subject)
            phrase.relative.antecedent = phrase

    def place(self, table: str, kind: str, **conditions: bool) -> PrepositionalPhrase:
        """A city or a noun of this kind, after a preposition from this table."""
        preposition = self.draw(table, **conditions)
        phrase: Phrase
        if preposition.endswith("city"):
            phrase = self.choice(lexicon.CITIES)
        elif preposition == "to":
            phrase = self.plain(NOUNS_OF["goal"])
        else:
            phrase = self.nominal(NOUNS_OF[kind], counted=False)
        return PrepositionalPhrase(lexicon.PREPOSITIONS[preposition], phrase)

    def add_time(self, clause: Clause) -> None:
        """Adds a time that goes with the tense."""
        groups = lexicon.TIMES[lexicon.FUTURE if clause.modal else clause.tense]
        if clause.negation:
            groups = groups[:2]
        clause.time = self.choice(self.choice(groups))

    def add_adverbials(self, clause: Clause) -> None:
        """Perhaps adds a time or a frequency, and a place unless a relative clause
        stands before it.
        """
        thing = clause.object
        heavy = isinstance(thing, Nominal) and thing.relative is not None
        kind = self.draw(
            "adverbial",
            not_never=clause.negation != "never",
            positive=not clause.negation,
        )
        if kind == "time":
            self.add_time(clause)
            clause.fronted = heavy or self.random() < 0.5
        elif kind == "frequency":
            clause.frequency = self.draw("frequency")
        if heavy or clause.goal or clause.recipient or clause.verb.name == "leave":
            return
        if self.random() < 0.3:
            clause.place = self.any_place(clause)

    def any_place(self, clause: Clause) -> PrepositionalPhrase:
        """A place where it happens, or a person with whom or for whom."""
        kind = self.draw("place")
        if kind == "in":
            return self.place(kind, "inside")
        if kind == "beside":
            return self.place(kind, "place")
        if "benefit" in clause.verb.traits:
            kind = "for"
        indefinite = kind == "for" and not clause.negation
        person = self.person(pairs=False, indefinite=indefinite)
        if person.person in SPEAKERS and clause.subject.person in SPEAKERS:
            person = self.choice(PEOPLE)
        return PrepositionalPhrase(lexicon.PREPOSITIONS[kind], person)
