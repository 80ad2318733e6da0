"""Typed records in JSON files: dataclasses that are validated when they are read."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec

from t2tlite.files.atomic_file import write_text

R = TypeVar("R")

# Types of fields; only a damaged file has values that they exclude.
Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
Amount = Annotated[float, msgspec.Meta(ge=0, le=1e100)]  # seconds, operations, losses
FileName = Annotated[str, msgspec.Meta(pattern=r"^[^/\x00]+$", max_length=255)]


def read_record(path: Path, kind: type[R], advice: str) -> R:
    """The record in a JSON file. Fields that `kind` does not have are ignored, so that newer files can be read.

    `kind` is a dataclass, or a type of dict. Raises FileNotFoundError, or ValueError if the file is not JSON or a field
    is missing, of the wrong type or out of range; the message names file and field and ends with `advice`.
    """
    content = path.read_bytes()
    try:
        return msgspec.json.decode(content, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"{path} is damaged: {str(error).rstrip('.')}. {advice}") from error


def write_record(path: Path, record: Any) -> None:
    """Writes a dataclass or a dict as a JSON object, atomically; fields of dataclasses that are None are left out."""
    if not isinstance(record, dict):
        record = dataclasses.asdict(record, dict_factory=lambda fields: {k: v for k, v in fields if v is not None})
    write_text(path, json.dumps(record, indent=2, ensure_ascii=False) + "\n")
