"""The files of a tensor2tensor model, as they are read."""

from __future__ import annotations

import re

import pytest

from t2tlite.programs.tensor2tensor.t2t_files import read_hparams


def test_read(tmp_path):
    path = tmp_path / "hparams.json"
    path.write_text('{\n"hidden_size": 64,\n"bottom": {}\n}')
    assert read_hparams(path) == {"hidden_size": 64, "bottom": {}}


def test_no_file(tmp_path):
    for path in (tmp_path / "hparams.json", tmp_path):
        with pytest.raises(
            FileNotFoundError,
            match=re.escape(f"is required. Received: {path}, which is not a file."),
        ):
            read_hparams(path)


@pytest.mark.parametrize(
    ("content", "received"),
    [
        (
            b'{"hidden_size": 512,\n"num_heads"',
            "Expecting ':' delimiter: line 2 column 12",
        ),
        (b"", "Expecting value: line 1 column 1"),
        (b"[1, 2]", "a list."),
        (b"[" * 5000, "maximum recursion depth"),
        (b'{"optimizer": "\xff"}', "'utf-8' codec can't decode byte 0xff"),
    ],
)
def test_no_json_object(tmp_path, content, received):
    path = tmp_path / "hparams.json"
    path.write_bytes(content)
    message = (
        re.escape(f"{path} must hold a JSON object. Received: {received}")
        + ".* Copy it again"
    )
    with pytest.raises(ValueError, match=message):
        read_hparams(path)
