"""The WMT 2014 tasks from TensorFlow Datasets, which may be prepared, or download."""

import socket
import urllib.request
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from wmt_files import PROBLEMS, write

from t2tlite.bin import t2t_datagen
from t2tlite.problems.translation import WmtEnde

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
    _, received, first, *_, reason = captured.err.splitlines()
    assert "wmt_ende needs these files in --tmp_dir" in received
    assert first == "  europarl-v7.de-en.en and europarl-v7.de-en.de"
    assert "TensorFlow Datasets could not prepare wmt14_translate/de-en" in reason
    assert "Name or service not known" in reason


def test_what_is_prepared_or_downloaded_needs_no_network(
    prepared: Path, tmp_path: Path, no_network: list[str], monkeypatch: Any
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
