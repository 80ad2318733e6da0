"""A model with a vocabulary for each language does here what it did in
tensor2tensor.
"""

import json

import numpy as np
import pytest
from imported_model import imported
from tensor2tensor_checkpoint import (
    TWO_VOCABULARIES,
    variables_of,
    write_checkpoint,
    write_model,
)

from t2tlite.decoding.engine import Sentence

STEPS = {"init": 0, "final": 20}


@pytest.fixture(scope="module")
def data():
    return np.load(TWO_VOCABULARIES)


@pytest.fixture(scope="module")
def run(data, tmp_path_factory):
    """Both checkpoints of the fixture, imported at once."""
    folder = tmp_path_factory.mktemp("two_vocabularies") / "t2t"
    flags = write_model(
        folder,
        variables_of(data, "final"),
        str(data["hparams_json"]),
        (31, 23),
        STEPS["final"],
    )
    write_checkpoint(folder / f"model.ckpt-{STEPS['init']}", variables_of(data, "init"))
    return imported(
        folder.parent / "run", *flags, f"--target_space_id={data['target_space_id']}"
    )


def test_logits(run, load, data):
    model = load(run, run / f"model.ckpt-{STEPS['final']}").engine.model
    logits = np.asarray(model(data["inputs"], data["targets"]))
    filled = data["targets"] != 0
    np.testing.assert_allclose(logits[filled], data["logits"][filled], atol=1e-4)


MORE_MODES = ("init/greedy", "init/beam3", "final/greedy")


@pytest.mark.parametrize(
    "mode",
    [
        "final/beam4",
        *(pytest.param(mode, marks=pytest.mark.slow) for mode in MORE_MODES),
    ],
)
def test_decodes(run, load, data, mode):
    """Those of `init` reach the limit, the longest source, without an EOS: scores are
    log-probabilities.
    """
    model = load(run, run / f"model.ckpt-{STEPS[mode.split('/')[0]]}")
    options = model.options(**json.loads(str(data[f"decode/{mode}/options"])))
    sources = [Sentence(row[: list(row).index(1)].tolist()) for row in data["inputs"]]
    actual = model.engine.decode(sources, options, batches=[[0, 1, 2, 3]])
    for ours, ids, scores in zip(
        actual,
        data[f"decode/{mode}/outputs"],
        data[f"decode/{mode}/scores"],
        strict=True,
    ):
        # greedy search continues after the EOS
        ended = [list(row).index(1) if 1 in row else len(row) for row in ids]
        assert [output.ids for output in ours] == [
            row[:end].tolist() for row, end in zip(ids, ended, strict=True)
        ]
        np.testing.assert_allclose([output.score for output in ours], scores, atol=1e-4)
        assert mode.startswith("final") or 1 not in ids
