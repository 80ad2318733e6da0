"""Typed records in JSON files: frozen dataclasses, read with validation and written in one place."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from t2tlite.files.atomic_file import write_text

R = TypeVar("R")


def read_record(path: Path, kind: type[R], advice: str) -> R:
    """The record in a JSON file. Fields that `kind` does not have are ignored, so that newer files can be read.

    Args:
        path: the file.
        kind: a dataclass.
        advice: what the user can do when the file is damaged, a sentence.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the file is not JSON, or a field is missing or of the wrong type; the message names file and field.
    """
    content = path.read_bytes()
    try:
        return msgspec.json.decode(content, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is damaged: {str(error).rstrip('.')}. {advice}") from error


def write_record(path: Path, record: Any) -> None:
    """Writes a dataclass, or a dict, as a JSON object, whole or not at all; fields that are None are left out.

    Raises:
        OSError: the file cannot be written.
    """
    content = record if isinstance(record, dict) else as_json(record)
    write_text(path, json.dumps(content, indent=2, ensure_ascii=False) + "\n")


def as_json(record: Any) -> dict[str, Any]:
    """A dataclass as a JSON object; fields that are None are left out, also in the records that it holds."""
    return dataclasses.asdict(record, dict_factory=lambda items: {name: v for name, v in items if v is not None})
