"""Parsing of biomedical articles: the trees of CRAFT, the Colorado Richly Annotated
Full-Text corpus (Verspoor et al., 2012).
"""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from t2tlite import registry
from t2tlite.files.text_files import read_lines
from t2tlite.problems.corpus import FilesBelow
from t2tlite.problems.wsj_parsing import Treebank
from t2tlite.trees.linearise import WORDS


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

    needed: ClassVar[str] = "a clone of https://github.com/UCDenver-ccp/CRAFT"

    def patterns(self, split: str, below: FilesBelow) -> list[str]:
        """The files of a split's articles, whose ids are in a list; or that list, if it
        is missing.
        """
        list_name = f"craft-ids-{split}.txt"
        lists = below.matching(list_name)
        if not lists:
            return [list_name]
        ids = " ".join(read_lines(lists[0])).split()
        return [f"{article}.tree" for article in sorted(set(ids))]
