"""The command t2t-trainer on data with several dev sets."""

import json
import math
import re

import pytest
from corpora import SMALL, datagen_flags, write_corpora
from run_command import run_command, said
from tiny_run import change_manifest, events

import t2tlite
from t2tlite.bin import t2t_datagen, t2t_decoder, t2t_report, t2t_trainer
from t2tlite.programs.runs.load import run_dataset
from t2tlite.run_folder import RunFolder

TRAIN = ["--hparams_set=transformer_tiny", f"--hparams={SMALL}", "--output_dir=run"]
GREEDY = {"beam_size": 1, "extra_length": 2}
LINE = (
    r"{}: (?:dev )?loss (\d+\.\d+), perplexity \d+\.\d+, accuracy (\d\.\d+), BLEU"
    r" (\d+\.\d+)"
)


def test_each_dev_set_is_scored(tmp_path, eagerly, monkeypatch, capsys):
    data = long_dev_line(tmp_path, monkeypatch)
    flags = [*data, *TRAIN, "--eval_bleu", "--train_steps=2"]
    change_manifest(tmp_path / "data" / "parallel_text", decode_defaults=GREEDY)
    stderr = said(capsys, t2t_trainer, *flags).err
    decoded = said(capsys, t2t_decoder, "--output_dir=run", "--split=dev2").out
    splits = json.loads(
        (tmp_path / "data" / "parallel_text" / "manifest.json").read_text()
    )["splits"]
    assert [splits[name]["pairs"] for name in ("dev", "dev2")] == [12, 5]
    first, second = (
        [float(value) for value in re.search(LINE.format(name), stderr).groups()]
        for name in ("step 2", r"  dev2 \(talks\.en\)")
    )
    # as t2t-decoder scores it
    assert f"BLEU {second[2]:.2f}" in decoded
    run = RunFolder(tmp_path / "run")
    best = run.best()
    assert best.metrics["loss"] == pytest.approx(first[0], abs=1e-4)
    assert best.other_sets.keys() == {"dev2 (talks.en)"}
    assert events(tmp_path / "run")["dev2 (talks.en)/loss"] == [2]
    [record] = run.evaluations()
    other = record.other_sets["dev2 (talks.en)"]
    names = ("loss", "perplexity", "accuracy", "bleu")
    expected = [second[0], math.exp(second[0]), *second[1:]]
    assert [other[name] for name in names] == pytest.approx(
        expected, rel=1e-3, abs=0.01
    )
    run_command(t2t_report, "--output_dir=run")
    report = (tmp_path / "run" / "report.md").read_text(encoding="utf-8")
    numbers = f"{second[0]:.4f} | {math.exp(other['loss']):.3f} | {second[1]:.4f}"
    cells = f"| dev2 (talks.en) | 2 | {numbers} | {second[2]:.2f}"
    assert cells in re.sub(" +", " ", report)


def long_dev_line(tmp_path, monkeypatch, *lines):
    """Data whose dev2 has a whole document on each of these lines, counted from 1."""
    monkeypatch.chdir(tmp_path)
    write_corpora(tmp_path, train=200, news=12, talks=5)
    for name in ("talks.en", "talks.de"):
        text = (tmp_path / name).read_text(encoding="utf-8").splitlines()
        for line in lines:
            text[line - 1] = " ".join(text[line - 1 :] * 400)
        (tmp_path / name).write_text("\n".join([*text, ""]), encoding="utf-8")
    data = ["--problem=parallel_text", "--data_dir=data"]
    run_command(t2t_datagen, *data, *datagen_flags("train", "news,talks"))
    return data


def test_documents_on_a_dev_line_are_left_out_and_counted(
    tmp_path, eagerly, monkeypatch, capsys
):
    """The metrics are those of a dev set without these lines, from the beginning and
    when the run resumes.
    """
    data = long_dev_line(tmp_path, monkeypatch, 3, 5)
    flags = [*data, *TRAIN, "--eval_bleu"]
    change_manifest(tmp_path / "data" / "parallel_text", decode_defaults=GREEDY)
    left_out = (
        "Longer than 2,048 tokens and left out of each evaluation: 2 pairs of dev2"
        " (talks.en)."
    )
    for steps in (1, 2):
        stderr = said(capsys, t2t_trainer, *flags, f"--train_steps={steps}").err
        assert left_out in stderr
    records = RunFolder(tmp_path / "run").evaluations()
    lines = []
    for name in ("talks.en", "talks.de"):
        text = (tmp_path / name).read_text(encoding="utf-8").splitlines()
        lines.append([text[i] for i in (0, 1, 3)])
    model = t2tlite.load(tmp_path / "run")
    store = run_dataset(RunFolder("run")).store("dev2")
    loss = -sum(model.score(*lines)) / sum(store.target_lengths[[0, 1, 3]])
    metrics = records[-1].other_sets["dev2 (talks.en)"]
    assert metrics["loss"] == pytest.approx(loss, rel=1e-4)
    options = model.options()
    n_best = model.decode(lines[0], options)
    assert metrics["bleu"] == model.score_outputs(*lines, n_best, options).value


def test_a_dev_set_of_documents_alone_is_refused(tmp_path, monkeypatch, capsys):
    data = long_dev_line(tmp_path, monkeypatch, 1, 2, 3, 4, 5)
    stderr = said(capsys, t2t_trainer, *data, *TRAIN, "--train_steps=1", status=1).err
    assert "left out of each evaluation: 5 pairs of dev2 (talks.en)." in stderr
    assert "Data needs pairs of at most 2,049 tokens a side, with EOS." in stderr
    assert not (tmp_path / "run").exists()
    assert "The run is in" not in stderr


def test_another_second_dev_set_is_allowed(tmp_path, monkeypatch, fake_dev_losses):
    """It decides nothing, so that the run resumes."""
    monkeypatch.chdir(tmp_path)
    fake_dev_losses += [3.0] * 6
    write_corpora(tmp_path, train=200, news=12, talks=5, films=6)
    flags = ["--problem=parallel_text", *TRAIN]
    for steps, dev in ((1, "news,talks"), (2, "news,talks"), (3, "news,films")):
        data = f"--data_dir={dev.replace(',', '_')}"
        vocabulary = ["--vocab_file=news_talks/parallel_text/vocab.model"] * (steps > 2)
        run_command(t2t_datagen, data, *datagen_flags("train", dev), *vocabulary)
        run_command(t2t_trainer, *flags, data, f"--train_steps={steps}")
    records = RunFolder(tmp_path / "run").evaluations()
    assert [set(record.other_sets) for record in records[1:]] == [
        {"dev2 (talks.en)"},
        {"dev2 (films.en)"},
    ]
