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
from collections.abc import Iterable
from pathlib import Path

from t2tlite.data import manifest as manifests
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
    manifest: manifests.RunManifest

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
    data_dir: str | Path, problem_name: str | None = None, command: str | None = None
) -> Dataset:
    """Opens the complete data of a problem.

    `data_dir` is t2t-datagen's --data_dir. `problem_name` may end in `_rev`; None means
    the only problem there. `command` is the command that makes the data, for the
    message; by default t2t-datagen with these two flags.

    Raises FileNotFoundError if there is no such data, and ValueError if its manifest is
    damaged or `data_dir` contains several problems and none is named.
    """
    data_dir = Path(data_dir)
    check_name(data_dir)
    finished = []
    for path in sorted(data_dir.glob(f"*/{manifests.MANIFEST}")):
        if manifests.holds_data(path.parent):
            finished.append(path.parent.name)
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
