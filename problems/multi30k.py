"""Multi30k: English descriptions of pictures with German and French translations
(Elliott et al., 2016; task 1 of WMT 2016 to 2018).
"""

import dataclasses
from typing import ClassVar

from t2tlite import registry
from t2tlite.data.problem import option
from t2tlite.problems.corpus import Corpus

REPOSITORY = "https://github.com/multi30k/dataset"
AS_RELEASED = "raw"
PREPARED = "lc.norm.tok"
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
class Multi30k(Corpus):
    """The base class of both language pairs: English is the source."""

    vocab_size: int = 8000
    text: str = option(
        AS_RELEASED,
        "The form of the text: raw, as it was written; lc.norm.tok, in lower case, with"
        " normalised punctuation and separated words, as papers on Multi30k score it.",
        choices=(AS_RELEASED, PREPARED),
    )

    source_language: ClassVar[str] = "en"

    def corpora(self) -> dict[str, dict[str, str]]:
        form = "" if self.text == AS_RELEASED else f".{self.text}"
        return {
            split: {stem + form + ".{}": REPOSITORY} for split, stem in STEMS.items()
        }


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
