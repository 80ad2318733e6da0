"""Typed records in JSON files: dataclasses with the version of their format, validated
when they are read.
"""

import dataclasses
import json
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec

from t2tlite.files.atomic_file import write_text
from t2tlite.files.own_files import own

R = TypeVar("R")

# Types of fields; only a damaged file has values that they exclude.
Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
Positive = Annotated[int, msgspec.Meta(ge=1, le=2**63 - 1)]
Amount = Annotated[float, msgspec.Meta(ge=0, le=1e100)]  # seconds, operations, losses
# of a file, problem, split or language: they become parts of paths
NAME = r"^\w[\w.-]*\Z"
Name = Annotated[str, msgspec.Meta(pattern=NAME, max_length=200)]
LanguageName = Annotated[str, msgspec.Meta(pattern=r"^[\w() .-]*\Z", max_length=200)]


# of every record; raised when older readers would misread a changed one
FORMAT_VERSION = 1


@dataclasses.dataclass(frozen=True)
class _Header:
    """What a record begins with."""

    format_version: int = 0  # 0: there is none


def read_record(
    path: Path, kind: type[R], advice: str, *, unversioned: bool = False
) -> R:
    """The record in a JSON file, as `write_record` wrote it. Fields that `kind` does
    not have are ignored.

    `kind` is a dataclass, or a type of dict. With `unversioned`, a file without a
    format version is read as well: older versions of t2tlite wrote some. Raises
    FileNotFoundError, or ValueError if the file is not JSON, its format version is
    another, or a field is missing, of the wrong type or out of range. The message names
    file and field, and ends with `advice`.
    """
    content = path.read_bytes()
    try:
        version = msgspec.json.decode(content, type=_Header).format_version
        if version == FORMAT_VERSION or (unversioned and not version):
            record = msgspec.json.decode(content, type=kind)
            if isinstance(record, dict):
                record.pop("format_version", None)
            return record
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise ValueError(
            f"{path} is damaged: {str(error).rstrip('.')}. {advice}"
        ) from error
    raise ValueError(
        f"{path} must have format_version {FORMAT_VERSION}. Received:"
        f" {version or 'none'}. Use the t2tlite that wrote it. {advice}"
    )


def write_record(path: Path, record: Any) -> None:
    """Writes a dataclass, without fields that are None, or a dict as a JSON object,
    atomically; the file is t2tlite's own.
    """
    versioned = {"format_version": FORMAT_VERSION}
    if isinstance(record, dict):
        versioned |= record
    else:
        versioned |= dataclasses.asdict(record, dict_factory=_without_none)
    write_text(own(path), json.dumps(versioned, indent=2, ensure_ascii=False) + "\n")


def _without_none(items: list[tuple[str, Any]]) -> dict[str, Any]:
    return {name: value for name, value in items if value is not None}
