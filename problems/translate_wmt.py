"""The paper's translation tasks: WMT 2014 English-German and English-French (section 5.1).

The raw text comes from --tmp_dir, where the unpacked archives of statmt.org/wmt14 are searched for in all folders. If
none of their files is there, the text comes from TensorFlow Datasets, which downloads it.
"""

from __future__ import annotations

import dataclasses
import html
import html.entities
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from t2tlite import registry
from t2tlite.data.problem import Problem
from t2tlite.files import text_files

TFDS_FOLDER = "tensorflow_datasets"  # in --tmp_dir; what TensorFlow Datasets keeps there is never taken for raw files
TFDS_SPLITS = {"train": "train", "dev": "validation", "test": "test"}  # validation and test are newstest2013 and 2014

EUROPARL = "https://www.statmt.org/wmt13/training-parallel-europarl-v7.tgz"
COMMON_CRAWL = "https://www.statmt.org/wmt13/training-parallel-commoncrawl.tgz"
NEWS_COMMENTARY = "https://www.statmt.org/wmt14/training-parallel-nc-v9.tgz"
UNITED_NATIONS = "https://www.statmt.org/wmt13/training-parallel-un.tgz"
GIGA_FREN = "https://www.statmt.org/wmt10/training-giga-fren.tar"
DEV = "https://www.statmt.org/wmt14/dev.tgz"
TEST = "https://www.statmt.org/wmt14/test-full.tgz"

SEGMENT = re.compile(r"<seg\b[^>]*>(.*?)</seg>", re.IGNORECASE)
SEGMENT_TAG = re.compile(r"</?seg\b", re.IGNORECASE)
ENTITY = re.compile(r"&(?:#\d+|#[xX][0-9a-fA-F]+|[A-Za-z]\w*);")


@dataclasses.dataclass(frozen=True)
class Corpus:
    """A pair of files to look for.

    Attributes:
        split: train, dev or test.
        names: (source, target) names of the files, those to prefer first; any may also end in `.gz`.
        archive: where the archive that holds them is published.
    """

    split: str
    names: tuple[tuple[str, str], ...]
    archive: str

    def __str__(self) -> str:
        return " or ".join(f"{source} and {target}" for source, target in self.names)


class Wmt14(Problem):
    """What both language pairs share: English is the source."""

    source_language: ClassVar[str] = "en"
    training_stems: ClassVar[dict[str, str]]  # file name without language -> archive

    def pairs(self, split: str, tmp_dir: Path | None) -> Iterator[tuple[str, str]]:
        """Yields the pairs of a split: the corpora one after the other, or TensorFlow Datasets' order.

        Raises:
            ValueError: at once: no such split, or it is not certain which English file belongs to newstest2014; while
                reading: bad text, named by file and line.
            FileNotFoundError: some files are in `tmp_dir` and others are missing; or none are and TensorFlow Datasets
                cannot get them (this while reading).
        """
        if split not in TFDS_SPLITS:
            raise ValueError(f"The splits of {self.name()} are train, dev and test. Received: {split!r}.")
        found = self._find(tmp_dir)
        if not found:
            return self._tfds_pairs(split, tmp_dir)
        sources, targets = zip(*(paths for corpus, paths in found if corpus.split == split), strict=True)
        return _read(sources, targets)

    def files(self, tmp_dir: Path | None) -> list[Path]:
        """The raw files in `tmp_dir`; empty if TensorFlow Datasets is used.

        Raises:
            ValueError, FileNotFoundError: as `pairs` does at once.
        """
        return [path for _, paths in self._find(tmp_dir) for path in paths]

    def corpora(self) -> list[Corpus]:
        """The files that make up the three splits, in the order in which they are read."""
        foreign = self.target_language
        training = [
            Corpus("train", ((f"{stem}.en", f"{stem}.{foreign}"),), archive)
            for stem, archive in self.training_stems.items()
        ]
        dev = (
            ("newstest2013.en", f"newstest2013.{foreign}"),
            ("newstest2013-src.en.sgm", f"newstest2013-ref.{foreign}.sgm"),
        )
        # Since 2014 each language pair has a test set of its own, so here the name that says the pair comes first.
        test = (
            (f"newstest2014-{foreign}en-src.en.sgm", f"newstest2014-{foreign}en-ref.{foreign}.sgm"),
            ("newstest2014.en", f"newstest2014.{foreign}"),
        )
        return [*training, Corpus("dev", dev, DEV), Corpus("test", test, TEST)]

    def _find(self, tmp_dir: Path | None) -> list[tuple[Corpus, tuple[Path, Path]]]:
        """All corpora with their files; empty if neither files nor archives of them are in `tmp_dir`."""
        if tmp_dir is None:
            return []
        by_name = _files_by_name(Path(tmp_dir).expanduser())
        found = [(corpus, _find_pair(corpus, by_name)) for corpus in self.corpora()]
        complete = [(corpus, paths) for corpus, paths in found if paths]
        missing = [corpus for corpus, paths in found if not paths]
        packed = {corpus.archive: by_name.get(corpus.archive.rsplit("/", 1)[1]) for corpus in missing}
        if not complete and not any(packed.values()):
            return []
        if missing:
            lines = []
            for corpus in missing:
                archive = packed[corpus.archive]
                hint = f"unpack {archive[0]}" if archive else f"in {corpus.archive}"
                lines.append(f"  {corpus}: {hint}")
            raise FileNotFoundError(
                f"{self.name()} needs all its files in {tmp_dir}, the two of a pair in one folder. Received: "
                f"{len(complete)} of {len(found)} pairs. Missing:\n" + "\n".join(lines) + "\n"
                "Add them, or give an empty --tmp_dir to download everything through TensorFlow Datasets."
            )
        self._check_test(complete)
        return complete

    def _check_test(self, found: list[tuple[Corpus, tuple[Path, Path]]]) -> None:
        """Raises ValueError where newstest2014.en may belong to another language pair."""
        for _, (source, _) in found:
            if not source.name.startswith("newstest2014.en"):
                continue
            others = sorted(
                path.name
                for path in source.parent.glob("newstest2014.*")
                if path.name.split(".")[1] not in ("en", self.target_language)
            )
            if others:
                raise ValueError(
                    f"{source} must be the English side of the {self.target_language}-en test set; each language pair "
                    f"of 2014 has its own. Received: a folder that also holds {', '.join(others)}. "
                    f"Move other pairs' files away, or use the .sgm files in {TEST}."
                )

    def _tfds_pairs(self, split: str, tmp_dir: Path | None) -> Iterator[tuple[str, str]]:
        foreign = self.target_language
        name = f"wmt14_translate/{foreign}-en"
        data_dir = None if tmp_dir is None else Path(tmp_dir).expanduser() / TFDS_FOLDER
        try:
            import tensorflow_datasets as tfds  # here and not above: it is slow to import and few need it

            dataset = tfds.load(name, split=TFDS_SPLITS[split], data_dir=data_dir, shuffle_files=False)
        except Exception as error:  # network, checksums, archives, disk: there is no common class
            if tmp_dir is None:
                looked = "No --tmp_dir was given to look for files in"
            else:
                looked = f"None of its files were found in {tmp_dir} or the folders in it"
            corpora = "\n".join(f"  {corpus}: in {corpus.archive}" for corpus in self.corpora())
            raise FileNotFoundError(
                f"{self.name()} needs the WMT 2014 files or a network to download them. {looked}, and TensorFlow "
                f"Datasets could not prepare {name}: {type(error).__name__}: {error}\n"
                f"Download and unpack these in a folder, and name it by --tmp_dir:\n{corpora}"
            ) from error
        # The test set that TensorFlow Datasets reads is .sgm, and it leaves the entities in.
        clean = _unescape if split == "test" else str
        for example in tfds.as_numpy(dataset):
            source, target = example["en"].decode(), example[foreign].decode()
            yield clean(source.removesuffix("\r")), clean(target.removesuffix("\r"))


@registry.register_problem
@dataclasses.dataclass(frozen=True)
class WmtEnde(Wmt14):
    """WMT 2014 English-German: 4.5 million pairs, dev newstest2013, test newstest2014."""

    vocab_size: int = 37000

    target_language: ClassVar[str] = "de"
    training_stems: ClassVar[dict[str, str]] = {
        "europarl-v7.de-en": EUROPARL,
        "commoncrawl.de-en": COMMON_CRAWL,
        "news-commentary-v9.de-en": NEWS_COMMENTARY,
    }


@registry.register_problem
@dataclasses.dataclass(frozen=True)
class WmtEnfr(Wmt14):
    """WMT 2014 English-French: 36 to 41 million pairs, dev newstest2013, test newstest2014."""

    vocab_size: int = 32000

    target_language: ClassVar[str] = "fr"
    training_stems: ClassVar[dict[str, str]] = {
        "europarl-v7.fr-en": EUROPARL,
        "commoncrawl.fr-en": COMMON_CRAWL,
        "news-commentary-v9.fr-en": NEWS_COMMENTARY,
        "undoc.2000.fr-en": UNITED_NATIONS,
        "giga-fren.release2.fixed": GIGA_FREN,
    }


def read_segments(path: Path) -> list[str]:
    """The texts of the `<seg>` elements of an NIST .sgm file, entities replaced.

    These files are not well-formed XML (bare `&`), so each line is searched for elements.

    Raises:
        ValueError: an element does not end on its line, or there are none.
    """
    segments: list[str] = []
    for number, line in enumerate(text_files.read_lines(path), start=1):
        texts = SEGMENT.findall(line)
        if len(SEGMENT_TAG.findall(line)) != 2 * len(texts):
            raise ValueError(
                f"{path}, line {number}: each <seg> must end on its line with </seg>. Received: {line.strip()[:80]!r}. "
                "Fetch the file again or correct the line."
            )
        segments += map(_unescape, texts)
    if not segments:
        raise ValueError(f'An .sgm file must hold <seg id="..."> elements. Received: {path} without any.')
    return segments


def _read(sources: tuple[Path, ...], targets: tuple[Path, ...]) -> Iterator[tuple[str, str]]:
    """Yields the pairs of several pairs of files, each plain text or .sgm."""
    for source, target in zip(sources, targets, strict=True):
        if ".sgm" not in source.suffixes:
            yield from text_files.read_parallel([source], [target])
            continue
        source_segments, target_segments = read_segments(source), read_segments(target)
        if len(source_segments) != len(target_segments):
            raise ValueError(
                "A source file and its reference must have equally many segments. "
                f"Received: {source} with {len(source_segments)} and {target} with {len(target_segments)}. "
                "Check that both are from the same archive."
            )
        yield from zip(source_segments, target_segments, strict=True)


def _unescape(text: str) -> str:
    """Replaces `&quot;`, `&#45;` and the like; unlike `html.unescape` alone, not `&lt` without a semicolon.

    One line in, one line out.
    """

    def character(match: re.Match[str]) -> str:
        entity = match.group()
        known = entity[1] == "#" or entity[1:] in html.entities.html5
        return html.unescape(entity) if known else entity

    return ENTITY.sub(character, text).replace("\n", " ").strip()


def _files_by_name(folder: Path) -> dict[str, list[Path]]:
    """The files in a folder and all folders in it, links followed: name -> paths, always in the same order."""
    by_name: dict[str, list[Path]] = {}
    seen = set()
    for root, folders, names in os.walk(folder, followlinks=True):
        real = os.path.realpath(root)
        if real in seen:  # a link back up
            folders.clear()
            continue
        seen.add(real)
        folders[:] = sorted(name for name in folders if name != TFDS_FOLDER)
        for name in sorted(names):
            by_name.setdefault(name, []).append(Path(root) / name)
    return by_name


def _find_pair(corpus: Corpus, by_name: dict[str, list[Path]]) -> tuple[Path, Path] | None:
    """The two files of a corpus, both in one folder.

    Where several folders hold them: `test-full` before others (`test`, of test-filtered.tgz, may lack sentences), then
    the one nearest to --tmp_dir.
    """
    for names in corpus.names:
        source, target = ([*by_name.get(name, []), *by_name.get(f"{name}.gz", [])] for name in names)
        pairs = [(s, t) for s in source for t in target if s.parent == t.parent]
        if pairs:
            return min(pairs, key=lambda pair: (pair[0].parent.name != "test-full", len(pair[0].parts)))
    return None
