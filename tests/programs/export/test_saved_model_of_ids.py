"""SavedModels of runs with tensor2tensor's vocabularies, which take and return token
ids, as tensor2tensor decoded.
"""

from __future__ import annotations

import json

import numpy as np
import pytest
import tensorflow as tf
from imported_model import imported, imported_parser, lines
from tensor2tensor_checkpoint import TWO_VOCABULARIES, variables_of, write_model

from t2tlite.vocabularies.encoders import open_encoder

pytestmark = [pytest.mark.usefixtures("loaded_once"), pytest.mark.slow]


@pytest.fixture(scope="module")
def parser_data(fixtures):
    return np.load(fixtures / "tensor2tensor" / "trained_wsj" / "model.npz")


@pytest.fixture(scope="module")
def parser(fixtures, tmp_path_factory, load):
    return load(imported_parser(fixtures, tmp_path_factory.mktemp("trained_wsj")), None)


@pytest.fixture(scope="module")
def exported(parser, tmp_path_factory):
    return parser.export(tmp_path_factory.mktemp("export") / "out")


def test_an_imported_parser_decodes_as_tensor2tensor_did(
    fixtures, exported, parser_data
):
    model = tf.saved_model.load(str(exported / "1"))
    encoder = open_encoder(exported / "1" / "assets.extra" / "vocab.subwords")
    sentences = lines(fixtures / "tensor2tensor" / "trained_wsj" / "in.txt")
    ids = tf.ragged.constant(
        [encoder.encode(sentence) for sentence in sentences], tf.int32
    ).to_tensor()
    scores = parser_data["decode/beam4/scores"].reshape(len(sentences), -1)
    outputs = parser_data["decode/beam4/outputs"].reshape(*scores.shape, -1)
    actual = model.parse(ids)
    np.testing.assert_allclose(actual["scores"], scores, atol=1e-4)
    for ours, theirs in zip(actual["ids"].numpy(), outputs, strict=True):
        assert [encoder.decode(row) for row in ours] == [
            encoder.decode(row.tolist()) for row in theirs
        ]
        assert 1 not in ours


def test_a_blank_row_and_bad_ids(exported):
    model = tf.saved_model.load(str(exported / "1"))
    actual = model.parse(tf.constant([[0, 0, 0], [1, 5, 5]]))
    np.testing.assert_array_equal(actual["scores"], [[0.0] + [-1e9] * 3] * 2)
    assert not np.any(actual["ids"])
    with pytest.raises(
        tf.errors.InvalidArgumentError,
        match=r"Token ids must be at least 0 and less than \d+\.\] \[Received:\]",
    ):
        model.parse(tf.constant([[5, 100_000]]))


def test_the_readme_says_so(exported, monkeypatch, capsys):
    readme = (exported / "README.md").read_text()
    assert "TensorFlow has no op for tensor2tensor's subword vocabularies" in readme
    monkeypatch.chdir(exported)
    exec(readme.partition("```python\n")[2].partition("```")[0], {})
    assert "shape=(2, 4," in capsys.readouterr().out


def test_two_vocabularies_and_a_length_limit_that_a_batch_shares(load, tmp_path):
    data = np.load(TWO_VOCABULARIES)
    flags = write_model(
        tmp_path / "t2t",
        variables_of(data, "final"),
        str(data["hparams_json"]),
        (31, 23),
    )
    run = imported(
        tmp_path / "run", *flags, f"--target_space_id={data['target_space_id']}"
    )
    options = json.loads(str(data["decode/final/beam4/options"]))
    target = load(run, None).export(tmp_path / "out", **options)
    assert sorted(path.name for path in (target / "1" / "assets.extra").iterdir()) == [
        "vocab.source.subwords",
        "vocab.target.subwords",
    ]
    loaded = tf.saved_model.load(str(target / "1"))
    actual = loaded.translate(tf.constant(data["inputs"].astype(np.int32)))
    for ids, ours in zip(
        data["decode/final/beam4/outputs"], actual["ids"].numpy(), strict=True
    ):
        for theirs, mine in zip(ids, ours, strict=True):
            end = list(theirs).index(1) if 1 in theirs else len(theirs)
            assert [i for i in mine if i] == theirs[:end].tolist()
    np.testing.assert_allclose(
        actual["scores"], data["decode/final/beam4/scores"], atol=1e-4
    )
