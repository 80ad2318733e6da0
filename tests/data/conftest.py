"""Data of the tiny task, in shards of 50 pairs."""

import shutil
from pathlib import Path

import pytest
from tiny_task import TinyTask, contents

from t2tlite.data import encode_shards
from t2tlite.data.generate import generate

CHUNK_PAIRS = 50


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    """Ends each shard after 50 pairs."""
    monkeypatch.setattr(encode_shards, "CHUNK_PAIRS", CHUNK_PAIRS)


@pytest.fixture(scope="session")
def tiny_data(tmp_path_factory):
    """A data directory with the data of TinyTask, made without interruption by one
    process. Read only.
    """
    folder = tmp_path_factory.mktemp("tiny_data")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encode_shards, "CHUNK_PAIRS", CHUNK_PAIRS)
        generate(TinyTask(), folder, num_processes=1)
    return folder


@pytest.fixture(scope="session")
def uninterrupted(tiny_data):
    """The digest of each file of that data."""
    return contents(tiny_data)


@pytest.fixture
def data_dir(tiny_data, tmp_path):
    """A copy of that data directory, to be changed."""
    return Path(shutil.copytree(tiny_data, tmp_path / "tiny_data"))
