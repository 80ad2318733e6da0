"""Languages: the pair of each served run, and the detection of a text's language by
py3langid, a naive Bayes classifier of 140 languages.
"""

import functools
from collections.abc import Sequence
from typing import NamedTuple

from py3langid.langid import MODEL_FILE, LanguageIdentifier

from t2tlite.data.language_codes import pair_of_run, parse_language
from t2tlite.data.manifest import RunManifest
from t2tlite.programs.serving.schemas import Detection
from t2tlite.tasks.parsing import ParsingTask
from t2tlite.tasks.task import open_task

TREE = "tree"  # the "language" of a parser's output

# of detection
MAX_READ = 4000  # characters of a text
CLEAR = 1.5  # ratio of the best probability to the second that decides
# A text of a list with no more characters than SHORT is detected by the whole list, as
# LibreTranslate does, unless the percentage of its own language is above CLEAR_ALONE.
SHORT = 40
CLEAR_ALONE = 99


class ServedPair(NamedTuple):
    """What is served: a run, its language codes, and what precedes every source, for a
    run that translates to several languages.
    """

    run: str
    source: str
    target: str
    tag: str = ""


def served_pairs(
    runs: Sequence[str], manifests: Sequence[RunManifest], given: Sequence[str] = ()
) -> list[ServedPair]:
    """The language pair of each run: as given (`en-de`, one for each run), or as its
    manifest records. `en-de:<2de>,en-fr:<2fr>` of one run are two pairs with tags.

    A parser translates to TREE, from English if its manifest names no language; its
    entry in `given` may be the source language alone. Raises ValueError if there are
    not as many pairs as runs, a run has none, or two runs the same.
    """
    texts: list[str | None] = [None] * len(runs)
    tags = [""] * len(runs)
    if given:
        texts = []
        tags = []
        for entry in given:
            pair, _, tag = entry.partition(":")
            texts.append(pair)
            tags.append(tag.strip())
        if len(runs) == 1 and all(tags):
            runs = [*runs] * len(tags)
            manifests = [*manifests] * len(tags)
    if len(texts) != len(runs):
        raise ValueError(
            "--languages needs a pair for each --output_dir, in their order. Received:"
            f" {len(given)} pairs ({','.join(given)}) for {len(runs)} runs."
        )
    served: dict[tuple[str, str], ServedPair] = {}
    for run, manifest, text, tag in zip(runs, manifests, texts, tags, strict=True):
        codes = _pair_of_run(run, manifest, text)
        if codes in served:
            raise ValueError(
                "Each language pair can be served by one run. Received:"
                f" {'-'.join(codes)} for {run} and for {served[codes].run}. Leave one"
                " out, or name their languages with --languages."
            )
        served[codes] = ServedPair(run, *codes, tag)
    return list(served.values())


def _pair_of_run(run: str, manifest: RunManifest, given: str | None) -> tuple[str, str]:
    task = open_task(manifest.task, manifest.options)
    if isinstance(task, ParsingTask):
        source = manifest.language_pair[0] or "en"
        text = source if given is None else given.strip()
        return parse_language(text.removesuffix(f"-{TREE}")), TREE
    return pair_of_run(run, manifest, given)


def detect(text: str, candidates: Sequence[str]) -> list[Detection]:
    """The candidates that a text may be in, most likely first.

    If the text decides for none (it has no letter, or two candidates are about as
    likely), returns the first candidate with confidence 0. A candidate that the
    classifier does not know is never detected.
    """
    undecided = [Detection(language=code, confidence=0.0) for code in candidates[:1]]
    ranking = dict(_identifier().rank(text[:MAX_READ]))
    labels = {code: _label(code) for code in candidates}
    known = ranking.keys() & labels.values()
    probabilities = {label: ranking[label] for label in known}
    *_, second, best = sorted([0.0, 0.0, *probabilities.values()])
    if not best or best < CLEAR * second or not any(map(str.isalpha, text[:MAX_READ])):
        return undecided
    total = sum(probabilities.values())
    detected = []
    for code, label in labels.items():
        percent = round(100 * probabilities.get(label, 0.0) / total, 1)
        if percent > 0:
            detected.append(Detection(language=code, confidence=percent))
    return sorted(detected, key=lambda each: -each.confidence)


def detect_each(
    texts: Sequence[str], candidates: Sequence[str]
) -> list[list[Detection]]:
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


def _label(code: str) -> str:
    """The classifier's label of a language, if it knows the language."""
    label = code.partition("-")[0]
    return "no" if label == "nb" else label


@functools.cache
def _identifier() -> LanguageIdentifier:
    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
