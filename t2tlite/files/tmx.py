"""TMX, the format in which translation memories are exchanged: sentence pairs, read as
a stream in constant memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn
from xml.parsers import expat

from t2tlite.files.compression import opened

BLOCK = 1 << 16  # bytes that are parsed at once
# elements of a segment that hold markup of the document that was translated; that of
# <hi> is text
MARKUP = ("bpt", "ept", "it", "ph", "ut")
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

    Raises ValueError while reading: if the file is not well-formed TMX, declares
    entities or lacks the languages, or if one code is given without the other.
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
    parser = _Parser(path)
    with opened(path) as file:
        while block := file.read(BLOCK):
            yield from parser.parse(block)
    yield from parser.parse(b"", is_last=True)


class _NotTmxError(ValueError):
    """A file is not TMX that can be read."""


class _Parser:
    """Collects the translation units of a TMX file, block by block."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._root = ""
        self._units: list[Unit] = []  # that have ended in the present block
        self._unit: Unit = {}
        self._language = ""
        self._text: list[str] | None = None  # of a segment
        self._depth = 0  # of the elements in one of MARKUP, itself included
        self._xml = expat.ParserCreate()
        self._xml.buffer_text = True
        self._xml.StartElementHandler = self._start
        self._xml.EndElementHandler = self._end
        self._xml.CharacterDataHandler = self._characters
        # entities can expand without end, or name other files
        self._xml.EntityDeclHandler = self._refuse
        self._xml.SkippedEntityHandler = self._refuse

    def parse(self, block: bytes, is_last: bool = False) -> list[Unit]:
        """The units that end in the next block."""
        self._units = []
        try:
            self._xml.Parse(block, is_last)
        except _NotTmxError:
            raise
        # LookupError and ValueError: encodings that expat does not know
        except (expat.ExpatError, LookupError, ValueError) as error:
            raise self._error(f"XML that cannot be read, {error}") from error
        return self._units

    def _start(self, element: str, attributes: dict[str, str]) -> None:
        name = _local(element)
        self._root = self._root or name
        if self._root != "tmx":
            raise self._error(f"a document <{element}>")
        if name == "tu":
            self._unit = {}
        elif name == "tuv":
            self._language = attributes.get("xml:lang") or attributes.get("lang", "")
        elif name == "seg":
            self._text = []
            self._depth = 0
        elif name in MARKUP or self._depth:
            self._depth += 1

    def _end(self, element: str) -> None:
        name = _local(element)
        if name == "tu":
            self._units.append(self._unit)
        elif name == "seg":
            lines = "".join(self._text or []).splitlines()
            text = " ".join(filter(None, map(str.strip, lines)))
            self._unit.setdefault(self._language, text)
            self._text = None
        elif self._depth:
            self._depth -= 1

    def _characters(self, text: str) -> None:
        if self._text is not None and not self._depth:
            self._text.append(text)

    def _refuse(self, entity: str, *_: object) -> NoReturn:
        raise self._error(f"the entity {entity!r}, which XML does not define")

    def _error(self, received: str) -> ValueError:
        return _NotTmxError(
            f"{self._path} must be TMX in plain XML. Received: {received}. Export it"
            " again, in UTF-8 and without a DTD."
        )


def _local(name: str) -> str:
    """The name of an element without a prefix."""
    return name.rpartition(":")[2]
