"""What t2t-import refuses, and how it says so: one message, and nothing is written or
changed.
"""

import json

import pytest
from numpy_transformer import POST_NORM, SMALL, draw, shapes, small_model
from refused_import import NO_INDEX, refused
from tensor2tensor_checkpoint import write_checkpoint, write_model, write_vocabulary

SPACE = "transformer/body/target_space_embedding/kernel"
DATA = "model.ckpt-7.data-00000-of-00001"
ATTENTION = "transformer/body/encoder/layer_0/self_attention"


# flags


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        *(
            (f"--t2t_checkpoint=HERE/{name}", rf"{NO_INDEX}\S*{name}, with")
            for name in (
                "none",
                "",
                "vocab.subwords/model.ckpt-7",
                "theirs/model.ckpt-8",
            )
        ),
        ("--t2t_checkpoint=", r"--t2t_checkpoint must be given\."),
        ("--t2t_vocab=", r"--t2t_vocab must be "),
        ("--t2t_vocab=a,b,c", r"--t2t_vocab must be one .* Received: 3\."),
        ("--t2t_vocab=HERE/none", r"A text file .*/none, which does not exist\."),
        ("--t2t_hparams=HERE/none", r"A text file .*/none, which does not exist\."),
        (
            "--target_space_id=32",
            r"--target_space_id must .* at most 31\. Received: 32\.",
        ),
    ],
)
def test_flags(theirs, capsys, flag, message):
    refused(theirs, capsys, message, flag.replace("HERE", str(theirs.parent)))


def test_a_target_space_where_there_is_none(theirs, capsys):
    write_model(theirs, small_model(use_target_space_embedding=False)[1], SMALL, (41,))
    missing = UNFIT + r"transformer/body/target_space_embedding/kernel is missing\."
    refused(theirs, capsys, missing, "--target_space_id=3")
    (theirs / "hparams.json").write_text(
        json.dumps(SMALL | {"use_target_space_embedding": False})
    )
    message = r"--target_space_id is for models with use_target_space_embedding=true\."
    refused(theirs, capsys, message, "--target_space_id=0")


# hparams.json

UNFIT = r"hparams.json and the vocabularies must be .* Received:.*\n  "
REFUSED = r"The model must be one that t2tlite has\. Received:\n"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"filter_size": 32}, UNFIT + r"\S*/ffn/conv1/kernel must have the shape"),
        (
            POST_NORM,
            UNFIT + rf"{ATTENTION}/layer_postprocess/layer_norm/\S* is missing",
        ),
        ({"num_area_layers": 2}, REFUSED + r"  num_area_layers=2: must be 0\.\n"),
    ],
)
def test_hparams_of_another_model(theirs, capsys, changes, message):
    (theirs / "hparams.json").write_text(json.dumps(SMALL | changes))
    refused(theirs, capsys, message)


@pytest.mark.parametrize("content", [b'{"num_heads"', b"[1, 2]", b'{"a": "\xff"}'])
def test_hparams_that_are_damaged(theirs, capsys, content):
    (theirs / "hparams.json").write_bytes(content)
    refused(theirs, capsys, r"\S*/theirs/hparams\.json is damaged: .* Copy it again\.")


def test_no_hparams(theirs, capsys):
    (theirs / "hparams.json").unlink()
    message = (
        r"A text file is required\. Received: \S*/theirs/hparams\.json, which does"
    )
    refused(theirs, capsys, message)


# vocabularies

SIZES = r"--t2t_vocab must be the model's, with "


def test_vocabularies_of_other_sizes(theirs, capsys):
    path = theirs.parent / "vocab.subwords"
    other = write_vocabulary(theirs.parent / "other.subwords", 40)
    refused(
        theirs,
        capsys,
        SIZES + r"41 subtokens\. Received: \S*/other\.subwords with 40\.",
        f"--t2t_vocab={other}",
    )
    message = (
        SIZES + r"41 subtokens\. Received: \S*/vocab\.subwords with 41 and"
        r" \S*/other\.subwords with 40\."
    )
    refused(theirs, capsys, message, f"--t2t_vocab={path},{other}")


def test_two_vocabularies_swapped_or_one_of_them(theirs, capsys):
    variables = draw(
        shapes(SMALL, [("input_emb", 41), ("target_emb", 29), ("softmax", 29)])
    )
    write_checkpoint(theirs / "model.ckpt-7", variables)
    source, target = (
        theirs.parent / "vocab.subwords",
        write_vocabulary(theirs.parent / "target.subwords", 29),
    )
    message = (
        UNFIT + r"transformer/symbol_modality_29_16/input_emb/weights_0 is missing\.\n "
        r" \S*_41_16/softmax/weights_0 is missing\.\n  \S*_41_16/target_emb/weights_0 is"
    )
    refused(theirs, capsys, message, f"--t2t_vocab={target},{source}")
    refused(
        theirs,
        capsys,
        SIZES + r"29 and 41 subtokens\. Received: \S* with 29\.",
        f"--t2t_vocab={target}",
    )


def test_a_file_that_is_no_vocabulary(theirs, capsys):
    (theirs.parent / "vocab.subwords").write_bytes(b"")
    message = r"\S*/vocab\.subwords must begin with .* Received: '' and ''"
    refused(theirs, capsys, message)
