"""Draws what a sentence of the embedded grammar says.

What is left out is left out so that the English sentence has one meaning, hence one translation and one tree: nothing
follows an object with a relative clause, nor a clause inside another one, so that a last adverbial always belongs to
the innermost clause; no word of the lexicon has a past like its present ("read"); there is no "you" and no "it".
"""

from __future__ import annotations

from collections.abc import Sequence

from t2tlite.problems.grammar_phrases import ANIMALS, INSIDES, PERSONS, PLACES, THINGS, PhraseSampler, is_speaker
from t2tlite.problems.grammar_structure import (
    Clause,
    Nominal,
    Phrase,
    Place,
    Predicate,
    Sentence,
    Subordinate,
)
from t2tlite.problems.grammar_verbs import (
    ANIMALS_CAN,
    ASK,
    BE,
    BECAUSE,
    BENEFIT,
    CONTROL,
    IF,
    KNOW,
    MODALS,
    REPORTING,
    THAT,
    TRANSITIVE,
    WHEN,
    WHEN_PAST,
    WHETHER,
    WHILE,
)
from t2tlite.problems.grammar_words import (
    ADJECTIVES,
    BEHIND,
    FOR,
    FREQUENCIES,
    FUTURE,
    IN_FRONT_OF,
    NEXT_TO,
    NOUNS,
    ON,
    PAST,
    PEOPLE,
    PRESENT,
    TIMES,
    UNDER,
    WITH,
    WITHOUT,
    Adverbial,
    Noun,
)

_TENSES = (PRESENT, PRESENT, PAST, PAST, FUTURE)
_LOCATIONS = (IN_FRONT_OF, BEHIND, NEXT_TO)
_LIE_ON_TABLES = tuple(noun for noun in NOUNS if set(noun.kinds) & set("rdf"))
_TABLES = tuple(noun for noun in NOUNS if noun.english[0] in ("table", "chair"))
_PERSON_ADJECTIVES = tuple(adjective for adjective in ADJECTIVES if "p" in adjective.kinds)
_ASKED_WHAT = tuple(verb for verb in TRANSITIVE if verb.english in ("see", "find", "buy", "write", "eat", "drink"))


class Sampler(PhraseSampler):
    """Draws sentences from a random number generator; the same generator, the same sentences."""

    def sentence(self) -> Sentence:
        """One sentence, at random."""
        roll = self.random()
        if roll < 0.48:
            return Sentence(self.clause(self._tense(), adverbials=True, heavy=True))
        if roll < 0.60:
            return Sentence(self.question())
        if roll < 0.74:
            return Sentence(self.with_subordinate())
        if roll < 0.83:
            return Sentence(self.reporting())
        if roll < 0.90:
            conjunction = "and" if self.random() < 0.5 else "but"
            tense = self._tense()
            first, second = self.clause(tense), self.clause(tense, adverbials=True)
            return Sentence(first, conjunction, second)
        if roll < 0.96:
            tense = self._tense()
            first, second = self.event(tense), self.event(tense)
            first.subject = self.subject_of(first, second)
            first.second = second
            return Sentence(first)
        return Sentence(self.control())

    def clause(self, tense: int, adverbials: bool = False, heavy: bool = False, negatable: bool = True) -> Clause:
        """A main or subordinate clause.

        Args:
            tense: PRESENT, PAST or FUTURE.
            adverbials: whether it may have a time and a place.
            heavy: whether a noun may have a relative clause.
            negatable: whether it may be negated or have a modal.
        """
        if self.random() < 0.15:
            return self._copula(tense, heavy, negatable)
        roll = self.random()
        negation = "" if not negatable or roll > 0.22 else "not" if roll < 0.17 else "never"
        clause = self.event(tense, negation, heavy)
        animal = clause.verb.english in ANIMALS_CAN and not clause.verb.english_particle and self.random() < 0.25
        clause.subject = (
            self.nominal(ANIMALS, counted=False)
            if animal
            else self.subject_of(clause, counted=not negation, heavy=heavy)
        )
        if negatable and tense == PRESENT and negation != "never" and self.random() < 0.3:
            clause.modal = MODALS[0] if negation and self.random() < 0.6 else self.choice(MODALS)
            if negation and clause.modal is MODALS[1]:  # "must not" is no negated "must"
                clause.modal = MODALS[2]
        if adverbials:
            self._add_adverbials(clause)
        return clause

    def question(self) -> Clause:
        """A question: yes or no, where, why, when, who, what, which."""
        tense = self._tense()
        roll = self.random()
        if roll < 0.35:
            clause = self.clause(tense, adverbials=True, negatable=False)
            clause.question = "yes"
            clause.time_fronted = False
        elif roll < 0.6:
            clause = self.clause(tense, negatable=False)
            if clause.goal or clause.predicate:
                clause.question = "why"
            else:
                questions = ("why", "when") if clause.verb.english == "leave" else ("why", "when", "where")
                clause.question = self.choice(questions)
        elif roll < 0.75:
            clause = self.event(tense)
            clause.question = "who"
        else:
            verb = self.choice(TRANSITIVE)
            clause = Clause(verb, tense, self.person())
            nouns = tuple(noun for noun in verb.objects if not noun.mass)
            if roll < 0.85 or not nouns:
                clause.question = "what"
                if verb.english_preposition or "p" in "".join(noun.kinds for noun in verb.objects):
                    clause.verb = self.choice(_ASKED_WHAT)
            else:
                clause.question = "which"
                clause.object = Nominal("which", self.choice(nouns), plural=self.random() < 0.2)
                self.add_adjective(clause.object, 0.3)
        return clause

    def with_subordinate(self) -> Clause:
        """A clause with because, when, if or while, before or after it."""
        roll = self.random()
        tense = self._tense()
        if roll < 0.4:
            conjunction = BECAUSE
        elif roll < 0.65:
            tense = PAST if roll < 0.5 else PRESENT
            conjunction = WHEN_PAST if roll < 0.5 else WHEN
        elif roll < 0.85:
            conjunction, tense = IF, PRESENT
        else:
            conjunction, tense = WHILE, PRESENT
        main_tense = FUTURE if conjunction is IF and roll < 0.75 else tense
        main = self.clause(main_tense, negatable=conjunction is BECAUSE)
        clause = self.clause(tense, adverbials=conjunction is BECAUSE, negatable=conjunction in (BECAUSE, IF))
        clause.time_fronted = False
        main.subordinate = Subordinate(conjunction, clause, conjunction is not BECAUSE and self.random() < 0.5)
        return main

    def reporting(self) -> Clause:
        """Someone says, thinks, hopes that; asks, does not know whether."""
        clause = self.clause(self._tense(), adverbials=True)
        clause.time_fronted = False
        roll = self.random()
        subject = self.person(pairs=False)
        if roll < 0.7:
            verbs = REPORTING[:-1] if clause.tense == PAST else REPORTING  # no hope for what is past
            return Clause(self.choice(verbs), PRESENT, subject, subordinate=Subordinate(THAT, clause))
        if roll < 0.8:
            return Clause(KNOW, PRESENT, subject, subordinate=Subordinate(THAT, clause))
        whether = Subordinate(WHETHER, clause)
        if roll < 0.9:
            return Clause(ASK, PRESENT, subject, subordinate=whether)
        return Clause(KNOW, PRESENT, subject, negation="not", subordinate=whether)

    def control(self) -> Clause:
        """Someone tries, begins, decides, forgets to do something."""
        verb, preposition = self.choice(CONTROL)
        tense = self.choice((PRESENT, PAST))
        inner = self.event(PRESENT)
        clause = Clause(verb, tense, self.subject_of(inner), infinitive=(inner, preposition))
        if self.random() < 0.3:
            self._add_time(clause)
            clause.time_fronted = True
        return clause

    def _copula(self, tense: int, heavy: bool, negatable: bool) -> Clause:
        roll = self.random()
        nouns: Sequence[Noun] = PERSONS
        subject: Phrase
        if roll < 0.35:
            subject, adjectives = self.person(counted=False), _PERSON_ADJECTIVES
            if isinstance(subject, Nominal):
                subject.adjective = None
        else:
            nouns = ANIMALS if roll < 0.45 else THINGS if roll < 0.8 else PLACES
            subject = self.nominal(nouns, counted=False)
            subject.adjective = None
            adjectives = subject.noun.adjectives
            if heavy and self.random() < 0.25 and subject.noun in _LIE_ON_TABLES:
                subject.place = Place(ON if self.random() < 0.6 else UNDER, self.nominal(_TABLES, counted=False))
            elif heavy and subject.determiner in ("the", "a", "this") and self.random() < 0.5:
                self.add_relative(subject)
        predicate = Predicate(self.choice(adjectives))
        clause = Clause(BE, tense, subject, predicate=predicate)
        roll = self.random()
        if roll < 0.25 and predicate.adjective.english_comparative:
            others = [noun for noun in nouns if predicate.adjective in noun.adjectives]
            predicate.than = self.nominal(others, counted=False, indefinite=False)
            predicate.than.adjective = None
        elif roll < 0.5:
            predicate.degree = "very" if roll < 0.4 else "too"
        elif roll < 0.7 and negatable:
            clause.negation = "not"
        return clause

    def _add_adverbials(self, clause: Clause) -> None:
        """A time, a frequency or a place, where nothing heavy stands before it."""
        if clause.predicate:
            return
        heavy = isinstance(clause.object, Nominal) and clause.object.relative is not None
        roll = self.random()
        if roll < 0.35 and clause.negation != "never":
            self._add_time(clause)
            clause.time_fronted = heavy or self.random() < 0.5
        elif roll < 0.47 and not clause.negation:
            clause.frequency = self.choice(FREQUENCIES)
        # No place after "leave": "partir à Paris" is to leave for Paris.
        fixed = clause.goal or clause.recipient or clause.verb.english == "leave"
        if heavy or fixed or self.random() > 0.3:
            return
        roll = self.random()
        if roll < 0.55:
            clause.place = self.inside(INSIDES)
        elif roll < 0.75:
            clause.place = Place(self.choice(_LOCATIONS), self.nominal(PLACES, counted=False))
        else:
            benefit = clause.verb.english in BENEFIT
            person = self.person(pairs=False, indefinite=benefit and not clause.negation)
            if is_speaker(person) and is_speaker(clause.subject):
                person = self.choice(PEOPLE)
            clause.place = Place(FOR if benefit else WITH if roll < 0.95 else WITHOUT, person)

    def _add_time(self, clause: Clause) -> None:
        groups = TIMES[FUTURE if clause.modal else clause.tense]
        group: Sequence[Adverbial] = self.choice(groups[:2] if clause.negation else groups)
        clause.time = self.choice(group)

    def _tense(self) -> int:
        return self.choice(_TENSES)
