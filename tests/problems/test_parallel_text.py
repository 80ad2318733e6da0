"""A user's own files as a problem."""

import os
import re
import threading
from pathlib import Path
from typing import Any

import pytest
from problem_test import run_problem_test
from tiny_task import contents

from t2tlite.data.dataset import open_dataset
from t2tlite.data.generate import Generated, generate
from t2tlite.files.text_files import write_lines
from t2tlite.problems.parallel_text import ParallelText


@pytest.fixture
def corpus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> dict[str, tuple[str, ...]]:
    """Options that name small files in the current folder."""
    texts = {
        "train_source": ("A man .\nTwo dogs .\n", "A cat .\n"),
        "train_target": ("Ein Mann .\nZwei Hunde .\n", "Eine Katze .\n"),
        "dev_source": ("A dog .\n",),
        "dev_target": ("Ein Hund .\n",),
    }
    options = {}
    for option, parts in texts.items():
        names = tuple(f"{option}.{i}" for i in range(len(parts)))
        for name, text in zip(names, parts, strict=True):
            (tmp_path / name).write_text(text)
        options[option] = names
    monkeypatch.chdir(tmp_path)
    return options


def test_files_of_each_split(corpus: dict[str, Any], tmp_path: Path) -> None:
    # each pair of training files is a corpus
    pairs = {
        "train": [("A man .", "Ein Mann ."), ("Two dogs .", "Zwei Hunde .")],
        "train2": [("A cat .", "Eine Katze .")],
        "dev": [("A dog .", "Ein Hund .")],
    }
    run_problem_test(ParallelText(**corpus), None, pairs, files=6)


def test_test_split_where_given(corpus: dict[str, Any]) -> None:
    problem = ParallelText(
        **corpus, test_source=("dev_source.0",), test_target=("dev_target.0",)
    )
    assert problem.splits() == ("train", "train2", "dev", "test")
    assert list(problem.pairs("test", None)) == [("A dog .", "Ein Hund .")]
    assert len(problem.files(None)) == 8
    with pytest.raises(ValueError, match=r"of train, train2, dev\. Received: 'test'"):
        ParallelText(**corpus).pairs("test", None)


def test_files_of_two_columns_follow_pairs_of_files(
    corpus: dict[str, Any], tmp_path: Path
) -> None:
    write_lines(tmp_path / "more.tsv.xz", ["A bus .\tEin Bus .", "\tLeer ."])
    write_lines(tmp_path / "dev.tsv.bz2", ["A tree .\tEin Baum ."])
    tsv = {"train_tsv": ("more.tsv.xz",), "dev_tsv": ("dev.tsv.bz2",)}
    problem = ParallelText(**corpus, **tsv, test_tsv=("dev.tsv.bz2", "more.tsv.xz"))
    assert problem.splits() == ("train", "train2", "train3", "dev", "dev2", "test")
    columns = [("A bus .", "Ein Bus ."), ("", "Leer .")]
    assert list(problem.pairs("train2", None)) == [("A cat .", "Eine Katze .")]
    assert list(problem.pairs("train3", None)) == columns
    assert list(problem.pairs("dev2", None)) == [("A tree .", "Ein Baum .")]
    assert list(problem.pairs("test", None)) == [("A tree .", "Ein Baum ."), *columns]
    assert problem.files(None).count(Path("more.tsv.xz")) == 2
    alone = ParallelText(**tsv)
    assert alone.splits() == ("train", "dev")
    assert list(alone.pairs("train", None)) == columns


def test_translation_memories_follow_the_others(
    corpus: dict[str, Any], tmp_path: Path
) -> None:
    """The first corpus is two files, the second columns, the third and fourth TMX."""
    write_lines(tmp_path / "more.tsv", ["A bus .\tEin Bus ."])
    for number in (1, 2):
        variants = [
            f'<tuv xml:lang="{code}"><seg>{text} {number}</seg></tuv>'
            for code, text in (("fr", "Un"), ("de-DE", "Ein"), ("en-GB", "A"))
        ]
        (tmp_path / f"{number}.tmx").write_text(
            f"<tmx><body><tu>{''.join(variants)}</tu></body></tmx>"
        )
    corpus |= {name: files[:1] for name, files in corpus.items()}
    problem = ParallelText(
        **corpus,
        train_tsv=("more.tsv",),
        train_tmx=("1.tmx", "2.tmx"),
        dev_tmx=("2.tmx",),
        test_tmx=("1.tmx", "2.tmx"),
        source_language="en",
        target_language="de",
    )
    names = ("train", "train2", "train3", "train4", "dev", "dev2", "test")
    assert problem.splits() == names
    pairs = [("A 1", "Ein 1"), ("A 2", "Ein 2")]
    assert list(problem.pairs("train2", None)) == [("A bus .", "Ein Bus .")]
    assert list(problem.pairs("train3", None)) == pairs[:1]
    assert list(problem.pairs("train4", None)) == pairs[1:]
    assert list(problem.pairs("dev2", None)) == pairs[1:]
    assert list(problem.pairs("test", None)) == pairs
    assert problem.files(None).count(Path("2.tmx")) == 3
    dataset = generate(problem, tmp_path / "data", num_processes=1).dataset
    assert dataset.manifest.dev_sets["dev2"] == "dev2 (2.tmx)"


def test_a_line_without_two_columns(corpus: dict[str, Any], tmp_path: Path) -> None:
    for line in ("one", "a\tb\tCC-BY 2.0"):
        write_lines(tmp_path / "bad.tsv", ["A bus .\tEin Bus .", "", line])
        problem = ParallelText(**(corpus | {"train_tsv": ("bad.tsv",)}))
        message = rf"^bad\.tsv, line 3: .SOURCE\\tTARGET. is .* Received: {re.escape(repr(line))}\."
        with pytest.raises(ValueError, match=message):
            list(problem.pairs("train3", None))


def test_home_folder(
    corpus: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    corpus |= {"dev_source": ("~/dev_source.0",), "dev_target": ("~name",)}
    write_lines(tmp_path / "~name", ["Ein Hund ."])
    [pair] = ParallelText(**corpus).pairs("dev", None)
    assert pair == ("A dog .", "Ein Hund .")
    assert tmp_path / "dev_source.0" in ParallelText(**corpus).files(None)
    made = generate(ParallelText(**corpus), "~/data", num_processes=1)
    assert made.dataset.folder == tmp_path / "data" / "parallel_text"
    assert open_dataset("~/data").folder == made.dataset.folder


def test_pipes_give_the_data_of_files(corpus: dict[str, Any], tmp_path: Path) -> None:
    options = {}
    for key, names in corpus.items():
        options[key] = tuple(f"pipes/{name}" for name in names)
    pipes = [Path(name) for names in options.values() for name in names]
    Path("pipes").mkdir()
    for pipe in pipes:
        os.mkfifo(pipe)

    def make() -> Generated:
        for pipe in pipes:  # each has a file's content, once
            text = [Path(pipe.name).read_bytes()]
            threading.Thread(target=pipe.write_bytes, args=text, daemon=True).start()
        return generate(ParallelText(**options), tmp_path / "piped", num_processes=1)

    assert not make().already_there
    made = contents(tmp_path / "piped")
    generate(ParallelText(**corpus), tmp_path / "files", num_processes=1)
    different = made.items() ^ contents(tmp_path / "files").items()
    assert {name for name, _ in different} == {"parallel_text/manifest.json"}
    assert make().already_there
    Path("dev_source.0").write_text("A bird .\n")
    with pytest.raises(ValueError, match=r"else: parallel_text now yields other pairs"):
        make()
    assert contents(tmp_path / "piped") == made


def test_a_pipe_is_given_once(corpus: dict[str, Any], tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name, shown in (("pipe", "pipe"), ("-", "standard input")):
        options = corpus | {"train_source": (name, "train_source.1")}
        ParallelText(**options).files(None)
        problem = ParallelText(**options, dev_tsv=(name,))
        message = rf"^A pipe, {shown}, can be read once\."
        with pytest.raises(ValueError, match=message):
            problem.pairs("train", None)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"source_language": "English"}, r"must be a code of BCP 47, .*'English'\."),
        ({"target_language": "../de"}, r"must be a code of BCP 47, .*'\.\./de'\."),
        ({"source_language": "en", "target_language": "EN"}, r"Languages must differ\. Received: en and EN"),
        ({"train_source": (), "train_target": ()}, r"files for train\. Give --train_source and"),
        ({"dev_source": (), "dev_target": ()}, r"files for dev\. Give --dev_source and"),
        ({"train_source": ("a", "b"), "train_target": ("c",)}, r"--train_source and --train_target must be .*: 2 and 1\."),
        ({"dev_source": ("a", "b"), "dev_target": ()}, "2 and 0"),
        ({"test_source": (), "test_target": ("a",)}, "0 and 1"),
    ],
)  # fmt: skip
def test_refused(corpus: dict[str, Any], options: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ParallelText(**(corpus | options)).pairs("train", None)
    ParallelText(source_language="zh_hans", target_language="pt-BR")
