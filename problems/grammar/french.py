"""Realises a clause in French.

Words are first put in order in their full forms (je, que, le). At the end they lose
their vowel before another vowel. Articles lose it, and contract with "à" and "de",
already when the noun phrase is built.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence

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

SUBJECT, DIRECT, INDIRECT, STRESSED = range(4)
_FUTURE_ENDINGS = ("ai", "a", "ons", "ont")  # I, he, we, they
_CONTRACTIONS = {
    ("à", "le"): "au",
    ("à", "les"): "aux",
    ("de", "le"): "du",
    ("de", "les"): "des",
}
_VOWEL = "(?=[aeiouyhâàéèêëîïôœAEIOUÉ])"  # every h of the lexicon is mute
_ELISION = re.compile(rf"\b(je|ne|que|de|me|le|la) (?!huit\b|onze\b){_VOWEL}")


def sentence_text(clause: Clause) -> str:
    """The sentence, with capital and punctuation."""
    text = _clause(clause)
    if clause.following:
        text += f" {clause.following.conjunction.french} {_clause(clause.following)}"
    text = re.sub(r"\bsi (?=ils?\b)", "s'", _elided(text).replace(" ,", ","))
    return text[0].upper() + text[1:] + (" ?" if clause.question else ".")


def _elided(words: str) -> str:
    return _ELISION.sub(lambda match: match[1][:-1] + "'", words)


def _clause(clause: Clause) -> str:
    """A clause; French has one order of words for all of them."""
    front = f"{_adjunct(clause)} ," if clause.fronted else ""
    if clause.question:
        which = _object(clause) if clause.question == "which" else ""
        front = joined(which, lexicon.QUESTIONS[clause.question].french)
    return joined(
        front, _noun_phrase(clause.subject), _predication(clause, clause.subject)
    )


def _adjunct(clause: Clause) -> str:
    """The time or the subordinate clause, which stands first or last."""
    inner = clause.subordinate
    if inner is None:
        return clause.time.french
    return f"{inner.conjunction.french} {_clause(inner)}"


def _predication(
    clause: Clause, subject: Phrase, antecedent: Phrase | None = None
) -> str:
    """The verb, which agrees with the subject, and all that follows it. `antecedent` is
    the object of a relative clause.
    """
    verb = clause.verb.french
    person = subject.person
    clitic = _clitic(clause)
    rest = ""
    if clause.modal:
        finite = clause.modal.french.finite(PRESENT, person)
        rest = joined(clitic, verb.infinitive)
        clitic = ""
    elif clause.tense == FUTURE:
        finite = verb.future + _FUTURE_ENDINGS[person]
    elif clause.tense == PAST and not verb.past:
        auxiliary = BE if verb.perfect == "be" else HAVE
        finite = auxiliary.french.finite(PRESENT, person)
        rest = _participle(clause, subject, antecedent)
    else:
        finite = verb.finite(clause.tense, person)
    ne = "ne" if clause.negation else ""
    second = f"et {_predication(clause.second, subject)}" if clause.second else ""
    return joined(
        ne,
        clitic,
        finite,
        clause.adverb.french,
        rest,
        _complements(clause, subject),
        second,
    )


def _participle(clause: Clause, subject: Phrase, antecedent: Phrase | None) -> str:
    """The participle: after "be" it agrees with the subject, after "have" with a direct
    object that stands before it.
    """
    verb = clause.verb.french
    participle = verb.participle
    agrees_with = antecedent
    if verb.perfect == "be":
        agrees_with = subject
    elif verb.preposition:
        agrees_with = None
    elif clause.question == "which" or isinstance(clause.object, Pronoun):
        agrees_with = clause.object
    if agrees_with is None:
        return participle
    feminine = participle + "e"
    plural = participle.removesuffix("s") + "s"
    forms = (participle, participle, plural, feminine, feminine, participle + "es")
    return _agreeing(forms, agrees_with)


def _clitic(clause: Clause) -> str:
    """The object pronoun before the verb, or nothing."""
    if isinstance(clause.object, Pronoun):
        form = INDIRECT if clause.verb.french.preposition else DIRECT
        return clause.object.french[form]
    if isinstance(clause.recipient, Pronoun):
        return clause.recipient.french[INDIRECT]
    return ""


def _complements(clause: Clause, subject: Phrase) -> str:
    """All that follows the verb."""
    words = []
    if clause.question != "which" and not isinstance(clause.object, Pronoun):
        words.append(_object(clause))
    if not isinstance(clause.recipient, Pronoun):
        words.append(_after_preposition("à", clause.recipient))
    words += [_place(clause.goal), _place(clause.place)]
    if clause.adjective:
        words.append("plus" if clause.than else clause.degree.french)
        words.append(_agreeing(clause.adjective.french[1:], subject))
        words.append(_after_preposition("que", clause.than))
    if clause.infinitive:
        words.append(clause.verb.french.preposition)
        words.append(_clitic(clause.infinitive))
        words.append(clause.infinitive.verb.french.infinitive)
        words.append(_complements(clause.infinitive, subject))
    if not clause.fronted:
        words.append(_adjunct(clause))
    return joined(*words)


def _object(clause: Clause) -> str:
    phrase = clause.object
    if clause.negation and is_indefinite(phrase):
        phrase = dataclasses.replace(phrase, determiner="no")
    return _after_preposition(clause.verb.french.preposition, phrase)


def _place(place: Place | None) -> str:
    return _after_preposition(place.preposition.french, place.phrase) if place else ""


def _after_preposition(preposition: str, phrase: Phrase | None) -> str:
    """A noun phrase after its preposition, if any: au jardin, à côté des maisons, avec
    lui; or nothing.
    """
    if phrase is None:
        return ""
    before, _, last = preposition.rpartition(" ")
    article, _, rest = _noun_phrase(phrase, STRESSED).partition(" ")
    contraction = _CONTRACTIONS.get((last, article)) or joined(last, article)
    return joined(before, contraction, rest)


def _noun_phrase(phrase: Phrase, form: int = SUBJECT) -> str:
    """A noun phrase; a pronoun's form is SUBJECT or STRESSED here."""
    if isinstance(phrase, Name):
        return phrase.french[form]
    if isinstance(phrase, Pair):
        return f"{_noun_phrase(phrase.first)} et {_noun_phrase(phrase.second)}"
    determiner = phrase.determiner
    words = phrase.noun.french[2 if phrase.plural else 1]
    if phrase.adjective:
        position, *forms = phrase.adjective.french
        if position == "before":
            words = f"{_agreeing(forms, phrase, words)} {words}"
            if phrase.plural and determiner in INDEFINITE:
                determiner = "no"  # de belles pommes
        else:
            words = f"{words} {_agreeing(forms, phrase)}"
    article = _agreeing(lexicon.determiner(determiner).french, phrase, words)
    owner = _after_preposition("de", phrase.owner)
    return joined(
        _elided(f"{article} {words}"), owner, _place(phrase.place), _relative(phrase)
    )


def _relative(phrase: Nominal) -> str:
    clause = phrase.relative
    if clause is None:
        return ""
    if clause.subject is GAP:
        return f"qui {_predication(clause, phrase)}"
    pronoun = "à qui" if clause.verb.french.preposition else "que"
    predication = _predication(clause, clause.subject, antecedent=phrase)
    return f"{pronoun} {_noun_phrase(clause.subject)} {predication}"


def _agreeing(forms: Sequence[str], phrase: Phrase, next_words: str = "") -> str:
    """Returns the form that agrees with the phrase, out of six: masculine singular,
    before a vowel, plural; feminine likewise.
    """
    if phrase.plural:
        number = 2
    else:
        number = 1 if re.match(_VOWEL, next_words) else 0
    return forms[number + 3 * phrase.feminine]
