"""What t2t-import says of checkpoints that are damaged or of another model: one message,
and nothing is written or changed.
"""

from pathlib import Path

import numpy as np
import pytest
from numpy_transformer import small_model
from refused_import import NO_INDEX, refused
from tensor2tensor_checkpoint import write_checkpoint

DATA = "model.ckpt-7.data-00000-of-00001"
ATTENTION = "transformer/body/encoder/layer_0/self_attention"


def cut(path: Path, size: int) -> None:
    path.write_bytes(path.read_bytes()[:size])


def flip(path: Path, at: int) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= 255
    path.write_bytes(content)


UNREADABLE = r"A whole checkpoint is required\. Received: \S*/model\.ckpt-7: "
COPY = r".*\. Copy it again, all its files\.\n"
DAMAGES = {
    "no data": (
        lambda f: (f / DATA).unlink(),
        UNREADABLE + r"\S*/model\.ckpt-7\.data-00000-of-00001; No such file" + COPY,
    ),
    "truncated data": (
        lambda f: cut(f / DATA, 9000),
        UNREADABLE + r"Read less bytes than requested" + COPY,
    ),
    "changed data": (
        lambda f: flip(f / DATA, 9000),
        UNREADABLE + r".*Checksum does not match" + COPY,
    ),
    "no index": (
        lambda f: (f / "model.ckpt-7.index").unlink(),
        NO_INDEX + r"\S*/theirs, with model\.ckpt-N\.index and its data file",
    ),
    "truncated index": (
        lambda f: cut(f / "model.ckpt-7.index", 900),
        UNREADABLE + COPY,
    ),
}


@pytest.mark.parametrize("case", DAMAGES)
def test_damaged_checkpoints(theirs, capsys, case):
    damage, message = DAMAGES[case]
    damage(theirs)
    refused(theirs, capsys, message)


def test_one_bad_checkpoint_of_several(theirs, capsys):
    query = f"{ATTENTION}/multihead_attention/q/kernel"
    variables = small_model()[1]
    del variables[query]
    write_checkpoint(theirs / "model.ckpt-5", variables)
    refused(
        theirs,
        capsys,
        rf"hparams.json and the vocabularies must be the checkpoint's.*\n  {query} is missing",
    )


def test_another_model(theirs, capsys):
    variables = {f"universal_{name}": value for name, value in small_model()[1].items()}
    write_checkpoint(theirs / "model.ckpt-7", {**variables, "global_step": np.int64(7)})
    message = (
        r"A checkpoint of tensor2tensor's transformer is required\. Received:"
        r" \S*/model\.ckpt-7, of "
    )
    refused(theirs, capsys, message + r"universal_transformer\.")
    write_checkpoint(theirs / "model.ckpt-7", {"global_step": np.int64(7)})
    refused(theirs, capsys, message + r"no model\.")
