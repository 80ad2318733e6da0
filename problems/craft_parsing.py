"""Parsing of biomedical articles: the trees of CRAFT, the Colorado Richly Annotated
Full-Text corpus (Verspoor et al., 2012).
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

from t2tlite import registry
from t2tlite.files.text_files import read_lines
from t2tlite.problems.wsj_parsing import Treebank, check_once
from t2tlite.trees.linearise import WORDS

REPOSITORY = "https://github.com/UCDenver-ccp/CRAFT"
IDS = "craft-ids-{split}.txt"  # the ids of a split's articles, one a line
TREES = ".tree"  # what the name of an article's file ends in, after the id


@registry.register_problem
@dataclasses.dataclass(frozen=True)
class CraftParsing(Treebank):
    """Constituency parsing of biomedical articles, from a clone of CRAFT in --tmp_dir:
    gold trees, 60 articles to train on, 7 of dev, 30 of test.

    The repository is github.com/UCDenver-ccp/CRAFT (CC BY 3.0), with 18,951 training,
    2,780 dev and 9,099 test trees. The defaults of the options are the recipe that
    docs/results.md measures.
    """

    vocab_size: int = 4000
    linearisation: str = WORDS.name
    fragments: int = 2
    substitutions: int = 4

    def paths(self, split: str, tmp_dir: Path | None) -> list[Path]:
        """The files of a split's articles, in the order of their ids."""
        if split not in self.splits():
            raise ValueError(
                f"The splits of {self.name()} are {', '.join(self.splits())}. Received:"
                f" {split!r}."
            )
        needed = (
            f"{self.name()} needs a clone of {REPOSITORY} in --tmp_dir, of which it"
            f" reads the lists {IDS.format(split='*')} and the files *{TREES}."
        )
        if tmp_dir is None:
            raise FileNotFoundError(f"{needed} Received: no --tmp_dir.")
        name = IDS.format(split=split)
        lists = sorted(tmp_dir.rglob(name))
        if not lists:
            raise FileNotFoundError(
                f"{needed} Received: {tmp_dir}, without a file {name}."
            )
        ids = set(" ".join(read_lines(lists[0])).split())
        paths = [p for p in tmp_dir.rglob(f"*{TREES}") if p.stem in ids]
        paths.sort(key=lambda path: (path.name, path))
        missing = sorted(ids.difference(path.stem for path in paths))
        if missing:
            raise FileNotFoundError(
                f"{needed} Received: {tmp_dir}, without the trees of"
                f" {', '.join(missing)} ({split})."
            )
        check_once(paths)
        return paths
