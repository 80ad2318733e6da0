"""The command t2t-trainer on data with several dev sets."""

import json
import re

import pytest
from corpora import SMALL, datagen_flags, write_corpora
from tiny_run import change_manifest, events

from t2tlite.bin import t2t_datagen, t2t_decoder, t2t_trainer
from t2tlite.training.evaluation import Evaluation, together

LINE = (
    r"{}: (?:dev )?loss (\d+\.\d+), perplexity \d+\.\d+, accuracy (\d\.\d+), BLEU"
    r" (\d+\.\d+)"
)


def test_metrics_together_weigh_tokens():
    actual = together(
        [
            Evaluation(loss=2.0, accuracy=0.5, tokens=30),
            Evaluation(loss=4.0, accuracy=0.1, tokens=10),
        ]
    )
    assert (actual.loss, actual.tokens) == (2.5, 40)
    assert actual.accuracy == pytest.approx(0.4)


def test_each_dev_set_is_scored_and_all_together(
    tmp_path, eagerly, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    write_corpora(tmp_path, train=200, news=12, talks=5)
    data = ["--problem=parallel_text", "--data_dir=data"]
    assert t2t_datagen.main([*data, *datagen_flags("train", "news,talks")]) == 0
    change_manifest(
        tmp_path / "data" / "parallel_text",
        decode_defaults={"beam_size": 1, "extra_length": 2},
    )
    monkeypatch.setattr("t2tlite.programs.runs.train.SAMPLES", 0)
    flags = [
        *data,
        "--hparams_set=transformer_tiny",
        f"--hparams={SMALL}",
        "--output_dir=run",
        "--eval_bleu",
    ]
    assert t2t_trainer.main([*flags, "--train_steps=2"]) == 0
    stderr = capsys.readouterr().err
    assert t2t_decoder.main(["--output_dir=run", "--split=dev2"]) == 0
    splits = json.loads(
        (tmp_path / "data" / "parallel_text" / "manifest.json").read_text()
    )["splits"]
    assert [splits[name]["pairs"] for name in ("dev", "dev2")] == [12, 5]
    first, second, both = (
        [float(value) for value in re.search(LINE.format(name), stderr).groups()]
        for name in ("step 2", "  dev2", "  all dev sets")
    )
    tokens = [splits[name]["target_tokens"] for name in ("dev", "dev2")]
    expected = (first[0] * tokens[0] + second[0] * tokens[1]) / sum(tokens)
    assert both[0] == pytest.approx(expected, abs=2e-4)
    # as t2t-decoder scores it
    assert f"BLEU {second[2]:.2f}" in capsys.readouterr().out
    best = json.loads((tmp_path / "run" / "best" / "best.json").read_text())
    assert best["metrics"]["loss"] == pytest.approx(first[0], abs=1e-4)
    assert events(tmp_path / "run")["dev2/loss"] == [2]
