"""Multi30k: English descriptions of pictures with German and French translations
(Elliott et al., 2016; task 1 of WMT 2016 to 2018).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from t2tlite import registry
from t2tlite.data.problem import Problem, option
from t2tlite.files import text_files
from t2tlite.files.compression import COMPRESSED

REPOSITORY = "https://github.com/multi30k/dataset"
RAW = "raw"
TOKENISED = "lc.norm.tok"
# the files of a form of the text, without a language: the folder of the repository and
# what their names end in
FILES = {RAW: ("raw", ".{language}"), TOKENISED: ("tok", ".lc.norm.tok.{language}")}
ENDINGS = ("", *COMPRESSED)
# split -> name of its files
STEMS = {
    "train": "train",
    "dev": "val",
    "test": "test_2016_flickr",
    "test_2017_flickr": "test_2017_flickr",
    "test_2017_mscoco": "test_2017_mscoco",
    "test_2018_flickr": "test_2018_flickr",
}


@dataclasses.dataclass(frozen=True)
class Multi30k(Problem):
    """The base class of both language pairs: English is the source."""

    vocab_size: int = 8000
    text: str = option(
        RAW,
        "The form of the text: raw, as it was written; lc.norm.tok, in lower case, with"
        " normalised punctuation and separated words, as papers on Multi30k score it.",
        choices=tuple(FILES),
    )

    source_language: ClassVar[str] = "en"
    needed_flags: ClassVar[tuple[str, ...]] = ("tmp_dir",)

    def splits(self) -> tuple[str, ...]:
        """train, dev, test (that of 2016), and the later test sets."""
        return tuple(STEMS)

    def pairs(self, split: str, tmp_dir: Path | None) -> Iterator[tuple[str, str]]:
        """Yields the lines of the two files of a split."""
        if split not in STEMS:
            raise ValueError(
                f"The splits of {self.name()} are {', '.join(STEMS)}. Received:"
                f" {split!r}."
            )
        # reports a missing file of any split before text is read
        self.files(tmp_dir)
        source, target = self._pair(self._folder(tmp_dir), STEMS[split])
        return text_files.read_parallel([source], [target])

    def files(self, tmp_dir: Path | None) -> list[Path]:
        """The files of all splits, the source and the target of each."""
        folder = self._folder(tmp_dir)
        paths: list[Path] = []
        for stem in STEMS.values():
            paths += self._pair(folder, stem)
        missing = [path.name for path in paths if not path.is_file()]
        if missing:
            raise FileNotFoundError(
                f"{self.name()} needs all its files in one folder. Received: {folder}"
                f" without {', '.join(missing)}. Clone {REPOSITORY} again."
            )
        return paths

    def _folder(self, tmp_dir: Path | None) -> Path:
        """The folder of the files: that of the training text nearest to `tmp_dir`."""
        needed = (
            f"{self.name()} needs a clone of {REPOSITORY} in --tmp_dir, or its folder"
            f" data/task1/{FILES[self.text][0]}."
        )
        if tmp_dir is None:
            raise FileNotFoundError(f"{needed} Received: no --tmp_dir.")
        name = "train" + FILES[self.text][1].format(language=self.source_language)
        folders = [
            path.parent
            for path in sorted(tmp_dir.rglob(f"{name}*"))
            if path.name.removeprefix(name) in ENDINGS
        ]
        if not folders:
            raise FileNotFoundError(
                f"{needed} Received: {tmp_dir}, without a file {name}."
            )
        return min(folders, key=lambda folder: len(folder.parts))

    def _pair(self, folder: Path, stem: str) -> tuple[Path, Path]:
        """The paths of a split's source and target, compressed or not."""
        source = self._path(folder, stem, self.source_language)
        target = self._path(folder, stem, self.target_language)
        return source, target

    def _path(self, folder: Path, stem: str, language: str) -> Path:
        name = stem + FILES[self.text][1].format(language=language)
        return text_files.compressed_or_not(folder / name)


@registry.register_problem
@dataclasses.dataclass(frozen=True)
class Multi30kEnde(Multi30k):
    """Multi30k English-German, from a clone of its repository in --tmp_dir: 29,000
    pairs, dev val, test test_2016_flickr.

    The repository is github.com/multi30k/dataset. The other test sets are the splits
    test_2017_flickr, test_2017_mscoco and test_2018_flickr.
    """

    target_language: ClassVar[str] = "de"


@registry.register_problem
@dataclasses.dataclass(frozen=True)
class Multi30kEnfr(Multi30k):
    """Multi30k English-French, from a clone of its repository in --tmp_dir: the splits
    of multi30k_ende.
    """

    target_language: ClassVar[str] = "fr"
