"""The WMT 2014 tasks from files in the folders of the published archives."""

from pathlib import Path

import pytest
from problem_test import run_problem_test
from wmt_files import TRAINING, sgm, unpack, write

from t2tlite import registry
from t2tlite.problems.translate_wmt import WmtEnde, WmtEnfr


@pytest.mark.parametrize("foreign", ["de", "fr"])
def test_unpacked_archives(tmp_path: Path, foreign: str) -> None:
    paths = unpack(tmp_path, foreign)
    problem = registry.get_problem(f"wmt_en{foreign}")
    assert problem.files(tmp_path) == paths
    assert (problem.source_language, problem.target_language) == ("en", foreign)
    train = []
    for number in range(len(TRAINING[foreign])):
        for line in "ab":
            train.append((f"train {number} {line}", f"{foreign} {number} {line}"))
    test = [("test & a", f"{foreign} test & a"), ("test b", f"{foreign} test b")]
    pairs = {"train": train, "dev": [("dev a", f"{foreign} dev a")], "test": test}
    run_problem_test(problem, tmp_path, pairs, files=len(paths))


def test_vocabulary_sizes_are_the_papers() -> None:
    assert (WmtEnde().vocab_size, WmtEnfr().vocab_size) == (37000, 32000)  # section 5.1
    assert (WmtEnde().name(), WmtEnfr().name()) == ("wmt_ende", "wmt_enfr")


@pytest.mark.parametrize("ending", [".gz", ".xz", ".bz2"])
def test_other_forms_of_the_same_files(tmp_path: Path, ending: str) -> None:
    """Everything flat in one folder, compressed; dev as .sgm and test as plain text."""
    for path in unpack(tmp_path / "unpacked", "de")[:6]:
        write(tmp_path / "flat" / f"{path.name}{ending}", path.read_text())
        path.unlink()
    for path in (tmp_path / "unpacked").rglob("newstest*"):
        path.unlink()
    write(tmp_path / "flat/newstest2013-src.en.sgm", sgm("src", "dev a"))
    write(tmp_path / f"flat/newstest2013-ref.de.sgm{ending}", sgm("ref", "de dev a"))
    write(tmp_path / "flat/newstest2014.en", "test &amp; a\n")
    write(tmp_path / "flat/newstest2014.de", "de test a\n")
    problem = WmtEnde()
    assert len(list(problem.pairs("train", tmp_path))) == 6
    assert list(problem.pairs("dev", tmp_path)) == [("dev a", "de dev a")]
    # plain text is taken as it is
    assert list(problem.pairs("test", tmp_path)) == [("test &amp; a", "de test a")]


def test_full_test_set_is_preferred_to_the_filtered_one(tmp_path: Path) -> None:
    unpack(tmp_path, "de")
    write(tmp_path / "test/newstest2014-deen-src.en.sgm", sgm("src", "filtered"))
    write(tmp_path / "test/newstest2014-deen-ref.de.sgm", sgm("ref", "gefiltert"))
    assert len(list(WmtEnde().pairs("test", tmp_path))) == 2
    for path in (tmp_path / "test-full").iterdir():
        path.unlink()
    assert list(WmtEnde().pairs("test", tmp_path)) == [("filtered", "gefiltert")]


def test_linked_folders_are_searched_once(tmp_path: Path) -> None:
    unpack(tmp_path / "elsewhere", "de")
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "wmt").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere" / "back").symlink_to(tmp_path / "raw")
    assert len(WmtEnde().files(tmp_path / "raw")) == 10


def test_missing_files_are_listed_with_their_archives(tmp_path: Path) -> None:
    unpack(tmp_path, "de")
    (tmp_path / "commoncrawl.de-en.de").unlink()
    (tmp_path / "dev/newstest2013.en").unlink()
    with pytest.raises(FileNotFoundError, match="wmt_ende needs these f") as raised:
        WmtEnde().pairs("train", tmp_path)
    missing = [line for line in str(raised.value).split("\n") if line.startswith("  ")]
    assert missing == [
        (
            "  commoncrawl.de-en.en and commoncrawl.de-en.de: "
            "from https://www.statmt.org/wmt13/training-parallel-commoncrawl.tgz"
        ),
        (
            "  newstest2013.en and newstest2013.de or newstest2013-src.en.sgm and"
            " newstest2013-ref.de.sgm: from https://www.statmt.org/wmt14/dev.tgz"
        ),
    ]
    with pytest.raises(FileNotFoundError, match="wmt_ende needs these files"):
        WmtEnde().files(tmp_path)


def test_archives_that_are_not_unpacked(tmp_path: Path) -> None:
    write(tmp_path / "downloads/training-parallel-europarl-v7.tgz", "")
    message = r"europarl-v7\.de-en\.de: unpack .*downloads/training-parallel-europarl"
    with pytest.raises(FileNotFoundError, match=message):
        WmtEnde().pairs("train", tmp_path)


def test_newstest2014_of_two_language_pairs_in_one_folder(tmp_path: Path) -> None:
    for path in unpack(tmp_path, "de")[-2:]:
        path.unlink()
    for language in ("en", "de", "fr"):
        write(tmp_path / f"newstest2014.{language}", "a\n")
    message = r"test set de-en\. newstest2014\.fr beside it"
    with pytest.raises(ValueError, match=message):
        WmtEnde().pairs("test", tmp_path)
    (tmp_path / "newstest2014.fr").unlink()
    assert list(WmtEnde().pairs("test", tmp_path)) == [("a", "a")]


def test_real_dev_and_test_sets(tmp_path: Path, shared: Path) -> None:
    for path in unpack(tmp_path, "de")[-4:]:
        path.unlink()
    for path in (shared / "data" / "miniwmt").glob("newstest201[34].??"):
        (tmp_path / path.name).symlink_to(path)
    assert sum(1 for _ in WmtEnde().pairs("dev", tmp_path)) == 3000
    assert sum(1 for _ in WmtEnde().pairs("test", tmp_path)) == 3003
