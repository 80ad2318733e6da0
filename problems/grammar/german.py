"""Realises a clause in German.

A clause is built in fields: what stands before the finite verb, the finite verb, the
middle, the rest of the verb (particle, participle, infinitive), and what follows it
(clauses). In a subordinate clause the finite verb goes last.
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
    joined,
)

_WILL = ("werde", "wird", "werden", "werden")
_CASES = ("nominative", "accusative", "dative", "genitive")
# determiners of an object that stands after the negation
_NEW = (*INDEFINITE, "many", "every")
# of object and adverb
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
    """A clause with the finite verb second; it is first in a question of yes or no."""
    subject, (finite, rest) = (
        _noun_phrase(clause.subject, "nominative"),
        _verb(clause, clause.subject.person),
    )
    words = [subject, finite]
    if clause.question:
        question = (
            _object(clause)
            if clause.question == "which"
            else lexicon.QUESTIONS[clause.question].german
        )
        words = [question, finite, subject]
    elif clause.fronted:
        words = [clause.time.german, _final(clause.subordinate), finite, subject]
    words += [_middle(clause), rest]
    if clause.second:
        second_finite, second_rest = _verb(clause.second, clause.subject.person)
        # one auxiliary serves both
        said = clause.tense in (PAST, FUTURE) and finite == second_finite
        words += [
            "und",
            "" if said else second_finite,
            _middle(clause.second),
            second_rest,
        ]
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
    opening = [
        pronoun or clause.conjunction.german,
        _noun_phrase(clause.subject, "nominative"),
    ]
    verb = rest + finite if rest == clause.verb.german.particle else f"{rest} {finite}"
    return joined(",", *opening, _middle(clause), verb, _after(clause), ",")


def _relative(phrase: Phrase | None) -> str:
    """The relative clause of a noun, or nothing."""
    if not isinstance(phrase, Nominal) or phrase.relative is None:
        return ""
    verb = phrase.relative.verb.german
    if phrase.relative.subject is GAP:
        return _final(
            phrase.relative, _ending("the", phrase, "nominative"), antecedent=phrase
        )
    pronoun = (
        "denen"
        if verb.case == "dative" and phrase.plural
        else _ending("the", phrase, verb.case)
    )
    return _final(phrase.relative, joined(verb.preposition, pronoun))


def _verb(clause: Clause, person: int) -> tuple[str, str]:
    """The finite verb, and the rest of the verb, which stands at the end of the
    clause.
    """
    verb = clause.verb.german
    if clause.modal or clause.tense == FUTURE:
        if clause.modal:
            finite = clause.modal.german.finite(PRESENT, person)
        else:
            finite = _WILL[person]
        return finite, verb.particle + verb.infinitive
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
    if order == "nie einen Apfel" and _is_negated_by_article(clause):  # keinen Apfel
        adverb = ""
    return joined(
        texts["ihn nie"],
        pronoun,
        time,
        recipient,
        texts["den Apfel nie"],
        adverb,
        texts["nie einen Apfel"],
        joined(_place(clause.place), _place(clause.goal)),
        texts["nie auf den Gast"],
        _predicate(clause),
    )


def _object_order(clause: Clause) -> str:
    """Where the object stands: one of _ORDERS."""
    phrase = clause.object
    if clause.verb.german.preposition:
        return "nie auf den Gast"
    if isinstance(phrase, Pronoun):
        return "ihn nie"
    is_new = isinstance(phrase, Nominal) and (
        phrase.determiner in _NEW or phrase.determiner.isdigit()
    )
    return "nie einen Apfel" if is_new else "den Apfel nie"


def _is_negated_by_article(clause: Clause) -> bool:
    """Whether the object has the article `kein` for `nicht ein`."""
    phrase = clause.object
    return (
        isinstance(phrase, Nominal)
        and phrase.determiner in INDEFINITE
        and clause.negation == "not"
    )


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
    verb, phrase = clause.verb.german, clause.object
    if isinstance(phrase, Nominal) and _is_negated_by_article(clause):
        phrase = dataclasses.replace(phrase, determiner="no")
    return joined(verb.preposition, _noun_phrase(phrase, verb.case)) if phrase else ""


def _after(clause: Clause) -> str:
    """What follows the end of the verb: relative clause of the object, infinitive,
    subordinate clause.
    """
    words = [
        _relative(clause.object),
        "" if clause.fronted else _final(clause.subordinate),
    ]
    if clause.infinitive:
        verb, middle = clause.infinitive.verb.german, _middle(clause.infinitive)
        words += [",", middle] if middle else []
        words.append(
            f"{verb.particle}zu{verb.infinitive}"
            if verb.particle
            else f"zu {verb.infinitive}"
        )
    return joined(*words)


def _place(place: Place | None) -> str:
    if place is None:
        return ""
    preposition, case = place.preposition.german.split()
    article, _, rest = _noun_phrase(place.phrase, case).partition(" ")
    return joined(
        _CONTRACTIONS.get((preposition, article), f"{preposition} {article}"), rest
    )


def _noun_phrase(phrase: Phrase | None, case: str) -> str:
    """A noun phrase in a case, or nothing; a subject's relative clause follows it, an
    object's the verb.
    """
    if phrase is None:
        return ""
    if isinstance(phrase, Name):
        return phrase.german[_CASES.index(case)]
    if isinstance(phrase, Pair):
        return (
            f"{_noun_phrase(phrase.first, case)} und"
            f" {_noun_phrase(phrase.second, case)}"
        )
    owner, relative = "", _relative(phrase) if case == "nominative" else ""
    if isinstance(phrase.owner, Name):
        article, endings = phrase.owner.german[0] + "s", "strong"
    else:
        stem, article_endings, endings = lexicon.determiner(phrase.determiner).german
        article, owner = (
            stem + _ending(article_endings, phrase, case),
            _noun_phrase(phrase.owner, "genitive"),
        )
    adjective = (
        phrase.adjective.german[1] + _ending(endings, phrase, case)
        if phrase.adjective
        else ""
    )
    noun = phrase.noun.german[1 + _CASES.index(case) + 4 * phrase.plural]
    return joined(article, adjective, noun, owner, _place(phrase.place), relative)


def _ending(table: str, phrase: Nominal, case: str) -> str:
    """The ending for the gender, or the plural, and the case."""
    gender = _GENDERS.index("plural" if phrase.plural else phrase.noun.german[0])
    return lexicon.ENDINGS[table][gender][_CASES.index(case)]
