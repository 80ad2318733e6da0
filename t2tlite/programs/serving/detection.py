"""Which of the served languages a text is in, by py3langid, a naive Bayes classifier of
140 languages.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Sequence

from py3langid.langid import MODEL_FILE, LanguageIdentifier

from t2tlite.programs.serving.schemas import LibreDetection

READ = 4000  # characters of a text
CLEAR = 1.5  # how much likelier than the next language one must be
# A text of a list with no more characters than this is detected by the whole list, as
# LibreTranslate does, unless its own language is as clear as this, in percent
SHORT = 40
CLEAR_ALONE = 99
# the probability that one needs among all 140, if the classifier does not know all
# candidates
SURE = 0.5


def detect(text: str, candidates: Sequence[str]) -> list[LibreDetection]:
    """The candidates that a text may be in, most likely first.

    If nothing speaks for one of them (no letter, or two are about as likely), the first
    one with confidence 0. A candidate that the classifier does not know is never
    detected.
    """
    undecided = [
        LibreDetection(language=code, confidence=0.0) for code in candidates[:1]
    ]
    text = text[:READ]
    if not any(character.isalpha() for character in text):
        return undecided
    labels = {code: _label(code) for code in candidates}
    known = frozenset(label for label in labels.values() if label is not None)
    if not known:
        return undecided
    restricted = None not in labels.values()
    probabilities = dict(_identifier(known if restricted else None).rank(text))
    best, second = sorted(
        [0.0, 0.0, *(float(probabilities[label]) for label in known)]
    )[:-3:-1]
    if best < CLEAR * second or (not restricted and best < SURE):
        return undecided
    percents = {
        code: round(100 * float(probabilities[label]), 1)
        for code, label in labels.items()
        if label
    }
    return [
        LibreDetection(language=code, confidence=percent)
        for code, percent in sorted(percents.items(), key=lambda item: -item[1])
        if percent > 0
    ]


def detect_each(
    texts: Sequence[str], candidates: Sequence[str]
) -> list[list[LibreDetection]]:
    """The candidates that each text of a list may be in, most likely first.

    A text that is short and not clear, or for which nothing speaks for one of them, is
    taken to be in the language of the whole list.
    """
    whole = detect("\n".join(texts), candidates)
    if len(texts) == 1:
        return [whole]
    detected = []
    for text in texts:
        ranked = detect(text, candidates)
        needed = CLEAR_ALONE if len(text) <= SHORT else 0
        is_clear = bool(ranked) and ranked[0].confidence > needed
        detected.append(ranked if is_clear else whole)
    return detected


def _label(code: str) -> str | None:
    """The classifier's label of a language code, or None if it does not know the
    language.
    """
    base = code.split("_")[0].lower()
    label = {"nb": "no"}.get(base, base)
    return label if label in _identifier().labels else None


@functools.lru_cache(maxsize=64)
def _identifier(labels: frozenset[str] | None = None) -> LanguageIdentifier:
    """The classifier, restricted to some languages or not at all."""
    if labels is None:
        return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    restricted = copy.copy(_identifier())
    restricted.set_languages(labels)
    return restricted
