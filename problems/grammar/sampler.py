"""Draws what a sentence says, with the probabilities in probabilities.txt.

Some constructions are left out so that every English sentence has one meaning, hence
one translation and one tree: nothing follows an object with a relative clause, nor a
clause inside another one, so that a last adverbial always belongs to the innermost
clause; no verb of the lexicon has equal past and present ("read"); there is no "you" or
"it".
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from typing import TypeVar

from t2tlite.problems.grammar import lexicon
from t2tlite.problems.grammar.lexicon import (
    CAN,
    MUST,
    NOUNS_OF,
    PAST,
    PEOPLE,
    PRESENT,
    VERBS,
    WANT,
    Verb,
    Word,
)
from t2tlite.problems.grammar.structure import Clause, Nominal, Pair, Phrase, Place

T = TypeVar("T")

PERSONS = NOUNS_OF["person"]
OWNED, MASS = frozenset(NOUNS_OF["owned"]), frozenset(NOUNS_OF["mass"])
SPEAKERS = (0, 2)  # the persons of I and we


def _limits(rows: list[list[str]]) -> list[tuple[float, str, str]]:
    """A table of probabilities.txt: a random number below a value's limit draws it, if
    its condition is met.
    """
    sums = list(itertools.accumulate(int(row[0]) for row in rows))
    return [
        (limit / sums[-1], row[1], "".join(row[2:]))
        for limit, row in zip(sums, rows, strict=True)
    ]


TABLES = {
    name: _limits(rows)
    for name, rows in lexicon.read_tables("probabilities.txt").items()
}


class Sampler:
    """Draws sentences from a random number generator; equal generators give equal
    sentences.
    """

    def __init__(self, generator: random.Random):
        self.random = generator.random

    def choice(self, items: Sequence[T]) -> T:
        """One of the items, three times as fast as random.choice."""
        return items[int(self.random() * len(items))]

    def draw(self, table: str, **conditions: bool) -> str:
        """A value from a table of probabilities.txt, given which conditions are met."""
        roll = self.random()
        for limit, value, needed in TABLES[table]:
            if roll < limit and (not needed or conditions[needed]):
                return value
        raise ValueError(
            f"The last line of [{table}] in probabilities.txt must have no condition."
            " Remove it."
        )

    def sentence(self) -> Clause:
        kind = self.draw("sentence")
        others = {
            "question": self.question,
            "subordinate": self.with_subordinate,
            "report": self.report,
        }
        if kind in others:
            return others[kind]()
        if kind == "infinitive":
            return self.with_infinitive()
        conjunction = self.draw("conjunction") if kind == "two clauses" else ""
        tense = self.draw("tense")
        if kind == "two verbs":
            clause = self.event(tense)
            clause.second = self.event(tense)
            clause.subject = self.subject_of(clause, clause.second)
            return clause
        clause = self.clause(
            tense, adverbials=kind == "statement", heavy=kind == "statement"
        )
        if kind == "two clauses":
            clause.following = self.clause(tense, adverbials=True)
            clause.following.conjunction = lexicon.CONJUNCTIONS[conjunction]
        return clause

    def clause(
        self,
        tense: str,
        adverbials: bool = False,
        heavy: bool = False,
        negatable: bool = True,
    ) -> Clause:
        """A clause that may have a time and a place (`adverbials`), relative clauses
        (`heavy`), "not" and modals.
        """
        if self.random() < 0.15:
            return self.copula(tense, heavy, negatable)
        negation = self.draw("negation")
        clause = self.event(tense, negation if negatable else "", heavy)
        if "animals" in clause.verb.traits and self.random() < 0.25:
            clause.subject = self.nominal(NOUNS_OF["animal"], counted=False)
        else:
            clause.subject = self.subject_of(
                clause, heavy=heavy, counted=not clause.negation
            )
        if (
            negatable
            and tense == PRESENT
            and negation != "never"
            and self.random() < 0.3
        ):
            # "must not" does not negate "must"
            modals = (CAN, WANT, WANT) if negation else (CAN, MUST, WANT)
            clause.modal = (
                CAN if negation and self.random() < 0.6 else self.choice(modals)
            )
        if adverbials:
            self.add_adverbials(clause)
        return clause

    def copula(self, tense: str, heavy: bool, negatable: bool) -> Clause:
        """A clause with "be": someone or something is tired, very old, older than
        something else.
        """
        clause, nouns = Clause(lexicon.BE, tense), NOUNS_OF[self.draw("copula subject")]
        if nouns is PERSONS:
            clause.subject, adjectives = (
                self.person(counted=False),
                lexicon.suiting(lexicon.ADJECTIVES, "p"),
            )
        else:
            clause.subject = thing = self.nominal(nouns, counted=False)
            adjectives = lexicon.ADJECTIVES_OF[thing.noun]
            if heavy and self.random() < 0.25 and thing.noun in NOUNS_OF["lying"]:
                thing.place = self.place("on or under", "support")
            elif (
                heavy
                and thing.determiner in ("the", "a", "this")
                and self.random() < 0.5
            ):
                self.add_relative(thing)
        if isinstance(clause.subject, Nominal):
            clause.subject.adjective = None
        clause.adjective = adjective = self.choice(adjectives)
        kind = self.draw(
            "predicate", comparable=bool(adjective.english[1]), negatable=negatable
        )
        if kind == "than":
            others = [
                noun for noun in nouns if adjective in lexicon.ADJECTIVES_OF[noun]
            ]
            clause.than = self.nominal(others, counted=False, indefinite=False)
            clause.than.adjective = None
        elif kind == "not":
            clause.negation = kind
        else:
            clause.degree = lexicon.ADVERBS[kind]
        return clause

    def question(self) -> Clause:
        """A question: yes or no, where, why, when, who, what, which."""
        tense, kind = self.draw("tense"), self.draw("question")
        if kind == "yes":
            clause = self.clause(tense, adverbials=True, negatable=False)
            clause.fronted = False
        elif kind == "adverb":
            clause = self.clause(tense, negatable=False)
            kinds = (
                ("why", "when")
                if clause.verb.english.infinitive == "leave"
                else ("why", "when", "where")
            )
            kind = "why" if clause.goal or clause.adjective else self.choice(kinds)
        elif kind == "who":
            clause = self.event(tense)
        else:
            clause = Clause(self.choice(VERBS["transitive"]), tense, self.person())
            nouns = [noun for noun in clause.verb.objects if noun not in MASS]
            if kind == "which" and nouns:
                clause.object = Nominal(
                    "which", self.choice(nouns), plural=self.random() < 0.2
                )
                self.add_adjective(clause.object)
            else:
                kind = "what"
                asks_person = set(clause.verb.objects) & set(PERSONS)
                if clause.verb.english.preposition or asks_person:
                    verbs = [v for v in VERBS["transitive"] if "what" in v.traits]
                    clause.verb = self.choice(verbs)
        clause.question = kind
        return clause

    def with_subordinate(self) -> Clause:
        """A clause with because, when, if or while, before or after it."""
        conjunction, *tenses = self.draw("subordinate").split()
        because = conjunction == "because"
        any_tense = self.draw("tense")
        tense, main_tense = [any_tense if name == "any" else name for name in tenses]
        main = self.clause(main_tense, negatable=because)
        main.subordinate = self.clause(
            tense, adverbials=because, negatable=conjunction in ("because", "if")
        )
        main.subordinate.conjunction = lexicon.CONJUNCTIONS[conjunction]
        main.subordinate.fronted = False
        main.fronted = not because and self.random() < 0.5
        return main

    def report(self) -> Clause:
        """Someone says, thinks, hopes that; asks, does not know whether."""
        reported = self.clause(self.draw("tense"), adverbials=True)
        *negation, kind, conjunction = self.draw("report").split()
        clause = Clause(
            VERBS[kind][0],
            PRESENT,
            self.person(pairs=False),
            negation="".join(negation),
        )
        if kind == "say":
            # no hope for the past
            verbs = VERBS["say"][:-1] if reported.tense == PAST else VERBS["say"]
            clause.verb = self.choice(verbs)
        reported.conjunction, reported.fronted = (
            lexicon.CONJUNCTIONS[conjunction],
            False,
        )
        clause.subordinate = reported
        return clause

    def with_infinitive(self) -> Clause:
        """Someone tries, begins, decides, forgets to do something."""
        verb, tense, infinitive = (
            self.choice(VERBS["control"]),
            self.choice((PRESENT, PAST)),
            self.event(PRESENT),
        )
        clause = Clause(verb, tense, self.subject_of(infinitive), infinitive=infinitive)
        clause.fronted = self.random() < 0.3
        if clause.fronted:
            self.add_time(clause)
        return clause

    def event(self, tense: str, negation: str = "", heavy: bool = False) -> Clause:
        """A verb with its objects, without subject and adverbials."""
        kind, negated = self.draw("event"), bool(negation)
        clause = Clause(self.choice(VERBS[kind]), tense, negation=negation)
        if kind == "transitive":
            clause.object = self.object_of(clause.verb, negated, heavy and not negated)
        elif kind == "ditransitive":
            clause.object = self.nominal(clause.verb.objects, counted=not negated)
            clause.recipient = self.person(
                pairs=False, counted=not negated, indefinite=not negated
            )
        elif kind == "motion":
            infinitive = clause.verb.english.infinitive
            clause.goal = self.place(
                "goal", "inside", come=infinitive == "come", not_run=infinitive != "run"
            )
        elif kind == "locative":
            clause.goal = self.place("in", "dwelling")
        return clause

    def object_of(self, verb: Verb, negated: bool, heavy: bool) -> Phrase:
        """An object of a verb: whom or what one sees, buys, calls, ..."""
        prepositional = bool(verb.german.preposition or verb.french.preposition)
        indefinite = not (negated and prepositional)
        animate = PERSONS + NOUNS_OF["animal"]
        if verb.objects[0] in PERSONS and self.random() < (
            0.8 if verb.objects[-1] in animate else 0.2
        ):
            pairs = not (negated or prepositional)
            return self.person(pairs, heavy, counted=not negated, indefinite=indefinite)
        bare = "bare" in verb.traits
        return self.nominal(
            verb.objects, heavy, bare=bare, counted=not negated, indefinite=indefinite
        )

    def subject_of(self, *clauses: Clause, **options: bool) -> Phrase:
        """A person who does what the clauses say; not I or we where that would call for
        "myself".
        """
        subject = self.person(**options)
        others = [
            phrase.person
            for clause in clauses
            for phrase in (clause.object, clause.recipient)
            if phrase
        ]
        return (
            self.choice(PEOPLE)
            if subject.person in SPEAKERS and set(others) & set(SPEAKERS)
            else subject
        )

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
            return Pair(first, self.plain(PERSONS))
        return self.nominal(PERSONS, heavy, **allowed)

    def nominal(
        self, nouns: Sequence[Word], heavy: bool = False, **allowed: bool
    ) -> Nominal:
        """One of the nouns with a determiner and perhaps an adjective and, if `heavy`,
        a relative clause.

        By default it is `allowed` to be `indefinite` (with "a") and `counted` (with a
        number, many or every), but not `bare` (without determiner, as in "buys
        apples").
        """
        noun = self.choice(nouns)
        conditions = {
            "bare": False,
            "indefinite": True,
            "counted": True,
            "owned": noun in OWNED,
            **allowed,
        }
        table = "mass determiner" if noun in MASS else "determiner"
        determiner, plurals = self.draw(table, **conditions).split()
        phrase = Nominal(determiner.strip("-"), noun)
        if determiner == "possessive":
            phrase.determiner = self.draw("possessive")
        phrase.plural = plurals == "100" or (
            plurals != "0" and self.random() < int(plurals) / 100
        )
        if determiner == "owner":
            phrase.owner = (
                self.choice(PEOPLE)
                if self.random() < 0.5
                else Nominal("the", self.choice(PERSONS))
            )
        elif determiner == "number":
            first, count = (2, 98) if self.random() < 0.85 else (100, 900)
            phrase.determiner = str(first + int(count * self.random()))
        self.add_adjective(phrase)
        if heavy and determiner in ("the", "a", "this") and self.random() < 0.15:
            self.add_relative(phrase)
        return phrase

    def plain(self, nouns: Sequence[Word]) -> Nominal:
        """One of the nouns after the, my, his, her, our or their."""
        noun = self.choice(nouns)
        return Nominal(
            self.draw("possessive") if noun in OWNED and self.random() < 0.5 else "the",
            noun,
        )

    def add_adjective(self, phrase: Nominal) -> None:
        """Perhaps an adjective."""
        if self.random() < 0.3 and lexicon.ADJECTIVES_OF[phrase.noun]:
            phrase.adjective = self.choice(lexicon.ADJECTIVES_OF[phrase.noun])

    def add_relative(self, phrase: Nominal) -> None:
        """A subject or object relative clause."""
        tense = PRESENT if self.random() < 0.4 else PAST
        if phrase.noun in PERSONS and self.random() < 0.5:
            phrase.relative = self.event(tense)
        elif verbs := [
            verb for verb in VERBS["transitive"] if phrase.noun in verb.objects
        ]:
            subject = self.person(pairs=False, counted=False)
            phrase.relative = Clause(self.choice(verbs), tense, subject)

    def place(self, table: str, kind: str, **conditions: bool) -> Place:
        """A city or a noun of this kind, after a preposition from this table."""
        preposition = self.draw(table, **conditions)
        phrase: Phrase
        if preposition.endswith("city"):
            phrase = self.choice(lexicon.CITIES)
        elif preposition == "to":
            phrase = self.plain(NOUNS_OF["goal"])
        else:
            phrase = self.nominal(NOUNS_OF[kind], counted=False)
        return Place(lexicon.PREPOSITIONS[preposition], phrase)

    def add_time(self, clause: Clause) -> None:
        """A time that goes with the tense."""
        groups = lexicon.TIMES[lexicon.FUTURE if clause.modal else clause.tense]
        clause.time = self.choice(
            self.choice(groups[:2] if clause.negation else groups)
        )

    def add_adverbials(self, clause: Clause) -> None:
        """A time or a frequency, and a place unless a relative clause stands before
        it.
        """
        if clause.adjective:
            return
        heavy = (
            isinstance(clause.object, Nominal) and clause.object.relative is not None
        )
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
        # No place after "leave": "partir à Paris" is to leave for Paris.
        fixed = (
            clause.goal or clause.recipient or clause.verb.english.infinitive == "leave"
        )
        if heavy or fixed or self.random() >= 0.3:
            return
        kind = self.draw("place")
        if kind in ("in", "beside"):
            clause.place = self.place(kind, "inside" if kind == "in" else "place")
        else:
            benefit = "benefit" in clause.verb.traits
            person = self.person(
                pairs=False, indefinite=benefit and not clause.negation
            )
            if person.person in SPEAKERS and clause.subject.person in SPEAKERS:
                person = self.choice(PEOPLE)
            clause.place = Place(
                lexicon.PREPOSITIONS["for" if benefit else kind], person
            )
