"""Corpora in files that others distribute: declared by the names of the files, which
are found in any folder below --tmp_dir.
"""

import collections
import fnmatch
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from t2tlite.data.problem import Problem
from t2tlite.files.compression import plain_name
from t2tlite.files.text_files import read_parallel

# in --tmp_dir; files of TensorFlow Datasets are not raw files
TFDS_FOLDER = "tensorflow_datasets"

FilePair = tuple[Path, Path]  # source and target
Pairs = Iterator[tuple[str, str]]  # likewise
# of each split: names of files
Corpora = Mapping[str, Sequence[str]]


class FilesBelow:
    """The files in a folder and below, links followed; none if there is no folder."""

    def __init__(self, folder: Path | None) -> None:
        # by name without the ending of a compressed file
        self._paths: dict[str, list[Path]] = collections.defaultdict(list)
        seen = set()
        for root, folders, names in os.walk(folder or "", followlinks=True):
            real = os.path.realpath(root)
            if real in seen:  # a link back up
                folders.clear()
                continue
            seen.add(real)
            folders[:] = sorted(set(folders) - {TFDS_FOLDER})
            for name in sorted(names):
                path = Path(root, name)
                self._paths[plain_name(path)].append(path)

    def matching(self, pattern: str) -> list[Path]:
        """The files whose names match a pattern such as `wsj_02??.mrg`, plain or
        compressed, by name. With a folder, `test-full/a.en`, only those in such a
        folder.
        """
        folder, _, pattern = pattern.rpartition("/")
        paths = []
        for name in sorted(fnmatch.filter(self._paths, pattern)):
            for path in self._paths[name]:
                if folder in ("", path.parent.name):
                    paths.append(path)
        return paths

    def pairs(self, source: str, target: str) -> list[FilePair]:
        """The files of these names that are in one folder: of several of a name the
        ones with the shortest path. If both are one pattern, each file that matches.
        """
        targets = {}
        for path in self.matching(target):
            targets[path.parent] = path
        pairs: dict[str, FilePair] = {}
        sources = self.matching(source)
        sources.sort(key=lambda path: len(path.parts))
        for path in sources:
            other = path if source == target else targets.get(path.parent)
            if other is not None:
                pairs.setdefault(plain_name(path), (path, other))
        return [pairs[name] for name in sorted(pairs)]


class Corpus(Problem):
    """Pairs of files below --tmp_dir, line n of one the translation of line n of the
    other.

    A subclass declares their names (`corpora`). Both files of a pair are in one folder,
    plain or compressed.
    """

    # where the files are to be had
    origin: ClassVar[str] = "its source"
    needed_flags: ClassVar[tuple[str, ...]] = ("tmp_dir",)

    def corpora(self) -> Corpora:
        """Of each split: the names of its pairs of files, in the order in which they
        are read.

        In a name `{}` is the language's code, `{target}` the target's, `{side}` src or
        ref.
        """
        raise NotImplementedError

    def corpora_in(self, below: FilesBelow) -> Corpora:
        """The corpora, if they depend on which files are there. A name may have `?` for
        any character if both sides are in one file.
        """
        return self.corpora()

    def splits(self) -> tuple[str, ...]:
        return tuple(self.corpora())

    def pairs(self, split: str, tmp_dir: Path | None) -> Pairs:
        """Yields the lines of a split's files. Raises FileNotFoundError at once if a
        file of any split is missing.
        """
        self.check_split(split)
        return self.read(split, self.find(tmp_dir)[split])

    def read(self, split: str, files: list[FilePair]) -> Pairs:
        """Yields the pairs in the files of a split."""
        sources, targets = zip(*files, strict=True)
        return read_parallel(sources, targets)

    def files(self, tmp_dir: Path | None) -> list[Path]:
        """The files of all splits, each once."""
        paths: dict[Path, None] = {}
        for files in self.find(tmp_dir).values():
            for pair in files:
                paths |= dict.fromkeys(pair)
        return list(paths)

    def find(self, tmp_dir: Path | None) -> dict[str, list[FilePair]]:
        """The pairs of files of each split. Raises FileNotFoundError if one is missing,
        with all that are.
        """
        files, missing = self.search(tmp_dir)
        if missing:
            raise FileNotFoundError(missing)
        return files

    def search(self, tmp_dir: Path | None) -> tuple[dict[str, list[FilePair]], str]:
        """The pairs of files of each split that are there, and a message that lists
        the missing ones, or "".
        """
        below = FilesBelow(tmp_dir)
        files: dict[str, list[FilePair]] = {}
        missing: dict[str, None] = {}  # lines, in order
        for split, names in self.corpora_in(below).items():
            files[split] = []
            for name in names:
                source = self._named(name, self.source_language, "src")
                target = self._named(name, self.target_language, "ref")
                pairs = below.pairs(source, target)
                files[split] += pairs
                if not pairs:
                    both = f"{source} and {target}"
                    missing[source if source == target else both] = None
        if not missing:
            return files, ""
        return files, (
            f"{self.name()} needs these files in --tmp_dir, both of a pair in one"
            f" folder, from {self.origin}. Received: {tmp_dir or 'no --tmp_dir'},"
            " without\n  " + "\n  ".join(missing)
        )

    def _named(self, name: str, language: str, side: str) -> str:
        return name.format(language, side=side, target=self.target_language)
