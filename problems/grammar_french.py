"""Says a sentence of the embedded grammar in French.

Words are put in order with full forms (je, que, le), which lose their vowel before another one at the end; articles
do so, and contract with "à" and "de", as soon as the noun phrase is built.
"""

from __future__ import annotations

import re

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
from t2tlite.problems.grammar_verbs import BE
from t2tlite.problems.grammar_words import FRENCH_VOWELS, FUTURE, PAST

# No elision before "huit" and "onze".
_ELISION = re.compile(r"\b(je|ne|que|de|me|le|la) (?=(?!huit\b|onze\b)[aeiouyhâàéèêëîïôœAEIOUÉ])")
_IF_ELISION = re.compile(r"\bsi (?=ils?\b)")

# I, he, she, we, they
_SUBJECTS = ("je", "il", "elle", "nous", "ils")
_DIRECT = ("me", "le", "la", "nous", "les")
_INDIRECT = ("me", "lui", "lui", "nous", "leur")
_STRESSED = ("moi", "lui", "elle", "nous", "eux")

# I, he, we, they
_HAVE = ("ai", "a", "avons", "ont")
_FUTURE_ENDINGS = ("ai", "a", "ons", "ont")

# masculine, feminine, plural
_POSSESSIVES = {
    "my": ("mon", "ma", "mes"),
    "his": ("son", "sa", "ses"),
    "her": ("son", "sa", "ses"),
    "our": ("notre", "notre", "nos"),
    "their": ("leur", "leur", "leurs"),
}
_QUESTION_WORDS = {"yes": "est-ce que", "where": "où est-ce que", "why": "pourquoi est-ce que",
                   "when": "quand est-ce que", "what": "qu'est-ce que"}  # fmt: skip

_UNIT_WORDS = """
zéro un deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize
dix-sept dix-huit dix-neuf
"""
_UNITS = _UNIT_WORDS.split()
_TENS = ("vingt", "trente", "quarante", "cinquante", "soixante")


def number_words(number: int, feminine: bool = False) -> str:
    """The number as it is written in a sentence: 21 -> vingt et un (une); digits from 100."""
    if number >= 100:
        return str(number)
    if number < 20:
        return _UNITS[number]
    if number < 70:
        tens, unit = divmod(number, 10)
        words = _TENS[tens - 2]
    else:
        tens, unit = divmod(number, 20)
        words = "soixante" if tens == 3 else "quatre-vingt"
    if unit == 0:
        return words + ("s" if number == 80 else "")
    one = "une" if feminine and unit == 1 else _UNITS[unit]
    return f"{words} et {one}" if unit in (1, 11) and number < 80 else f"{words}-{one}"


def agree(word: str, feminine: bool, plural: bool) -> str:
    """A participle with the endings of gender and number: arrivé, arrivée, arrivés, arrivées."""
    if feminine:
        return word + ("es" if plural else "e")
    return word + "s" if plural and word[-1] not in "sx" else word


def sentence_text(sentence: Sentence) -> str:
    """The sentence, with capital and punctuation."""
    text = _clause(sentence.first)
    if sentence.second:
        text += f"{' et' if sentence.conjunction == 'and' else ', mais'} {_clause(sentence.second)}"
    text = _ELISION.sub(lambda match: match[1][:-1] + "'", text)
    text = _IF_ELISION.sub("s'", text)
    text += " ?" if sentence.first.question else "."
    return text[0].upper() + text[1:]


def _clause(clause: Clause) -> str:
    """A clause; French has one order of words for all of them."""
    subject = clause.subject
    if clause.question == "who":
        return f"qui {_predication(clause, 1, False, False)}"
    if subject is None:
        raise ValueError("A clause must have a subject, unless it asks who. Received: none.")
    words = f"{noun_phrase(subject)} {_predication(clause, subject.person, subject.feminine, subject.plural)}"
    if clause.question == "which" and isinstance(clause.object, Nominal):
        asked = noun_phrase(clause.object)
        return f"{'à ' if clause.verb.french_indirect else ''}{asked} est-ce que {words}"
    if clause.question:
        return f"{_QUESTION_WORDS[clause.question]} {words}"
    if clause.time and clause.time_fronted:
        return f"{clause.time.french}, {words}"
    if clause.subordinate and clause.subordinate.fronted:
        return f"{_subordinate(clause.subordinate)}, {words}"
    return words


def _subordinate(subordinate: Subordinate) -> str:
    return f"{subordinate.conjunction.french} {_clause(subordinate.clause)}"


def _predication(clause: Clause, person: int, feminine: bool, plural: bool, antecedent: Nominal | None = None) -> str:
    """The verb and all that follows it.

    Args:
        clause: the clause.
        person: 0 to 3, as I, he, we, they.
        feminine: gender of the subject, with which "be" agrees.
        plural: its number.
        antecedent: what a relative clause's missing object stands for; a participle after "have" agrees with it.
    """
    verb = clause.verb
    clitic = _clitic(clause)
    words = ["ne"] if clause.negation else []
    rest = ""
    if clause.modal:
        finite, rest = clause.modal.french_present[person], f"{clitic}{verb.french}"
        clitic = ""
    elif clause.tense == FUTURE:
        finite = verb.french_future + _FUTURE_ENDINGS[person]
    elif clause.tense == PAST and not verb.french_past:
        if verb.french_etre:
            finite, rest = BE.french_present[person], agree(verb.french_participle, feminine, plural)
        else:
            finite, rest = _HAVE[person], verb.french_participle
            before = _object_before(clause, antecedent)
            if before:
                rest = agree(rest, before.feminine, before.plural)
    else:
        finite = (verb.french_past if clause.tense == PAST else verb.french_present)[person]
    words.append(clitic + finite)
    if clause.negation:
        words.append("pas" if clause.negation == "not" else "jamais")
    if clause.frequency:
        words.append(clause.frequency.french)
    if rest:
        words.append(rest)
    words += _complements(clause, feminine, plural)
    if clause.second:
        words += ["et", _predication(clause.second, person, feminine, plural)]
    return " ".join(words)


def _object_before(clause: Clause, antecedent: Nominal | None) -> Phrase | None:
    """The direct object that stands before the verb, if there is one."""
    if clause.verb.french_indirect:
        return None
    if antecedent:
        return antecedent
    if clause.question == "which" or isinstance(clause.object, Pronoun):
        return clause.object
    return None


def _clitic(clause: Clause) -> str:
    """The object pronoun before the verb, with a space after it, or nothing."""
    if isinstance(clause.object, Pronoun):
        return (_INDIRECT if clause.verb.french_indirect else _DIRECT)[clause.object.index] + " "
    if isinstance(clause.recipient, Pronoun):
        return _INDIRECT[clause.recipient.index] + " "
    return ""


def _complements(clause: Clause, feminine: bool, plural: bool) -> list[str]:
    words = []
    if clause.object and not isinstance(clause.object, Pronoun) and clause.question != "which":
        if clause.verb.french_indirect:
            words.append(after_preposition("à", clause.object))
        else:
            words.append(noun_phrase(clause.object, negated=bool(clause.negation)))
    if clause.recipient and not isinstance(clause.recipient, Pronoun):
        words.append(after_preposition("à", clause.recipient))
    if clause.predicate:
        words.append(_predicate(clause.predicate, feminine, plural))
    words += [_place(place) for place in (clause.goal, clause.place) if place]
    if clause.time and not clause.time_fronted:
        words.append(clause.time.french)
    if clause.infinitive:
        inner, preposition = clause.infinitive
        words += [preposition, _clitic(inner) + inner.verb.french, *_complements(inner, feminine, plural)]
    if clause.subordinate and not clause.subordinate.fronted:
        words.append(_subordinate(clause.subordinate))
    return words


def _predicate(predicate: Predicate, feminine: bool, plural: bool) -> str:
    adjective = predicate.adjective.french[feminine][plural]
    if predicate.than:
        return f"plus {adjective} que {noun_phrase(predicate.than)}"
    return {"very": "très ", "too": "trop ", "": ""}[predicate.degree] + adjective


def _place(place: Place) -> str:
    return after_preposition(place.preposition.french, place.phrase)


def after_preposition(preposition: str, phrase: Phrase) -> str:
    """A preposition and its noun phrase: au jardin, des maisons, d'Anna, avec lui."""
    if isinstance(phrase, Pronoun):
        return f"{preposition} {_STRESSED[phrase.index]}"
    words = noun_phrase(phrase)
    article, _, rest = words.partition(" ")
    if article in ("le", "les"):
        if preposition == "à":
            return f"{'au' if article == 'le' else 'aux'} {rest}"
        if preposition.endswith("de"):
            return f"{preposition[:-2]}{'du' if article == 'le' else 'des'} {rest}"
    return f"{preposition} {words}"


def noun_phrase(phrase: Phrase, negated: bool = False) -> str:
    """A noun phrase; `negated` makes an indefinite article "de"."""
    if isinstance(phrase, Name):
        return phrase.french
    if isinstance(phrase, Pronoun):
        return _SUBJECTS[phrase.index]
    if isinstance(phrase, Pair):
        return f"{noun_phrase(phrase.first)} et {noun_phrase(phrase.second)}"
    words = _with_article(phrase, _words(phrase), negated)
    if phrase.owner:
        words += " " + after_preposition("de", phrase.owner)
    if phrase.place:
        words += " " + _place(phrase.place)
    return words + _relative(phrase)


def _relative(phrase: Nominal) -> str:
    relative = phrase.relative
    if relative is None:
        return ""
    clause = relative.clause
    if not relative.object_gap or clause.subject is None:
        return f" qui {_predication(clause, phrase.person, phrase.feminine, phrase.plural)}"
    subject = clause.subject
    predication = _predication(clause, subject.person, subject.feminine, subject.plural, antecedent=phrase)
    return f" {'à qui' if clause.verb.french_indirect else 'que'} {noun_phrase(subject)} {predication}"


def _words(phrase: Nominal) -> str:
    """Noun and adjective in their order."""
    noun, adjective, plural = phrase.noun, phrase.adjective, phrase.plural
    word = noun.french[plural]
    if adjective is None:
        return word
    form = adjective.french[noun.french_feminine][plural]
    if not adjective.french_before:
        return f"{word} {form}"
    if not plural and not noun.french_feminine and word.startswith(FRENCH_VOWELS):
        form = adjective.french_liaison
    return f"{form} {word}"


def _with_article(phrase: Nominal, words: str, negated: bool) -> str:
    feminine, plural = phrase.noun.french_feminine, phrase.plural
    vowel = words.startswith(FRENCH_VOWELS)
    determiner = phrase.determiner
    if determiner in ("the", "owner") or (determiner == "" and not plural and not negated):
        article = "les " if plural else "l'" if vowel else "la " if feminine else "le "
        if determiner:
            return article + words
        return ("du " if article == "le " else "de " + article) + words  # partitive: du pain, de l'eau
    if determiner in ("a", ""):
        before = phrase.adjective is not None and phrase.adjective.french_before
        if negated or (plural and before):  # pas de pommes, de belles pommes
            return "de " + words
        return ("des " if plural else "une " if feminine else "un ") + words
    if determiner == "this":
        return ("ces " if plural else "cette " if feminine else "cet " if vowel else "ce ") + words
    if determiner == "number":
        return f"{number_words(phrase.number, feminine)} {words}"
    if determiner == "many":
        return f"beaucoup de {words}"
    if determiner == "every":
        return f"chaque {words}"
    if determiner == "which":
        return f"{agree('quel', False, plural) if not feminine else agree('quelle', False, plural)} {words}"
    masculine, of_feminine, of_plural = _POSSESSIVES[determiner]
    return f"{of_plural if plural else of_feminine if feminine and not vowel else masculine} {words}"
