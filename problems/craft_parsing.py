"""Parsing of biomedical articles: the trees of CRAFT, the Colorado Richly Annotated
Full-Text corpus (Verspoor et al., 2012).
"""

from __future__ import annotations

import dataclasses

from t2tlite import registry
from t2tlite.data.splits import SPLITS
from t2tlite.files.text_files import read_lines
from t2tlite.problems.corpus import FilesBelow
from t2tlite.problems.wsj_parsing import Treebank
from t2tlite.trees.linearise import WORDS

CRAFT = "a clone of https://github.com/UCDenver-ccp/CRAFT"


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

    def corpora_in(self, below: FilesBelow) -> dict[str, dict[str, str]]:
        """The files of each split's articles, whose ids are in a list; or that list, if
        it is missing.
        """
        corpora = {}
        for split in SPLITS:
            names = [f"craft-ids-{split}.txt"]
            for path in below.matching(names[0])[:1]:
                ids = " ".join(read_lines(path)).split()
                names = [f"{article}.tree" for article in sorted(set(ids))]
            corpora[split] = dict.fromkeys(names, CRAFT)
        return corpora
