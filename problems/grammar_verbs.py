"""The embedded grammar's verbs, modals and conjunctions, in English, German and French.

Each verb is a line: [objects] | English | German | French, where

    objects  kinds of nouns that can be its object (see grammar_words)
    English  base, past, [particle or +preposition]
    German   [particle_]infinitive, third person, participle, [+D dative, +mit, +auf, +S perfect with sein]
    French   infinitive, je[/il], nous, ils, participle, [future stem], [+à indirect object, +E perfect with être]

Of a regular French verb in -er the infinitive is enough. The form for il and the future stem follow from je and from
the infinitive where they are not given.
"""

from __future__ import annotations

import dataclasses

from t2tlite.problems.grammar_words import ACCUSATIVE, DATIVE, NOUNS, Noun


@dataclasses.dataclass(frozen=True, eq=False)
class Verb:
    """A verb; `*_present` are the forms for I, he, we and they."""

    english: str
    english_present: tuple[str, ...]
    english_past: str
    english_particle: str  # turn ON
    english_preposition: str  # look FOR
    german: str
    german_present: tuple[str, ...]
    german_participle: str
    german_particle: str  # auf|machen
    german_preposition: str  # AUF ... warten
    german_case: int
    german_sein: bool
    french: str
    french_present: tuple[str, ...]
    french_participle: str
    french_future: str
    french_indirect: bool  # répondre À
    french_etre: bool
    objects: tuple[Noun, ...] = ()
    german_past: tuple[str, ...] = ()  # used in place of the perfect
    french_past: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, eq=False)
class Modal:
    """A verb that takes an infinitive at the end of the German clause."""

    english: str  # "want" is an ordinary verb in English
    german_present: tuple[str, ...]
    french_present: tuple[str, ...]


@dataclasses.dataclass(frozen=True, eq=False)
class Conjunction:
    """A word that opens a subordinate clause; English as the beginning of a tree."""

    english: str
    german: str
    french: str


def english_third_person(verb: str) -> str:
    """The form for he: opens, cries, goes."""
    if verb.endswith("y") and verb[-2] not in "aeiou":
        return verb[:-1] + "ies"
    return verb + ("es" if verb.endswith("o") else "s")


def french_third_person(first: str) -> str:
    """The form for il from that for je: vends vend, vois voit, ouvre ouvre."""
    if first.endswith(("ds", "e")):
        return first.removesuffix("s")
    return first[:-1] + "t"


def _verb(row: str) -> Verb:
    *objects, english, german, french = (column.split() for column in row.split("|"))
    options = {word for column in (english, german, french) for word in column if word.startswith("+")}
    base, past, *particle = (word for word in english if word[0] != "+")
    infinitive, german_third, participle = (word for word in german if word[0] != "+")
    german_particle, _, infinitive = infinitive.rpartition("_")
    forms = [word for word in french if word[0] != "+"]
    if len(forms) == 1:
        stem = forms[0][:-2]
        forms += [stem + "e", stem + "ons", stem + "ent", stem + "é"]
    first, _, third = forms[1].partition("/")
    future = forms[5] if len(forms) > 5 else forms[0].removesuffix("e")
    kinds = set(objects[0][0]) if objects else set()
    prepositions = {word[1:] for word in german if word in ("+mit", "+auf")}
    return Verb(
        english=base,
        english_present=(base, english_third_person(base), base, base),
        english_past=past,
        english_particle=particle[0] if particle else "",
        english_preposition="".join(word[1:] for word in english if word[0] == "+"),
        german=infinitive,
        german_present=(infinitive[:-1], german_third, infinitive, infinitive),
        german_participle=german_particle + participle,
        german_particle=german_particle,
        german_preposition="".join(prepositions),
        german_case=DATIVE if options & {"+D", "+mit"} else ACCUSATIVE,
        german_sein="+S" in options,
        french=forms[0],
        french_present=(first, third or french_third_person(first), forms[2], forms[3]),
        french_participle=forms[4],
        french_future=future,
        french_indirect="+à" in options,
        french_etre="+E" in options,
        objects=tuple(noun for noun in NOUNS if set(noun.kinds) & kinds),
    )


def _verbs(table: str) -> tuple[Verb, ...]:
    return tuple(_verb(row) for row in table.strip().splitlines())


TRANSITIVE = _verbs("""
partldf | see saw               | sehen sieht gesehen             | voir vois voyons voient vu verr
partdof | find found            | finden findet gefunden          | trouver
artdfeq | buy bought            | kaufen kauft gekauft            | acheter achète achetons achètent acheté achèter
artdfeq | sell sold             | verkaufen verkauft verkauft     | vendre vends vendons vendent vendu
w       | write wrote           | schreiben schreibt geschrieben  | écrire écris écrivons écrivent écrit
pr      | understand understood | verstehen versteht verstanden   | comprendre comprends comprenons comprennent compris
o       | open opened           | auf_machen macht gemacht        | ouvrir ouvre ouvrons ouvrent ouvert
o       | close closed          | zu_machen macht gemacht         | fermer
p       | call called           | an_rufen ruft gerufen           | appeler appelle appelons appellent appelé appeller
p       | invite invited        | ein_laden lädt geladen          | inviter
p       | meet met              | treffen trifft getroffen        | rencontrer
l       | visit visited         | besuchen besucht besucht        | visiter
pa      | love loved            | lieben liebt geliebt            | aimer
pa      | hear heard            | hören hört gehört               | entendre entends entendons entendent entendu
p       | help helped           | helfen hilft geholfen +D        | aider
p       | thank thanked         | danken dankt gedankt +D         | remercier
pa      | follow followed       | folgen folgt gefolgt +D +S      | suivre suis suivons suivent suivi
p       | answer answered       | antworten antwortet geantwortet +D | répondre réponds répondons répondent répondu +à
p       | listen listened +to   | zu_hören hört gehört +D         | écouter
p       | talk talked +to       | sprechen spricht gesprochen +mit | parler +à
partdf  | look looked +for      | suchen sucht gesucht            | chercher
p       | wait waited +for      | warten wartet gewartet +auf     | attendre attends attendons attendent attendu
fe      | eat ate               | essen isst gegessen             | manger mange mangeons mangent mangé
q       | drink drank           | trinken trinkt getrunken        | boire bois buvons boivent bu
rtof    | carry carried         | tragen trägt getragen           | porter
rt      | lose lost             | verlieren verliert verloren     | perdre perds perdons perdent perdu
rt      | forget forgot         | vergessen vergisst vergessen    | oublier
ok      | repair repaired       | reparieren repariert repariert  | réparer
d       | turn turned on        | an_machen macht gemacht         | allumer
d       | turn turned off       | aus_machen macht gemacht        | éteindre éteins éteignons éteignent éteint
rt      | bring brought back    | zurück_bringen bringt gebracht  | rapporter
""")

# These have a second object, the person to whom something is given.
DITRANSITIVE = _verbs("""
artf    | give gave             | geben gibt gegeben              | donner
rtlo    | show showed           | zeigen zeigt gezeigt            | montrer
rt      | send sent             | schicken schickt geschickt      | envoyer envoie envoyons envoient envoyé enverr
artf    | sell sold             | verkaufen verkauft verkauft     | vendre vends vendons vendent vendu
""")

INTRANSITIVE = _verbs("""
sleep slept           | schlafen schläft geschlafen     | dormir dors dormons dorment dormi
work worked           | arbeiten arbeitet gearbeitet    | travailler
laugh laughed         | lachen lacht gelacht            | rire ris rions rient ri
sing sang             | singen singt gesungen           | chanter
dance danced          | tanzen tanzt getanzt            | danser
play played           | spielen spielt gespielt         | jouer
cry cried             | weinen weint geweint            | pleurer
arrive arrived        | an_kommen kommt gekommen +S     | arriver +E
leave left            | weg_gehen geht gegangen +S      | partir pars partons partent parti +E
""")

# To, into or from a place.
MOTION = _verbs("""
go went               | gehen geht gegangen +S          | aller vais/va allons vont allé ir +E
come came             | kommen kommt gekommen +S        | venir viens venons viennent venu viendr +E
run ran               | laufen läuft gelaufen +S        | courir cours courons courent couru courr
come came back        | zurück_kommen kommt gekommen +S | revenir reviens revenons reviennent revenu reviendr +E
""")

# In a place.
LOCATIVE = _verbs("""
live lived            | wohnen wohnt gewohnt            | habiter
stay stayed           | bleiben bleibt geblieben +S     | rester +E
""")

# That something is so: say, think. In the present only.
REPORTING = _verbs("""
say said              | sagen sagt gesagt               | dire dis disons disent dit
think thought         | denken denkt gedacht            | penser
hope hoped            | hoffen hofft gehofft            | espérer espère espérons espèrent espéré
""")
KNOW, ASK = _verbs("""
know knew             | wissen weiß gewusst             | savoir sais savons savent su saur
ask asked             | fragen fragt gefragt            | demander
""")
KNOW = dataclasses.replace(KNOW, german_present=("weiß", "weiß", "wissen", "wissen"))

# To do something, with the French preposition before that infinitive.
CONTROL = tuple(
    zip(
        _verbs("""
try tried             | versuchen versucht versucht     | essayer essaie essayons essaient essayé essaier
begin began           | an_fangen fängt gefangen        | commencer commence commençons commencent commencé
decide decided        | beschließen beschließt beschlossen | décider
forget forgot         | vergessen vergisst vergessen    | oublier
"""),
        ("de", "à", "de", "de"),
        strict=True,
    )
)

BE = dataclasses.replace(
    _verb("be was | sein ist gewesen | être suis/est sommes sont été ser"),
    english_present=("am", "is", "are", "are"),
    german_present=("bin", "ist", "sind", "sind"),
    german_past=("war", "war", "waren", "waren"),
    french_past=("étais", "était", "étions", "étaient"),
)

MODALS = (
    Modal("can", ("kann", "kann", "können", "können"), ("peux", "peut", "pouvons", "peuvent")),
    Modal("must", ("muss", "muss", "müssen", "müssen"), ("dois", "doit", "devons", "doivent")),
    Modal("want", ("will", "will", "wollen", "wollen"), ("veux", "veut", "voulons", "veulent")),
)

THAT = Conjunction("(IN that)", "dass", "que")
WHETHER = Conjunction("(IN whether)", "ob", "si")
BECAUSE = Conjunction("(IN because)", "weil", "parce que")
IF = Conjunction("(IN if)", "wenn", "si")
WHEN = Conjunction("(WHADVP (WRB when))", "wenn", "quand")
WHEN_PAST = Conjunction("(WHADVP (WRB when))", "als", "quand")
WHILE = Conjunction("(IN while)", "während", "pendant que")

ANIMALS_CAN = frozenset(("see", "find", "hear", "follow", "eat", "drink", "love", "sleep", "play", "come", "run"))
BENEFIT = frozenset(("buy", "write", "repair", "work", "sing", "dance"))  # for someone
# Verbs of which one says "sees dogs"; not "loves dogs", which French says with an article.
BARE_SUITS = frozenset(("see", "find", "buy", "sell", "write", "hear", "eat", "drink", "carry", "repair"))
