"""Language codes: a pair such as `en-de`, the pair of a run, and English names."""

from __future__ import annotations

import re

from t2tlite.data.manifest import RunManifest

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


def pair_of_run(run: str, manifest: RunManifest, given: str | None) -> tuple[str, str]:
    """The language codes of source and target of a run: as given, such as `en-de`, or
    as its manifest records.

    Raises ValueError if they are not codes, or neither given nor recorded.
    """
    if given is not None:
        return parse_pair(given)
    source, target = manifest.language_pair
    if not (source and target):
        raise ValueError(
            f"--languages must be given, since {run} does not record its languages"
            f" (problem {manifest.name}). Add --languages=en-de, the codes of source"
            " and target."
        )
    if {source.lower(), target.lower()} & set(CODES):
        raise ValueError(
            f"--languages must be given, since the languages that {run} records are not"
            f" codes. Received: {source} and {target}. Add"
            f" --languages={_code(source)}-{_code(target)}."
        )
    return source, target
