"""TMX, the format in which translation memories are exchanged: sentence pairs, read as
a stream in constant memory.
"""

import functools
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

from t2tlite.data.language_codes import canonical, distance
from t2tlite.files.compression import opened
from t2tlite.files.text_files import check_file

# elements of a segment that hold markup of the document that was translated; that of
# <hi> is text
DOCUMENT_MARKUP = ("bpt", "ept", "it", "ph", "ut")
LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"

Unit = dict[str, str]  # the text of a translation unit in each language


def read_tmx(
    path: Path, source_language: str, target_language: str
) -> Iterator[tuple[str, str]]:
    """Yields (source, target) of each translation unit that has both languages.

    Codes mean what those of the server's requests mean: `en` is also `en_US`, and
    `zh-CN` also `zh-Hans`; the nearest language of a unit counts. The markup of
    documents in a segment is left out, and each text is one line.

    Raises ValueError while reading if the file is not well-formed TMX, or lacks the
    languages.
    """
    pairs = 0
    languages: dict[str, None] = {}  # in order
    for unit in _units(path):
        languages |= dict.fromkeys(unit)
        source = _in_unit(unit, source_language)
        target = _in_unit(unit, target_language)
        if source and target and source != target:
            pairs += 1
            yield unit[source], unit[target]
    if not pairs:
        raise ValueError(
            f"{path} must have units in --source_language={source_language!r} and"
            f" --target_language={target_language!r}. Received:"
            f" {', '.join(languages) or 'none'}."
        )


def _in_unit(unit: Unit, language: str) -> str | None:
    """The language of a unit that is nearest to this one; None if all are others."""
    distances: dict[str, int] = {}
    for name in unit:
        far = _distance(language, name)
        if far is not None:
            distances[name] = far
    return min(distances, key=distances.__getitem__, default=None)


@functools.lru_cache
def _distance(wanted: str, language: str) -> int | None:
    return distance(wanted, canonical(language))


def _units(path: Path) -> Iterator[Unit]:
    try:
        with opened(check_file(path)) as file:
            elements = ElementTree.iterparse(file, ("start", "end"))
            _, body = next(elements)
            for event, element in elements:
                if event == "start" and _local(element) == "body":
                    body = element
                elif event == "end" and _local(element) == "tu":
                    yield _unit(element)
                    body.clear()  # of the units that were read
    # LookupError and ValueError: encodings that expat does not know
    except (ElementTree.ParseError, LookupError, ValueError) as error:
        raise ValueError(
            f"{path} must be TMX in UTF-8, without a DTD: {error}."
        ) from error


def _unit(element: ElementTree.Element) -> Unit:
    """The texts of a translation unit."""
    unit: Unit = {}
    for variant in element.iterfind("{*}tuv"):
        language = variant.get(LANGUAGE) or variant.get("lang") or ""
        segment = variant.find("{*}seg")
        if segment is not None:
            unit.setdefault(language, _text(segment))
    return unit


def _text(segment: ElementTree.Element) -> str:
    """The text of a segment on one line, without the markup of documents."""
    for inner in list(segment.iter()):
        if _local(inner) in DOCUMENT_MARKUP:
            after = inner.tail
            inner.clear()
            inner.tail = after
    lines = "".join(segment.itertext()).splitlines()
    return " ".join(filter(None, map(str.strip, lines)))


def _local(element: ElementTree.Element) -> str:
    """The name of an element without its namespace."""
    return element.tag.rpartition("}")[2]
