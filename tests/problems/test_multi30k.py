"""Multi30k, from files laid out as a clone of its repository, and from the real one."""

import gzip
from pathlib import Path

import pytest
from problem_test import run_problem_test

from t2tlite import registry
from t2tlite.bin import t2t_datagen
from t2tlite.data.manifest import read_manifest
from t2tlite.problems.translation import Multi30kEnde

# file -> split
FILES = {"train": "train", "val": "dev", "test_2016_flickr": "test"}
FILES |= {f"test_{name}": f"test_{name}" for name in ("2017_flickr", "2017_mscoco")}
FILES["test_2018_flickr"] = "test_2018_flickr"


def clone(folder: Path) -> Path:
    """A repository with one pair a split and language, compressed as there."""
    task = folder / "data" / "task1"
    for name in ("raw", "tok"):
        (task / name).mkdir(parents=True)
    for stem in FILES:
        for language in ("en", "de", "fr"):
            line = f"{stem} {language}"
            path = task / "raw" / f"{stem}.{language}.gz"
            path.write_bytes(gzip.compress(f"{line}.\n".encode()))
            path = task / "tok" / f"{stem}.lc.norm.tok.{language}"
            path.write_text(f"{line} .\n", encoding="utf-8")
    return folder


@pytest.mark.parametrize(("language", "text"), [("de", "raw"), ("fr", "lc.norm.tok")])
@pytest.mark.parametrize("inside", ["", "data/task1"])
def test_clone(tmp_path: Path, language: str, text: str, inside: str):
    folder = clone(tmp_path / "dataset") / inside
    problem = registry.get_problem(f"multi30k_en{language}", text=text)
    assert (problem.source_language, problem.target_language) == ("en", language)
    end = "." if text == "raw" else " ."
    pairs = {}
    for stem, split in FILES.items():
        pairs[split] = [(f"{stem} en{end}", f"{stem} {language}{end}")]
    run_problem_test(problem, folder, pairs, files=12)


def test_missing_files(tmp_path: Path):
    clone(tmp_path)
    (tmp_path / "data/task1/raw/test_2018_flickr.de.gz").unlink()
    message = r"from http.*without\n  test_2018_flickr\.en and test_2018_flickr\.de$"
    with pytest.raises(FileNotFoundError, match=message):
        Multi30kEnde().pairs("train", tmp_path)


def test_datagen_keeps_every_test_set(tmp_path: Path):
    folder = clone(tmp_path / "dataset")
    arguments = ["--problem=multi30k_ende", f"--tmp_dir={folder}", "--vocab_size=280"]
    assert not t2t_datagen.main([*arguments, f"--data_dir={tmp_path}"])
    manifest = read_manifest(tmp_path / "multi30k_ende")
    assert list(manifest.splits) == list(FILES.values())
    assert [entry.pairs for entry in manifest.splits.values()] == [1] * 6
    assert (manifest.languages.source, manifest.languages.target) == ("en", "de")


@pytest.mark.parametrize("language", ["de", "fr"])
def test_the_repository(shared: Path, language: str):
    """Counts of the dataset's README: 29,000, 1,014, 1,000, 1,000, 461 and 1,071."""
    folder = shared / "data" / "multi30k_dataset"
    for text in ("raw", "lc.norm.tok"):
        problem = registry.get_problem(f"multi30k_en{language}", text=text)
        counts = []
        for split in problem.splits():
            counts.append(sum(1 for _ in problem.pairs(split, folder)))
        assert counts == [29000, 1014, 1000, 1000, 461, 1071]
