"""The embedded grammar: what it says in English and German, against sentences written by
hand.
"""

import pytest

from t2tlite.problems import grammar
from t2tlite.problems.grammar import GrammarSentence, lexicon
from t2tlite.problems.grammar.lexicon import (
    FUTURE,
    NOUNS,
    PAST,
    PRESENT,
    UNSAID,
    determiner,
)
from t2tlite.problems.grammar.structure import (
    Clause,
    Coordination,
    Nominal,
    PrepositionalPhrase,
)

ME, HE, SHE, WE, THEY = lexicon.PRONOUNS
ANNA, PAUL = lexicon.PEOPLE[0], lexicon.PEOPLE[6]
YESTERDAY = lexicon.TIMES[PAST][1][0]
VIENNA = lexicon.CITIES[4]
THAT, BECAUSE = lexicon.CONJUNCTIONS["that"], lexicon.CONJUNCTIONS["because"]


def adjective(word):
    return next(
        adjective for adjective in lexicon.ADJECTIVES if adjective.english[0] == word
    )


def noun(word, determiner="the", adjective_word=None, **options):
    entry = next(noun for noun in NOUNS if noun.english[0] == word)
    phrase = Nominal(
        determiner,
        entry,
        adjective=adjective(adjective_word) if adjective_word else None,
        **options,
    )
    if phrase.relative:
        phrase.relative.antecedent = phrase
    return phrase


def clause(verb, tense, subject=UNSAID, object=None, **options):
    def name(verb):
        return " ".join(filter(None, (verb.english.infinitive, verb.english.particle)))

    entry = next(
        entry
        for verbs in lexicon.VERBS.values()
        for entry in verbs
        if name(entry) == verb
    )
    whole = Clause(entry, tense, subject, object, **options)
    if whole.second:
        whole.second.subject = subject
    return whole


def place(preposition, phrase):
    return PrepositionalPhrase(lexicon.PREPOSITIONS[preposition], phrase)


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
     fronted=True),
     "Yesterday, the man opened a big door.",
     "Gestern hat der Mann eine große Tür aufgemacht."),
    # the verb last
    (clause("say", PRESENT, ANNA, subordinate=clause("close", PRESENT, HE,
     noun("box", "his"), conjunction=THAT)),
     "Anna says that he closes his box.",
     "Anna sagt, dass er seine Kiste zumacht."),
    # German dative
    (clause("help", PRESENT, ME, noun("child", "a", "small"), modal=lexicon.CAN),
     "I can help a small child.",
     "Ich kann einem kleinen Kind helfen."),
    # perfect with sein
    (clause("go", PAST, noun("woman", plural=True), goal=place("to", noun("school"))),
     "The women went to the school.",
     "Die Frauen sind zur Schule gegangen."),
    # contractions
    (clause("go", FUTURE, WE, goal=place("to", noun("market"))),
     "We will go to the market.",
     "Wir werden zum Markt gehen."),
    (clause("sleep", PAST, noun("cat"), place=place("next to", noun("garden",
     plural=True))),
     "The cat slept next to the gardens.",
     "Die Katze hat neben den Gärten geschlafen."),
    # kein
    (clause("buy", PRESENT, PAUL, noun("apple", "a", is_none=True), negation="not"),
     "Paul does not buy an apple.",
     "Paul kauft keinen Apfel."),
    # nicht
    (clause("understand", PRESENT, SHE, noun("letter", "our"), negation="not"),
     "She does not understand our letter.",
     "Sie versteht unseren Brief nicht."),
    # no determiner
    (clause("drink", PRESENT, THEY, noun("water", "", "cold")),
     "They drink cold water.",
     "Sie trinken kaltes Wasser."),
    # object pronouns first
    (clause("give", PRESENT, HE, noun("key"), recipient=SHE, frequency="often"),
     "He often gives the key to her.",
     "Er gibt ihr den Schlüssel oft."),
    # ... also before nicht
    (clause("invite", PAST, ME, SHE, negation="not"),
     "I did not invite her.",
     "Ich habe sie nicht eingeladen."),
    # numbers; strong endings
    (clause("see", PRESENT, WE, noun("apple", "21", "good", plural=True)),
     "We see twenty-one good apples.",
     "Wir sehen einundzwanzig gute Äpfel."),
    (clause("answer", PAST, ANNA, noun("student", "235", "clever", plural=True)),
     "Anna answered 235 clever students.",
     "Anna hat 235 klugen Studenten geantwortet."),
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
     noun("man"))), adjective=adjective("interesting")),
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
    (clause("try", PAST, ANNA, infinitive=clause("open", PRESENT, UNSAID,
     noun("window"))),
     "Anna tried to open the window.",
     "Anna hat versucht, das Fenster aufzumachen."),
    # coordination: the German auxiliary is said once, if it is the same
    (clause("open", PAST, PAUL, noun("door"), second=clause("wait", PAST, UNSAID,
     noun("guest", plural=True))),
     "Paul opened the door and waited for the guests.",
     "Paul hat die Tür aufgemacht und auf die Gäste gewartet."),
    (clause("sleep", PAST, PAUL, second=clause("leave", PAST)),
     "Paul slept and left.",
     "Paul hat geschlafen und ist weggegangen."),
    # two subjects; comparison
    (clause("be", PAST, Coordination(ANNA, noun("sister", "her")),
     adjective=adjective("happy")),
     "Anna and her sister were happy.",
     "Anna und ihre Schwester waren glücklich."),
    (clause("be", PRESENT, noun("house"), adjective=adjective("old"),
     than=noun("church", "this")),
     "The house is older than this church.",
     "Das Haus ist älter als diese Kirche."),
    # questions
    (clause("buy", PAST, SHE, noun("car", "which"), question="which"),
     "Which car did she buy?",
     "Welches Auto hat sie gekauft?"),
    (clause("go", PRESENT, THEY, goal=place("to city", VIENNA), question="why"),
     "Why do they go to Vienna?",
     "Warum gehen sie nach Wien?"),
    (clause("close", PAST, UNSAID, noun("window", "a"), question="who",
     place=place("in", noun("house"))),
     "Who closed a window in the house?",
     "Wer hat ein Fenster im Haus zugemacht?"),
    # a clause in front
    (clause("sleep", PRESENT, noun("dog"), subordinate=clause("arrive", PRESENT, ME,
     conjunction=BECAUSE), fronted=True),
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
    said = clause(
        "be", PRESENT, noun("book", relative=clause("look", PAST, HE)), negation="not"
    )
    said.adjective = adjective("old")
    assert (
        GrammarSentence(said).tree
        == "(S (NP (NP (DT The) (NN book)) (SBAR (WHNP (WDT that)) (S (NP (PRP he)) (VP"
        " (VBD looked) (PP (IN for)))))) (VP (VBZ is) (RB not) (ADJP (JJ old)))"
        " (. .))"
    )


def test_worked_example_of_the_documentation():
    sentence = GrammarSentence(
        clause("buy", PRESENT, PAUL, noun("apple", "a", is_none=True), negation="not")
    )
    documentation = " ".join((grammar.__doc__ or "").split())
    for text in (sentence.tree, sentence.english, sentence.german):
        assert text in documentation


def test_numbers():
    numbers = (2, 16, 21, 30, 61, 70, 71, 77, 80, 81, 91, 99, 100)
    english = """two sixteen twenty-one thirty sixty-one seventy seventy-one seventy-seven eighty eighty-one
        ninety-one ninety-nine 100"""
    german = """zwei sechzehn einundzwanzig dreißig einundsechzig siebzig einundsiebzig siebenundsiebzig achtzig
        einundachtzig einundneunzig neunundneunzig 100"""
    words = [determiner(str(n)) for n in numbers]
    assert [word.english[1] for word in words] == english.split()
    assert [word.german[0] for word in words] == german.split()
