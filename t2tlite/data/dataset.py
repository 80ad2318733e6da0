"""A data directory as t2t-datagen writes it, opened for training and decoding.

    DATA_DIR/NAME/vocab.model             the vocabulary (vocab.subwords if it is of
                                          tensor2tensor's type; vocab.source.* and
                                          vocab.target.* if each language has its own)
    DATA_DIR/NAME/train-00000.arrow ...   token shards; those of train2, dev, test and
                                          so on likewise
    DATA_DIR/NAME/manifest.json           what the data was made from; written last, so
                                          data without it is incomplete

A problem and its `_rev` share one folder, which contains the pairs unreversed.
"""

import dataclasses
import functools
import itertools
import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from t2tlite.data.manifest import (
    MANIFEST,
    Manifest,
    RunManifest,
    ShardEntry,
    holds_data,
    read_manifest,
)
from t2tlite.data.token_store import TokenStore
from t2tlite.files.atomic_file import check_name, check_sha256
from t2tlite.vocabularies.encoders import VocabularyEntry, open_encoders
from t2tlite.vocabularies.text_encoder import TextEncoder

REGENERATE_HINT = "Run t2t-datagen again."  # it makes damaged data again


@dataclasses.dataclass(frozen=True, eq=False)
class Dataset:
    """The complete data of one problem."""

    folder: Path  # DATA_DIR/NAME
    # in the requested direction, as a run trained on the data records it
    manifest: RunManifest

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
        shards: list[ShardEntry] = []
        for split in splits:
            shards += self.manifest.split(split).shards
        check_contents(self.folder, shards)
        paths = [self.folder / shard.file for shard in shards]
        return TokenStore(paths, self.manifest.reverse)


def open_dataset(
    data_dir: str | Path, problem_name: str | None = None, command: str | None = None
) -> Dataset:
    """Opens the complete data of a problem, after checking that every file has its full
    size.

    `data_dir` is t2t-datagen's --data_dir. `problem_name` may end in `_rev`; None means
    the only problem there. `command` is the command that makes the data, for the
    message; by default t2t-datagen with these two flags.

    Raises FileNotFoundError if there is no such data or a file is missing, and
    ValueError if a file is damaged or `data_dir` contains several problems and none is
    named.
    """
    data_dir = Path(data_dir)
    check_name(data_dir)
    paths = [path.parent for path in sorted(data_dir.glob(f"*/{MANIFEST}"))]
    finished = [path.name for path in paths if holds_data(path)]
    if problem_name is None:
        if not finished:
            raise FileNotFoundError(
                "--data_dir must be a folder with data made by t2t-datagen. Received:"
                f" {data_dir}, which has none. Run t2t-datagen --problem=... first."
            )
        if len(finished) > 1:
            raise ValueError(
                f"{data_dir} holds the data of several problems. Name one:"
                f" {', '.join(finished)}."
            )
        problem_name = finished[0]
    base = problem_name.removesuffix("_rev")
    if base not in finished:
        others = f" Finished data there: {', '.join(finished)}." if finished else ""
        if not command:
            command = f"t2t-datagen --problem={problem_name} --data_dir={data_dir}"
        raise FileNotFoundError(
            f"There is no finished data of {problem_name} in {data_dir}.{others} Run"
            f" {command} first; an interrupted run resumes."
        )
    folder = data_dir / base
    manifest = read_manifest(folder)
    check_files(folder, manifest)
    return Dataset(folder, RunManifest.of(manifest, problem_name != base, data_dir))


def check_files(folder: Path, manifest: Manifest) -> None:
    """Raises FileNotFoundError if a file is missing, and ValueError if it does not
    have the recorded size.
    """
    for entry in manifest.entries():
        path = folder / entry.file
        if not path.is_file():
            raise FileNotFoundError(f"{path} is missing. {REGENERATE_HINT}")
        if path.stat().st_size != entry.bytes:
            raise ValueError(
                f"{path} must have {entry.bytes:,} bytes. Received:"
                f" {path.stat().st_size:,}. {REGENERATE_HINT}"
            )


def check_contents(
    folder: Path, entries: Iterable[VocabularyEntry | ShardEntry]
) -> None:
    """Raises FileNotFoundError if a file is missing, and ValueError if it does not
    have the recorded content.

    Reads about 1.5 GB/s per core.
    """
    paths = []
    hashes = []
    for entry in entries:
        paths.append(folder / entry.file)
        hashes.append(entry.sha256)
    # hashing releases Python's lock
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        advice = itertools.repeat(REGENERATE_HINT)
        list(threads.map(check_sha256, paths, hashes, advice))
