"""The embedded grammar: what it says in English and German, against sentences written by
hand.
"""

import pytest

from t2tlite.problems import grammar
from t2tlite.problems.grammar import GrammarSentence
from t2tlite.problems.grammar.rules import WORDS, words_of

PRESENT, PAST, FUTURE = "present", "past", "future"


def word(section, text):
    """The first word of a section that has this English form."""
    return next(word for word in WORDS[section] if text in word["english"].values())


def pronoun(text):
    entry = word("pronouns", text)
    return {"kind": "pronoun", "word": entry, "person": entry["english"]["person"]}


def name(text):
    return {"kind": "name", "word": word("names", text), "person": "1"}


ME, HE, SHE, WE, THEY = map(pronoun, ("I", "he", "she", "we", "they"))
ANNA, PAUL, VIENNA = map(name, ("Anna", "Paul", "Vienna"))
YESTERDAY = {"kind": "yesterday"}


def noun(text, determiner="the", adjective=None, plural=False, **fields):
    (chosen, *_) = words_of("determiners", determiner) or [
        word("determiners", determiner)
    ]
    phrase = {"noun": word("nouns", text), "determiner": chosen, **fields}
    phrase["person"] = "3" if plural else "1"
    if plural:
        phrase["plural"] = "yes"
    if adjective:
        phrase["adjective"] = word("adjectives", adjective)
    if "relative" in phrase:
        phrase["relative"]["up"] = phrase
        phrase["relative"].setdefault("person", phrase["person"])
    return phrase


def clause(verb, tense, subject=None, object=None, **fields):
    base, _, particle = verb.partition(" ")
    entry = next(
        entry
        for section in WORDS.values()
        for entry in section
        if entry.get("english", {}).get("base") == base
        and entry["english"].get("particle", "") == particle
    )
    whole = {"verb": entry, "tense": tense, **fields}
    if subject:
        whole |= {"subject": subject, "person": subject["person"]}
    if object:
        whole["object"] = object
    if "second" in whole:
        whole["second"]["person"] = whole["person"]
    return whole


def place(preposition, phrase):
    return {"preposition": word("prepositions", preposition), "place": phrase}


# One sentence for each thing that the languages do differently; translations written by
# hand.
# fmt: off
SAYINGS = [
    # a separable verb
    (clause("open", PRESENT, noun("man"), noun("door", "this")),
     "The man opens this door.",
     "Der Mann macht diese Tür auf."),
    # inversion, the participle last
    (clause("open", PAST, noun("man"), noun("door", "a", "big"), time=YESTERDAY,
     fronted="yes"),
     "Yesterday, the man opened a big door.",
     "Gestern hat der Mann eine große Tür aufgemacht."),
    # the verb last
    (clause("say", PRESENT, ANNA, subordinate=clause("close", PRESENT, HE,
     noun("box", "his"), conjunction=word("conjunctions", "that"))),
     "Anna says that he closes his box.",
     "Anna sagt, dass er seine Kiste zumacht."),
    # German dative
    (clause("help", PRESENT, ME, noun("child", "a", "small"), modal=word("modal", "can")),
     "I can help a small child.",
     "Ich kann einem kleinen Kind helfen."),
    # perfect with sein
    (clause("go", PAST, noun("woman", plural=True), **place("to", noun("school"))),
     "The women went to the school.",
     "Die Frauen sind zur Schule gegangen."),
    # contractions
    (clause("go", FUTURE, WE, **place("to", noun("market"))),
     "We will go to the market.",
     "Wir werden zum Markt gehen."),
    # kein
    (clause("buy", PRESENT, PAUL, noun("apple", "no", none="yes"), negation="not"),
     "Paul does not buy an apple.",
     "Paul kauft keinen Apfel."),
    # nicht
    (clause("understand", PRESENT, SHE, noun("letter", "our"), negation="not"),
     "She does not understand our letter.",
     "Sie versteht unseren Brief nicht."),
    # no determiner
    # object pronouns first
    (clause("give", PRESENT, HE, noun("key"), recipient=SHE, frequency=word("adverbs", "often")),
     "He often gives the key to her.",
     "Er gibt ihr den Schlüssel oft."),
    # ... also before nicht
    (clause("invite", PAST, ME, SHE, negation="not"),
     "I did not invite her.",
     "Ich habe sie nicht eingeladen."),
    # numbers; strong endings
    (clause("see", PRESENT, WE, noun("apple", "twenty-one", "good", plural=True)),
     "We see twenty-one good apples.",
     "Wir sehen einundzwanzig gute Äpfel."),
    # a weak noun, a genitive
    (clause("find", PAST, noun("friend", "my", "old"), noun("hat", "owner",
     owner=noun("student"))),
     "My old friend found the student's hat.",
     "Mein alter Freund hat den Hut des Studenten gefunden."),
    (clause("lose", PAST, SHE, noun("book", "owner", "new", owner=ANNA)),
     "She lost Anna's new book.",
     "Sie hat Annas neues Buch verloren."),
    # relative clauses: case in German
    (clause("be", PRESENT, noun("letter", relative=clause("write", PAST,
     noun("man"))), adjective=word("adjectives", "interesting")),
     "The letter that the man wrote is interesting.",
     "Der Brief, den der Mann geschrieben hat, ist interessant."),
    (clause("see", PAST, HE, noun("woman", "the", relative=clause("help", PRESENT,
     ANNA))),
     "He saw the woman whom Anna helps.",
     "Er hat die Frau gesehen, der Anna hilft."),
    (clause("call", PRESENT, noun("girl", relative=clause("arrive", PAST)),
     noun("doctor", "a")),
     "The girl who arrived calls a doctor.",
     "Das Mädchen, das angekommen ist, ruft einen Arzt an."),
    # infinitives
    (clause("try", PAST, ANNA, infinitive=clause("open", PRESENT, None,
     noun("window"))),
     "Anna tried to open the window.",
     "Anna hat versucht, das Fenster aufzumachen."),
    # coordination: the German auxiliary is said once, if it is the same
    (clause("open", PAST, PAUL, noun("door"), second=clause("wait", PAST, None,
     noun("guest", plural=True))),
     "Paul opened the door and waited for the guests.",
     "Paul hat die Tür aufgemacht und auf die Gäste gewartet."),
    (clause("sleep", PAST, PAUL, second=clause("leave", PAST)),
     "Paul slept and left.",
     "Paul hat geschlafen und ist weggegangen."),
    # two subjects; comparison
    (clause("be", PAST, {"kind": "pair", "first": ANNA, "second": noun("sister", "her"), "person": "3"},
     adjective=word("adjectives", "happy")),
     "Anna and her sister were happy.",
     "Anna und ihre Schwester waren glücklich."),
    (clause("be", PRESENT, noun("house"), adjective=word("adjectives", "old"),
     than=noun("church", "this")),
     "The house is older than this church.",
     "Das Haus ist älter als diese Kirche."),
    # questions
    (clause("buy", PAST, SHE, noun("car", "which"), question="which"),
     "Which car did she buy?",
     "Welches Auto hat sie gekauft?"),
    (clause("go", PRESENT, THEY, preposition=words_of("prepositions", "to_city")[0], place=VIENNA, question="adverb",
     question_word=word("questions", "Why")),
     "Why do they go to Vienna?",
     "Warum gehen sie nach Wien?"),
    (clause("close", PAST, None, noun("window", "a"), question="who", person="1",
     question_word=word("questions", "Who"),
     **place("in", noun("house"))),
     "Who closed a window in the house?",
     "Wer hat ein Fenster im Haus zugemacht?"),
    # a clause in front
    (clause("sleep", PRESENT, noun("dog"), subordinate=clause("arrive", PRESENT, ME,
     conjunction=word("conjunctions", "because")), fronted="yes"),
     "Because I arrive, the dog sleeps.",
     "Weil ich ankomme, schläft der Hund."),
]
# fmt: on


@pytest.mark.parametrize(
    ("said", "english", "german"), SAYINGS, ids=[saying[1] for saying in SAYINGS]
)
def test_says_the_same_in_two_languages(said, english, german):
    sentence = GrammarSentence(said)
    assert (sentence.english, sentence.german) == (english, german)


def test_tree_of_a_sentence():
    book = noun("book", relative=clause("look", PAST, HE))
    said = clause("be", PRESENT, book, negation="not")
    said["adjective"] = word("adjectives", "old")
    assert GrammarSentence(said).tree == (
        "(S (NP (NP (DT The) (NN book)) (SBAR (WHNP (WDT that)) (S (NP (PRP he)) (VP"
        " (VBD looked) (PP (IN for)))))) (VP (VBZ is) (RB not) (ADJP (JJ old))) (. .))"
    )


def test_worked_example_of_the_documentation():
    sentence = GrammarSentence(
        clause("buy", PRESENT, PAUL, noun("apple", "no", none="yes"), negation="not")
    )
    documentation = " ".join((grammar.__doc__ or "").split())
    for text in (sentence.tree, sentence.english, sentence.german):
        assert text in documentation
