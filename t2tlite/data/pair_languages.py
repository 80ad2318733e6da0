"""Reports training texts in another language than most, if py3langid is installed."""

from __future__ import annotations

import collections
import functools
from collections.abc import Callable, Iterable

from t2tlite.console import say

MIN_TEXTS = 1000  # of a side; what most are in would mean little for fewer
MIN_CHARACTERS = 20  # of a text that is identified
MIN_PROBABILITY = 0.9  # with which a text counts as one of another language
EXAMPLES = 3
SHOWN_CHARACTERS = 60  # of an example

Classifier = Callable[[str], tuple[str, float]]  # text -> language and probability


def report_languages(what: str, texts: Iterable[str]) -> None:
    """Says how many of `texts`, a sample of `what`, seem to be in another language than
    most, with examples. Takes a tenth of a millisecond a text.
    """
    texts = [text for text in texts if len(text) >= MIN_CHARACTERS]
    classify = _classifier() if len(texts) >= MIN_TEXTS else None
    if classify is None:
        return
    by_language = collections.defaultdict(list)
    for text in texts:
        language, probability = classify(text)
        if probability >= MIN_PROBABILITY:
            by_language[language].append(text)
    most = max(by_language, key=lambda name: len(by_language[name]), default="")
    others = by_language.keys() - {most}
    if not others:
        return
    examples = []
    count = 0
    for language in sorted(others):
        count += len(by_language[language])
        for text in by_language[language]:
            examples.append(f"\n    {language}: {text[:SHOWN_CHARACTERS]}")
    say(
        f"Of {len(texts):,} {what}, {count:,} seem to be in another language than most,"
        f" {most}.{''.join(examples[:EXAMPLES])}"
    )


@functools.cache
def _classifier() -> Classifier | None:
    """py3langid's, or None if it is not installed or cannot write its temporary file.
    Loading it takes a second.
    """
    try:
        from py3langid.langid import MODEL_FILE, LanguageIdentifier
    except ImportError:
        return None
    try:
        identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    except OSError as error:
        say(f"The languages of the texts are not checked: {error}.")
        return None
    classify: Classifier = identifier.classify
    return classify
