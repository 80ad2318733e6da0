"""The paper's translation tasks: WMT 2014 English-German and English-French (section
5.1).

The raw text comes from the unpacked archives of statmt.org/wmt14 in any folder below
--tmp_dir. If none of them is there, TensorFlow Datasets downloads the text.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import itertools
import logging
import os
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from t2tlite import registry
from t2tlite.data.problem import Problem
from t2tlite.files.compression import COMPRESSED
from t2tlite.files.sgm import unescape
from t2tlite.files.text_files import read_parallel

# in --tmp_dir; files of TensorFlow Datasets are not read as raw files
TFDS_FOLDER = "tensorflow_datasets"
NETWORK_SECONDS = 10.0  # to wait for an answer of the server that has the text
# newstest2013, newstest2014
TFDS_SPLITS = {"train": "train", "dev": "validation", "test": "test"}

# Training files of both language pairs, without language -> archive
TRAINING = {
    "europarl-v7.{}-en": (
        "https://www.statmt.org/wmt13/training-parallel-europarl-v7.tgz"
    ),
    "commoncrawl.{}-en": (
        "https://www.statmt.org/wmt13/training-parallel-commoncrawl.tgz"
    ),
    "news-commentary-v9.{}-en": (
        "https://www.statmt.org/wmt14/training-parallel-nc-v9.tgz"
    ),
}
DEV = "https://www.statmt.org/wmt14/dev.tgz"
TEST = "https://www.statmt.org/wmt14/test-full.tgz"

ENDINGS = ("", *COMPRESSED)  # of a file name


@dataclasses.dataclass(frozen=True)
class Corpus:
    """A pair of files."""

    split: str  # train, dev or test
    # (source, target), preferred names first; each may also have one of ENDINGS
    names: tuple[tuple[str, str], ...]
    archive: str  # the URL of the archive that contains them

    def __str__(self) -> str:
        return " or ".join(map(" and ".join, self.names))

    def find(self, by_name: dict[str, list[Path]]) -> tuple[Path, Path] | None:
        """The two files, both in one folder, or None if there is no such folder.

        Of several folders, `test-full` is preferred (`test`, of test-filtered.tgz, may
        lack sentences), then the one nearest to --tmp_dir.
        """
        for source_name, target_name in self.names:
            sources = _with_endings(by_name, source_name)
            targets = _with_endings(by_name, target_name)
            pairs = []
            for source, target in itertools.product(sources, targets):
                if source.parent == target.parent:
                    pairs.append((source, target))
            if pairs:
                return min(pairs, key=_preference)
        return None


class Wmt14(Problem):
    """The base class of both language pairs: English is the source."""

    source_language: ClassVar[str] = "en"
    # training files in addition to TRAINING
    more_training: ClassVar[dict[str, str]] = {}

    def pairs(self, split: str, tmp_dir: Path | None) -> Iterator[tuple[str, str]]:
        """Yields one corpus after the other, or the pairs in the order of TensorFlow
        Datasets.
        """
        if split not in TFDS_SPLITS:
            raise ValueError(
                f"The splits of {self.name()} are train, dev and test. Received:"
                f" {split!r}."
            )
        files = self._find(tmp_dir)
        if not files:
            return self._tfds_pairs(split, tmp_dir)
        sources = []
        targets = []
        for corpus, (source, target) in files.items():
            if corpus.split == split:
                sources.append(source)
                targets.append(target)
        return read_parallel(sources, targets)

    def files(self, tmp_dir: Path | None) -> list[Path]:
        """The raw files in `tmp_dir`; none with TensorFlow Datasets."""
        return list(itertools.chain.from_iterable(self._find(tmp_dir).values()))

    def corpora(self) -> list[Corpus]:
        """The files of the three splits, in the order in which they are read."""
        foreign = self.target_language
        training = []
        for template, archive in (TRAINING | self.more_training).items():
            stem = template.format(foreign)
            names = (f"{stem}.en", f"{stem}.{foreign}")
            training.append(Corpus("train", (names,), archive))
        dev = (
            ("newstest2013.en", f"newstest2013.{foreign}"),
            ("newstest2013-src.en.sgm", f"newstest2013-ref.{foreign}.sgm"),
        )
        # Each language pair of 2014 has its own test set, so the name with the pair is
        # preferred.
        test = (
            (
                f"newstest2014-{foreign}en-src.en.sgm",
                f"newstest2014-{foreign}en-ref.{foreign}.sgm",
            ),
            ("newstest2014.en", f"newstest2014.{foreign}"),
        )
        return [*training, Corpus("dev", dev, DEV), Corpus("test", test, TEST)]

    def _find(self, tmp_dir: Path | None) -> dict[Corpus, tuple[Path, Path]]:
        """Returns the files of all corpora, or none if neither files nor archives of
        them are in `tmp_dir`. Raises FileNotFoundError if only some files are there.
        """
        files: dict[Corpus, tuple[Path, Path]] = {}
        if tmp_dir is None:
            return files
        by_name = _files_by_name(tmp_dir)
        missing = []
        has_archives = False
        for corpus in self.corpora():
            paths = corpus.find(by_name)
            archives = by_name[Path(corpus.archive).name]
            if paths:
                files[corpus] = paths
            elif archives:
                has_archives = True
                missing.append(f"  {corpus}: unpack {archives[0]}")
            else:
                missing.append(f"  {corpus}: in {corpus.archive}")
        if missing and (files or has_archives):
            lines = "\n".join(missing)
            raise FileNotFoundError(
                f"{self.name()} needs all its files in {tmp_dir}, both files of a pair"
                f" in one folder. Received: {len(files)} of"
                f" {len(files) + len(missing)} pairs. Missing:\n{lines}\nAdd them, or"
                " give an empty --tmp_dir to download everything through TensorFlow"
                " Datasets."
            )
        for corpus, (source, _) in files.items():
            if corpus.split == "test":
                self._check_test(source)
        return files

    def _check_test(self, source: Path) -> None:
        """Raises ValueError if the source of the test set may belong to another
        language pair.
        """
        if not source.name.startswith("newstest2014.en"):
            return
        ours = ("en", self.target_language)
        others = []
        for path in source.parent.glob("newstest2014.*"):
            if path.name.split(".")[1] not in ours:
                others.append(path.name)
        if others:
            raise ValueError(
                f"{source} must be the English side of the {self.target_language}-en"
                " test set; each language pair of 2014 has its own. Received: a folder"
                f" that also holds {', '.join(sorted(others))}. Move other pairs' files"
                f" away, or use the .sgm files in {TEST}."
            )

    def _tfds_pairs(
        self, split: str, tmp_dir: Path | None
    ) -> Iterator[tuple[str, str]]:
        foreign = self.target_language
        name = f"wmt14_translate/{foreign}-en"
        data_dir = None if tmp_dir is None else tmp_dir / TFDS_FOLDER
        try:
            import tensorflow_datasets as tfds  # slow to import, and few users need it

            with _without_warnings():
                _check_network(name, data_dir)
                dataset = tfds.load(
                    name,
                    split=TFDS_SPLITS[split],
                    data_dir=data_dir,
                    shuffle_files=False,
                )
        except Exception as error:
            # network, checksums, archives, disk: these have no common class
            searched = f"None of its files were found in {tmp_dir} or the folders in it"
            if tmp_dir is None:
                searched = "No --tmp_dir was given to look for files in"
            corpora = [f"\n  {each}: in {each.archive}" for each in self.corpora()]
            raise FileNotFoundError(
                f"{self.name()} needs the WMT 2014 files or a network to download them."
                f" {searched}, and TensorFlow Datasets could not prepare {name}:"
                f" {type(error).__name__}: {error}\nDownload and unpack these in a"
                f" folder, and name it by --tmp_dir:{''.join(corpora)}"
            ) from error
        # The test set of TensorFlow Datasets comes from .sgm, whose entities it does
        # not replace.
        clean = unescape if split == "test" else str
        for example in tfds.as_numpy(dataset):
            source = example["en"].decode().removesuffix("\r")
            target = example[foreign].decode().removesuffix("\r")
            yield clean(source), clean(target)


@registry.register_problem
@dataclasses.dataclass(frozen=True)
class WmtEnde(Wmt14):
    """WMT 2014 English-German: 4.5 million pairs, dev newstest2013, test
    newstest2014.
    """

    vocab_size: int = 37000

    target_language: ClassVar[str] = "de"


@registry.register_problem
@dataclasses.dataclass(frozen=True)
class WmtEnfr(Wmt14):
    """WMT 2014 English-French: 36 to 41 million pairs, dev newstest2013, test
    newstest2014.
    """

    vocab_size: int = 32000

    target_language: ClassVar[str] = "fr"
    more_training: ClassVar[dict[str, str]] = {
        "undoc.2000.fr-en": "https://www.statmt.org/wmt13/training-parallel-un.tgz",
        "giga-fren.release2.fixed": (
            "https://www.statmt.org/wmt10/training-giga-fren.tar"
        ),
    }


def _check_network(name: str, data_dir: Path | None) -> None:
    """Raises OSError within seconds if TensorFlow Datasets would have to download text
    and its server cannot be reached.

    TensorFlow Datasets itself would try for minutes. A server that refuses a request is
    reachable. Nothing is checked if there are files of an earlier download: it may be
    complete.
    """
    import tensorflow_datasets as tfds

    builder = tfds.builder(name, data_dir=data_dir)
    downloads = Path(data_dir or tfds.core.constants.DATA_DIR) / "downloads"
    if builder.is_prepared() or any(downloads.rglob("*.INFO")):
        return
    request = urllib.request.Request(TEST, method="HEAD")
    try:
        urllib.request.urlopen(request, timeout=NETWORK_SECONDS).close()
    except urllib.error.URLError as error:
        is_answer = isinstance(error, urllib.error.HTTPError)
        if not is_answer and not isinstance(error.reason, ssl.SSLError):
            raise


@contextlib.contextmanager
def _without_warnings() -> Iterator[None]:
    """Hides the warnings of TensorFlow Datasets and its downloads, such as one for each
    attempt.
    """
    levels = {}
    for logger in (logging.getLogger("absl"), logging.getLogger("urllib3")):
        levels[logger] = logger.level
        logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        for logger, level in levels.items():
            logger.setLevel(level)


def _files_by_name(folder: Path) -> dict[str, list[Path]]:
    """Maps each file name in a folder and below to its paths, in a fixed order, and any
    other name to []. Links are followed.
    """
    by_name: dict[str, list[Path]] = collections.defaultdict(list)
    seen = set()
    for root, folders, names in os.walk(folder, followlinks=True):
        real = os.path.realpath(root)
        if real in seen:  # a link back up
            folders.clear()
            continue
        seen.add(real)
        folders[:] = sorted(name for name in folders if name != TFDS_FOLDER)
        for name in sorted(names):
            by_name[name].append(Path(root) / name)
    return by_name


def _with_endings(by_name: dict[str, list[Path]], name: str) -> list[Path]:
    """The files of a name, plain or compressed."""
    paths = []
    for ending in ENDINGS:
        paths += by_name[name + ending]
    return paths


def _preference(paths: tuple[Path, Path]) -> tuple[bool, int]:
    """A sort key: the lowest is that of the preferred pair of files."""
    source, _ = paths
    return source.parent.name != "test-full", len(source.parts)
