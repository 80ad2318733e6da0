"""Draws the content of a sentence, with the probabilities in probabilities.txt.

Some constructions are left out so that every English sentence has one meaning, hence
one translation and one tree. Nothing follows an object with a relative clause, nor a
clause inside another one, so a last adverbial always belongs to the innermost clause.
No verb of the lexicon has equal past and present ("read"). There is no "you" or "it".
"""

from __future__ import annotations

from t2tlite.problems.grammar import lexicon
from t2tlite.problems.grammar.clause_sampler import MASS, PERSONS, ClauseSampler
from t2tlite.problems.grammar.lexicon import PAST, PRESENT, VERBS
from t2tlite.problems.grammar.structure import Clause, Nominal


class Sampler(ClauseSampler):
    """Draws sentences from a random number generator; equal generators give equal
    sentences.
    """

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
            clause.following.conjunction = lexicon.CONJUNCTIONS[conjunction]
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
        main.subordinate.conjunction = lexicon.CONJUNCTIONS[conjunction]
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
        reported.conjunction = lexicon.CONJUNCTIONS[conjunction]
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
