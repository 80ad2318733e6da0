"""Realises a clause in English, as a constituency tree in the Penn Treebank's brackets.

Every function returns trees as text, `(NP (DT the) (NN dog))`. Their leaves spell the
sentence.
"""

from __future__ import annotations

import re

from t2tlite.problems.grammar import lexicon
from t2tlite.problems.grammar.lexicon import (
    BE,
    DO,
    FUTURE,
    GAP,
    PAST,
    WANT,
    Conjugation,
    Name,
    Pronoun,
)
from t2tlite.problems.grammar.structure import (
    Clause,
    Nominal,
    Pair,
    Phrase,
    Place,
    joined,
)

SUBJECT, OBJECT = range(2)
_LEAF = re.compile(r" ([^() ]+)\)")
_SPELLINGS = {" .": ".", " ?": "?", " ,": ",", " 's": "'s", "can not ": "cannot "}


def spelled(tree: str) -> str:
    """The sentence that the leaves spell: `(S (NP (PRP He)) (VP (MD can) (RB not) ...`
    -> `He cannot ...`
    """
    text = " ".join(_LEAF.findall(tree))
    for split, whole in _SPELLINGS.items():
        text = text.replace(split, whole)
    return text


def sentence_tree(clause: Clause) -> str:
    """The tree of a sentence, its first word capitalised."""
    if clause.question:
        tree = _question(clause)
    elif clause.following:
        following = f"(S {_clause(clause.following)})"
        conjunction = clause.following.conjunction.english
        tree = f"(S (S {_clause(clause)}) (, ,) {conjunction} {following} (. .))"
    else:
        tree = f"(S {_clause(clause)} (. .))"
    return _LEAF.sub(lambda leaf: f" {leaf[1][0].upper()}{leaf[1][1:]})", tree, count=1)


def _question(clause: Clause) -> str:
    question = lexicon.QUESTIONS[clause.question].english
    if clause.question == "who":
        return f"(SBARQ {question} (SQ {_verb_phrase(clause, GAP.person)}) (. ?))"
    auxiliary, rest = _verb_parts(clause, clause.subject.person, inverted=True)
    inverted = joined(
        auxiliary, _noun_phrase(clause.subject, SUBJECT), clause.adverb.english, rest
    )
    if clause.question == "yes":
        return f"(SQ {inverted} (. ?))"
    if clause.question == "which":
        question = _noun_phrase(clause.object, OBJECT).replace("(NP", "(WHNP", 1)
    return f"(SBARQ {question} (SQ {inverted}) (. ?))"


def _clause(clause: Clause) -> str:
    """A statement, without the brackets around it."""
    front = f"{_adjunct(clause)} (, ,)" if clause.fronted else ""
    return joined(
        front,
        _noun_phrase(clause.subject, SUBJECT),
        _verb_phrase(clause, clause.subject.person),
    )


def _adjunct(clause: Clause) -> str:
    """The time or the subordinate clause, which stands first or last."""
    inner = clause.subordinate
    if inner is None:
        return clause.time.english
    return f"(SBAR {inner.conjunction.english} (S {_clause(inner)}))"


def _verb_phrase(clause: Clause, person: int) -> str:
    """The verb phrase of a statement, after the adverb if there is no auxiliary."""
    if clause.second:
        form = None if clause.tense == FUTURE else person
        first = _verb(clause, form)
        second = _verb(clause.second, form)
        verbs = f"(VP (VP {first}) (CC and) (VP {second}))"
        return verbs if form is not None else f"(VP (MD will) {verbs})"
    auxiliary, rest = _verb_parts(clause, person, inverted=False)
    words = joined(auxiliary, clause.adverb.english, rest)
    return f"(VP {words})" if auxiliary else words


def _verb_parts(clause: Clause, person: int, inverted: bool) -> tuple[str, str]:
    """The auxiliary that a question or "not" needs (does, can, will, is), and the words
    after it.
    """
    if clause.tense == FUTURE:
        return "(MD will)", f"(VP {_verb(clause)})"
    if clause.modal and clause.modal is not WANT:
        return f"(MD {clause.modal.english.infinitive})", f"(VP {_verb(clause)})"
    if clause.verb is BE:
        return _finite(BE.english, clause.tense, person), _complements(clause)
    if inverted or clause.negation == "not":
        return _finite(DO.english, clause.tense, person), f"(VP {_verb(clause)})"
    return "", f"(VP {_verb(clause, person)})"


def _verb(clause: Clause, person: int | None = None) -> str:
    """The verb and all that follows it; without a person in its base form."""
    verb = clause.verb.english
    complements = _complements(clause)
    if clause.modal is WANT:  # in English an ordinary verb with an infinitive
        infinitive = joined(f"(VB {verb.infinitive})", complements)
        complements = f"(S (VP (TO to) (VP {infinitive})))"
        verb = WANT.english
    if person is None:
        return joined(f"(VB {verb.infinitive})", complements)
    return joined(_finite(verb, clause.tense, person), complements)


def _finite(verb: Conjugation, tense: str, person: int) -> str:
    if tense == PAST:
        tag = "VBD"
    else:
        tag = "VBZ" if person == 1 else "VBP"
    return f"({tag} {verb.finite(tense, person)})"


def _complements(clause: Clause) -> str:
    """All that follows the verb, one tree after another."""
    recipient = None
    if clause.recipient:
        recipient = Place(lexicon.PREPOSITIONS["to"], clause.recipient)
    infinitive = ""
    if clause.infinitive:
        infinitive = f"(S (VP (TO to) (VP {_verb(clause.infinitive)})))"
    return joined(
        _object(clause),
        _place(recipient),
        _place(clause.goal),
        _place(clause.place),
        _predicate(clause),
        infinitive,
        "" if clause.fronted else _adjunct(clause),
    )


def _object(clause: Clause) -> str:
    """The object with the verb's particle or preposition."""
    verb = clause.verb.english
    phrase = "" if clause.question == "which" else _noun_phrase(clause.object, OBJECT)
    if verb.particle:
        particle = f"(PRT (RP {verb.particle}))"
        if verb.particle == "back":
            particle = "(ADVP (RB back))"
        before = isinstance(clause.object, Pronoun)  # brings THEM back
        return joined(phrase, particle) if before else joined(particle, phrase)
    if verb.preposition:
        tag = "TO" if verb.preposition == "to" else "IN"
        return f"(PP {joined(f'({tag} {verb.preposition})', phrase)})"
    return phrase


def _predicate(clause: Clause) -> str:
    """The adjective after "be", or nothing."""
    if not clause.adjective:
        return ""
    positive, comparative = clause.adjective.english
    adjective = joined(clause.degree.english, f"(JJ {positive})")
    if clause.than:
        than = f"(PP (IN than) {_noun_phrase(clause.than, OBJECT)})"
        if comparative == "more":
            adjective = f"(RBR more) {adjective} {than}"
        else:
            adjective = f"(JJR {comparative}) {than}"
    return f"(ADJP {adjective})"


def _place(place: Place | None) -> str:
    if place is None:
        return ""
    return place.preposition.english.format(_noun_phrase(place.phrase, OBJECT))


def _noun_phrase(phrase: Phrase | None, case: int) -> str:
    """A noun phrase as SUBJECT (I) or OBJECT (me), or nothing."""
    if phrase is None:
        return ""
    if isinstance(phrase, Name):
        tag = "PRP" if isinstance(phrase, Pronoun) else "NNP"
        return f"(NP ({tag} {phrase.english[case]}))"
    if isinstance(phrase, Pair):
        first = _noun_phrase(phrase.first, case)
        return f"(NP {first} (CC and) {_noun_phrase(phrase.second, case)})"
    adjective = f"(JJ {phrase.adjective.english[0]})" if phrase.adjective else ""
    tag = "NNS" if phrase.plural else "NN"
    noun = f"({tag} {phrase.noun.english[phrase.plural]})"
    tree = f"(NP {joined(_determiner(phrase), adjective, noun)})"
    if phrase.place:
        tree = f"(NP {tree} {_place(phrase.place)})"
    if phrase.relative:
        tree = f"(NP {tree} {_relative_clause(phrase, phrase.relative)})"
    return tree


def _relative_clause(phrase: Nominal, clause: Clause) -> str:
    """A clause about the noun: "who sleeps", "whom I see", "that I buy"."""
    asks_subject = clause.subject is GAP
    if asks_subject:
        pronoun = "(WP who)"
        words = _verb_phrase(clause, phrase.person)
    else:
        pronoun = "(WP whom)"
        words = _clause(clause)
    if "p" not in phrase.noun.label:
        pronoun = "(WDT that)"
    return f"(SBAR (WHNP {pronoun}) (S {words}))"


def _determiner(phrase: Nominal) -> str:
    if phrase.owner:
        return f"{_noun_phrase(phrase.owner, SUBJECT)[:-1]} (POS 's))"
    next_word = (phrase.adjective or phrase.noun).english[0]
    if phrase.determiner == "a" and next_word[0] in "aeiou":
        return "(DT an)"
    tag, *words = lexicon.determiner(phrase.determiner).english
    if not tag:
        return ""
    word = words[-1] if phrase.plural else words[0]
    return f"({tag} {word})"
