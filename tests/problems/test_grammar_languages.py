"""The embedded grammar: what it says in English, German and French, against sentences
written by hand.
"""

import pytest

from t2tlite.problems import grammar
from t2tlite.problems.grammar import GrammarSentence, lexicon
from t2tlite.problems.grammar.lexicon import (
    FUTURE,
    GAP,
    NOUNS,
    PAST,
    PRESENT,
    determiner,
)
from t2tlite.problems.grammar.structure import Clause, Nominal, Pair, Place

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
    return Nominal(
        determiner,
        entry,
        adjective=adjective(adjective_word) if adjective_word else None,
        **options,
    )


def clause(verb, tense, subject=GAP, object=None, **options):
    def name(verb):
        return " ".join(filter(None, (verb.english.infinitive, verb.english.particle)))

    entry = next(
        entry
        for verbs in lexicon.VERBS.values()
        for entry in verbs
        if name(entry) == verb
    )
    return Clause(entry, tense, subject, object, **options)


def place(preposition, phrase):
    return Place(lexicon.PREPOSITIONS[preposition], phrase)


# One sentence for each thing that the languages do differently; translations written by
# hand.
SAYINGS = [
    (  # a separable verb
        clause("open", PRESENT, noun("man"), noun("door", "this")),
        "The man opens this door.",
        "Der Mann macht diese Tür auf.",
        "L'homme ouvre cette porte.",
    ),
    (  # inversion, the participle last
        clause(
            "open",
            PAST,
            noun("man"),
            noun("door", "a", "big"),
            time=YESTERDAY,
            fronted=True,
        ),
        "Yesterday, the man opened a big door.",
        "Gestern hat der Mann eine große Tür aufgemacht.",
        "Hier, l'homme a ouvert une grande porte.",
    ),
    (  # the verb last
        clause(
            "say",
            PRESENT,
            ANNA,
            subordinate=clause(
                "close", PRESENT, HE, noun("box", "his"), conjunction=THAT
            ),
        ),
        "Anna says that he closes his box.",
        "Anna sagt, dass er seine Kiste zumacht.",
        "Anna dit qu'il ferme sa boîte.",
    ),
    (  # German dative; French elision
        clause("help", PRESENT, ME, noun("child", "a", "small"), modal=lexicon.CAN),
        "I can help a small child.",
        "Ich kann einem kleinen Kind helfen.",
        "Je peux aider un petit enfant.",
    ),
    (  # perfect with sein; agreement with être
        clause(
            "go", PAST, noun("woman", plural=True), goal=place("to", noun("school"))
        ),
        "The women went to the school.",
        "Die Frauen sind zur Schule gegangen.",
        "Les femmes sont allées à l'école.",
    ),
    (  # contractions
        clause("go", FUTURE, WE, goal=place("to", noun("market"))),
        "We will go to the market.",
        "Wir werden zum Markt gehen.",
        "Nous irons au marché.",
    ),
    (
        clause(
            "sleep",
            PAST,
            noun("cat"),
            place=place("next to", noun("garden", plural=True)),
        ),
        "The cat slept next to the gardens.",
        "Die Katze hat neben den Gärten geschlafen.",
        "Le chat a dormi à côté des jardins.",
    ),
    (  # kein; pas de
        clause("buy", PRESENT, PAUL, noun("apple", "a"), negation="not"),
        "Paul does not buy an apple.",
        "Paul kauft keinen Apfel.",
        "Paul n'achète pas de pomme.",
    ),
    (  # nicht; ne ... pas
        clause("understand", PRESENT, SHE, noun("letter", "our"), negation="not"),
        "She does not understand our letter.",
        "Sie versteht unseren Brief nicht.",
        "Elle ne comprend pas notre lettre.",
    ),
    (  # partitive
        clause("drink", PRESENT, THEY, noun("water", "", "cold")),
        "They drink cold water.",
        "Sie trinken kaltes Wasser.",
        "Ils boivent de l'eau froide.",
    ),
    (  # object pronouns before the French verb
        clause("give", PRESENT, HE, noun("key"), recipient=SHE, frequency="often"),
        "He often gives the key to her.",
        "Er gibt ihr den Schlüssel oft.",
        "Il lui donne souvent la clé.",
    ),
    (  # ... with which the participle agrees
        clause("invite", PAST, ME, SHE, negation="not"),
        "I did not invite her.",
        "Ich habe sie nicht eingeladen.",
        "Je ne l'ai pas invitée.",
    ),
    (  # numbers; strong endings; gender of one
        clause("see", PRESENT, WE, noun("apple", "21", "good", plural=True)),
        "We see twenty-one good apples.",
        "Wir sehen einundzwanzig gute Äpfel.",
        "Nous voyons vingt et une bonnes pommes.",
    ),
    (
        clause("answer", PAST, ANNA, noun("student", "235", "clever", plural=True)),
        "Anna answered 235 clever students.",
        "Anna hat 235 klugen Studenten geantwortet.",
        "Anna a répondu à 235 étudiants intelligents.",
    ),
    (  # a weak noun, a genitive, the form before a vowel
        clause(
            "find",
            PAST,
            noun("friend", "my", "old"),
            noun("hat", "owner", owner=noun("student")),
        ),
        "My old friend found the student's hat.",
        "Mein alter Freund hat den Hut des Studenten gefunden.",
        "Mon vieil ami a trouvé le chapeau de l'étudiant.",
    ),
    (
        clause("lose", PAST, SHE, noun("book", "owner", "new", owner=ANNA)),
        "She lost Anna's new book.",
        "Sie hat Annas neues Buch verloren.",
        "Elle a perdu le nouveau livre d'Anna.",
    ),
    (  # relative clauses: case in German, agreement in French
        clause(
            "be",
            PRESENT,
            noun("letter", relative=clause("write", PAST, noun("man"))),
            adjective=adjective("interesting"),
        ),
        "The letter that the man wrote is interesting.",
        "Der Brief, den der Mann geschrieben hat, ist interessant.",
        "La lettre que l'homme a écrite est intéressante.",
    ),
    (
        clause(
            "see",
            PAST,
            HE,
            noun("woman", "the", relative=clause("help", PRESENT, ANNA)),
        ),
        "He saw the woman whom Anna helps.",
        "Er hat die Frau gesehen, der Anna hilft.",
        "Il a vu la femme qu'Anna aide.",
    ),
    (
        clause(
            "call",
            PRESENT,
            noun("girl", relative=clause("arrive", PAST)),
            noun("doctor", "a"),
        ),
        "The girl who arrived calls a doctor.",
        "Das Mädchen, das angekommen ist, ruft einen Arzt an.",
        "La fille qui est arrivée appelle un médecin.",
    ),
    (  # infinitives
        clause(
            "try", PAST, ANNA, infinitive=clause("open", PRESENT, GAP, noun("window"))
        ),
        "Anna tried to open the window.",
        "Anna hat versucht, das Fenster aufzumachen.",
        "Anna a essayé d'ouvrir la fenêtre.",
    ),
    (  # coordination: the German auxiliary is said once, if it is the same
        clause(
            "open",
            PAST,
            PAUL,
            noun("door"),
            second=clause("wait", PAST, GAP, noun("guest", plural=True)),
        ),
        "Paul opened the door and waited for the guests.",
        "Paul hat die Tür aufgemacht und auf die Gäste gewartet.",
        "Paul a ouvert la porte et a attendu les invités.",
    ),
    (
        clause("sleep", PAST, PAUL, second=clause("leave", PAST)),
        "Paul slept and left.",
        "Paul hat geschlafen und ist weggegangen.",
        "Paul a dormi et est parti.",
    ),
    (  # comparison; agreement of two subjects
        clause(
            "be", PAST, Pair(ANNA, noun("sister", "her")), adjective=adjective("happy")
        ),
        "Anna and her sister were happy.",
        "Anna und ihre Schwester waren glücklich.",
        "Anna et sa sœur étaient heureuses.",
    ),
    (
        clause(
            "be",
            PRESENT,
            noun("house"),
            adjective=adjective("old"),
            than=noun("church", "this"),
        ),
        "The house is older than this church.",
        "Das Haus ist älter als diese Kirche.",
        "La maison est plus vieille que cette église.",
    ),
    (  # questions
        clause("buy", PAST, SHE, noun("car", "which"), question="which"),
        "Which car did she buy?",
        "Welches Auto hat sie gekauft?",
        "Quelle voiture est-ce qu'elle a achetée ?",
    ),
    (
        clause("go", PRESENT, THEY, goal=place("to city", VIENNA), question="why"),
        "Why do they go to Vienna?",
        "Warum gehen sie nach Wien?",
        "Pourquoi est-ce qu'ils vont à Vienne ?",
    ),
    (
        clause(
            "close",
            PAST,
            GAP,
            noun("window", "a"),
            question="who",
            place=place("in", noun("house")),
        ),
        "Who closed a window in the house?",
        "Wer hat ein Fenster im Haus zugemacht?",
        "Qui a fermé une fenêtre dans la maison ?",
    ),
    (  # a clause in front
        clause(
            "sleep",
            PRESENT,
            noun("dog"),
            subordinate=clause("arrive", PRESENT, ME, conjunction=BECAUSE),
            fronted=True,
        ),
        "Because I arrive, the dog sleeps.",
        "Weil ich ankomme, schläft der Hund.",
        "Parce que j'arrive, le chien dort.",
    ),
]


@pytest.mark.parametrize(
    ("said", "english", "german", "french"),
    SAYINGS,
    ids=[saying[1] for saying in SAYINGS],
)
def test_says_the_same_in_three_languages(said, english, german, french):
    sentence = GrammarSentence(said)
    assert (sentence.english, sentence.german, sentence.french) == (
        english,
        german,
        french,
    )


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
        clause("buy", PRESENT, PAUL, noun("apple", "a"), negation="not")
    )
    documentation = " ".join((grammar.__doc__ or "").split())
    for text in (sentence.tree, sentence.english, sentence.german, sentence.french):
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
    assert [word.french[-1] for word in words] == [
        "deux", "seize", "vingt et une", "trente", "soixante et une", "soixante-dix", "soixante et onze",
        "soixante-dix-sept", "quatre-vingts", "quatre-vingt-une", "quatre-vingt-onze", "quatre-vingt-dix-neuf", "100",
    ]  # fmt: skip
    assert determiner("41").french[0] == "quarante et un"
