"""CRAFT's trees, from files laid out as a clone of its repository, and the real ones."""

import gzip
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from t2tlite import registry
from t2tlite.problems.wsj_parsing import CraftParsing

# split -> the ids of its articles, in the order of the list
ARTICLES = {
    "train": ["11319941", "15018652"],
    "dev": ["17696610", "17194222"],
    "test": ["11604102"],
}
# As there: one tree a line, without a label outside; function tags, indices, traces,
# labels of headings, and Unicode brackets and dashes as words.
TREES = """\
( (TITLE (NP (NP (NNS Effects)) (PP (IN of) (NP (NN gene{id}))))) )
( (HEADING (NP (NN Abstract))) )
( (S (NP-SBJ-1 (NML (NN wild) (HYPH -) (NN type)) (NNS mice)) (VP (VBD were) \
(VP (VBN fed) (NP-1 (-NONE- *)) (PRN (-LRB- [) (NP (CD 1)) (-RRB- ])))) (. .)) )
"""
# the last tree, cleaned by hand
WORDS = "wild - type mice were fed [ 1 ] ."
WRITTEN = (
    "(S (NP (NML wild - type )NML mice )NP (VP were (VP fed (PRN [ (NP 1 )NP ] )PRN )VP"
    " )VP . )S"
)


def clone(folder: Path) -> Path:
    """A repository with three trees an article; another folder has annotations of
    another kind.
    """
    penn = folder / "structural-annotation" / "treebank" / "penn"
    other = folder / "articles" / "txt"
    ids = folder / "articles" / "ids"
    for path in (penn, other, ids):
        path.mkdir(parents=True)
    for split, articles in ARTICLES.items():
        text = "".join(f"{article}\n" for article in articles)
        (ids / f"craft-ids-{split}.txt").write_text(text)
        for article in articles:
            trees = TREES.format(id=article)
            (penn / f"{article}.tree").write_text(trees, encoding="utf-8")
            (other / f"{article}.txt").write_text("The article.\n")
    (penn / "README.txt").write_text("Penn Treebank format.\n")
    return folder


def articles_of(pairs: Iterator[tuple[str, str]]) -> list[str]:
    return re.findall(r"gene(\d+)", " ".join(source for source, _ in pairs))


def test_splits_are_the_lists_of_ids(tmp_path: Path):
    folder = clone(tmp_path / "CRAFT")
    problem = CraftParsing(fragments=0, substitutions=0)
    for split, articles in ARTICLES.items():
        assert articles_of(problem.pairs(split, folder)) == sorted(articles)
        pairs = list(problem.pairs(split, folder))
        assert len(pairs) == 3 * len(articles)
        assert pairs[2] == (WORDS, WRITTEN)
        assert pairs[1] == ("Abstract", "(HEADING (NP Abstract )NP )HEADING")
    assert len(problem.files(folder)) == 5


def remove_trees(folder: Path) -> None:
    next(folder.rglob("17194222.tree")).unlink()


def remove_list(folder: Path) -> None:
    next(folder.rglob("craft-ids-test.txt")).unlink()


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (remove_trees, r"from a clone of \S*CRAFT\. .*without\n  17194222\.tree$"),
        (remove_list, r"without\n  craft-ids-test\.txt$"),
    ],
)
def test_a_clone_that_is_not_whole_is_refused_before_reading(
    tmp_path: Path, damage: Callable[[Path], None], message: str
):
    folder = clone(tmp_path / "CRAFT")
    damage(folder)
    # would be an error of its own
    next(folder.rglob("11319941.tree")).write_text("(S (NN")
    with pytest.raises(FileNotFoundError, match=message):
        next(CraftParsing().pairs("train", folder))


def test_the_treebank(shared: Path):
    """CRAFT's own numbers of trees, one a line; the release has a blank line in test."""
    folder = shared / "data" / "craft"
    problem = registry.get_problem("wsj_parsing", linearisation="words")
    for split, count in (("train", 18951), ("dev", 2780), ("test", 9099)):
        with gzip.open(folder / f"{split}.trees.gz", "rt", encoding="utf-8") as file:
            assert sum(1 for line in file if line.strip()) == count
        assert sum(1 for _ in problem.pairs(split, folder)) == count
