"""One path from text to scored text: evaluation during training, t2t-decoder and Python give the same scores."""

from __future__ import annotations

import json

import pytest
from tiny_run import tiny_run, train

import t2tlite
from t2tlite.bin import t2t_decoder
from t2tlite.runs.load import run_dataset
from t2tlite.runs.run_folder import RunFolder

PARTLY_TRAINED = "--train_steps=60"  # when translations are neither all right nor all wrong


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    made = tiny_run(tmp_path_factory)
    folder = tmp_path_factory.mktemp("one_path") / "run"
    assert train(made, folder, PARTLY_TRAINED, "--local_eval_frequency=0", "--eval_bleu") == 0
    return RunFolder(folder)


def test_dev_bleu_is_the_same_wherever_it_is_computed(run):
    in_training = run.best().metrics["bleu"]
    assert 5 < in_training < 95

    assert t2t_decoder.main([f"--output_dir={run}", "--split=dev"]) == 0
    record = json.loads((run.path / "decodes" / "dev.60.json").read_text())
    assert record["scores"]["BLEU"] == in_training

    model, store = t2tlite.load(run.path), run_dataset(run).store("dev")
    decoded = model.decode_and_score(store.source_text(), store.target_text(), model.options())
    assert decoded.score.value == in_training
    assert [output.text for output in decoded.best] == run.decoded_text("dev", 60).read_text().splitlines()
