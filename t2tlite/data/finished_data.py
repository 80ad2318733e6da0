"""Checks whether complete data is what would be made now, so that it is neither made
twice nor overwritten.
"""

import json
from pathlib import Path
from typing import Any

from t2tlite import registry
from t2tlite.console import say
from t2tlite.data.checked_pairs import ReadText, is_of_t2tlite
from t2tlite.data.dataset import check_contents
from t2tlite.data.learn_vocabulary import given_vocabularies
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
    fields["vocab_file"] = list(map(file_sha256, given_vocabularies(problem)))
    fields["drop"] = sorted(set(problem.drop))
    return _as_recorded(fields)


def is_complete(problem: Problem, folder: Path, tmp_dir: Path | None) -> bool:
    """Whether `folder` contains the complete data of `problem`, made with the same
    options from the same raw files.

    Raw files that no longer exist are assumed to be unchanged. Files that have the
    recorded size and modification time are not read again. Data with a missing or
    changed file is not complete. The problems of t2tlite are defined by their options
    and files. A user's problem is defined by its code, which nothing but its pairs
    shows: they are read and compared by their hash.

    Raises ValueError if the folder contains data made from something else, or as
    `read_manifest`.
    """
    if not (folder / MANIFEST).exists():
        return False
    manifest = read_manifest(folder)
    changes = _changes(problem, manifest, raw_files(problem, tmp_dir))
    if not changes and _yields_other_pairs(problem, manifest, tmp_dir):
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


def _changes(problem: Problem, manifest: Manifest, paths: list[Path]) -> list[str]:
    """What has changed since the data was made, in words: options, or raw files."""
    files = [path for path in paths if path.is_file()]
    are_there = len(files) == len(paths)
    now = options(problem) | {"splits": list(problem.splits())}
    # an option that the manifest lacks is newer than the data, which its default would
    # make
    fields = registry.option_fields(type(problem))
    then = _as_recorded({field.name: field.default for field in fields})
    then |= manifest.options | {"splits": list(manifest.splits)}
    # none without all files
    names = {path.name for path in files if are_there}
    changes = []
    for key, value in sorted(now.items()):
        before = _texts(then[key])
        after = _texts(value)
        # the content of files counts, not their path
        are_files = not names.isdisjoint(Path(text).name for text in after)
        if before != after and not are_files:
            shown = [",".join(texts) or "none" for texts in (before, after)]
            changes.append(f"{key} was {shown[0]}, now {shown[1]}")
    if changes or not paths or not are_there:
        return changes
    if len(paths) != len(manifest.made_from):
        return [f"{len(manifest.made_from)} files then, {len(paths)} now"]
    for path, entry in zip(paths, manifest.made_from, strict=True):
        if not entry.is_of(path):
            changes.append(f"{path} is not the {entry.file} it was made from")
    return changes


def _yields_other_pairs(
    problem: Problem, manifest: Manifest, tmp_dir: Path | None
) -> bool:
    """Whether a user's problem, or a pipe, yields other pairs than its data was made
    from. Pairs that cannot be read are assumed to be unchanged, which is reported.
    """
    are_files = all(path.is_file() for path in raw_files(problem, tmp_dir))
    if (is_of_t2tlite(problem) and are_files) or not manifest.text_sha256:
        return False
    text = ReadText(problem, tmp_dir)
    try:
        for split in text.pairs:
            for _ in text.chunks(split):
                pass
    except (OSError, ValueError) as error:
        say(f"Its data is kept, since the pairs cannot be read to compare: {error}")
        return False
    return text.sha256() != manifest.text_sha256


def _as_recorded(fields: dict[str, Any]) -> dict[str, Any]:
    """The options as a manifest has them: a tuple becomes a list, a path text."""
    return json.loads(json.dumps(fields, default=str))


def _texts(value: Any) -> list[str]:
    """The entries of an option, a list or a single value."""
    return list(map(str, value if isinstance(value, list) else [value]))
