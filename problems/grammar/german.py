"""Realises a clause in German.

A clause has five fields: the words before the finite verb, the finite verb, the middle,
the rest of the verb (particle, participle, infinitive), and the clauses after it. In a
subordinate clause the finite verb goes last.
"""

from __future__ import annotations

import dataclasses
import re

from t2tlite.problems.grammar import lexicon
from t2tlite.problems.grammar.lexicon import (
    BE,
    FUTURE,
    GAP,
    HAVE,
    PAST,
    PRESENT,
    Name,
    Pronoun,
)
from t2tlite.problems.grammar.structure import (
    INDEFINITE,
    Clause,
    Nominal,
    Pair,
    Phrase,
    Place,
    is_indefinite,
    joined,
)

_WILL = ("werde", "wird", "werden", "werden")
_CASES = ("nominative", "accusative", "dative", "genitive")
# determiners of objects that follow the negation
_NEW = (*INDEFINITE, "many", "every")
# of object and adverb, each named by an example
_ORDERS = ("ihn nie", "den Apfel nie", "nie einen Apfel", "nie auf den Gast")
_GENDERS = ("der", "die", "das", "plural")
_CONTRACTIONS = {
    ("in", "dem"): "im",
    ("in", "das"): "ins",
    ("zu", "dem"): "zum",
    ("zu", "der"): "zur",
}


def sentence_text(clause: Clause) -> str:
    """The sentence, with capital and punctuation."""
    text = _main(clause)
    if clause.following:
        text += f" {clause.following.conjunction.german} {_main(clause.following)}"
    text = re.sub("( *,)+", ",", text).strip(" ,")
    return text[0].upper() + text[1:] + ("?" if clause.question else ".")


def _main(clause: Clause) -> str:
    """A clause with the finite verb second; in a yes-no question it is first."""
    subject = _noun_phrase(clause.subject, "nominative")
    finite, rest = _verb(clause, clause.subject.person)
    if clause.question == "which":
        words = [_object(clause), finite, subject]
    elif clause.question:
        words = [lexicon.QUESTIONS[clause.question].german, finite, subject]
    elif clause.fronted:
        words = [clause.time.german, _final(clause.subordinate), finite, subject]
    else:
        words = [subject, finite]
    words += [_middle(clause), rest]
    if clause.second:
        second_finite, second_rest = _verb(clause.second, clause.subject.person)
        if clause.tense in (PAST, FUTURE) and finite == second_finite:
            second_finite = ""  # one auxiliary serves both
        words += ["und", second_finite, _middle(clause.second), second_rest]
    return joined(*words, _after(clause))


def _final(
    clause: Clause | None, pronoun: str = "", antecedent: Phrase | None = None
) -> str:
    """A subordinate or relative clause, with the finite verb at its end and commas
    around it; or nothing.
    """
    if clause is None:
        return ""
    finite, rest = _verb(clause, (antecedent or clause.subject).person)
    opening = pronoun or clause.conjunction.german
    subject = _noun_phrase(clause.subject, "nominative")
    verb = rest + finite if rest == clause.verb.german.particle else f"{rest} {finite}"
    return joined(",", opening, subject, _middle(clause), verb, _after(clause), ",")


def _relative(phrase: Phrase | None) -> str:
    """The relative clause of a noun, or nothing."""
    if not isinstance(phrase, Nominal) or phrase.relative is None:
        return ""
    verb = phrase.relative.verb.german
    if phrase.relative.subject is GAP:
        pronoun = _ending("the", phrase, "nominative")
        return _final(phrase.relative, pronoun, antecedent=phrase)
    pronoun = _ending("the", phrase, verb.case)
    if verb.case == "dative" and phrase.plural:
        pronoun = "denen"
    return _final(phrase.relative, joined(verb.preposition, pronoun))


def _verb(clause: Clause, person: int) -> tuple[str, str]:
    """The finite verb, and the rest of the verb, which stands at the end of the
    clause.
    """
    verb = clause.verb.german
    infinitive = verb.particle + verb.infinitive
    if clause.modal:
        return clause.modal.german.finite(PRESENT, person), infinitive
    if clause.tense == FUTURE:
        return _WILL[person], infinitive
    if clause.tense == PAST and not verb.past:
        auxiliary = BE if verb.perfect == "be" else HAVE
        return auxiliary.german.finite(PRESENT, person), verb.participle
    return verb.finite(clause.tense, person), verb.particle


def _middle(clause: Clause) -> str:
    """Objects, adverbials, negation and predicate, in their order."""
    order = _object_order(clause)
    texts = dict.fromkeys(_ORDERS, "")
    if clause.question != "which":
        texts[order] = _object(clause)
    pronoun = ""
    recipient = _noun_phrase(clause.recipient, "dative")
    if isinstance(clause.recipient, Pronoun):
        pronoun = recipient
        recipient = ""
    time = "" if clause.fronted else clause.time.german
    adverb = clause.adverb.german
    if order == "nie einen Apfel" and _has_kein(clause):
        adverb = ""
    return joined(
        texts["ihn nie"],
        pronoun,
        time,
        recipient,
        texts["den Apfel nie"],
        adverb,
        texts["nie einen Apfel"],
        _place(clause.place),
        _place(clause.goal),
        texts["nie auf den Gast"],
        _predicate(clause),
    )


def _object_order(clause: Clause) -> str:
    """The place of the object: one of _ORDERS."""
    phrase = clause.object
    if clause.verb.german.preposition:
        return "nie auf den Gast"
    if isinstance(phrase, Pronoun):
        return "ihn nie"
    if not isinstance(phrase, Nominal):
        return "den Apfel nie"
    is_new = phrase.determiner in _NEW or phrase.determiner.isdigit()
    return "nie einen Apfel" if is_new else "den Apfel nie"


def _has_kein(clause: Clause) -> bool:
    """Whether the object has the article `kein` for `nicht ein`."""
    return clause.negation == "not" and is_indefinite(clause.object)


def _predicate(clause: Clause) -> str:
    """The adjective after `sein`, or nothing."""
    if not clause.adjective:
        return ""
    positive, _, comparative = clause.adjective.german
    if clause.than:
        return joined(comparative, "als", _noun_phrase(clause.than, "nominative"))
    return joined(clause.degree.german, positive)


def _object(clause: Clause) -> str:
    """The object after its preposition, without its relative clause."""
    verb = clause.verb.german
    phrase = clause.object
    if phrase is None:
        return ""
    if isinstance(phrase, Nominal) and _has_kein(clause):
        phrase = dataclasses.replace(phrase, determiner="no")
    return joined(verb.preposition, _noun_phrase(phrase, verb.case))


def _after(clause: Clause) -> str:
    """The words after the verb: relative clause of the object, subordinate clause,
    infinitive.
    """
    words = [_relative(clause.object)]
    if not clause.fronted:
        words.append(_final(clause.subordinate))
    if clause.infinitive:
        verb = clause.infinitive.verb.german
        middle = _middle(clause.infinitive)
        if middle:
            words += [",", middle]
        zu = f"{verb.particle}zu" if verb.particle else "zu "
        words.append(zu + verb.infinitive)
    return joined(*words)


def _place(place: Place | None) -> str:
    if place is None:
        return ""
    preposition, case = place.preposition.german.split()
    article, _, rest = _noun_phrase(place.phrase, case).partition(" ")
    words = f"{preposition} {article}"
    return joined(_CONTRACTIONS.get((preposition, article), words), rest)


def _noun_phrase(phrase: Phrase | None, case: str) -> str:
    """A noun phrase in a case, or nothing; with the relative clause of a subject. The
    relative clause of an object follows the verb.
    """
    if phrase is None:
        return ""
    if isinstance(phrase, Name):
        return phrase.german[_CASES.index(case)]
    if isinstance(phrase, Pair):
        first = _noun_phrase(phrase.first, case)
        return f"{first} und {_noun_phrase(phrase.second, case)}"
    relative = _relative(phrase) if case == "nominative" else ""
    owner = ""
    if isinstance(phrase.owner, Name):
        article = phrase.owner.german[0] + "s"
        endings = "strong"
    else:
        stem, article_endings, endings = lexicon.determiner(phrase.determiner).german
        article = stem + _ending(article_endings, phrase, case)
        owner = _noun_phrase(phrase.owner, "genitive")
    adjective = ""
    if phrase.adjective:
        adjective = phrase.adjective.german[1] + _ending(endings, phrase, case)
    noun = phrase.noun.german[1 + _CASES.index(case) + 4 * phrase.plural]
    return joined(article, adjective, noun, owner, _place(phrase.place), relative)


def _ending(table: str, phrase: Nominal, case: str) -> str:
    """The ending for the gender, or the plural, and the case."""
    gender = _GENDERS.index("plural" if phrase.plural else phrase.noun.german[0])
    return lexicon.ENDINGS[table][gender][_CASES.index(case)]
