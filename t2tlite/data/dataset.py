"""A data directory as t2t-datagen writes it, opened for training and decoding.

    DATA_DIR/NAME/vocab.model             the vocabulary (vocab.subwords if it is of
                                          tensor2tensor's type; vocab.source.* and
                                          vocab.target.* if each language has its own)
    DATA_DIR/NAME/train-00000.arrow ...   token shards; those of train2, dev, test and
                                          so on likewise
    DATA_DIR/NAME/manifest.json           what the data was made from; written last, so
                                          data without it is incomplete

A problem and its `_rev` share one folder, which contains the pairs unreversed. Complete
data that is what would be made now is neither made twice nor overwritten.
"""

import dataclasses
import functools
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from t2tlite import registry
from t2tlite.console import say
from t2tlite.data import manifest as manifests
from t2tlite.data.checked_pairs import ReadText, is_of_t2tlite
from t2tlite.data.problem import Problem
from t2tlite.data.token_store import TokenStore
from t2tlite.files.atomic_file import check_name, check_sha256, file_sha256
from t2tlite.vocabularies.encoders import VocabularyEntry, open_encoders
from t2tlite.vocabularies.text_encoder import TextEncoder

REGENERATE_HINT = "Run t2t-datagen again."  # it makes damaged data again


@dataclasses.dataclass(frozen=True, eq=False)
class Dataset:
    """The complete data of one problem."""

    folder: Path  # DATA_DIR/NAME
    # in the requested direction, as a run trained on the data records it
    manifest: manifests.RunManifest

    def __repr__(self) -> str:
        sizes = [f"{entry.size:,}" for entry in self.manifest.vocabulary_entries()]
        return (
            f"<Dataset: problem {self.name}, {self.manifest.training.pairs:,} pairs,"
            f" vocabulary {' and '.join(sizes)}, folder {self.folder}>"
        )

    @property
    def name(self) -> str:
        """The problem's name, with _rev if source and target are swapped."""
        return self.manifest.name

    @functools.cached_property
    def encoders(self) -> tuple[TextEncoder, TextEncoder]:
        """The encoders of source and target, loaded once; one object if they share a
        vocabulary.
        """
        return open_encoders(
            self.folder, *self.manifest.vocabularies, advice=REGENERATE_HINT
        )

    def store(self, *splits: str) -> TokenStore:
        """The token ids of splits, one after the other. First checks that no shard has
        changed.

        Raises ValueError if there is no such split, and as `check_contents` and
        `TokenStore`.
        """
        shards: list[manifests.ShardEntry] = []
        for split in splits:
            shards += self.manifest.split(split).shards
        check_contents(self.folder, shards)
        paths = [self.folder / shard.file for shard in shards]
        return TokenStore(paths, self.manifest.reverse)


def open_dataset(
    data_dir: str | Path,
    problem_name: str | None = None,
    command: str | None = None,
) -> Dataset:
    """Opens the complete data of a problem.

    `data_dir` is t2t-datagen's --data_dir. `problem_name` may end in `_rev`; None means
    the only problem there. `command` is the command that makes the data, for the
    message; by default t2t-datagen with these two flags.

    Raises FileNotFoundError if there is no such data, and ValueError if its manifest is
    damaged or `data_dir` contains several problems and none is named.
    """
    check_name(data_dir)
    data_dir = Path(data_dir).expanduser()
    finished = []
    for path in sorted(data_dir.glob(f"*/{manifests.MANIFEST}")):
        if manifests.holds_data(path.parent):
            finished.append(path.parent.name)
    there = ", ".join(finished)
    if problem_name is None:
        if len(finished) > 1:
            raise ValueError(
                f"{data_dir} has data of several problems: {there}. Name one."
            )
        problem_name = finished[0] if finished else "PROBLEM"
    base = problem_name.removesuffix("_rev")
    if base not in finished:
        if not command:
            command = f"t2t-datagen --problem={problem_name} --data_dir={data_dir}"
        raise FileNotFoundError(
            f"There is no finished data of {problem_name} in {data_dir}. Received:"
            f" {there or 'none'}. Run {command}."
        )
    folder = data_dir / base
    manifest = manifests.read_manifest(folder)
    is_reversed = problem_name != base
    return Dataset(folder, manifests.RunManifest.of(manifest, is_reversed, data_dir))


def check_contents(
    folder: Path, entries: Iterable[VocabularyEntry | manifests.ShardEntry]
) -> None:
    """Raises FileNotFoundError if a file is missing, and ValueError if it does not
    have the recorded content.

    Reads about 1.5 GB/s.
    """
    for entry in entries:
        check_sha256(folder / entry.file, entry.sha256, REGENERATE_HINT)


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
    if not (folder / manifests.MANIFEST).exists():
        return False
    manifest = manifests.read_manifest(folder)
    files = raw_files(problem, tmp_dir)
    changes = _changed_options(problem, manifest, files)
    if not changes and _has_other_text(problem, manifest, files, tmp_dir):
        changes = [f"{problem.name()} now yields other pairs"]
    if changes:
        raise ValueError(
            f"{folder} has data made from something else: {'; '.join(changes)}. Delete"
            " it, or use another --data_dir."
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
    problem: Problem,
    manifest: manifests.Manifest,
    files: list[Path],
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
    problem: Problem,
    manifest: manifests.Manifest,
    files: list[Path],
    tmp_dir: Path | None,
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
