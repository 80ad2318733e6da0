"""The WMT 2014 tasks, from files laid out as the published archives unpack and from
TensorFlow Datasets.
"""

import socket
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from t2tlite import registry
from t2tlite.bin import t2t_datagen
from t2tlite.files import text_files
from t2tlite.problems.translate_wmt import WmtEnde, WmtEnfr, read_segments

# Where the archives unpack to, in the order in which the corpora are read.
TRAINING = {
    "de": [
        "training/europarl-v7.de-en",
        "commoncrawl.de-en",
        "training/news-commentary-v9.de-en",
    ],
    "fr": [
        "training/europarl-v7.fr-en",
        "commoncrawl.fr-en",
        "training/news-commentary-v9.fr-en",
        "un/undoc.2000.fr-en",
        "giga-fren.release2.fixed",
    ],
}
PROBLEMS = {"de": WmtEnde, "fr": WmtEnfr}


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file, text_files.compressed(file, path) as output:
        output.write(text.encode())
    return path


def sgm(kind: str, *segments: str) -> str:
    """An .sgm file as NIST's tools write it: a document a paragraph, a segment a
    line.
    """
    lines = [
        f'<{kind}set setid="newstest2014" srclang="any" trglang="xx">',
        '<doc sysid="ref" docid="1">',
        "<p>",
    ]
    lines += [
        f'<seg id="{number}">{segment}</seg>'
        for number, segment in enumerate(segments, start=1)
    ]
    return "\n".join([*lines, "</p>", "</doc>", f"</{kind}set>", ""])


def unpack(folder: Path, foreign: str) -> list[Path]:
    """Writes tiny files under the archives' names; returns them in reading order."""
    paths = []
    for number, stem in enumerate(TRAINING[foreign]):
        suffix = ".gz" if stem.startswith("giga") else ""
        paths += [
            write(
                folder / f"{stem}.en{suffix}", f"train {number} a\ntrain {number} b\n"
            ),
            write(
                folder / f"{stem}.{foreign}{suffix}",
                f"{foreign} {number} a\n{foreign} {number} b\n",
            ),
        ]
    paths += [
        write(folder / "dev/newstest2013.en", "dev a\n"),
        write(folder / f"dev/newstest2013.{foreign}", f"{foreign} dev a\n"),
    ]
    stem = f"test-full/newstest2014-{foreign}en"
    paths += [
        write(folder / f"{stem}-src.en.sgm", sgm("src", "test &amp; a", "test b")),
        write(
            folder / f"{stem}-ref.{foreign}.sgm",
            sgm("ref", f"{foreign} test &amp; a", f"{foreign} test b"),
        ),
    ]
    return paths


@pytest.mark.parametrize("foreign", ["de", "fr"])
def test_unpacked_archives(tmp_path: Path, foreign: str) -> None:
    paths = unpack(tmp_path, foreign)
    problem = registry.get_problem(f"wmt_en{foreign}")
    assert isinstance(problem, PROBLEMS[foreign])
    assert problem.splits() == ("train", "dev", "test")
    assert list(problem.pairs("train", tmp_path)) == [
        (f"train {number} {line}", f"{foreign} {number} {line}")
        for number in range(len(TRAINING[foreign]))
        for line in "ab"
    ]
    assert list(problem.pairs("dev", tmp_path)) == [("dev a", f"{foreign} dev a")]
    assert list(problem.pairs("test", tmp_path)) == [
        ("test & a", f"{foreign} test & a"),
        ("test b", f"{foreign} test b"),
    ]
    assert problem.files(tmp_path) == paths
    assert (problem.source_language, problem.target_language) == ("en", foreign)
    with pytest.raises(
        ValueError,
        match=rf"splits of wmt_en{foreign} are train, dev and test\. Received: 'eval'",
    ):
        problem.pairs("eval", tmp_path)


def test_both_tasks_in_one_folder(tmp_path: Path) -> None:
    for foreign in ("de", "fr"):
        unpack(tmp_path / "raw", foreign)
    assert len(WmtEnde().files(tmp_path)) == 2 * 5
    assert len(WmtEnfr().files(tmp_path)) == 2 * 7


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
    with pytest.raises(
        FileNotFoundError, match=r"wmt_ende needs all its files .* 3 of 5 pairs"
    ) as raised:
        WmtEnde().pairs("train", tmp_path)
    missing = [line for line in str(raised.value).split("\n") if line.startswith("  ")]
    assert missing == [
        (
            "  commoncrawl.de-en.en and commoncrawl.de-en.de: "
            "in https://www.statmt.org/wmt13/training-parallel-commoncrawl.tgz"
        ),
        (
            "  newstest2013.en and newstest2013.de or newstest2013-src.en.sgm and"
            " newstest2013-ref.de.sgm: in https://www.statmt.org/wmt14/dev.tgz"
        ),
    ]
    with pytest.raises(FileNotFoundError, match="wmt_ende needs all its files"):
        WmtEnde().files(tmp_path)


def test_every_archive_is_named(tmp_path: Path) -> None:
    write(tmp_path / "newstest2013.en", "a\n")
    write(tmp_path / "newstest2013.fr", "a\n")
    with pytest.raises(FileNotFoundError, match="1 of 7 pairs") as raised:
        WmtEnfr().files(tmp_path)
    for archive in (
        "training-parallel-europarl-v7.tgz",
        "training-parallel-commoncrawl.tgz",
        "training-parallel-nc-v9.tgz",
        "training-parallel-un.tgz",
        "training-giga-fren.tar",
        "test-full.tgz",
    ):
        assert archive in str(raised.value)


def test_archives_that_are_not_unpacked(tmp_path: Path) -> None:
    write(tmp_path / "downloads/training-parallel-europarl-v7.tgz", "")
    with pytest.raises(
        FileNotFoundError,
        match=r"europarl-v7\.de-en\.de: unpack .*downloads/training-parallel-europarl",
    ):
        WmtEnde().pairs("train", tmp_path)


def test_newstest2014_of_two_language_pairs_in_one_folder(tmp_path: Path) -> None:
    for path in unpack(tmp_path, "de")[-2:]:
        path.unlink()
    for language in ("en", "de", "fr"):
        write(tmp_path / f"newstest2014.{language}", "a\n")
    with pytest.raises(
        ValueError, match=r"de-en test set; .* also holds newstest2014\.fr\. Move"
    ):
        WmtEnde().pairs("test", tmp_path)
    (tmp_path / "newstest2014.fr").unlink()
    assert list(WmtEnde().pairs("test", tmp_path)) == [("a", "a")]


def test_files_of_unequal_length(tmp_path: Path) -> None:
    unpack(tmp_path, "de")
    write(tmp_path / "commoncrawl.de-en.de", "a\nb\nc\n")
    with pytest.raises(
        ValueError, match=r"commoncrawl\.de-en\.en with 2, .*de-en\.de with 3\."
    ):
        list(WmtEnde().pairs("train", tmp_path))
    write(tmp_path / "test-full/newstest2014-deen-ref.de.sgm", sgm("ref", "a"))
    with pytest.raises(
        ValueError, match=r"deen-src\.en\.sgm with 2, .*deen-ref\.de\.sgm with 1\."
    ):
        list(WmtEnde().pairs("test", tmp_path))


def test_segments(tmp_path: Path) -> None:
    text = (
        '<srcset setid="x" srclang="any">\n<doc docid="1">\n<hl>\n<seg id="1"> A'
        ' &quot;B&quot; &#38; C </seg>\n</hl>\n<seg id="2">AT&T &lt;b&gt; &amp;lt;'
        ' &notanentity; R&copy x < y</seg>\r\n<SEG ID=3></SEG>\n<seg id="4">one</seg>'
        ' <seg id="5">two&#10;lines</seg>\n</doc>\n</srcset>\n'
    )
    assert read_segments(write(tmp_path / "x.sgm", text)) == [
        'A "B" & C',
        "AT&T <b> &lt; &notanentity; R&copy x < y",
        "",
        "one",
        "two lines",
    ]


def test_broken_segments_name_file_and_line(tmp_path: Path) -> None:
    for broken in (
        '<seg id="2">no end',
        "no start</seg>",
        '<seg id="2">a <seg id="3">b</seg>',
    ):
        path = write(
            tmp_path / "x.sgm", f'<doc>\n<seg id="1">good</seg>\n{broken}\n</doc>\n'
        )
        with pytest.raises(
            ValueError, match=r"x\.sgm, line 3: each <seg> must end on its line"
        ):
            read_segments(path)
    with pytest.raises(
        ValueError, match=r"must hold <seg .* Received: .*x\.sgm without any"
    ):
        read_segments(write(tmp_path / "x.sgm", "plain text\n"))
    path.write_bytes(b'<seg id="1">\xe4</seg>\n')
    with pytest.raises(ValueError, match=r"x\.sgm, line 1: text must be UTF-8"):
        read_segments(path)


# ---- TensorFlow Datasets

TFDS_TEXT: dict[str, list[dict[str, Any]]] = {
    "train": [{"en": f"train {i}", "de": f"Übung {i}"} for i in range(20)],
    "validation": [{"en": "dev &amp; a", "de": "dev a"}],
    "test": [{"en": "test &amp; a", "de": "Prüfung &quot;a&quot;"}],
}


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as TensorFlow Datasets leaves it after preparing wmt14_translate/de-en,
    with few examples.
    """
    import tensorflow as tf
    import tensorflow_datasets as tfds

    tmp_dir = tmp_path_factory.mktemp("wmt")
    signature = {language: tf.TensorSpec([], tf.string) for language in ("de", "en")}
    tfds.dataset_builders.store_as_tfds_dataset(
        name="wmt14_translate",
        version="1.0.0",
        config="de-en",
        features=tfds.features.Translation(languages=("de", "en")),
        split_datasets={
            split: tf.data.Dataset.from_generator(
                lambda rows=rows: iter(rows), output_signature=signature
            )
            for split, rows in TFDS_TEXT.items()
        },
        data_dir=tmp_dir / "tensorflow_datasets",
        disable_shuffling=True,
    )
    return tmp_dir


def test_prepared_by_tensorflow_datasets(prepared: Path) -> None:
    problem = WmtEnde()
    train = list(problem.pairs("train", prepared))
    assert sorted(train) == sorted((f"train {i}", f"Übung {i}") for i in range(20))
    assert list(problem.pairs("train", prepared)) == train
    assert list(problem.pairs("dev", prepared)) == [("dev &amp; a", "dev a")]
    # its test set is raw .sgm text
    assert list(problem.pairs("test", prepared)) == [("test & a", 'Prüfung "a"')]
    assert problem.files(prepared) == []


def test_files_unpacked_by_tfds_are_not_raw_files(prepared: Path) -> None:
    path = write(
        prepared
        / "tensorflow_datasets/downloads/extracted/x/training/europarl-v7.de-en.en",
        "a\n",
    )
    write(path.with_name("europarl-v7.de-en.de"), "a\n")
    assert len(list(WmtEnde().pairs("train", prepared))) == 20


@pytest.mark.parametrize("foreign", ["de", "fr"])
def test_dataset_and_features_are_known_to_tensorflow_datasets(
    tmp_path: Path, foreign: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The real builder, with made-up sentences."""
    import tensorflow_datasets as tfds

    monkeypatch.setattr(urllib.request, "urlopen", Mock())  # there is a network
    with tfds.testing.mock_data(num_examples=3):
        for split in ("train", "dev", "test"):
            pairs = list(PROBLEMS[foreign]().pairs(split, tmp_path))
            assert len(pairs) == 3
            assert all(
                isinstance(text, str) and text for pair in pairs for text in pair
            )


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """No name is resolved; returns those that were requested."""
    names: list[str] = []

    def unknown(host: str, *args: Any, **kwargs: Any) -> None:
        names.append(host)
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    for variable in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.delenv(variable, raising=False)
    return names


def test_without_a_network_it_fails_at_once(
    tmp_path: Path, no_network: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """TensorFlow Datasets would try ten times, for minutes, and warn of each time."""
    command = "--problem=wmt_ende", f"--data_dir={tmp_path}", f"--tmp_dir={tmp_path}"
    assert t2t_datagen.main(command) == 1
    assert no_network == ["www.statmt.org"]
    captured = capsys.readouterr()
    assert captured.out == ""
    reading, message, *files = captured.err.splitlines()
    assert reading == "reading train ..."
    assert "TensorFlow Datasets could not prepare wmt14_translate/de-en" in message
    assert "Name or service not known" in message
    assert (
        files[0] == "Download and unpack these in a folder, and name it by --tmp_dir:"
    )
    assert "europarl-v7.de-en.en and europarl-v7.de-en.de: in https" in files[1]


def test_what_is_prepared_or_downloaded_needs_no_network(
    prepared: Path,
    tmp_path: Path,
    no_network: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import tensorflow_datasets as tfds

    assert len(list(WmtEnde().pairs("train", prepared))) == 20
    (tmp_path / "tensorflow_datasets" / "downloads").mkdir(parents=True)
    write(tmp_path / "tensorflow_datasets/downloads/training.tgz.INFO", "{}")
    load = Mock(side_effect=ValueError("reached"))
    monkeypatch.setattr(tfds, "load", load)
    with pytest.raises(FileNotFoundError, match="ValueError: reached"):
        list(WmtEnde().pairs("train", tmp_path))
    assert no_network == []


@pytest.mark.parametrize("given", [True, False])
def test_neither_files_nor_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: bool
) -> None:
    import tensorflow_datasets as tfds

    def request(*args: Any, **kwargs: Any) -> None:
        raise ConnectionError("Failed to resolve 'www.statmt.org'")

    monkeypatch.setattr(urllib.request, "urlopen", request)
    # not the data in a home folder
    monkeypatch.setattr(tfds.core.constants, "DATA_DIR", str(tmp_path))
    looked = (
        rf"None of its files were found in {tmp_path} or"
        if given
        else r"No --tmp_dir was given"
    )
    message = (
        rf"(?s){looked}.*wmt14_translate/fr-en: ConnectionError: Failed to"
        r" resolve.*undoc.*training-parallel-un"
    )
    with pytest.raises(FileNotFoundError, match=message):
        list(WmtEnfr().pairs("dev", tmp_path if given else None))


def test_tensorflow_is_not_imported(tmp_path: Path) -> None:
    unpack(tmp_path, "de")
    script = (
        "import pathlib, sys; from t2tlite.problems.translate_wmt import WmtEnde\ncount"
        " = len(list(WmtEnde().pairs('train',"
        " pathlib.Path(sys.argv[1]))))\nprint(count, 'tensorflow' in sys.modules or"
        " 'tensorflow_datasets' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)],
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stdout.split() == ["6", "False"]


def test_real_dev_and_test_sets(tmp_path: Path, shared: Path) -> None:
    for path in unpack(tmp_path, "de")[-4:]:
        path.unlink()
    for name in (
        "newstest2013.en",
        "newstest2013.de",
        "newstest2014.en",
        "newstest2014.de",
    ):
        (tmp_path / name).symlink_to(shared / "data" / "miniwmt" / name)
    problem = WmtEnde()
    assert [
        sum(1 for _ in problem.pairs(split, tmp_path)) for split in ("dev", "test")
    ] == [3000, 3003]
