"""What the data of a problem was made from, and what it contains: the content of
`manifest.json`.

A data directory has a `Manifest`, written when the data is complete. A run directory
has a `RunManifest`: the manifest of its data, the direction, and where the data was.
Source and target of a reversed problem (NAME_rev) are swapped by RunManifest and
nowhere else.
"""

import dataclasses
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

from t2tlite.data.splits import DEV, dev_splits, is_training
from t2tlite.files.atomic_file import file_sha256, text_sha256
from t2tlite.files.records import Count, LanguageName, Name, Positive, read_record
from t2tlite.vocabularies.encoders import VocabularyEntry

MANIFEST = "manifest.json"
OTHER_SIDE = {"source": "target", "target": "source"}

# The tasks of reversed problems that are not translation: a reversed parser translates
# sequences of brackets to sentences.
REVERSED = {"text_to_text": "text_to_text", "pronunciation": "text_to_text"}


@dataclasses.dataclass(frozen=True)
class FileEntry:
    """A raw file that data was made from."""

    file: str
    bytes: int
    sha256: str

    @classmethod
    def of(cls, path: Path) -> Self:
        return cls(path.name, path.stat().st_size, file_sha256(path))


@dataclasses.dataclass(frozen=True)
class ShardEntry:
    """A token shard."""

    file: Name
    pairs: Count
    bytes: Count
    sha256: str


@dataclasses.dataclass(frozen=True)
class SplitEntry:
    """What a split contains. Lengths are in tokens, EOS included. With several
    segmentations, tokens are those of an epoch, on average.
    """

    pairs: Positive
    source_tokens: Positive
    target_tokens: Positive
    longest_source: Count
    longest_target: Count
    dropped: dict[str, Count]  # reason -> pairs left out
    shards: tuple[ShardEntry, ...]
    # of a training corpus: what `PairAudit` finds -> pairs
    findings: dict[str, Count] = dataclasses.field(default_factory=dict)
    # tokens that stand for text which the vocabulary cannot spell
    source_unknown: Count = 0
    target_unknown: Count = 0

    def __add__(self, other: Self) -> Self:
        """Both splits together, with the shards of `other` last."""
        sums: dict[str, Any] = {}
        for name, value in vars(self).items():
            others = getattr(other, name)
            if name.startswith("longest"):
                sums[name] = max(value, others)
            elif isinstance(value, dict):
                sums[name] = dict(Counter(value) + Counter(others))
            else:
                sums[name] = value + others
        return dataclasses.replace(self, **sums)

    def reversed(self) -> Self:
        """The same split with source and target swapped."""
        swapped = {}
        for name, value in vars(self).items():
            words = [OTHER_SIDE.get(word, word) for word in name.split("_")]
            swapped["_".join(words)] = value
        return dataclasses.replace(self, **swapped)

    @property
    def mean_lengths(self) -> tuple[float, float]:
        """The mean lengths of sources and targets, in tokens."""
        return self.source_tokens / self.pairs, self.target_tokens / self.pairs


NO_PAIRS = SplitEntry(0, 0, 0, 0, 0, {}, ())


@dataclasses.dataclass(frozen=True)
class Languages:
    """Language codes; "" if the problem does not name its language."""

    source: LanguageName = ""
    target: LanguageName = ""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Manifest:
    """The manifest of a data directory, unreversed."""

    problem: Name  # the registered name, without _rev
    task: str  # the name of a task (t2tlite/tasks)
    t2tlite: str  # the version that made the data
    options: dict[str, Any]  # of the problem
    languages: Languages = Languages()
    decode_defaults: dict[str, Any]  # fields of DecodeHParams
    # of the source, and also of the target if there is no target_vocabulary
    vocabulary: VocabularyEntry
    target_vocabulary: VocabularyEntry | None = None
    splits: dict[Name, SplitEntry]
    made_from: tuple[FileEntry, ...] = ()
    text_sha256: str = ""  # of all pairs that the problem yielded; "" in older data

    def vocabulary_entries(self) -> tuple[VocabularyEntry, ...]:
        """The entries of the vocabulary files: one, or the source's and the
        target's.
        """
        if self.target_vocabulary is None:
            return (self.vocabulary,)
        return self.vocabulary, self.target_vocabulary

    @property
    def corpora(self) -> dict[str, SplitEntry]:
        """The entries of the corpora to train on: train, train2 and so on, in order."""
        return {name: split for name, split in self.splits.items() if is_training(name)}

    def entries(self) -> Iterator[VocabularyEntry | ShardEntry]:
        """Yields the entry of every file."""
        yield from self.vocabulary_entries()
        for split in self.splits.values():
            yield from split.shards


@dataclasses.dataclass(frozen=True)
class ImportedFrom:
    """Where an imported run was trained."""

    program: str
    folder: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunManifest(Manifest):
    """The manifest of a run: its data in the run's direction."""

    reverse: bool  # source and target are swapped relative to the files
    data_dir: str  # where the data was during training; "" for an imported run
    imported_from: ImportedFrom | None = None
    # of an imported run: the row of the target space embedding
    target_space: int | None = None

    @classmethod
    def of(cls, manifest: Manifest, reverse: bool, data_dir: Path) -> Self:
        """The manifest of a run on the data of `manifest` in `data_dir`."""
        task = manifest.task
        if reverse:
            task = REVERSED.get(task, "translation")
        return cls(
            **{**vars(manifest), "task": task},
            reverse=reverse,
            data_dir=str(data_dir.resolve()),
        )

    @property
    def name(self) -> str:
        """The problem's name, with `_rev` if it is reversed."""
        return self.problem + ("_rev" if self.reverse else "")

    @property
    def vocabularies(self) -> tuple[VocabularyEntry, VocabularyEntry]:
        """The entries of source and target; twice the same if they share a
        vocabulary.
        """
        pair = self.vocabulary, self.target_vocabulary or self.vocabulary
        return pair[::-1] if self.reverse else pair

    @property
    def vocabulary_sizes(self) -> tuple[int, int]:
        """The numbers of ids in the vocabularies of source and target."""
        source, target = self.vocabularies
        return source.size, target.size

    @property
    def pairs_sha256(self) -> str:
        """Identifies the training and dev pairs by their shards' content."""
        hashes = []
        for name, split in self.splits.items():
            if is_training(name) or name == DEV:
                hashes += [shard.sha256 for shard in split.shards]
        return text_sha256("+".join(hashes))

    @property
    def language_pair(self) -> tuple[str, str]:
        pair = self.languages.source, self.languages.target
        return pair[::-1] if self.reverse else pair

    @property
    def dev_sets(self) -> dict[str, str]:
        """The names of the dev sets by split, the one that decides first: {"dev": "dev
        (news.en)", "dev2": "dev2 (talks.en)"}.

        The name in brackets is the source file's, if the data was made from files.
        """
        splits = dev_splits(self.splits)
        names = dict(zip(splits, splits, strict=True))
        files: list[str] = []
        for option in ("dev_source", "dev_tsv", "dev_tmx"):
            files += self.options.get(option) or []
        short = list(map(os.path.basename, files))
        if len(set(short)) == len(short):  # unlike news/dev.en and talks/dev.en
            files = short
        if len(files) == len(names):
            for split, file in zip(names, files, strict=True):
                names[split] = f"{split} ({file})"
        return names

    @property
    def training(self) -> SplitEntry:
        """The entry of all corpora to train on together, in the run's direction."""
        return sum(map(self.split, self.corpora), NO_PAIRS)

    def split(self, name: str) -> SplitEntry:
        """The entry of a split in the run's direction. Raises ValueError if there is no
        such split.
        """
        if name not in self.splits:
            names = ", ".join(self.splits)
            raise ValueError(f"The split must be one of {names}. Received: {name!r}.")
        return self.splits[name].reversed() if self.reverse else self.splits[name]


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a data directory.

    Raises FileNotFoundError, and ValueError if it is damaged, of another format, or
    that of a run.
    """
    path = folder / MANIFEST
    if path.exists() and not holds_data(folder):
        raise ValueError(f"{folder} must hold data. Received: the folder of a run.")
    return read_record(path, Manifest, f"Delete {folder} and run t2t-datagen again.")


def holds_data(folder: Path) -> bool:
    """Whether a folder has the manifest of data, damaged or not; that of a run has a
    direction, too.
    """
    try:
        return "reverse" not in read_record(folder / MANIFEST, dict[str, Any], "")
    except FileNotFoundError:
        return False
    except ValueError:
        return True
