"""A parser that tensor2tensor trained, of which the fixture has weights rather than a
checkpoint.
"""

import numpy as np
import pytest
from imported_model import (
    check_hypotheses,
    decoded,
    imported_parser,
    lines,
    token_losses,
)

pytestmark = pytest.mark.usefixtures("loaded_once")


@pytest.fixture(scope="module")
def data(fixtures):
    return np.load(fixtures / "tensor2tensor" / "trained_wsj" / "model.npz")


@pytest.fixture(scope="module")
def run(fixtures, tmp_path_factory):
    return imported_parser(fixtures, tmp_path_factory.mktemp("trained_wsj"))


@pytest.fixture(scope="module")
def model(run, load):
    return load(run, None)


def test_logits(model, data):
    logits = np.asarray(
        model.engine.model(
            data["inputs"].astype(np.int32), data["targets"].astype(np.int32)
        )
    )
    np.testing.assert_allclose(logits, data["logits"], atol=1e-4)
    tokens = np.count_nonzero(data["targets"])
    assert token_losses(logits, data["targets"]).sum() / tokens == pytest.approx(
        float(data["eval_loss"]), abs=1e-5
    )


@pytest.mark.parametrize(
    ("mode", "options"),
    [
        pytest.param("greedy", {"beam_size": 1}, marks=pytest.mark.slow),
        pytest.param(
            "beam4", {"beam_size": 4, "return_beams": 4}, marks=pytest.mark.slow
        ),
        ("beam4_top1", {"beam_size": 4}),
        pytest.param(
            "beam21_a03", {"beam_size": 21, "alpha": 0.3}, marks=pytest.mark.slow
        ),
    ],
)
def test_decodes(fixtures, model, data, mode, options):
    sentences = lines(fixtures / "tensor2tensor" / "trained_wsj" / "in.txt")
    check_hypotheses(
        model, model.decode(sentences, model.options(**options)), data, mode
    )


def test_no_more_tokens_than_the_longest_source(fixtures, model, data):
    """Too few for some sentences, of whose hypotheses but one ends in time; the rest do
    not come back.
    """
    sentences = lines(fixtures / "tensor2tensor" / "trained_wsj" / "in.txt")
    scores, outputs = (
        data["decode/beam4_short/scores"],
        data["decode/beam4_short/outputs"],
    )
    # so many tokens were allowed: none more than the source
    assert outputs.shape[-1] == data["inputs"].shape[1]
    actual = model.decode(sentences, model.options(extra_length=0, return_beams=4))
    assert sum(1 not in row for rows in outputs for row in rows) == 6
    assert sorted(map(len, actual)) == [1, 1, 4, 4, 4, 4, 4, 4]
    for ours, ids, expected in zip(actual, outputs, scores, strict=True):
        assert [h.text for h in ours] == [
            model.target_encoder.decode(row.tolist()) for row in ids
        ][: len(ours)]
        np.testing.assert_allclose(
            [h.score for h in ours], expected[: len(ours)], atol=1e-4
        )


def test_text_and_score_file(fixtures, run, tmp_path):
    folder = fixtures / "tensor2tensor" / "trained_wsj"
    actual = decoded(
        run, tmp_path / "out.txt", f"--decode_from_file={folder / 'in.txt'}"
    )
    assert actual == lines(folder / "out.txt")
    actual = decoded(
        run, tmp_path / "scores.txt", f"--score_file={folder / 'score.tsv'}"
    )
    np.testing.assert_allclose(
        np.array(actual, float), np.loadtxt(folder / "scores.txt"), atol=1e-5
    )


def test_trees_where_asked_for(fixtures, run, tmp_path):
    source = fixtures / "tensor2tensor" / "trained_wsj" / "in.txt"
    flags = [
        f"--decode_from_file={source}",
        "--decode_hparams=t2t_rules=false,beam_size=1",
    ]
    actual = decoded(run, tmp_path / "trees.txt", *flags)
    assert actual[0].startswith("(TOP (S (NP (DT A) ")
