"""Multi30k, from files laid out as a clone of its repository, and from the real one."""

import gzip
from pathlib import Path

import pytest

from t2tlite import registry
from t2tlite.bin import t2t_datagen
from t2tlite.data.manifest import read_manifest
from t2tlite.problems.multi30k import Multi30kEnde, Multi30kEnfr

# file -> split
FILES = {
    "train": "train",
    "val": "dev",
    "test_2016_flickr": "test",
    "test_2017_flickr": "test_2017_flickr",
    "test_2017_mscoco": "test_2017_mscoco",
    "test_2018_flickr": "test_2018_flickr",
}


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


@pytest.mark.parametrize(
    ("language", "cls"), [("de", Multi30kEnde), ("fr", Multi30kEnfr)]
)
@pytest.mark.parametrize(("text", "end"), [("raw", "."), ("lc.norm.tok", " .")])
@pytest.mark.parametrize("inside", ["", "data/task1"])
def test_clone(
    tmp_path: Path, language: str, cls: type, text: str, end: str, inside: str
):
    folder = clone(tmp_path / "dataset") / inside
    problem = registry.get_problem(f"multi30k_en{language}", text=text)
    assert isinstance(problem, cls)
    assert (problem.source_language, problem.target_language) == ("en", language)
    assert problem.splits() == tuple(FILES.values())
    for stem, split in FILES.items():
        expected = [(f"{stem} en{end}", f"{stem} {language}{end}")]
        assert list(problem.pairs(split, folder)) == expected
    # the source and the target of each of six splits
    names = [path.name for path in problem.files(folder)]
    assert len(set(names)) == 12
    assert names[:2] == [
        f"train.{text}.en".replace("raw.en", "en.gz"),
        f"train.{text}.{language}".replace(f"raw.{language}", f"{language}.gz"),
    ]


def test_decompressed_files_are_read_too(tmp_path: Path):
    raw = clone(tmp_path) / "data" / "task1" / "raw"
    for path in list(raw.iterdir()):
        path.with_suffix("").write_bytes(gzip.decompress(path.read_bytes()))
        path.unlink()
    (pair,) = Multi30kEnde().pairs("dev", tmp_path)
    assert pair == ("val en.", "val de.")


def test_missing_files(tmp_path: Path):
    problem = Multi30kEnde()
    with pytest.raises(FileNotFoundError, match=r"Received: no --tmp_dir, without"):
        problem.pairs("train", None)
    clone(tmp_path)
    (tmp_path / "data/task1/raw/test_2018_flickr.de.gz").unlink()
    with pytest.raises(
        FileNotFoundError,
        match=r"without\n  test_2018_flickr\.en and test_2018_flickr\.de: from http\S+$",
    ):
        problem.pairs("train", tmp_path)
    with pytest.raises(ValueError, match="splits of multi30k_ende are train, dev, "):
        problem.pairs("test_2016", tmp_path)
    with pytest.raises(ValueError, match=r"text must be one of raw, lc\.norm\.tok"):
        Multi30kEnde(text="tok")


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
