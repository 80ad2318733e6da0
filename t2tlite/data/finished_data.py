"""Checks whether complete data is what would be made now: it is neither made twice nor
overwritten.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from t2tlite import registry
from t2tlite.data.dataset import check_contents
from t2tlite.data.manifest import MANIFEST, Manifest, read_manifest
from t2tlite.data.problem import Problem
from t2tlite.files.atomic_file import file_sha256
from t2tlite.vocabularies.normalisation import NONE


def options(problem: Problem) -> dict[str, Any]:
    """The problem's options as the manifest records them, with the SHA-256 of
    vocabulary files.
    """
    fields = {
        field.name: getattr(problem, field.name)
        for field in registry.option_fields(type(problem))
    }
    fields["vocab_file"] = [
        file_sha256(Path(name).expanduser()) for name in problem.vocab_file
    ]
    return _as_recorded(fields)


def _as_recorded(fields: dict[str, Any]) -> dict[str, Any]:
    """The options as they are when read from a manifest: a tuple is a list, a path
    text.
    """
    return json.loads(json.dumps(fields, default=str))


def is_complete(problem: Problem, folder: Path, tmp_dir: Path | None) -> bool:
    """Whether `folder` contains the complete data of `problem`, made with the same
    options from the same raw files.

    Raw files that no longer exist are assumed to be unchanged. Files that have the
    recorded size and modification time are not read again. Data with a missing or
    changed file is not complete.

    Raises ValueError if the folder contains data made from something else, or as
    `read_manifest`.
    """
    if not (folder / MANIFEST).exists():
        return False
    manifest = read_manifest(folder)
    changes = _changes(problem, manifest, tmp_dir)
    if changes:
        raise ValueError(
            f"{folder} already holds complete data made from something else:"
            f" {'; '.join(changes)}. Use another --data_dir, or delete {folder} to make"
            " the data again."
        )
    try:
        check_contents(folder, manifest.entries())
    except (FileNotFoundError, ValueError):
        return False
    return True


def _changes(problem: Problem, manifest: Manifest, tmp_dir: Path | None) -> list[str]:
    """What has changed since the data was made, in words."""
    changes = []
    defaults = {
        field.name: field.default for field in registry.option_fields(type(problem))
    }
    # an option that the manifest lacks is newer than the data, which its default would
    # make
    then, now = _as_recorded(defaults) | manifest.options, options(problem)
    if "normalization" not in manifest.options:
        # made before there was the rule: it stays, unless another is asked for
        then["normalization"] = NONE
        if problem.normalization == defaults["normalization"]:
            now["normalization"] = NONE
    # the same files may be another split's
    if list(manifest.splits) != list(problem.splits()):
        changes.append(
            f"splits were {','.join(manifest.splits)}, now {','.join(problem.splits())}"
        )
    try:
        paths = problem.files(tmp_dir)
    except FileNotFoundError:
        paths = []
    if paths and all(path.is_file() for path in paths):
        # the content of files matters, not their path: options that name them may
        # differ
        names = {path.name for path in paths}
        now = {
            key: then.get(key) if _names_file(value, names) else value
            for key, value in now.items()
        }
        recorded = manifest.made_from
        if len(paths) != len(recorded):
            changes.append(f"{len(recorded)} files then, {len(paths)} now")
        elif not changes:
            for path, entry in zip(paths, recorded, strict=True):
                if not entry.is_of(path):
                    changes.append(f"{path} is not the {entry.file} it was made from")
    for key in sorted({*then, *now}):
        if then.get(key) != now.get(key):
            changes.append(
                f"{key} was {_shown(then.get(key))}, now {_shown(now.get(key))}"
            )
    return changes


def _names_file(value: Any, names: set[str]) -> bool:
    values = value if isinstance(value, list) else [value]
    return any(isinstance(text, str) and Path(text).name in names for text in values)


def _shown(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)
