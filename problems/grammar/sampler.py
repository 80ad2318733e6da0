"""Draws the content of a sentence, with the probabilities in probabilities.txt.

Some constructions are left out so that every English sentence has one meaning, hence
one translation and one tree. Nothing follows an object with a relative clause, nor a
clause inside another one, so a last adverbial always belongs to the innermost clause.
No verb of the lexicon has equal past and present ("read"). There is no "you" or "it".
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

from t2tlite.problems.grammar import lexicon
from t2tlite.problems.grammar.lexicon import (
    ADJECTIVES_OF,
    CAN,
    CONJUNCTIONS,
    MUST,
    NOUNS_OF,
    PAST,
    PEOPLE,
    PRESENT,
    VERBS,
    WANT,
    Word,
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
MASS = frozenset(NOUNS_OF["mass"])
OWNED = frozenset(NOUNS_OF["owned"])
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
        """A value from a table of probabilities.txt. The arguments say which conditions
        are met; others are.
        """
        roll = self.random()
        for limit, value, needed in TABLES[table]:
            if roll < limit and conditions.get(needed, True):
                return value
        raise ValueError(f"The last line of [{table}] must have no condition.")

    def sentence(self) -> Clause:
        kind = self.draw("sentence")
        others = {
            "question": self.question,
            "subordinate": self.with_subordinate,
            "report": self.report,
            "infinitive": self.with_infinitive,
        }
        if kind in others:
            return others[kind]()
        conjunction = self.draw("conjunction") if kind == "two clauses" else ""
        tense = self.draw("tense")
        if kind == "two verbs":
            clause = self.event(tense)
            clause.second = self.event(tense)
            clause.subject = self.subject_of(clause, clause.second)
            clause.second.subject = clause.subject
            return clause
        is_statement = kind == "statement"
        clause = self.clause(tense, adverbials=is_statement, heavy=is_statement)
        if conjunction:
            clause.following = self.clause(tense, adverbials=True)
            clause.following.conjunction = CONJUNCTIONS[conjunction]
        return clause

    def question(self) -> Clause:
        """A question: yes or no, where, why, when, who, what, which."""
        tense = self.draw("tense")
        kind = self.draw("question")
        if kind == "yes":
            clause = self.clause(tense, adverbials=True, negatable=False)
            clause.fronted = False
        elif kind == "adverb":
            clause = self.clause(tense, negatable=False)
            kind = "why"
            if not (clause.goal or clause.adjective):
                is_leave = clause.verb.name == "leave"
                kinds = ("why", "when", "where")
                kind = self.choice(kinds[:2] if is_leave else kinds)
        elif kind == "who":
            clause = self.event(tense)
        else:
            return self.object_question(kind, tense)
        clause.question = kind
        return clause

    def object_question(self, kind: str, tense: str) -> Clause:
        """A question for the object, which or what."""
        clause = Clause(self.choice(VERBS["transitive"]), tense, self.person())
        nouns = [noun for noun in clause.verb.objects if noun not in MASS]
        if kind == "which" and nouns:
            clause.question = kind
            noun = self.choice(nouns)
            clause.object = Nominal(kind, noun, plural=self.random() < 0.2)
            self.add_adjective(clause.object)
            return clause
        clause.question = "what"
        is_person = not set(clause.verb.objects).isdisjoint(PERSONS)
        if clause.verb.english.preposition or is_person:
            verbs = [verb for verb in VERBS["transitive"] if "what" in verb.traits]
            clause.verb = self.choice(verbs)
        return clause

    def with_subordinate(self) -> Clause:
        """A clause with because, when, if or while, before or after it."""
        conjunction, tense, main_tense = self.draw("subordinate").split()
        because = conjunction == "because"
        any_tense = self.draw("tense")
        if tense == "any":
            tense = main_tense = any_tense
        main = self.clause(main_tense, negatable=because)
        main.subordinate = self.clause(
            tense, adverbials=because, negatable=conjunction in ("because", "if")
        )
        main.subordinate.conjunction = CONJUNCTIONS[conjunction]
        main.subordinate.fronted = False
        main.fronted = not because and self.random() < 0.5
        return main

    def report(self) -> Clause:
        """Someone says, thinks, hopes that; asks, does not know whether."""
        reported = self.clause(self.draw("tense"), adverbials=True)
        *negation, kind, conjunction = self.draw("report").split()
        subject = self.person(pairs=False)
        verbs = VERBS[kind]
        clause = Clause(verbs[0], PRESENT, subject, negation="".join(negation))
        if kind == "say":
            # no hope for the past
            clause.verb = self.choice(verbs[:-1] if reported.tense == PAST else verbs)
        reported.conjunction = CONJUNCTIONS[conjunction]
        reported.fronted = False
        clause.subordinate = reported
        return clause

    def with_infinitive(self) -> Clause:
        """Someone tries, begins, decides, forgets to do something."""
        verb = self.choice(VERBS["control"])
        tense = self.choice((PRESENT, PAST))
        infinitive = self.event(PRESENT)
        clause = Clause(verb, tense, self.subject_of(infinitive), infinitive=infinitive)
        clause.fronted = self.random() < 0.3
        if clause.fronted:
            self.add_time(clause)
        return clause

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
        if "animals" in clause.verb.traits and self.random() < 0.25:
            clause.subject = self.nominal(NOUNS_OF["animal"], counted=False)
        else:
            positive = not clause.negation
            clause.subject = self.subject_of(clause, heavy=heavy, counted=positive)
        may_have_modal = negatable and tense == PRESENT and negation != "never"
        if may_have_modal and self.random() < 0.3:
            clause.modal = CAN
            if not negation:
                clause.modal = self.choice((CAN, MUST, WANT))
            elif self.random() >= 0.6:  # "must not" does not negate "must"
                clause.modal = self.choice((CAN, WANT, WANT))
        if adverbials:
            self.add_adverbials(clause)
        return clause

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
        verb = self.choice(VERBS[kind])
        clause = Clause(verb, tense, negation=negation)
        positive = not negation
        if kind == "transitive":
            clause.object = self.object_of(verb, positive, heavy and positive)
        elif kind == "ditransitive":
            clause.object = self.nominal(verb.objects, counted=positive)
            clause.recipient = self.person(
                pairs=False, counted=positive, indefinite=positive
            )
        elif kind == "motion":
            is_come = verb.name == "come"
            not_run = verb.name != "run"
            clause.goal = self.place("goal", "inside", come=is_come, not_run=not_run)
        elif kind == "locative":
            clause.goal = self.place("in", "dwelling")
        if negation == "not" and isinstance(clause.object, Nominal):
            clause.object.is_none = clause.object.determiner in ("a", "")
        return clause

    def object_of(self, verb: Word, positive: bool, heavy: bool) -> Phrase:
        """An object of a verb: whom or what one sees, buys, calls, ..."""
        direct = "indirect" not in verb.traits
        allowed = {"counted": positive, "indefinite": positive or direct}
        if verb.objects[0] in PERSONS:
            is_animate = verb.objects[-1] in PERSONS + NOUNS_OF["animal"]
            if self.random() < (0.8 if is_animate else 0.2):
                return self.person(positive and direct, heavy, **allowed)
        return self.nominal(verb.objects, heavy, "bare" in verb.traits, **allowed)

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
        self,
        nouns: Sequence[Word],
        heavy: bool = False,
        bare: bool = False,
        **allowed: bool,
    ) -> Nominal:
        """One of the nouns with a determiner and perhaps an adjective and, if `heavy`,
        a relative clause.

        Unless `allowed` says otherwise it may be `indefinite` (with "a") and `counted`
        (with a number, many or every); `bare` is without determiner, as in "buys
        apples".
        """
        noun = self.choice(nouns)
        table = "mass determiner" if noun in MASS else "determiner"
        drawn = self.draw(table, bare=bare, owned=noun in OWNED, **allowed)
        determiner, plurals = drawn.split()
        phrase = Nominal(determiner.strip("-"), noun)
        if determiner == "possessive":
            phrase.determiner = self.draw("possessive")
        phrase.plural = plurals == "100"
        if plurals not in ("0", "100"):
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

    def plain(self, nouns: Sequence[Word]) -> Nominal:
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
        else:
            verbs = [
                verb for verb in VERBS["transitive"] if phrase.noun in verb.objects
            ]
            if not verbs:
                return
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
        """Perhaps adds a time or a frequency, and a place, or a person with whom or for
        whom, unless a relative clause stands before it.
        """
        thing = clause.object
        heavy = isinstance(thing, Nominal) and thing.relative is not None
        not_never = clause.negation != "never"
        positive = not clause.negation
        kind = self.draw("adverbial", not_never=not_never, positive=positive)
        if kind == "time":
            self.add_time(clause)
            clause.fronted = heavy or self.random() < 0.5
        elif kind == "frequency":
            clause.frequency = self.draw("frequency")
        if heavy or clause.goal or clause.recipient or clause.verb.name == "leave":
            return
        if self.random() >= 0.3:
            return
        kind = self.draw("place")
        if kind in ("in", "beside"):
            clause.place = self.place(kind, "inside" if kind == "in" else "place")
            return
        if "benefit" in clause.verb.traits:
            kind = "for"
        person = self.person(pairs=False, indefinite=kind == "for" and positive)
        if person.person in SPEAKERS and clause.subject.person in SPEAKERS:
            person = self.choice(PEOPLE)
        clause.place = PrepositionalPhrase(lexicon.PREPOSITIONS[kind], person)
