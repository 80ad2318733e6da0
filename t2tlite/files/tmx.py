"""TMX, the format in which translation memories are exchanged: sentence pairs, read as
a stream in constant memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from xml.etree import ElementTree

from t2tlite.files.compression import opened

# elements of a segment that hold markup of the document that was translated; that of
# <hi> is text
DOCUMENT_MARKUP = ("bpt", "ept", "it", "ph", "ut")
LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"
SHOWN_LANGUAGES = 10  # in messages

Unit = dict[str, str]  # the text of a translation unit in each language


def read_tmx(
    path: Path,
    source_language: str,
    target_language: str,
    report: Callable[[str], None],
) -> Iterator[tuple[str, str]]:
    """Yields (source, target) of each translation unit that has both languages.

    Codes are compared without case, and `en` is also `en-US`. If both are empty, the
    file must have two languages; the one that comes first is the source, and `report`
    gets a note. The markup of documents in a segment is left out, and each text is one
    line.

    Raises ValueError while reading: if the file is not well-formed TMX, lacks the
    languages, or if one code is given without the other.
    """
    languages = source_language, target_language
    if any(languages) and not all(languages):
        raise ValueError(
            "source_language and target_language must be given together to read TMX."
            f" Received: {source_language or target_language} alone."
        )
    pairs = 0
    seen: dict[str, None] = {}  # in order
    for unit in _units(path):
        if len(seen) < SHOWN_LANGUAGES:
            seen.update(dict.fromkeys(unit))
        if all(languages):
            source = _chosen(unit, source_language)
            target = _chosen(unit, target_language)
        elif len(seen) == 2:
            source, target = seen
        else:
            source = target = ""
        if source in unit and target in unit and source != target:
            pairs += 1
            yield unit[source], unit[target]
        elif len(seen) > 2 and not all(languages):
            pairs = 0
            break
    if not pairs:
        raise ValueError(
            "A TMX file must have translation units in"
            f" {' and '.join(languages) if all(languages) else 'two languages'}."
            f" Received: {path}, with {', '.join(seen) or 'no units'}. Choose its"
            " languages by --source_language and --target_language."
        )
    if not all(languages):
        report(
            f"{path}: the source is {source}, the target {target}, in the order of the"
            " file; --source_language and --target_language choose."
        )


def _chosen(unit: Unit, language: str) -> str | None:
    """The language of a unit that has this code, or else one that differs by a region;
    None if there is neither.
    """
    wanted = _tag(language)
    near = None
    for name in unit:
        tag = _tag(name)
        if tag == wanted:
            return name
        if near is None and (tag.startswith(wanted) or wanted.startswith(tag)):
            near = name
    return near


def _tag(language: str) -> str:
    """A code to compare: `en-us-` for en_US, which begins with that of en."""
    return language.lower().replace("_", "-") + "-"


def _units(path: Path) -> Iterator[Unit]:
    received = "a document other than <tmx>"
    with opened(path) as file:
        try:
            elements = ElementTree.iterparse(file, ("start", "end"))
            _, root = next(elements)
            is_tmx = _local(root) == "tmx"
            parents = [root]
            for event, element in elements if is_tmx else ():
                if event == "start":
                    parents.append(element)
                    continue
                parents.pop()
                if _local(element) == "tu":
                    yield _unit(element)
                    parents[-1].clear()  # of the units that were read
        # LookupError and ValueError: encodings that expat does not know
        except (ElementTree.ParseError, LookupError, ValueError) as error:
            is_tmx = False
            received = f"XML that cannot be read, {error}"
    if not is_tmx:
        raise ValueError(
            f"{path} must be TMX in plain XML. Received: {received}. Export it again,"
            " in UTF-8 and without a DTD."
        )


def _unit(element: ElementTree.Element) -> Unit:
    """The texts of a translation unit."""
    unit: Unit = {}
    for variant in element:
        language = variant.get(LANGUAGE) or variant.get("lang") or ""
        for segment in variant:
            if _local(segment) == "seg":
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
