"""Which of a few languages a text is in: by its letters, and among languages with the same letters by common words."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

SCRIPTS = {
    "ar": "ARABIC", "be": "CYRILLIC", "bg": "CYRILLIC", "bn": "BENGALI", "el": "GREEK", "fa": "ARABIC",
    "gu": "GUJARATI", "he": "HEBREW", "hi": "DEVANAGARI", "hy": "ARMENIAN", "ja": "HIRAGANA KATAKANA CJK",
    "ka": "GEORGIAN", "kk": "CYRILLIC", "ko": "HANGUL", "mk": "CYRILLIC", "ne": "DEVANAGARI", "ru": "CYRILLIC",
    "sr": "CYRILLIC", "ta": "TAMIL", "te": "TELUGU", "th": "THAI", "uk": "CYRILLIC", "ur": "ARABIC", "zh": "CJK",
}  # fmt: skip
LATIN = "LATIN"  # of all other languages
COMMON_WORDS = {
    "cs": "a aby ale ani bude by bylo co jak jako je jeho jen jsem jsme jsou který má na není nebo o od po pro se si s "
    "tak to už v ve z za že",
    "da": "af at blev da de den der det du efter en er et for fra han har hun hvad hvor ikke jeg kan med men når og om "
    "på sig som til var ved vi",
    "de": "aber als am an auch auf aus bei bin bis das dass dem den der des die ein eine einen einer er es für hat ich "
    "im in ist ja kein keine mit nach nicht noch nur oder sein sich sie sind so über um und uns von war was wenn wie "
    "wir wird zu zum zur",
    "en": "a an and are as at be been but by can did do does for from had has have he her his i in is it its not of on "
    "or she so that the their them there they this to was we were what when which who will with would you",
    "es": "a al como con de del el ella en entre era es esta está este fue ha hay la las lo los más me mi muy no nos "
    "o para pero por que se ser si sin sobre son su sus también un una y ya yo",
    "fi": "ei että hän hänen ja joka jos kun kuin mikä minä mukaan mutta myös niin nyt oli on ovat se sen sinä tai "
    "tämä vain voi",
    "fr": "à au aux avec c'est ce ces cette dans de des du elle en est et il ils je la le les leur lui mais me ne nous "
    "on ou où par pas plus pour qu que qui sa se ses si son sont sur un une vous",
    "hu": "a az azt be csak de egy el én és ez ezt ha hogy is kell ki lesz már meg mert mint nagy nem volt van vagy",
    "it": "a al alla anche che chi con come da dal del della delle di e è gli ha ho i il in io la le lo ma mi nel "
    "nella non per più questo se si sono su suo tra un una uno",
    "nl": "aan als bij dan dat de der deze die dit door een en er had hebben heeft het hij ik in is je kan maar met "
    "naar niet nog of om ook op over te tot uit van voor was we wel werd zich zij zijn",
    "no": "alle av at da de den der det du eller en er et etter for fra han har hun hva i ikke jeg kan med men mot når "
    "og om på seg som til var ved vi",
    "pl": "a ale być był była co czy dla do go i jak jako jego jest już ma na nie o od po przez są się tak tego to w z "
    "za że",
    "pt": "a ao as com como da das de do dos e é ela ele em entre era está eu foi há isso mais mas me na não no nos o "
    "os ou para pela pelo por que se sem ser seu sua são também um uma você",
    "ro": "a ai al am ar au ca că care ce cu dar de din el este eu fi în la mai nu o pe pentru prin sau se și sunt un "
    "unei",
    "sv": "allt att av de den det du där efter en ett för från han har hon i inte jag kan man med men mot när och om "
    "på sig som så till var vi är",
    "tr": "ama bir bu çok da daha de değil diye en gibi için ile kadar ki mi ne o olan olarak sonra ve veya ya",
}
WORDS = {code: frozenset(words.split()) for code, words in COMMON_WORDS.items()} | {
    "nb": frozenset(COMMON_WORDS["no"].split()),
}
WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")
READ = 4000  # characters of a text


class Detected(NamedTuple):
    """A language and how much speaks for it."""

    language: str
    confidence: float  # percent


def detect(text: str, candidates: Sequence[str]) -> list[Detected]:
    """The candidates that a text may be in, most likely first.

    Confidence is the share of letters in the language's script, divided among candidates with the same script by the
    common words found. If nothing speaks for any candidate, the first one with confidence 0.
    """
    words = [word.lower() for word in WORD.findall(text[:READ])]
    scripts = Counter(_script(letter) for word in words for letter in word)
    letters = max(1, scripts.total())
    found = []
    for code in candidates:
        base = code.split("_")[0].lower()
        own = _scripts(base)
        share = sum(scripts[script] for script in own) / letters
        if base == "zh" and scripts["HIRAGANA"] + scripts["KATAKANA"] and "ja" in candidates:
            share = 0.0
        if base == "ja" and not scripts["HIRAGANA"] + scripts["KATAKANA"] and "zh" in candidates:
            share = 0.0
        rivals = [other for other in candidates if set(_scripts(other.split("_")[0].lower())) & set(own)]
        if len(rivals) > 1 and base not in ("zh", "ja"):
            hits = {other: _hits(words, other.split("_")[0].lower()) for other in rivals}
            share *= hits[code] / max(1e-9, sum(hits.values()))
        if share > 0:
            found.append(Detected(code, round(100 * share, 1)))
    found.sort(key=lambda one: -one.confidence)
    return found or [Detected(code, 0.0) for code in candidates[:1]]


def _hits(words: Sequence[str], base: str) -> int:
    common = WORDS.get(base, frozenset())
    return sum(word in common for word in words)


def _scripts(base: str) -> list[str]:
    return SCRIPTS.get(base, LATIN).split()


def _script(letter: str) -> str:
    """The first word of a letter's Unicode name, which is its script."""
    return unicodedata.name(letter, "").split(" ")[0]
