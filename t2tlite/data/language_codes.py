"""Language codes of BCP 47, in either case and with `_` for `-`: a pair such as
`en-de`, the pair of a run, English names, and which code a request means.
"""

import importlib.resources
import re

from t2tlite.data.manifest import RunManifest


def _read_names() -> dict[str, str]:
    file = importlib.resources.files(__package__).joinpath("languages.txt")
    lines = file.read_text(encoding="utf-8").splitlines()
    return dict(line.split(" ", 1) for line in lines if not line.startswith("#"))


LANGUAGE_NAMES = _read_names()
CODES = {name.lower(): code for code, name in LANGUAGE_NAMES.items()}
# language, script, region and variants: de, gsw, pt-BR, zh-Hans, de-1996
CODE = re.compile(
    "[a-z]{2,3}(-[a-z]{4})?(-([a-z]{2}|[0-9]{3}))?(-([a-z0-9]{5,8}|[0-9][a-z0-9]{3}))*",
    re.ASCII | re.IGNORECASE,
)
# withdrawn codes, and those that only LibreTranslate has
NEWER_CODES = {"in": "id", "iw": "he", "ji": "yi", "pb": "pt-BR", "zt": "zh-Hant"}
# what a request also means by a code
ALSO = {
    "nb": "no", "no": "nb", "zh": "zh-Hans", "zh-CN": "zh-Hans", "zh-HK": "zh-Hant",
    "zh-MO": "zh-Hant", "zh-SG": "zh-Hans", "zh-TW": "zh-Hant",
}  # fmt: skip


def canonical(text: str) -> str:
    """A code in the spelling of BCP 47, `pt_br` as `pt-BR`; other text as it is."""
    if not is_code(text):
        return text
    language, *parts = text.strip().replace("_", "-").lower().split("-")
    for index, part in enumerate(parts):
        if len(part) == 2:
            parts[index] = part.upper()
        elif len(part) == 4 and part.isalpha():
            parts[index] = part.title()
    return "-".join([NEWER_CODES.get(language, language), *parts])


def distance(wanted: str | None, served: str) -> int | None:
    """How far a served language is from the one that a request names: 0 if it is the
    same or the request names none, None if it is another.

    A region or a script may be served by its language (`en-US` by `en`). A language
    without either may be served by one that has them (`pt` by `pt-BR`).
    """
    if wanted is None:
        return 0
    wanted = canonical(wanted)
    codes = [wanted, ALSO.get(wanted, wanted)]
    while "-" in codes[-1]:
        codes.append(codes[-1].rpartition("-")[0])
    for code in (served, ALSO.get(served)):
        if code in codes:
            return codes.index(code)
    return len(codes) if served.startswith(f"{wanted}-") else None


def language_name(code: str) -> str:
    """The English name of a language; the code itself if it is not a common one."""
    base, _, region = code.partition("-")
    name = LANGUAGE_NAMES.get(code) or LANGUAGE_NAMES.get(base)
    if name is None:
        return code
    return f"{name} ({region})" if region and code not in LANGUAGE_NAMES else name


def parse_pair(text: str) -> tuple[str, str]:
    """The codes of a pair such as `en-de`; ValueError if it is not one.

    In `en-pt-BR` capitals show what is a region; `_` does so too.
    """
    pairs = []
    as_written = []
    parts = text.strip().split("-")
    for middle in range(1, len(parts)):
        source = "-".join(parts[:middle])
        target = "-".join(parts[middle:])
        if is_code(source) and is_code(target):
            pair = canonical(source), canonical(target)
            pairs.append(pair)
            if pair == (source, target):
                as_written.append(pair)
    pairs = as_written or pairs
    if len(pairs) != 1:
        raise ValueError(
            "A language pair must be two codes of BCP 47, such as en-de or en-pt_BR."
            f" Received: {text!r}."
        )
    check_differ(*pairs[0])
    return pairs[0]


def check_differ(source: str, target: str) -> None:
    """Raises ValueError if both languages of a pair are the same."""
    if source and canonical(source) == canonical(target):
        raise ValueError(f"Languages must differ. Received: {source} and {target}.")


def parse_language(text: str) -> str:
    """The code of a language; ValueError if it is not one."""
    if not is_code(text):
        raise ValueError(
            f"A language must be a code of BCP 47, such as pt-BR. Received: {text!r}."
        )
    return canonical(text)


def is_code(text: str) -> bool:
    """Whether a text is a language code."""
    return CODE.fullmatch(text.strip().replace("_", "-")) is not None


def pair_of_run(run: str, manifest: RunManifest, given: str | None) -> tuple[str, str]:
    """The language codes of source and target of a run: as given, such as `en-de`, or
    as its manifest records.

    Raises ValueError if they are not codes, or neither given nor recorded.
    """
    if given is not None:
        return parse_pair(given)
    source, target = manifest.language_pair
    if not (is_code(source) and is_code(target)):
        raise ValueError(
            f"{run} has no codes of its languages. Received: {source!r} and {target!r},"
            f" of {manifest.name}. Add --languages, such as en-de."
        )
    check_differ(source, target)
    return canonical(source), canonical(target)


def contradiction(run: str, manifest: RunManifest, pair: tuple[str, str]) -> str:
    """A line that says so if a run is given other languages than it records, else an
    empty one.
    """
    for recorded, code in zip(manifest.language_pair, pair, strict=True):
        if recorded and distance(CODES.get(recorded.lower(), recorded), code) is None:
            return (
                f"{run} records {'-'.join(manifest.language_pair)}, and --languages"
                f" says {'-'.join(pair)}, which counts. Is it meant for another run?"
            )
    return ""
