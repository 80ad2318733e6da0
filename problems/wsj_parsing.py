"""Constituency parsing (section 6.3 of the paper): sentences in, their trees as bracketed sequences out."""

from __future__ import annotations

import dataclasses
import itertools
import random
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import ClassVar

from t2tlite import registry
from t2tlite.data.problem import Problem, option
from t2tlite.files.text_files import check_file
from t2tlite.trees.linearise import linearise, t2t_linearise
from t2tlite.trees.tree import ROOT, Tree, clean_tree, read_trees

LINEARISATIONS = {"normalised": "normalised", "tags": "kept", "words": "words", "t2t": ""}  # linearise's `tags`
MIN_FRAGMENT, MAX_FRAGMENT = 2, 15  # words
SECTIONS = {"train": range(2, 22), "dev": range(22, 23), "test": range(23, 24)}  # of the Wall Street Journal


@dataclasses.dataclass(frozen=True)
class ParsingProblem(Problem):
    """What the parsing problems have in common.

    The source is the sentence's words; the target is its tree as `trees/linearise.py` writes it.
    Every labelled bracket is one piece of the vocabulary. t2t-decoder turns what is decoded into trees again.
    """

    vocab_size: int = 16000
    linearisation: str = option(
        "normalised",
        "How trees are written: normalised writes every part of speech but punctuation as XX, as Vinyals "
        "et al. (2015) did; tags keeps the tags, so that the model learns to tag as well; words writes the words "
        "themselves, which is longer, but a model need not count them, and learns from few trees; t2t is "
        "tensor2tensor's form.",
    )
    fragments: int = option(
        0,
        "Constituents of each tree to train on in addition, of 2 to 15 words, drawn at random. They help "
        "where there are no more than some ten thousand trees.",
    )

    task: ClassVar[str] = "parsing"
    # Section 6.3: beam 21, alpha 0.3, at most 300 tokens more than the input.
    decode_defaults: ClassVar[dict[str, float]] = {"beam_size": 21, "alpha": 0.3, "extra_length": 300}

    def __post_init__(self) -> None:
        if self.linearisation not in LINEARISATIONS:
            raise ValueError(
                f"--linearisation must be one of {', '.join(LINEARISATIONS)}. Received: {self.linearisation!r}."
            )
        if self.fragments < 0:
            raise ValueError(f"--fragments must be 0 or more. Received: {self.fragments}.")

    def trees(self, split: str, tmp_dir: Path | None) -> Iterator[Tree]:
        """Yields the trees of a split as `trees.tree.clean_tree` leaves them.

        Raises:
            ValueError: bad input, or no such split.
            FileNotFoundError: a file is missing.
        """
        raise NotImplementedError

    def pairs(self, split: str, tmp_dir: Path | None) -> Iterator[tuple[str, str]]:
        """Yields (words, linearised tree), each separated by spaces; in train, after each tree its fragments."""
        draw = random.Random(1)
        for tree in self.trees(split, tmp_dir):
            yield " ".join(tree.words()), self._target(tree)
            for part in _fragments(tree, self.fragments, draw) if split == "train" else ():
                yield " ".join(part.words()), self._target(Tree(ROOT, (part,)))

    def symbols(self, tmp_dir: Path | None) -> tuple[str, ...]:
        """The brackets and tags of the training trees that are not letters alone: `(NP`, `)NP`, -LRB-, PRP$.

        Tags such as NN, and the opening labels of tensor2tensor's form, look like the beginnings of words, which would
        be cut behind them.
        """
        return self._symbols(self.trees("train", tmp_dir))

    def _target(self, tree: Tree, tags: str = "") -> str:
        if self.linearisation == "t2t":
            return t2t_linearise(tree)[1]
        return linearise(tree, tags or LINEARISATIONS[self.linearisation])

    def _symbols(self, trees: Iterable[Tree]) -> tuple[str, ...]:
        tokens = {token for tree in trees for token in self._target(tree, "kept").split()}
        return tuple(sorted(token for token in tokens if not token.isalpha()))


@registry.register_problem
@dataclasses.dataclass(frozen=True)
class WsjParsing(ParsingProblem):
    """English constituency parsing, Penn Treebank WSJ sections 02-21 / 22 / 23, or trees of your own in --tmp_dir.

    --tmp_dir holds either the files of the Treebank (LDC99T42: `wsj_SSNN.mrg` anywhere below it) or the files
    `train.trees`, `dev.trees` and `test.trees` with bracketed trees of any origin.
    Trees are cleaned: function tags, traces and what is empty without them removed, one TOP at the root. The
    Treebank gives 39,832 training trees, 1,700 of dev and 2,416 of test.
    """

    needed_flags: ClassVar[tuple[str, ...]] = ("tmp_dir",)

    def trees(self, split: str, tmp_dir: Path | None) -> Iterator[Tree]:
        """Yields the cleaned trees of a split, file by file in the order of their names."""
        paths = self._paths(split, tmp_dir)
        self.files(tmp_dir)  # a split without files is found before those of another are read
        for path in paths:
            yield from _cleaned(path)

    def files(self, tmp_dir: Path | None) -> list[Path]:
        """The tree files of all splits."""
        return [path for split in self.splits() for path in self._paths(split, tmp_dir)]

    def _paths(self, split: str, tmp_dir: Path | None) -> list[Path]:
        if split not in SECTIONS:
            raise ValueError(f"split must be one of {', '.join(SECTIONS)}. Received: {split!r}.")
        needed = (
            "Trees are needed in --tmp_dir: either train.trees, dev.trees and test.trees, or the Treebank's files "
            "wsj_0200.mrg to wsj_2399.mrg (LDC99T42)."
        )
        if tmp_dir is None:
            raise FileNotFoundError(f"{needed} Received: no --tmp_dir.")
        if (tmp_dir / "train.trees").is_file():
            return [check_file(tmp_dir / f"{split}.trees")]
        found = sorted(
            (path for path in tmp_dir.rglob("wsj_*.mrg") if _section(path) in SECTIONS[split]),
            key=lambda path: (path.name, path),
        )
        missing = sorted(set(SECTIONS[split]) - {_section(path) for path in found})
        if missing:
            sections = ", ".join(f"{section:02}" for section in missing)
            raise FileNotFoundError(f"{needed} Received: {tmp_dir}, without files of section {sections} ({split}).")
        for one, other in itertools.pairwise(found):
            if one.name == other.name:  # its trees would count twice
                raise ValueError(
                    f"Each file of the Treebank must lie in --tmp_dir once. Received: {one} and {other}. Remove one, "
                    "or name a folder that holds only one of them."
                )
        return found


@registry.register_problem
@dataclasses.dataclass(frozen=True)
class WsjParsingSemi(WsjParsing):
    """wsj_parsing with automatically parsed trees (--extra_trees) in training: the paper's semi-supervised setting.

    The paper added the 17 million sentences of Vinyals et al. (2015), parsed by other parsers.
    """

    vocab_size: int = 32000
    extra_trees: tuple[str, ...] = option(
        (), "Files of automatically parsed trees to train on in addition, comma-separated; plain text or .gz."
    )

    needed_flags: ClassVar[tuple[str, ...]] = ("tmp_dir", "extra_trees")

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.extra_trees, str):
            raise ValueError(f"extra_trees must be a tuple of file names. Received: {self.extra_trees!r}.")

    def trees(self, split: str, tmp_dir: Path | None) -> Iterator[Tree]:
        """Yields the cleaned trees of a split; after those of train, the extra ones."""
        yield from super().trees(split, tmp_dir)  # which looks for all files first, the extra ones too
        if split == "train":
            for path in self._extra():
                yield from _cleaned(path)

    def symbols(self, tmp_dir: Path | None) -> tuple[str, ...]:
        """The symbols of the treebank's own training trees."""
        return self._symbols(super().trees("train", tmp_dir))

    def files(self, tmp_dir: Path | None) -> list[Path]:
        """The tree files of all splits, and the extra ones."""
        return [*super().files(tmp_dir), *self._extra()]

    def _extra(self) -> list[Path]:
        if not self.extra_trees:
            raise ValueError(
                "wsj_parsing_semi needs --extra_trees=FILE,... Received: none. Name the files, or take wsj_parsing."
            )
        return [check_file(Path(name).expanduser()) for name in self.extra_trees]


def _fragments(tree: Tree, count: int, draw: random.Random) -> list[Tree]:
    """Up to `count` different constituents of a tree, the whole sentence excepted."""
    if not count:
        return []
    parts, waiting = [], list(tree.children)
    while waiting:
        part = waiting.pop()
        if isinstance(part, Tree) and not part.is_preterminal:
            waiting.extend(part.children)
            parts.append(part)
    length = len(tree.words())
    fitting = [part for part in parts if MIN_FRAGMENT <= len(part.words()) <= min(MAX_FRAGMENT, length - 1)]
    return draw.sample(fitting, min(count, len(fitting)))


def _cleaned(path: Path) -> Iterator[Tree]:
    for tree in map(clean_tree, read_trees(path)):
        if tree is not None:
            yield tree


def _section(path: Path) -> int:
    """23 for wsj_2301.mrg, -1 for other names."""
    found = re.fullmatch(r"wsj_(\d\d)\d\d\.mrg", path.name)
    return int(found[1]) if found else -1
