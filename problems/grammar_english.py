"""Says a sentence of the embedded grammar in English, as a constituency tree in the Penn Treebank's brackets.

Every function returns trees as text, `(NP (DT the) (NN dog))`; the sentence is what their leaves spell.
"""

from __future__ import annotations

import re

from t2tlite.problems.grammar_structure import Clause, Name, Nominal, Pair, Phrase, Pronoun, Sentence, Subordinate
from t2tlite.problems.grammar_verbs import BE
from t2tlite.problems.grammar_words import FUTURE, PAST, PRESENT

_LEAF = re.compile(r" ([^() ]+)\)")

_SUBJECTS = ("I", "he", "she", "we", "they")
_OBJECTS = ("me", "him", "her", "us", "them")

_UNIT_WORDS = """
zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen
sixteen seventeen eighteen nineteen
"""
_UNITS = _UNIT_WORDS.split()
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")

_QUESTION_WORDS = {"where": "(WHADVP (WRB Where))", "why": "(WHADVP (WRB Why))", "when": "(WHADVP (WRB When))"}


def leaves(tree: str) -> list[str]:
    """The words of a tree: `(NP (DT the) (NN dog))` -> `["the", "dog"]`."""
    return _LEAF.findall(tree)


def detokenize(words: list[str]) -> str:
    """The sentence that the words of a tree spell: `["He", "can", "not", "sing", "."]` -> `He cannot sing.`"""
    text = " ".join(words)
    for split, joined in ((" .", "."), (" ?", "?"), (" ,", ","), (" 's", "'s"), ("can not ", "cannot ")):
        text = text.replace(split, joined)
    return text


def number_words(number: int) -> str:
    """The number as it is written in a sentence: 23 -> twenty-three; digits from 100."""
    if number >= 100:
        return str(number)
    if number < 20:
        return _UNITS[number]
    tens, unit = divmod(number, 10)
    return _TENS[tens - 2] + (f"-{_UNITS[unit]}" if unit else "")


def sentence_tree(sentence: Sentence) -> str:
    """The tree of a sentence, its first word capitalised."""
    first = sentence.first
    if first.question:
        tree = _question(first)
    elif sentence.second is None:
        tree = f"(S {_clause_parts(first)} (. .))"
    else:
        tree = (
            f"(S (S {_clause_parts(first)}) (, ,) (CC {sentence.conjunction}) "
            f"(S {_clause_parts(sentence.second)}) (. .))"
        )
    match = _LEAF.search(tree)
    start = match.start(1) if match else 0
    return tree[:start] + tree[start].upper() + tree[start + 1 :]


def _clause_parts(clause: Clause) -> str:
    front = ""
    if clause.time and clause.time_fronted:
        front = f"{clause.time.english} (, ,) "
    elif clause.subordinate and clause.subordinate.fronted:
        front = f"{_subordinate(clause.subordinate)} (, ,) "
    subject = clause.subject
    if subject is None:
        return front + _verb_phrase(clause, 1)
    return f"{front}{noun_phrase(subject)} {_verb_phrase(clause, subject.person)}"


def _subordinate(subordinate: Subordinate) -> str:
    return f"(SBAR {subordinate.conjunction.english} (S {_clause_parts(subordinate.clause)}))"


def _verb_phrase(clause: Clause, person: int) -> str:
    """The adverb before the verb and the verb phrase of a statement; I, he, we, they are persons 0 to 3."""
    if clause.second:
        first, second = clause, clause.second
        if clause.tense == FUTURE:
            verbs = f"(VP {_base(first)}) (CC and) (VP {_base(second)})"
            return f"(VP (MD will) (VP {verbs}))"
        return f"(VP (VP {_finite(first, person)}) (CC and) (VP {_finite(second, person)}))"
    adverb = _adverb(clause)
    auxiliary = _auxiliary(clause, person)
    if clause.verb is BE and clause.tense != FUTURE:
        negation = "(RB not) " if clause.negation == "not" else ""
        return f"(VP {auxiliary} {negation}{_complements(clause)})"
    if clause.negation == "not":
        return f"(VP {auxiliary} (RB not) {_infinitive(clause)})"
    if auxiliary.startswith("(MD"):
        return f"(VP {auxiliary} {adverb}{_infinitive(clause)})"
    if clause.modal:
        want = "(VBZ wants)" if person == 1 else "(VBP want)"
        return f"{adverb}(VP {want} (S (VP (TO to) (VP {_base(clause)}))))"
    return f"{adverb}(VP {_finite(clause, person)})"


def _question(clause: Clause) -> str:
    kind = clause.question
    if kind == "who":
        return f"(SBARQ (WHNP (WP Who)) (SQ {_verb_phrase(clause, 1)}) (. ?))"
    subject = clause.subject
    if subject is None:
        raise ValueError(f"A question needs a subject, unless it asks who. Received: {kind!r} without one.")
    rest = _complements(clause) if clause.verb is BE and clause.tense != FUTURE else _infinitive(clause)
    inverted = f"{_auxiliary(clause, subject.person)} {noun_phrase(subject)} {_adverb(clause)}{rest}"
    if kind == "yes":
        return f"(SQ {inverted} (. ?))"
    if kind == "what":
        word = "(WHNP (WP What))"
    elif kind == "which" and clause.object:
        word = "(WHNP" + noun_phrase(clause.object)[3:]
    else:
        word = _QUESTION_WORDS[kind]
    return f"(SBARQ {word} (SQ {inverted}) (. ?))"


def _auxiliary(clause: Clause, person: int) -> str:
    """What a question begins with and "not" follows: does, can, will, is."""
    if clause.tense == FUTURE:
        return "(MD will)"
    if clause.modal and clause.modal.english != "want":
        return f"(MD {clause.modal.english})"
    if clause.verb is BE:
        return f"({_tag(clause, person)} {_form(clause, person)})"
    if clause.tense == PAST:
        return "(VBD did)"
    return "(VBZ does)" if person == 1 else "(VBP do)"


def _adverb(clause: Clause) -> str:
    if clause.negation == "never":
        return "(ADVP (RB never)) "
    return f"{clause.frequency.english} " if clause.frequency else ""


def _infinitive(clause: Clause) -> str:
    if clause.modal and clause.modal.english == "want":
        return f"(VP (VB want) (S (VP (TO to) (VP {_base(clause)}))))"
    return f"(VP {_base(clause)})"


def _base(clause: Clause) -> str:
    return f"(VB {clause.verb.english}){_after_verb(clause)}"


def _finite(clause: Clause, person: int) -> str:
    return f"({_tag(clause, person)} {_form(clause, person)}){_after_verb(clause)}"


def _tag(clause: Clause, person: int) -> str:
    return "VBD" if clause.tense == PAST else "VBZ" if person == 1 else "VBP"


def _form(clause: Clause, person: int) -> str:
    if clause.tense == PRESENT:
        return clause.verb.english_present[person]
    if clause.verb is BE and person > 1:
        return "were"
    return clause.verb.english_past


def _after_verb(clause: Clause) -> str:
    complements = _complements(clause)
    return f" {complements}" if complements else ""


def _complements(clause: Clause) -> str:
    """All that follows the verb, a tree after another."""
    verb = clause.verb
    parts = []
    asked = clause.question in ("what", "which")
    if verb.english_particle:
        before = isinstance(clause.object, Pronoun)  # brings THEM back
        if not before:
            parts.append(_particle(verb.english_particle))
        if clause.object and not asked:
            parts.append(noun_phrase(clause.object, objective=True))
        if before:
            parts.append(_particle(verb.english_particle))
    elif verb.english_preposition:
        tag = "TO" if verb.english_preposition == "to" else "IN"
        phrase = f" {noun_phrase(clause.object, objective=True)}" if clause.object and not asked else ""
        parts.append(f"(PP ({tag} {verb.english_preposition}){phrase})")
    elif clause.object and not asked:
        parts.append(noun_phrase(clause.object, objective=True))
    if clause.recipient:
        parts.append(f"(PP (TO to) {noun_phrase(clause.recipient, objective=True)})")
    if clause.predicate:
        parts.append(_predicate(clause))
    for place in (clause.goal, clause.place):
        if place:
            parts.append(place.preposition.english.format(noun_phrase(place.phrase, objective=True)))
    if clause.time and not clause.time_fronted:
        parts.append(clause.time.english)
    if clause.infinitive:
        parts.append(f"(S (VP (TO to) (VP {_base(clause.infinitive[0])})))")
    if clause.subordinate and not clause.subordinate.fronted:
        parts.append(_subordinate(clause.subordinate))
    return " ".join(parts)


def _particle(particle: str) -> str:
    return f"(ADVP (RB {particle}))" if particle == "back" else f"(PRT (RP {particle}))"


def _predicate(clause: Clause) -> str:
    predicate = clause.predicate
    if predicate is None:
        return ""
    adjective = predicate.adjective
    if predicate.than is None:
        degree = f"(RB {predicate.degree}) " if predicate.degree else ""
        return f"(ADJP {degree}(JJ {adjective.english}))"
    if adjective.english_comparative == "more":
        compared = f"(RBR more) (JJ {adjective.english})"
    else:
        compared = f"(JJR {adjective.english_comparative})"
    return f"(ADJP {compared} (PP (IN than) {noun_phrase(predicate.than, objective=True)}))"


def noun_phrase(phrase: Phrase, objective: bool = False) -> str:
    """The tree of a noun phrase; `objective` chooses between I and me."""
    if isinstance(phrase, Name):
        return f"(NP (NNP {phrase.english}))"
    if isinstance(phrase, Pronoun):
        return f"(NP (PRP {(_OBJECTS if objective else _SUBJECTS)[phrase.index]}))"
    if isinstance(phrase, Pair):
        return f"(NP {noun_phrase(phrase.first, objective)} (CC and) {noun_phrase(phrase.second, objective)})"
    tree = f"(NP {_nominal_words(phrase)})"
    if phrase.place:
        place = phrase.place.preposition.english.format(noun_phrase(phrase.place.phrase, objective=True))
        tree = f"(NP {tree} {place})"
    if phrase.relative:
        person = "p" in phrase.noun.kinds
        clause = phrase.relative.clause
        if not phrase.relative.object_gap:
            body = f"(S {_verb_phrase(clause, phrase.person)})"
            word = "(WP who)" if person else "(WDT that)"
        else:
            body = f"(S {_clause_parts(clause)})"
            word = "(WP whom)" if person else "(WDT that)"
        tree = f"(NP {tree} (SBAR (WHNP {word}) {body}))"
    return tree


def _nominal_words(phrase: Nominal) -> str:
    plural = phrase.plural
    adjective = f"(JJ {phrase.adjective.english}) " if phrase.adjective else ""
    noun = phrase.noun.english[plural]
    words = f"{adjective}({'NNS' if plural else 'NN'} {noun})"
    determiner = phrase.determiner
    if determiner == "the":
        return f"(DT the) {words}"
    if determiner == "a":
        first = phrase.adjective.english if phrase.adjective else noun
        return f"(DT {'an' if first[0] in 'aeiou' else 'a'}) {words}"
    if determiner == "":
        return words
    if determiner == "number":
        return f"(CD {number_words(phrase.number)}) {words}"
    if determiner == "owner" and phrase.owner:
        return f"{noun_phrase(phrase.owner)[:-1]} (POS 's)) {words}"
    if determiner == "this":
        return f"(DT {'these' if plural else 'this'}) {words}"
    if determiner in ("every", "many"):
        return f"({'DT' if determiner == 'every' else 'JJ'} {determiner}) {words}"
    if determiner == "which":
        return f"(WDT which) {words}"
    return f"(PRP$ {determiner}) {words}"
