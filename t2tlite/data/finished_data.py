"""Checks whether complete data is what would be made now, so that it is neither made
twice nor overwritten.
"""

import json
import os
from pathlib import Path
from typing import Any

from t2tlite import registry
from t2tlite.console import say
from t2tlite.data.checked_pairs import ReadText, is_of_t2tlite
from t2tlite.data.dataset import check_contents
from t2tlite.data.manifest import MANIFEST, Manifest, read_manifest
from t2tlite.data.problem import Problem
from t2tlite.files.atomic_file import file_sha256


def options(problem: Problem) -> dict[str, Any]:
    """The problem's options as the manifest records them, with the SHA-256 of
    vocabulary files.
    """
    fields = {}
    for field in registry.option_fields(type(problem)):
        fields[field.name] = getattr(problem, field.name)
    hashes = [file_sha256(Path(name).expanduser()) for name in problem.vocab_file]
    fields["vocab_file"] = hashes
    fields["drop"] = sorted(set(problem.drop))
    return _as_recorded(fields)


def _as_recorded(fields: dict[str, Any]) -> dict[str, Any]:
    """The options as a manifest has them: a tuple becomes a list, a path text."""
    return json.loads(json.dumps(fields, default=str))


def is_complete(problem: Problem, folder: Path, tmp_dir: Path | None) -> bool:
    """Whether `folder` contains the complete data of `problem`, made with the same
    options from the same text. Data with a missing or changed file is not complete.

    Raises ValueError if the folder contains data made from something else, or as
    `read_manifest`.
    """
    if not (folder / MANIFEST).exists():
        return False
    manifest = read_manifest(folder)
    files = raw_files(problem, tmp_dir)
    changes = _changed_options(problem, manifest, files)
    if not changes and _has_other_text(problem, manifest, files, tmp_dir):
        changes = [f"{problem.name()} now yields other pairs"]
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


def raw_files(problem: Problem, tmp_dir: Path | None) -> list[Path]:
    """The raw files of a problem, pipes included; none if one is missing."""
    try:
        return problem.files(tmp_dir)
    except FileNotFoundError:
        return []


def _changed_options(
    problem: Problem, manifest: Manifest, files: list[Path]
) -> list[str]:
    """The options that have changed since the data was made, in words. Of files the
    content counts, not their path.
    """
    fields = registry.option_fields(type(problem))
    # one that the manifest lacks is newer than the data, which its default would make
    then = _as_recorded({field.name: field.default for field in fields})
    then |= manifest.options | {"splits": list(manifest.splits)}
    now = options(problem) | {"splits": list(problem.splits())}
    names = set(map(os.path.basename, files))
    changes = []
    for name, value in sorted(now.items()):
        before = _texts(then[name])
        after = _texts(value)
        if before != after and names.isdisjoint(map(os.path.basename, after)):
            changes.append(f"{name} was {','.join(before)}, now {','.join(after)}")
    return changes


def _texts(value: Any) -> list[str]:
    """The entries of an option, a list or a single value."""
    if not isinstance(value, list):
        return [str(value)]
    return list(map(str, value)) or ["none"]


def _has_other_text(
    problem: Problem, manifest: Manifest, files: list[Path], tmp_dir: Path | None
) -> bool:
    """Whether a problem yields other pairs than its data was made from.

    Those of t2tlite yield the same pairs from the same files, or from files that are no
    longer there. A user's problem, a pipe and other files are read, and their pairs
    compared by their hash. Pairs that cannot be read are assumed to be unchanged, which
    is reported.
    """
    recorded = [entry.sha256 for entry in manifest.made_from]
    are_files = all(map(Path.is_file, files))  # and not pipes
    are_same = are_files and list(map(file_sha256, files)) == recorded
    if is_of_t2tlite(problem) and (are_same or not files):
        return False
    if not manifest.text_sha256:
        return not are_same
    text = ReadText(problem, tmp_dir)
    try:
        for split in text.splits:
            for _ in text.chunks(split):
                pass
    except Exception as error:  # of a user's code
        say(f"Its data is kept, since the pairs cannot be read to compare: {error}")
        return False
    return text.sha256() != manifest.text_sha256
