"""Languages: the pair of each served run, English names, and the detection of a text's
language by py3langid, a naive Bayes classifier of 140 languages.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import re
from collections.abc import Sequence

from py3langid.langid import MODEL_FILE, LanguageIdentifier
from pydantic import Field

from t2tlite.data.manifest import RunManifest
from t2tlite.programs.serving.options import ServedRunOptions
from t2tlite.programs.serving.schemas import Code, ResponseBody
from t2tlite.tasks.parsing import ParsingTask
from t2tlite.tasks.task import open_task

TREE = "tree"  # the "language" of a parser's output
NAMES = {
    "ar": "Arabic", "az": "Azerbaijani", "be": "Belarusian", "bg": "Bulgarian",
    "bn": "Bengali", "bs": "Bosnian", "ca": "Catalan", "cs": "Czech", "cy": "Welsh",
    "da": "Danish", "de": "German", "el": "Greek", "en": "English", "eo": "Esperanto",
    "es": "Spanish", "et": "Estonian", "eu": "Basque", "fa": "Persian", "fi": "Finnish",
    "fr": "French", "ga": "Irish", "gl": "Galician", "gu": "Gujarati", "he": "Hebrew",
    "hi": "Hindi", "hr": "Croatian", "hu": "Hungarian", "hy": "Armenian",
    "id": "Indonesian", "is": "Icelandic", "it": "Italian", "ja": "Japanese",
    "ka": "Georgian", "kk": "Kazakh", "ko": "Korean", "la": "Latin",
    "lb": "Luxembourgish", "lt": "Lithuanian", "lv": "Latvian", "mk": "Macedonian",
    "ms": "Malay", "mt": "Maltese", "nb": "Norwegian Bokmål", "ne": "Nepali",
    "nl": "Dutch", "nn": "Norwegian Nynorsk", "no": "Norwegian", "pl": "Polish",
    "pt": "Portuguese", "ro": "Romanian", "ru": "Russian", "sk": "Slovak",
    "sl": "Slovenian", "sq": "Albanian", "sr": "Serbian", "sv": "Swedish",
    "sw": "Swahili", "ta": "Tamil", "te": "Telugu", "th": "Thai", "tl": "Tagalog",
    "tr": "Turkish", "uk": "Ukrainian", "ur": "Urdu", "uz": "Uzbek", "vi": "Vietnamese",
    "zh": "Chinese",
}  # fmt: skip
CODES = {name.lower(): code for code, name in NAMES.items()}
CODE = re.compile(r"[A-Za-z]{2,3}(?:_[A-Za-z0-9]{2,8})*")  # de, gsw, pt_BR

# of detection
MAX_READ = 4000  # characters of a text
CLEAR = 1.5  # ratio of the best probability to the second that decides
# A text of a list with no more characters than SHORT is detected by the whole list, as
# LibreTranslate does, unless the percentage of its own language is above CLEAR_ALONE.
SHORT = 40
CLEAR_ALONE = 99
# the least probability among all 140 languages, if the classifier does not know all
# candidates
SURE = 0.5


def language_name(code: str) -> str:
    """The English name of a language; the code itself if it is not a common one."""
    base, _, region = code.partition("_")
    name = NAMES.get(code) or NAMES.get(base.lower())
    if name is None:
        return code
    return f"{name} ({region})" if region else name


def parse_pair(text: str) -> tuple[str, str]:
    """The codes of a pair such as `en-de`; ValueError if it is not one."""
    source, _, target = text.strip().partition("-")
    if not (CODE.fullmatch(source) and CODE.fullmatch(target)):
        raise ValueError(
            "A language pair must be SOURCE-TARGET, two codes of ISO 639 such as en-de"
            f" or en-pt_BR. Received: {text!r}. {_advice(text)}"
        )
    pair = _lower(source), _lower(target)
    if pair[0] == pair[1]:
        raise ValueError(f"The languages of a pair must differ. Received: {text!r}.")
    return pair


def parse_language(text: str) -> str:
    """The code of a language; ValueError if it is not one."""
    code = text.strip()
    if not CODE.fullmatch(code):
        advice = "Write its code."
        if code.lower() in CODES:
            advice = f"Write {_code(code)}."
        raise ValueError(
            "A language must be a code of ISO 639 such as en or pt_BR. Received:"
            f" {text!r}. {advice}"
        )
    return _lower(code)


def _code(language: str) -> str:
    """The code of a language that is given by its English name or its code."""
    return CODES.get(language.lower(), language)


def _lower(code: str) -> str:
    """A code with the language in lower case, as clients write it: EN becomes en."""
    language, separator, region = code.partition("_")
    return language.lower() + separator + region


def _advice(text: str) -> str:
    """What to write instead of a text that is not a language pair."""
    words = re.split(r"[\W_]+", text.strip())
    if len(words) == 3 and words[1].lower() == "to":
        del words[1]
    if len(words) > 3:
        return "Separate pairs by commas."
    if len(words) == 3:
        return "Write a region behind _, as in pt_BR-en."
    codes = []
    for word in words:
        code = _code(word)
        if CODE.fullmatch(code):
            codes.append(_lower(code))
    if len(codes) == 2:
        return f"Write {'-'.join(codes)}."
    return "Write a code of two or three letters for each, and - between them."


def with_tags(options: ServedRunOptions) -> ServedRunOptions:
    """The options with a run, a pair and a tag for each entry of `languages`, in which
    a tag follows a colon.

    `en-de:<2de>,en-fr:<2fr>` of one run gives (RUN, RUN), (en-de, en-fr) and (<2de>,
    <2fr>).
    """
    pairs = []
    tags = []
    for text in options.languages:
        pair, colon, tag = text.partition(":")
        if colon and "-" not in pair:
            parse_pair(text)  # raises: en:de is not a pair with a tag
        pairs.append(pair)
        tags.append(tag.strip())
    runs = options.runs
    if len(runs) == 1 and tags and all(tags):  # one run translates to several languages
        runs *= len(tags)
    return dataclasses.replace(
        options, runs=runs, languages=tuple(pairs), tags=tuple(tags)
    )


def language_pairs(
    runs: Sequence[str], manifests: Sequence[RunManifest], given: Sequence[str] = ()
) -> list[tuple[str, str]]:
    """The language pair of each run: as given (`en-de`, one for each run), or as its
    manifest records.

    A parser translates to TREE, from English if its manifest names no language; its
    entry in `given` may be the source language alone. Raises ValueError if there are
    not as many pairs as runs, a run has none, or two runs the same.
    """
    if given and len(given) != len(runs):
        raise ValueError(
            "--languages needs a pair for each --output_dir, in their order. Received:"
            f" {len(given)} pairs ({','.join(given)}) for {len(runs)} runs."
        )
    run_of: dict[tuple[str, str], str] = {}
    for i, (run, manifest) in enumerate(zip(runs, manifests, strict=True)):
        pair = _pair_of_run(run, manifest, given[i] if given else None)
        if pair in run_of:
            raise ValueError(
                "Each language pair can be served by one run. Received:"
                f" {'-'.join(pair)} for {run} and for {run_of[pair]}. Leave one out, or"
                " name their languages with --languages."
            )
        run_of[pair] = run
    return list(run_of)


def _pair_of_run(run: str, manifest: RunManifest, given: str | None) -> tuple[str, str]:
    source, target = manifest.language_pair
    task = open_task(manifest.task, manifest.options)
    if isinstance(task, ParsingTask):
        text = source or "en" if given is None else given.strip()
        return parse_language(text.removesuffix(f"-{TREE}")), TREE
    if given is not None:
        return parse_pair(given)
    if not (source and target):
        raise ValueError(
            f"--languages must be given, since {run} does not record its languages"
            f" (problem {manifest.name}). Add --languages=en-de, the codes of source"
            " and target, with a pair for each --output_dir."
        )
    if {source.lower(), target.lower()} & set(CODES):
        raise ValueError(
            f"--languages must be given, since the languages that {run} records are not"
            f" codes. Received: {source} and {target}. Add"
            f" --languages={_code(source)}-{_code(target)}."
        )
    return source, target


class LibreDetection(ResponseBody):
    """A language that a text may be in."""

    confidence: float = Field(description="Percent.", examples=[90.0])
    language: Code


def detect(text: str, candidates: Sequence[str]) -> list[LibreDetection]:
    """The candidates that a text may be in, most likely first.

    If the text decides for none (it has no letter, or two candidates are about as
    likely), returns the first candidate with confidence 0. A candidate that the
    classifier does not know is never detected.
    """
    undecided = []
    for code in candidates[:1]:
        undecided.append(LibreDetection(language=code, confidence=0.0))
    text = text[:MAX_READ]
    if not any(character.isalpha() for character in text):
        return undecided
    labels = {}
    for code in candidates:
        label = _label(code)
        if label is not None:
            labels[code] = label
    if not labels:
        return undecided
    knows_all = len(labels) == len(set(candidates))
    known = frozenset(labels.values())
    ranking = _identifier(known if knows_all else None).rank(text)
    probabilities = {label: float(value) for label, value in ranking}
    *_, second, best = sorted([0.0, 0.0, *(probabilities[label] for label in known)])
    if best < CLEAR * second or (not knows_all and best < SURE):
        return undecided
    detected = []
    for code, label in labels.items():
        percent = round(100 * probabilities[label], 1)
        if percent > 0:
            detected.append(LibreDetection(language=code, confidence=percent))
    return sorted(detected, key=_unlikeliness)


def _unlikeliness(detection: LibreDetection) -> float:
    return -detection.confidence


def detect_each(
    texts: Sequence[str], candidates: Sequence[str]
) -> list[list[LibreDetection]]:
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


def _label(code: str) -> str | None:
    """The classifier's label of a language code, or None if it does not know the
    language.
    """
    label = code.partition("_")[0].lower()
    if label == "nb":
        label = "no"
    return label if label in _identifier().labels else None


@functools.lru_cache(maxsize=64)
def _identifier(labels: frozenset[str] | None = None) -> LanguageIdentifier:
    """The classifier, restricted to some languages or not at all."""
    if labels is None:
        return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    restricted = copy.copy(_identifier())
    restricted.set_languages(labels)
    return restricted
