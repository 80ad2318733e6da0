"""The WMT 2014 tasks from files in the folders of the published archives."""

from pathlib import Path

import pytest
from problem_test import run_problem_test
from wmt_files import TRAINING, sgm, unpack, write

from t2tlite import registry
from t2tlite.problems.translation import WmtEnde, WmtEnfr


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


def test_compressed_files(tmp_path: Path) -> None:
    for path in unpack(tmp_path, "de"):
        if path.suffix != ".gz":
            write(path.with_name(f"{path.name}.xz"), path.read_text())
            path.unlink()
    assert len(list(WmtEnde().pairs("train", tmp_path))) == 6
    assert len(list(WmtEnde().pairs("test", tmp_path))) == 2


def test_the_filtered_test_set_is_another(tmp_path: Path) -> None:
    unpack(tmp_path, "de")
    write(tmp_path / "test/newstest2014-deen-src.en.sgm", sgm("src", "filtered"))
    write(tmp_path / "test/newstest2014-deen-ref.de.sgm", sgm("ref", "gefiltert"))
    assert len(list(WmtEnde().pairs("test", tmp_path))) == 2
    for path in (tmp_path / "test-full").iterdir():
        path.unlink()
    with pytest.raises(FileNotFoundError, match=r"\n  test-full/newstest2014-deen-"):
        WmtEnde().pairs("test", tmp_path)


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
    where, *missing = str(raised.value).split("\n")
    assert "from https://www.statmt.org/wmt14/translation-task.html, or an em" in where
    assert missing == [
        "  commoncrawl.de-en.en and commoncrawl.de-en.de",
        "  newstest2013.en and newstest2013.de",
    ]
