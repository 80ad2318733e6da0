"""Constituency parsing (section 6.3 of the paper): sentences to their linearised
trees.
"""

import dataclasses
import itertools
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import ClassVar

from t2tlite.console import counted, say_once
from t2tlite.data.problem import Problem, option
from t2tlite.data.splits import DEV, SPLITS, TEST, TRAIN
from t2tlite.files.text_files import check_file, read_lines
from t2tlite.problems.corpus import Corpora, Corpus, FilesBelow, Pairs
from t2tlite.registry import register_problem
from t2tlite.trees.augmentation import with_fragments, with_substitutions
from t2tlite.trees.linearise import LINEARISATIONS, NORMALISED, WORDS
from t2tlite.trees.tree import Tree, clean_tree, read_trees

# of the Wall Street Journal
SECTIONS = {TRAIN: range(2, 22), DEV: [22], TEST: [23]}


def linearised_as(default: str) -> str:
    """The option `linearisation` with this default."""
    return option(
        default,
        "How trees are written: normalised, with XX for parts of speech (Vinyals et"
        " al., 2015); tags, with these; words, with the words, which is longer, but"
        " learned from few trees; t2t, as tensor2tensor does.",
        choices=tuple(LINEARISATIONS),
    )


@dataclasses.dataclass(frozen=True)
class ParsingProblem(Problem):
    """The base class of the parsing problems: the source is the words, the target the
    linearised tree.

    Every labelled bracket is one piece of the vocabulary. t2tlite/tasks makes trees of
    decoded sequences.
    """

    vocab_size: int = 16000
    linearisation: str = linearised_as(NORMALISED.name)
    fragments: int = option(
        0,
        "Also train on this many random constituents of each tree, of 2 to 15 words.",
        low=0,
    )
    substitutions: int = option(
        0,
        "Also train on this many copies of each tree with constituents of other trees"
        " that have the same label (Shi et al., 2021).",
        low=0,
    )

    task = "parsing"
    # Section 6.3: beam size 21, alpha 0.3, at most 300 tokens more than the input.
    decode_defaults: ClassVar[dict[str, float]] = {
        "beam_size": 21,
        "alpha": 0.3,
        "extra_length": 300,
    }

    def trees(self, split: str, tmp_dir: Path | None) -> Iterator[Tree]:
        """Yields the trees of a split, cleaned by `trees.tree.clean_tree`. Raises the
        errors of `pairs`.
        """
        raise NotImplementedError

    def pairs(self, split: str, tmp_dir: Path | None) -> Pairs:
        """Yields (words, linearised tree), both separated by spaces; in train, also of
        fragments and of trees with substitutions.
        """
        write = LINEARISATIONS[self.linearisation].write
        trees = self.trees(split, tmp_dir)
        if split == TRAIN:
            trees = with_substitutions(trees, self.substitutions)
            trees = with_fragments(trees, self.fragments)
        for tree in trees:
            yield " ".join(tree.words()), write(tree)

    def symbols(self, tmp_dir: Path | None) -> tuple[str, ...]:
        """The brackets and tags of the training trees that contain more than letters:
        `(NP`, `)NP`, -LRB-, PRP$.

        Tags such as NN, and the opening labels of tensor2tensor's form, are left out:
        words that begin with them would be split after them.
        """
        return self._symbols(self.trees(TRAIN, tmp_dir))

    def _symbols(self, trees: Iterable[Tree]) -> tuple[str, ...]:
        linearisation = LINEARISATIONS[self.linearisation]
        symbols = set()
        for tree in trees:
            symbols |= linearisation.symbols(tree)
        return tuple(sorted(itertools.filterfalse(str.isalpha, symbols)))


@dataclasses.dataclass(frozen=True)
class Treebank(ParsingProblem, Corpus):
    """The base class of the problems whose trees are files in --tmp_dir, in any folder.
    A subclass declares their names (`corpora_in`).
    """

    not_words: tuple[str, ...] = option(
        ("ID", "CODE", "METADATA", "-DFL-"),
        "Labels of nodes that hold no words of the sentence, comma-separated.",
    )

    def splits(self) -> tuple[str, ...]:
        return SPLITS

    def trees(self, split: str, tmp_dir: Path | None) -> Iterator[Tree]:
        """Yields the cleaned trees of a split, file by file. Raises at once if a file
        of any split is missing.
        """
        self.check_split(split)
        files = self.find(tmp_dir)[split]
        return self._read_clean([path for path, _ in files])

    def _read_clean(self, paths: Iterable[Path]) -> Iterator[Tree]:
        """Yields the cleaned trees in files, and reports how many have no words."""
        for path in paths:
            wordless = 0
            for tree in read_trees(path):
                cleaned = clean_tree(tree, self.not_words)
                if cleaned is None:
                    wordless += 1
                else:
                    yield cleaned
            if wordless:
                say_once(
                    f"{path}: left out {counted(wordless, 'tree')} without words, such"
                    " as (())."
                )


@register_problem
@dataclasses.dataclass(frozen=True)
class WsjParsing(Treebank):
    """English constituency parsing, Penn Treebank WSJ sections 02-21 / 22 / 23, or
    trees of your own in --tmp_dir.

    --tmp_dir holds, in any folder, either the files of the Treebank (LDC99T42:
    `wsj_SSNN.mrg`) or the files `train.trees`, `dev.trees` and `test.trees` with
    bracketed trees of any origin; plain or compressed (`train.trees.gz`). Trees are
    cleaned by `trees.tree.clean_tree`. The Treebank has 39,832 training, 1,700 dev and
    2,416 test trees.
    """

    origin = "the Treebank, LDC99T42, or train.trees and so on, of your own"

    def corpora_in(self, below: FilesBelow) -> Corpora:
        if below.matching("train.trees"):
            return {split: [f"{split}.trees"] for split in SPLITS}
        corpora = {}
        for split, sections in SECTIONS.items():
            corpora[split] = [f"wsj_{section:02}??.mrg" for section in sections]
        return corpora


@register_problem
@dataclasses.dataclass(frozen=True)
class WsjParsingSemi(WsjParsing):
    """wsj_parsing with automatically parsed trees (--extra_trees) in training: the
    paper's semi-supervised setting.

    The paper added the 17 million sentences of Vinyals et al. (2015), parsed by other
    parsers.
    """

    vocab_size: int = 32000
    extra_trees: tuple[str, ...] = option(
        (),
        "Files of automatically parsed trees to train on too, comma-separated, plain or"
        " compressed.",
    )

    needed_flags = ("tmp_dir", "extra_trees")

    def trees(self, split: str, tmp_dir: Path | None) -> Iterator[Tree]:
        """Yields the cleaned trees of a split; in train, the extra trees after them."""
        extra = self._read_clean(self._extra() if split == TRAIN else [])
        return itertools.chain(super().trees(split, tmp_dir), extra)

    def symbols(self, tmp_dir: Path | None) -> tuple[str, ...]:
        """The symbols of the treebank's own training trees."""
        return self._symbols(super().trees(TRAIN, tmp_dir))

    def files(self, tmp_dir: Path | None) -> list[Path]:
        return [*super().files(tmp_dir), *self._extra()]

    def _extra(self) -> list[Path]:
        if not self.extra_trees:
            raise ValueError(
                "wsj_parsing_semi needs --extra_trees=FILE,... wsj_parsing does not."
            )
        return list(map(check_file, self.extra_trees))


@register_problem
@dataclasses.dataclass(frozen=True)
class CraftParsing(Treebank):
    """Constituency parsing of biomedical articles, from a clone of CRAFT in --tmp_dir:
    gold trees, 60 articles to train on, 7 of dev, 30 of test.

    CRAFT is the Colorado Richly Annotated Full-Text corpus (Verspoor et al., 2012),
    github.com/UCDenver-ccp/CRAFT (CC BY 3.0), with 18,951 training,
    2,780 dev and 9,099 test trees. The defaults of the options are the recipe that
    docs/results.md measures.
    """

    vocab_size: int = 4000
    linearisation: str = linearised_as(WORDS.name)
    fragments: int = 2
    substitutions: int = 4

    origin = "a clone of https://github.com/UCDenver-ccp/CRAFT"

    def corpora_in(self, below: FilesBelow) -> Corpora:
        """The files of each split's articles, whose ids are in a list; or that list, if
        it is missing.
        """
        corpora = {}
        for split in SPLITS:
            ids_file = f"craft-ids-{split}.txt"
            corpora[split] = [ids_file]
            for path in below.matching(ids_file)[:1]:
                ids = sorted(set(map(str.strip, read_lines(path))) - {""})
                corpora[split] = [f"{article}.tree" for article in ids]
        return corpora
