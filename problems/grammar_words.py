"""The embedded grammar's nouns, adjectives, names, prepositions and adverbials, in English, German and French.

Each table has a word a line:

    nouns       kinds | English singular plural | German article singular genitive plural | French gender singular
    adjectives  kinds | English [comparative] | German predicate[/stem] [comparative]
                      | French position masculine feminine [masculine before a vowel]

Kinds are letters that say what a noun stands for, so that verbs and adjectives find nouns that suit them: p person,
h someone's person, u grown-up, a animal, r something to read, w something to write, o something to open, t thing,
d device to turn on, k something to repair, f food, e eatable mass, q drink, l place, g place one goes to.
"""

from __future__ import annotations

import dataclasses

NOMINATIVE, ACCUSATIVE, DATIVE, GENITIVE = range(4)
PRESENT, PAST, FUTURE = range(3)

FRENCH_VOWELS = tuple("aeiouyhâàéèêëîïôœAEIOUÉ")  # every h in this lexicon is mute


@dataclasses.dataclass(frozen=True, eq=False)
class Noun:
    """A noun. English and French forms are (singular, plural), German ones [plural][case].

    `german_gender` is 0 for masculine, 1 for feminine, 2 for neuter.
    """

    kinds: str
    english: tuple[str, str]
    german: tuple[tuple[str, ...], tuple[str, ...]]
    german_gender: int
    french: tuple[str, str]
    french_feminine: bool
    adjectives: tuple[Adjective, ...]

    @property
    def mass(self) -> bool:
        """Whether it cannot be counted (water)."""
        return "q" in self.kinds or "e" in self.kinds


@dataclasses.dataclass(frozen=True, eq=False)
class Adjective:
    """An adjective. French forms are [feminine][plural]; `french_liaison` is the masculine before a vowel."""

    kinds: str
    english: str
    english_comparative: str  # "" where it is not compared
    german: str
    german_stem: str
    german_comparative: str
    french: tuple[tuple[str, str], tuple[str, str]]
    french_liaison: str
    french_before: bool


@dataclasses.dataclass(frozen=True, eq=False)
class Name:
    """A person's or a city's name, as a noun phrase."""

    english: str
    german: str
    french: str
    feminine: bool = False
    person: int = 1
    plural: bool = False


@dataclasses.dataclass(frozen=True, eq=False)
class Preposition:
    """A preposition: an English tree with the noun phrase as `{}`, German with its case, French."""

    english: str
    german: str
    german_case: int
    french: str


@dataclasses.dataclass(frozen=True, eq=False)
class Adverbial:
    """A phrase of time: English as a tree."""

    english: str
    german: str
    french: str


def french_plural(word: str) -> str:
    """The regular plural: pommes, gâteaux, chevaux, souris."""
    if word.endswith("al"):
        return word[:-1] + "ux"
    return word if word[-1] in "sx" else word + ("x" if word.endswith("eau") else "s")


def _rows(table: str) -> list[list[list[str]]]:
    return [[column.split() for column in line.split("|")] for line in table.strip().splitlines()]


def _adjective(kinds: list[str], english: list[str], german: list[str], french: list[str]) -> Adjective:
    position, masculine, feminine, *liaison = french
    stem, *comparative = german
    predicate, _, stem = stem.partition("/")
    return Adjective(
        kinds=kinds[0],
        english=english[0],
        english_comparative=english[1] if len(english) > 1 else "",
        german=predicate,
        german_stem=stem or predicate,
        german_comparative=comparative[0] if comparative else "",
        french=((masculine, french_plural(masculine)), (feminine, feminine + "s")),
        french_liaison=liaison[0] if liaison else masculine,
        french_before=position == "before",
    )


def _noun(kinds: list[str], english: list[str], german: list[str], french: list[str]) -> Noun:
    article, singular, genitive, plural = german
    # A masculine whose genitive does not end in s is weak: it has that form in every case but the nominative.
    oblique = genitive if article == "der" and genitive[-1] != "s" else singular
    dative_plural = plural if plural[-1] in "ns" else plural + "n"
    return Noun(
        kinds=kinds[0],
        english=(english[0], english[-1]),
        german=((singular, oblique, oblique, genitive), (plural, plural, dative_plural, plural)),
        german_gender=("der", "die", "das").index(article),
        french=(french[1], french_plural(french[1])),
        french_feminine=french[0] == "f",
        adjectives=tuple(adjective for adjective in ADJECTIVES if set(adjective.kinds) & set(kinds[0])),
    )


ADJECTIVES = tuple(
    _adjective(*row)
    for row in _rows("""
aotl     | big bigger            | groß größer                 | before grand grande
pardtlof | small smaller         | klein kleiner               | before petit petite
uardtlo  | old older             | alt älter                   | before vieux vieille vieil
rdtlo    | new                   | neu                         | before nouveau nouvelle nouvel
pa       | young younger         | jung jünger                 | before jeune jeune
atl      | beautiful more        | schön schöner               | before beau belle bel
prfeq    | good                  | gut                         | before bon bonne
tdo      | red                   | rot                         | after rouge rouge
tdo      | blue                  | blau                        | after bleu bleue
tdo      | green                 | grün                        | after vert verte
atdo     | black                 | schwarz                     | after noir noire
atdo     | white                 | weiß                        | after blanc blanche
to       | heavy heavier         | schwer schwerer             | after lourd lourde
td       | expensive more        | teuer/teur teurer           | after cher chère
p        | friendly friendlier   | freundlich freundlicher     | after sympathique sympathique
p        | happy happier         | glücklich glücklicher       | after heureux heureuse
pa       | tired                 | müde/müd                    | after fatigué fatiguée
p        | clever more           | klug klüger                 | after intelligent intelligente
p        | rich richer           | reich reicher               | after riche riche
pa       | sick                  | krank                       | after malade malade
tol      | clean cleaner         | sauber sauberer             | after propre propre
tol      | dirty dirtier         | schmutzig schmutziger       | after sale sale
pl       | quiet quieter         | ruhig ruhiger               | after tranquille tranquille
pa       | strong stronger       | stark stärker               | after fort forte
q        | cold colder           | kalt kälter                 | after froid froide
ef       | fresh fresher         | frisch frischer             | after frais fraîche
prl      | famous more           | berühmt berühmter           | after célèbre célèbre
rl       | interesting more      | interessant interessanter   | after intéressant intéressante
l        | dark darker           | dunkel/dunkl dunkler        | after sombre sombre
""")
)

NOUNS = tuple(
    _noun(*row)
    for row in _rows("""
pu  | man men                | der Mann Mannes Männer                 | m homme
pu  | woman women            | die Frau Frau Frauen                   | f femme
ph  | child children         | das Kind Kindes Kinder                 | m enfant
p   | boy boys               | der Junge Jungen Jungen                | m garçon
p   | girl girls             | das Mädchen Mädchens Mädchen           | f fille
phu | teacher teachers       | der Lehrer Lehrers Lehrer              | m professeur
phu | doctor doctors         | der Arzt Arztes Ärzte                  | m médecin
ph  | student students       | der Student Studenten Studenten        | m étudiant
phu | neighbor neighbors     | der Nachbar Nachbarn Nachbarn          | m voisin
phu | friend friends         | der Freund Freundes Freunde            | m ami
ph  | brother brothers       | der Bruder Bruders Brüder              | m frère
ph  | sister sisters         | die Schwester Schwester Schwestern     | f sœur
pu  | farmer farmers         | der Bauer Bauern Bauern                | m fermier
phu | guest guests           | der Gast Gastes Gäste                  | m invité
a   | dog dogs               | der Hund Hundes Hunde                  | m chien
a   | cat cats               | die Katze Katze Katzen                 | m chat
a   | horse horses           | das Pferd Pferdes Pferde               | m cheval
a   | bird birds             | der Vogel Vogels Vögel                 | m oiseau
a   | cow cows               | die Kuh Kuh Kühe                       | f vache
rw  | book books             | das Buch Buches Bücher                 | m livre
rw  | letter letters         | der Brief Briefes Briefe               | f lettre
rw  | story stories          | die Geschichte Geschichte Geschichten  | f histoire
r   | newspaper newspapers   | die Zeitung Zeitung Zeitungen          | m journal
o   | door doors             | die Tür Tür Türen                      | f porte
o   | window windows         | das Fenster Fensters Fenster           | f fenêtre
o   | box boxes              | die Kiste Kiste Kisten                 | f boîte
o   | bottle bottles         | die Flasche Flasche Flaschen           | f bouteille
t   | table tables           | der Tisch Tisches Tische               | f table
t   | chair chairs           | der Stuhl Stuhles Stühle               | f chaise
t   | key keys               | der Schlüssel Schlüssels Schlüssel     | f clé
t   | coat coats             | der Mantel Mantels Mäntel              | m manteau
t   | hat hats               | der Hut Hutes Hüte                     | m chapeau
t   | picture pictures       | das Bild Bildes Bilder                 | m tableau
tk  | clock clocks           | die Uhr Uhr Uhren                      | f horloge
tk  | car cars               | das Auto Autos Autos                   | f voiture
tk  | bicycle bicycles       | das Fahrrad Fahrrads Fahrräder         | m vélo
dk  | lamp lamps             | die Lampe Lampe Lampen                 | f lampe
dk  | radio radios           | das Radio Radios Radios                | f radio
dk  | computer computers     | der Computer Computers Computer        | m ordinateur
f   | apple apples           | der Apfel Apfels Äpfel                 | f pomme
f   | cake cakes             | der Kuchen Kuchens Kuchen              | m gâteau
f   | egg eggs               | das Ei Eies Eier                       | m œuf
f   | tomato tomatoes        | die Tomate Tomate Tomaten              | f tomate
e   | bread                  | das Brot Brotes Brote                  | m pain
e   | cheese                 | der Käse Käses Käse                    | m fromage
q   | water                  | das Wasser Wassers Wasser              | f eau
q   | milk                   | die Milch Milch Milch                  | m lait
q   | coffee                 | der Kaffee Kaffees Kaffees             | m café
q   | wine                   | der Wein Weins Weine                   | m vin
l   | house houses           | das Haus Hauses Häuser                 | f maison
l   | garden gardens         | der Garten Gartens Gärten              | m jardin
l   | kitchen kitchens       | die Küche Küche Küchen                 | f cuisine
l   | city cities            | die Stadt Stadt Städte                 | f ville
l   | forest forests         | der Wald Waldes Wälder                 | f forêt
lg  | village villages       | das Dorf Dorfes Dörfer                 | m village
lg  | school schools         | die Schule Schule Schulen              | f école
lg  | church churches        | die Kirche Kirche Kirchen              | f église
lg  | station stations       | der Bahnhof Bahnhofs Bahnhöfe          | f gare
lg  | market markets         | der Markt Marktes Märkte               | m marché
lg  | park parks             | der Park Parks Parks                   | m parc
lg  | hotel hotels           | das Hotel Hotels Hotels                | m hôtel
lg  | hospital hospitals     | das Krankenhaus Krankenhauses Krankenhäuser | m hôpital
""")
)

_WOMEN = ("Anna", "Maria", "Julia", "Laura", "Sophie", "Emma")
_MEN = ("Paul", "Peter", "David", "Martin", "Karl", "Robert")
PEOPLE = tuple(Name(name, name, name, feminine=name in _WOMEN) for name in _WOMEN + _MEN)

CITIES = (
    Name("London", "London", "Londres"),
    Name("Paris", "Paris", "Paris"),
    Name("Berlin", "Berlin", "Berlin"),
    Name("Madrid", "Madrid", "Madrid"),
    Name("Vienna", "Wien", "Vienne"),
    Name("Rome", "Rom", "Rome"),
    Name("Brussels", "Brüssel", "Bruxelles"),
    Name("Geneva", "Genf", "Genève"),
)

IN = Preposition("(PP (IN in) {})", "in", DATIVE, "dans")
IN_CITY = Preposition("(PP (IN in) {})", "in", DATIVE, "à")
INTO = Preposition("(PP (IN into) {})", "in", ACCUSATIVE, "dans")
TO = Preposition("(PP (TO to) {})", "zu", DATIVE, "à")
TO_CITY = Preposition("(PP (TO to) {})", "nach", DATIVE, "à")
FROM = Preposition("(PP (IN from) {})", "aus", DATIVE, "de")
WITH = Preposition("(PP (IN with) {})", "mit", DATIVE, "avec")
WITHOUT = Preposition("(PP (IN without) {})", "ohne", ACCUSATIVE, "sans")
FOR = Preposition("(PP (IN for) {})", "für", ACCUSATIVE, "pour")
ON = Preposition("(PP (IN on) {})", "auf", DATIVE, "sur")
UNDER = Preposition("(PP (IN under) {})", "unter", DATIVE, "sous")
BEHIND = Preposition("(PP (IN behind) {})", "hinter", DATIVE, "derrière")
NEXT_TO = Preposition("(ADVP (JJ next) (PP (TO to) {}))", "neben", DATIVE, "à côté de")
IN_FRONT_OF = Preposition("(PP (IN in) (NP (NP (NN front)) (PP (IN of) {})))", "vor", DATIVE, "devant")

# English before the verb, French after the finite verb.
FREQUENCIES = (
    Adverbial("(ADVP (RB often))", "oft", "souvent"),
    Adverbial("(ADVP (RB always))", "immer", "toujours"),
    Adverbial("(ADVP (RB sometimes))", "manchmal", "parfois"),
)

_TODAY = Adverbial("(NP (NN today))", "heute", "aujourd'hui")
_WEEKDAYS = tuple(
    Adverbial(f"(PP (IN on) (NP (NNP {english})))", f"am {german}", french)
    for english, german, french in (
        ("Monday", "Montag", "lundi"),
        ("Tuesday", "Dienstag", "mardi"),
        ("Friday", "Freitag", "vendredi"),
        ("Sunday", "Sonntag", "dimanche"),
    )
)
_NUMBERS = (
    ("two", "zwei", "deux"),
    ("three", "drei", "trois"),
    ("four", "vier", "quatre"),
    ("five", "fünf", "cinq"),
    ("six", "sechs", "six"),
    ("seven", "sieben", "sept"),
    ("eight", "acht", "huit"),
    ("nine", "neun", "neuf"),
    ("ten", "zehn", "dix"),
)
_UNITS = (
    ("days", "Tagen", "jours"),
    ("weeks", "Wochen", "semaines"),
    ("months", "Monaten", "mois"),
    ("years", "Jahren", "ans"),
)
_SPANS = tuple(
    (f"(CD {number[0]}) (NNS {unit[0]})", f"{number[1]} {unit[1]}", f"{number[2]} {unit[2]}")
    for number in _NUMBERS
    for unit in _UNITS
)
_CLOCK = tuple(
    Adverbial(f"(PP (IN at) (NP (CD {english}) (RB o'clock)))", f"um {german} Uhr", f"à {french} heures")
    for english, german, french in _NUMBERS
)

# Groups of adverbials that go with a tense; a group is drawn first, then one of its members.
TIMES: tuple[tuple[tuple[Adverbial, ...], ...], ...] = (
    (
        (_TODAY,),
        (Adverbial("(ADVP (RB now))", "jetzt", "maintenant"),),
        (Adverbial("(NP (DT every) (NN day))", "jeden Tag", "tous les jours"),),
        (Adverbial("(PP (IN in) (NP (DT the) (NN evening)))", "am Abend", "le soir"),),
    ),
    (
        (_TODAY,),
        (Adverbial("(NP (NN yesterday))", "gestern", "hier"),),
        (Adverbial("(NP (JJ last) (NN week))", "letzte Woche", "la semaine dernière"),),
        _WEEKDAYS,
        _CLOCK,
        tuple(
            Adverbial(f"(ADVP (NP {english}) (RB ago))", f"vor {german}", f"il y a {french}")
            for english, german, french in _SPANS
        ),
        tuple(Adverbial(f"(PP (IN in) (NP (CD {year})))", f"{year}", f"en {year}") for year in range(1950, 2026)),
    ),
    (
        (_TODAY,),
        (Adverbial("(NP (NN tomorrow))", "morgen", "demain"),),
        (Adverbial("(NP (JJ next) (NN week))", "nächste Woche", "la semaine prochaine"),),
        _WEEKDAYS,
        _CLOCK,
        tuple(
            Adverbial(f"(PP (IN in) (NP {english}))", f"in {german}", f"dans {french}")
            for english, german, french in _SPANS
        ),
    ),
)
