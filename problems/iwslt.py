"""The field's small translation tasks, from TED talks: IWSLT 2014 German-English and
IWSLT 2015 English-Vietnamese.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import ClassVar

from t2tlite import registry
from t2tlite.data.problem import Problem, option
from t2tlite.files import text_files

RAW = "raw"
TOKENISED = "lc.tok"
# the splits of IWSLT 2014, as the papers that report it make them
DEV_INTERVAL = 23  # every 23rd training pair is of dev
TEST_SETS = (
    "TED.dev2010",
    "TEDX.dev2012",
    "TED.tst2010",
    "TED.tst2011",
    "TED.tst2012",
)
MAX_TOKENS = 175  # of a side of a training pair
MAX_RATIO = 1.5  # of the lengths of its sides
# lines of the training files that are text; other lines with a tag are not
TITLE = re.compile(r"</?(?:title|description)>")
OTHER_TAG = re.compile(r"\s*<[a-z]")


@registry.register_problem
@dataclasses.dataclass(frozen=True)
class Iwslt14Deen(Problem):
    """IWSLT 2014 German-English, from the files of its archive in --tmp_dir: 160,000
    pairs of TED talks.

    `--tmp_dir` holds what de-en.tgz unpacks to, in any folder. As in the papers that
    report this task, pairs with a side of more than 175 words, or 1.5 times as long as
    the other, are left out; every 23rd pair is of dev; the test set is the dev and test
    sets of 2010 to 2012.
    """

    vocab_size: int = 10000
    text: str = option(
        TOKENISED,
        "The form of the text: lc.tok, tokenised by Moses's rules and in lower case, as"
        " papers score it (with --tokenize=none); raw, as it was written.",
        choices=(TOKENISED, RAW),
    )

    source_language: ClassVar[str] = "de"
    target_language: ClassVar[str] = "en"
    needed_flags: ClassVar[tuple[str, ...]] = ("tmp_dir",)

    def pairs(self, split: str, tmp_dir: Path | None) -> Iterator[tuple[str, str]]:
        """Yields the pairs of a split: of train and dev, one file's; of test, those of
        each set in turn.
        """
        if split not in self.splits():
            raise ValueError(
                f"The splits of {self.name()} are train, dev and test. Received:"
                f" {split!r}."
            )
        training, *tests = _pairs_of_files(self.files(tmp_dir))
        if split == "test":
            return self._test_pairs(tests)
        return self._training_pairs(training, is_dev=split == "dev")

    def files(self, tmp_dir: Path | None) -> list[Path]:
        """The training files, then those of each test set: source and target."""
        names = ["train.tags.de-en.de", "train.tags.de-en.en"]
        for test_set in TEST_SETS:
            names.append(f"IWSLT14.{test_set}.de-en.de.xml")
            names.append(f"IWSLT14.{test_set}.de-en.en.xml")
        archive = "the files of de-en.tgz of IWSLT 2014 (wit3.fbk.eu)"
        return _find_together(self.name(), names, archive, tmp_dir)

    def _training_pairs(
        self, paths: tuple[Path, Path], is_dev: bool
    ) -> Iterator[tuple[str, str]]:
        """The pairs of train, or of dev."""
        tokenise_source = _tokeniser("de")
        tokenise_target = _tokeniser("en")
        number = 0
        for source, target in text_files.read_parallel([paths[0]], [paths[1]]):
            if OTHER_TAG.match(TITLE.sub("", source)):
                continue
            source = TITLE.sub("", source).strip()
            target = TITLE.sub("", target).strip()
            tokens = (tokenise_source(source), tokenise_target(target))
            if not _is_clean(*tokens):
                continue
            number += 1
            if (number % DEV_INTERVAL == 0) == is_dev:
                yield (source, target) if self.text == RAW else tokens

    def _test_pairs(
        self, test_sets: list[tuple[Path, Path]]
    ) -> Iterator[tuple[str, str]]:
        tokenise_source = _tokeniser("de")
        tokenise_target = _tokeniser("en")
        for paths in test_sets:
            sources = text_files.read_segments(paths[0])
            targets = text_files.read_segments(paths[1])
            counts = {f"{paths[0]}": len(sources), f"{paths[1]}": len(targets)}
            text_files.check_line_counts(
                counts, "Check that both are from the same archive.", unit="segments"
            )
            for source, target in zip(sources, targets, strict=True):
                if self.text == RAW:
                    yield source, target
                else:
                    yield (
                        tokenise_source(_plain_apostrophes(source)),
                        tokenise_target(_plain_apostrophes(target)),
                    )


@registry.register_problem
@dataclasses.dataclass(frozen=True)
class Iwslt15Envi(Problem):
    """IWSLT 2015 English-Vietnamese, from train, tst2012 (dev) and tst2013 (test) in
    --tmp_dir: 133,317 pairs of TED talks.

    The files are those of nlp.stanford.edu/projects/nmt or of the repository
    stefan-it/nmt-en-vi: `train.en`, `train.vi` and so on, in one folder, tokenised.
    """

    source_language: ClassVar[str] = "en"
    target_language: ClassVar[str] = "vi"
    needed_flags: ClassVar[tuple[str, ...]] = ("tmp_dir",)
    stems: ClassVar[dict[str, str]] = {
        "train": "train",
        "dev": "tst2012",
        "test": "tst2013",
    }

    def pairs(self, split: str, tmp_dir: Path | None) -> Iterator[tuple[str, str]]:
        """Yields the lines of the two files of a split."""
        if split not in self.stems:
            raise ValueError(
                f"The splits of {self.name()} are train, dev and test. Received:"
                f" {split!r}."
            )
        pairs = dict(zip(self.stems, _pairs_of_files(self.files(tmp_dir)), strict=True))
        source, target = pairs[split]
        return text_files.read_parallel([source], [target])

    def files(self, tmp_dir: Path | None) -> list[Path]:
        """The files of the three splits, source and target."""
        names = []
        for stem in self.stems.values():
            names += [f"{stem}.en", f"{stem}.vi"]
        source = (
            "train, tst2012 and tst2013 in .en and .vi (nlp.stanford.edu/projects/nmt)"
        )
        return _find_together(self.name(), names, source, tmp_dir)


def _find_together(
    problem: str, names: list[str], described: str, tmp_dir: Path | None
) -> list[Path]:
    """The paths of files that are in one folder of `tmp_dir`: the one nearest to it
    that has the first of them. Raises FileNotFoundError if any is missing.
    """
    needed = f"{problem} needs {described} in one folder of --tmp_dir."
    if tmp_dir is None:
        raise FileNotFoundError(f"{needed} Received: no --tmp_dir.")
    firsts = sorted(tmp_dir.rglob(names[0]), key=lambda path: len(path.parts))
    if not firsts:
        raise FileNotFoundError(f"{needed} Received: {tmp_dir}, without {names[0]}.")
    folder = firsts[0].parent
    missing = [name for name in names if not (folder / name).is_file()]
    if missing:
        raise FileNotFoundError(
            f"{needed} Received: {folder}, without {', '.join(missing)}. Unpack the"
            " archive again."
        )
    return [folder / name for name in names]


def _pairs_of_files(paths: list[Path]) -> list[tuple[Path, Path]]:
    """Source and target files that take turns, as pairs."""
    return list(zip(paths[::2], paths[1::2], strict=True))


def _is_clean(source: str, target: str) -> bool:
    """Whether a pair of tokenised sentences is kept, by Moses's clean-corpus-n.perl
    with these limits.
    """
    lengths = sorted((len(source.split()), len(target.split())))
    shorter, longer = lengths
    return shorter >= 1 and longer <= MAX_TOKENS and longer <= MAX_RATIO * shorter


def _plain_apostrophes(text: str) -> str:
    return text.replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")


@functools.cache
def _tokeniser(language: str) -> Callable[[str], str]:
    """Moses's tokenizer.perl, then lower case; it writes `&` and quotes as entities."""
    # slow to import, and few problems need it
    from sacremoses import MosesTokenizer

    moses = MosesTokenizer(lang=language)

    def tokenise(line: str) -> str:
        tokens: str = moses.tokenize(line, return_str=True)
        return tokens.lower()

    return tokenise
