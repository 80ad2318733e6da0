"""Corpora in files that others distribute: declared by the names of the files, which
are found in any folder below --tmp_dir.
"""

import collections
import fnmatch
import itertools
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import ClassVar, NamedTuple

from t2tlite.data.problem import Problem
from t2tlite.files.compression import COMPRESSED, plain_name
from t2tlite.files.text_files import read_parallel

# in --tmp_dir; files of TensorFlow Datasets are not raw files
TFDS_FOLDER = "tensorflow_datasets"
COMPRESSED_ENDINGS = ("", *COMPRESSED)  # of a file name

FilePair = tuple[Path, Path]  # source and target


class FilesBelow:
    """The files in a folder and below, links followed; none if there is no folder."""

    def __init__(self, folder: Path | None) -> None:
        self._paths: dict[str, list[Path]] = collections.defaultdict(list)
        seen = set()
        for root, folders, names in os.walk(folder or "", followlinks=True):
            real = os.path.realpath(root)
            if real in seen:  # a link back up
                folders.clear()
                continue
            seen.add(real)
            folders[:] = sorted(name for name in folders if name != TFDS_FOLDER)
            for name in names:
                self._paths[name].append(Path(root) / name)

    def matching(self, pattern: str) -> list[Path]:
        """The files whose names match a pattern such as `wsj_02??.mrg`, plain or
        compressed, by name. With a folder, `test-full/a.en`, only those in such a
        folder.
        """
        paths: list[Path] = []
        for ending in COMPRESSED_ENDINGS:
            for name in fnmatch.filter(self._paths, Path(pattern).name + ending):
                for path in self._paths[name]:
                    if path.match(pattern + ending):
                        paths.append(path)
        return sorted(paths, key=plain_name)

    def pairs(self, source: str, target: str) -> list[FilePair]:
        """The files of these names that are in one folder: of several of a name the
        ones with the shortest path. If both are one pattern, each file that matches.
        """
        targets = self.matching(target)
        of_name: dict[str, FilePair] = {}
        for path in sorted(self.matching(source), key=lambda path: len(path.parts)):
            others = [path]
            if source != target:
                others = [other for other in targets if other.parent == path.parent]
            for other in others:
                of_name.setdefault(plain_name(path), (path, other))
        return [of_name[name] for name in sorted(of_name)]


class Search(NamedTuple):
    """What was found of a corpus."""

    files: dict[str, list[FilePair]]  # of each split
    missing: dict[str, None]  # a line for each pair that is not there, in order
    archives: list[Path]  # that hold missing files


class Corpus(Problem):
    """Pairs of files below --tmp_dir, line n of one the translation of line n of the
    other.

    A subclass declares their names (`corpora`). Both files of a pair are in one folder,
    plain or compressed.
    """

    needed_flags: ClassVar[tuple[str, ...]] = ("tmp_dir",)
    # what else can be done if files are missing
    advice: ClassVar[str] = ""

    def corpora(self) -> dict[str, dict[str, str]]:
        """Of each split: the names of its pairs of files, in the order in which they
        are read -> where they are to be had.

        In a name `{}` is the language's code, `{side}` src or ref, `{source}` and
        `{target}` the codes of both; " or " is between names, of which the first is
        preferred.
        """
        raise NotImplementedError

    def corpora_in(self, below: FilesBelow) -> dict[str, dict[str, str]]:
        """The corpora, if they depend on which files are there. A name may have `?` for
        any character if both sides are in one file.
        """
        return self.corpora()

    def splits(self) -> tuple[str, ...]:
        return tuple(self.corpora())

    def pairs(self, split: str, tmp_dir: Path | None) -> Iterator[tuple[str, str]]:
        """Yields the lines of a split's files. Raises FileNotFoundError at once if a
        file of any split is missing.
        """
        self.check_split(split)
        return self.read(split, self.find(tmp_dir)[split])

    def read(self, split: str, files: Sequence[FilePair]) -> Iterator[tuple[str, str]]:
        """Yields the pairs in the files of a split."""
        sources, targets = zip(*files, strict=True)
        return read_parallel(sources, targets)

    def files(self, tmp_dir: Path | None) -> list[Path]:
        """The files of all splits, each once."""
        pairs = itertools.chain.from_iterable(self.find(tmp_dir).values())
        return list(dict.fromkeys(itertools.chain.from_iterable(pairs)))

    def find(self, tmp_dir: Path | None) -> dict[str, list[FilePair]]:
        """The pairs of files of each split. Raises FileNotFoundError if one is missing,
        with all that are.
        """
        search = self.search(tmp_dir)
        if search.missing:
            raise FileNotFoundError(self.missing(search, tmp_dir) + self.advice)
        return search.files

    def missing(self, search: Search, tmp_dir: Path | None) -> str:
        """Which files are missing, for messages."""
        lines = "\n".join(search.missing)
        return (
            f"{self.name()} needs these files in --tmp_dir, both of a pair in one"
            f" folder. Received: {tmp_dir or 'no --tmp_dir'}, without\n{lines}"
        )

    def search(self, tmp_dir: Path | None) -> Search:
        """Looks for the files of all splits."""
        below = FilesBelow(tmp_dir)
        search = Search({}, {}, [])
        for split, corpora in self.corpora_in(below).items():
            files = search.files[split] = []
            for names, origin in corpora.items():
                alternatives = [self._names(name) for name in names.split(" or ")]
                for source, target in alternatives:
                    pairs = below.pairs(source, target)
                    if pairs:
                        files += pairs
                        break
                else:
                    archives = below.matching(Path(origin).name)
                    search.archives.extend(archives)
                    advice = f"unpack {archives[0]}" if archives else f"from {origin}"
                    # both sides may be of one file
                    shown = [" and ".join(dict.fromkeys(pair)) for pair in alternatives]
                    search.missing[f"  {' or '.join(shown)}: {advice}"] = None
        return search

    def _names(self, name: str) -> tuple[str, str]:
        """The names of source and target that a name of `corpora` stands for."""
        codes = {"source": self.source_language, "target": self.target_language}
        source = name.format(self.source_language, side="src", **codes)
        return source, name.format(self.target_language, side="ref", **codes)
