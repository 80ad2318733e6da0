"""Says a sentence of the embedded grammar in German.

A clause is built in fields: what stands before the finite verb, the finite verb, the middle, the rest of the verb
(particle, participle, infinitive), and what follows it (clauses). In a subordinate clause the finite verb goes last.
"""

from __future__ import annotations

from t2tlite.problems.grammar_structure import (
    Clause,
    Name,
    Nominal,
    Pair,
    Phrase,
    Place,
    Predicate,
    Pronoun,
    Sentence,
    Subordinate,
)
from t2tlite.problems.grammar_words import DATIVE, FUTURE, GENITIVE, NOMINATIVE, PAST

# By gender (masculine, feminine, neuter, plural), then case (nominative, accusative, dative, genitive).
_THE = (
    ("der", "den", "dem", "des"),
    ("die", "die", "der", "der"),
    ("das", "das", "dem", "des"),
    ("die", "die", "den", "der"),
)
_THIS = (("er", "en", "em", "es"), ("e", "e", "er", "er"), ("es", "es", "em", "es"), ("e", "e", "en", "er"))
_A = (("", "en", "em", "es"), ("e", "e", "er", "er"), ("", "", "em", "es"), ("e", "e", "en", "er"))
# Endings of an adjective after the, after a, and where no article shows the case.
_WEAK = (("e", "en", "en", "en"), ("e", "e", "en", "en"), ("e", "e", "en", "en"), ("en", "en", "en", "en"))
_MIXED = (("er", "en", "en", "en"), ("e", "e", "en", "en"), ("es", "es", "en", "en"), ("en", "en", "en", "en"))
_STRONG = (("er", "en", "em", "en"), ("e", "e", "er", "er"), ("es", "es", "em", "en"), ("e", "e", "en", "er"))

_LIKE_THIS = {"this": "dies", "every": "jed", "which": "welch"}
_LIKE_A = {"a": "ein", "no": "kein", "my": "mein", "his": "sein", "her": "ihr", "our": "unser", "their": "ihr"}

# I, he, she, we, they
_PRONOUNS = (("ich", "mich", "mir"), ("er", "ihn", "ihm"), ("sie", "sie", "ihr"), ("wir", "uns", "uns"),
             ("sie", "sie", "ihnen"))  # fmt: skip

# I, he, we, they
_HAVE = ("habe", "hat", "haben", "haben")
_BE = ("bin", "ist", "sind", "sind")
_WILL = ("werde", "wird", "werden", "werden")

_CONTRACTIONS = {("in", "dem"): "im", ("in", "das"): "ins", ("zu", "dem"): "zum", ("zu", "der"): "zur"}
_NEGATIONS = {"not": "nicht", "never": "nie", "": ""}
_QUESTION_WORDS = {"where": "wo", "why": "warum", "when": "wann", "who": "wer", "what": "was"}

_UNIT_WORDS = """
null eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn
sechzehn siebzehn achtzehn neunzehn
"""
_UNITS = _UNIT_WORDS.split()
_TENS = ("zwanzig", "dreißig", "vierzig", "fünfzig", "sechzig", "siebzig", "achtzig", "neunzig")


def number_words(number: int) -> str:
    """The number as it is written in a sentence: 23 -> dreiundzwanzig; digits from 100."""
    if number >= 100:
        return str(number)
    if number < 20:
        return _UNITS[number]
    tens, unit = divmod(number, 10)
    if unit == 0:
        return _TENS[tens - 2]
    return ("ein" if unit == 1 else _UNITS[unit]) + "und" + _TENS[tens - 2]


def sentence_text(sentence: Sentence) -> str:
    """The sentence, with capital and punctuation."""
    text = _main(sentence.first)
    if sentence.second:
        text += " und " if sentence.conjunction == "and" else ", aber "
        text += _main(sentence.second)
    text += "?" if sentence.first.question else "."
    for extra, kept in ((" ,", ","), (",,", ","), (",.", "."), (",?", "?")):
        text = text.replace(extra, kept)
    return text[0].upper() + text[1:]


def _main(clause: Clause) -> str:
    """A clause with the finite verb second, or first in a question of yes or no."""
    subject = noun_phrase(clause.subject, NOMINATIVE) if clause.subject else ""
    person = clause.subject.person if clause.subject else 1
    finite, rest = _verb(clause, person, final=False)
    if clause.question:
        words = [] if clause.question == "yes" else [_asked(clause)]
        words += [finite, subject]
    elif clause.time and clause.time_fronted:
        words = [clause.time.german, finite, subject]
    elif clause.subordinate and clause.subordinate.fronted:
        words = [_subordinate(clause.subordinate), ",", finite, subject]
    else:
        words = [subject, finite]
    words += _middle(clause)
    words.append(rest)
    if clause.second:
        second_finite, second_rest = _verb(clause.second, person, final=False)
        words.append("und")
        if not (clause.tense in (PAST, FUTURE) and finite == second_finite):  # else said once for both
            words.append(second_finite)
        words += _middle(clause.second)
        words.append(second_rest)
    words += _after(clause)
    return " ".join(filter(None, words))


def _final(clause: Clause, subject: str, person: int) -> str:
    """A clause with the finite verb at the end."""
    finite, rest = _verb(clause, person, final=True)
    return " ".join(filter(None, [subject, *_middle(clause), rest, finite, *_after(clause)]))


def _subordinate(subordinate: Subordinate) -> str:
    clause = subordinate.clause
    subject, person = (noun_phrase(clause.subject, NOMINATIVE), clause.subject.person) if clause.subject else ("", 1)
    return f"{subordinate.conjunction.german} {_final(clause, subject, person)}"


def _relative(phrase: Nominal) -> str:
    """The relative clause of a noun with the commas around it, or nothing."""
    relative = phrase.relative
    if relative is None:
        return ""
    clause = relative.clause
    case = clause.verb.german_case if relative.object_gap else NOMINATIVE
    gender = 3 if phrase.plural else phrase.noun.german_gender
    pronoun = "denen" if case == DATIVE and phrase.plural else _THE[gender][case]
    if not relative.object_gap or clause.subject is None:
        return f", {_final(clause, pronoun, phrase.person)},"
    opening = f"{clause.verb.german_preposition} {pronoun}".strip()
    return f", {opening} {_final(clause, noun_phrase(clause.subject, NOMINATIVE), clause.subject.person)},"


def _asked(clause: Clause) -> str:
    """What a question asks for."""
    if clause.question == "which" and clause.object:
        return f"{clause.verb.german_preposition} {noun_phrase(clause.object, clause.verb.german_case)}".strip()
    return _QUESTION_WORDS[clause.question]


def _verb(clause: Clause, person: int, final: bool) -> tuple[str, str]:
    """The finite verb, and the rest of the verb, which stands at the end of the clause."""
    verb = clause.verb
    infinitive = verb.german_particle + verb.german
    if clause.modal:
        return clause.modal.german_present[person], infinitive
    if clause.tense == FUTURE:
        return _WILL[person], infinitive
    if clause.tense == PAST:
        if verb.german_past:
            return verb.german_past[person], ""
        return (_BE if verb.german_sein else _HAVE)[person], verb.german_participle
    finite = verb.german_present[person]
    return (verb.german_particle + finite, "") if final else (finite, verb.german_particle)


def _middle(clause: Clause) -> list[str]:
    """Objects, adverbials and negation, in their order."""
    verb = clause.verb
    direct = clause.object if clause.question != "which" and not verb.german_preposition else None
    recipient = clause.recipient
    words = []
    if isinstance(direct, Pronoun):
        words.append(noun_phrase(direct, verb.german_case))
    if isinstance(recipient, Pronoun):
        words.append(noun_phrase(recipient, DATIVE))
    if clause.time and not clause.time_fronted:
        words.append(clause.time.german)
    if recipient and not isinstance(recipient, Pronoun):
        words.append(noun_phrase(recipient, DATIVE))
    adverb = clause.frequency.german if clause.frequency else _NEGATIONS[clause.negation]
    if direct and not isinstance(direct, Pronoun):
        no = clause.negation == "not" and isinstance(direct, Nominal) and direct.indefinite
        said = noun_phrase(direct, verb.german_case, negated=no, extraposed=True)
        if no:
            words.append(said)
        else:
            new = isinstance(direct, Nominal) and direct.determiner in ("a", "", "number", "many", "every")
            words += [adverb, said] if new else [said, adverb]  # nie ein Buch, das Buch nie
    else:
        words.append(adverb)
    if clause.place:
        words.append(_place(clause.place))
    if clause.goal:
        words.append(_place(clause.goal))
    if verb.german_preposition and clause.object and clause.question != "which":
        words.append(f"{verb.german_preposition} {noun_phrase(clause.object, verb.german_case, extraposed=True)}")
    if clause.predicate:
        words.append(_predicate(clause.predicate))
    return words


def _after(clause: Clause) -> list[str]:
    """What follows the end of the verb: relative clauses of an object, infinitives, subordinate clauses."""
    words = []
    if isinstance(clause.object, Nominal):
        words.append(_relative(clause.object))
    if clause.infinitive:
        inner = clause.infinitive[0]
        particle, infinitive = inner.verb.german_particle, inner.verb.german
        middle = [word for word in _middle(inner) if word]
        if middle:
            words.append(",")
        words += [*middle, f"{particle}zu{infinitive}" if particle else f"zu {infinitive}"]
    if clause.subordinate and not clause.subordinate.fronted:
        words += [",", _subordinate(clause.subordinate)]
    return words


def _predicate(predicate: Predicate) -> str:
    adjective = predicate.adjective
    if predicate.than:
        return f"{adjective.german_comparative} als {noun_phrase(predicate.than, NOMINATIVE)}"
    degree = {"very": "sehr ", "too": "zu ", "": ""}[predicate.degree]
    return degree + adjective.german


def _place(place: Place) -> str:
    preposition, phrase = place.preposition.german, place.phrase
    words = noun_phrase(phrase, place.preposition.german_case)
    if isinstance(phrase, Nominal) and phrase.determiner in ("the", "owner"):
        article, _, rest = words.partition(" ")
        contraction = _CONTRACTIONS.get((preposition, article))
        if contraction:
            return f"{contraction} {rest}"
    return f"{preposition} {words}"


def noun_phrase(phrase: Phrase, case: int, negated: bool = False, extraposed: bool = False) -> str:
    """A noun phrase in a case.

    Args:
        phrase: what to say.
        case: NOMINATIVE, ACCUSATIVE, DATIVE or GENITIVE.
        negated: whether "not" makes its article "kein".
        extraposed: whether its relative clause is left out, for it stands at the end of the clause around it.
    """
    if isinstance(phrase, Name):
        return phrase.german
    if isinstance(phrase, Pronoun):
        return _PRONOUNS[phrase.index][case]
    if isinstance(phrase, Pair):
        return f"{noun_phrase(phrase.first, case)} und {noun_phrase(phrase.second, case)}"
    words = _nominal(phrase, case, "no" if negated else phrase.determiner)
    if phrase.place:
        words += " " + _place(phrase.place)
    return words if extraposed else words + _relative(phrase)


def _nominal(phrase: Nominal, case: int, determiner: str) -> str:
    gender = 3 if phrase.plural else phrase.noun.german_gender
    noun = phrase.noun.german[phrase.plural][case]
    after = ""
    if determiner in _LIKE_A:
        article, endings = _LIKE_A[determiner] + _A[gender][case] + " ", _MIXED
    elif determiner in _LIKE_THIS:
        article, endings = _LIKE_THIS[determiner] + _THIS[gender][case] + " ", _WEAK
    elif determiner == "number":
        article, endings = number_words(phrase.number) + " ", _STRONG
    elif determiner == "many":
        article, endings = "viel" + _STRONG[3][case] + " ", _STRONG
    elif isinstance(phrase.owner, Name):
        article, endings = phrase.owner.german + "s ", _STRONG
    elif determiner == "":
        article, endings = "", _STRONG
    else:
        article, endings = _THE[gender][case] + " ", _WEAK
        if phrase.owner:
            after = " " + noun_phrase(phrase.owner, GENITIVE)
    adjective = phrase.adjective.german_stem + endings[gender][case] + " " if phrase.adjective else ""
    return f"{article}{adjective}{noun}{after}"
