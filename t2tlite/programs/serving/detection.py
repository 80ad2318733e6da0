"""Which of the languages served a text is in."""

import functools
from collections.abc import Sequence

from py3langid.langid import MODEL_FILE, LanguageIdentifier

from t2tlite.programs.serving import schemas

MAX_READ = 4000  # characters of a text
CLEAR = 1.5  # ratio of the best probability to the second that decides
# A text of a list with no more characters than SHORT is detected by the whole list, as
# LibreTranslate does, unless the percentage of its own language is above CLEAR_ALONE.
SHORT = 40
CLEAR_ALONE = 99


def detect(text: str, candidates: Sequence[str]) -> list[schemas.Detection]:
    """The candidates that a text may be in, most likely first.

    If the text decides for none (it has no letter, or two candidates are about as
    likely), returns the first candidate with confidence 0. A candidate that the
    classifier does not know is never detected.
    """
    text = text[:MAX_READ]
    ranking = dict(_identifier().rank(text))
    labels = {}
    probabilities = {}  # of labels
    for code in candidates:
        language = code.partition("-")[0]
        labels[code] = "no" if language == "nb" else language
        probabilities[labels[code]] = ranking.get(labels[code], 0.0)
    *_, second, best = sorted([0.0, 0.0, *probabilities.values()])
    if not best or best < CLEAR * second or not any(map(str.isalpha, text)):
        return [
            schemas.Detection(language=code, confidence=0) for code in candidates[:1]
        ]
    detected = []
    for code, label in labels.items():
        percent = round(100 * probabilities[label] / sum(probabilities.values()), 1)
        if percent > 0:
            detected.append(schemas.Detection(language=code, confidence=percent))
    return sorted(detected, key=lambda each: -each.confidence)


def detect_each(
    texts: Sequence[str],
    candidates: Sequence[str],
) -> list[list[schemas.Detection]]:
    """The candidates that each text of a list may be in, most likely first.

    A text that is short and not clear, or that decides for no candidate, has the
    language of the whole list.
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


@functools.cache
def _identifier() -> LanguageIdentifier:
    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
