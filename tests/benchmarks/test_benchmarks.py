"""The programs in benchmarks/ run, in this process and at tiny size; what they measure
is not tested.
"""

import argparse
import importlib
import json
import re
import shutil
import sys
from pathlib import Path

import command_memory
import compare
import corpus
import document
import equal_time
import file_decoding
import numpy as np
import paper_tables
import program
import pytest
import scaling
from peers.file_job import FileJob

from t2tlite import registry
from t2tlite.data.batch_plan import training_plan
from t2tlite.data.dataset import open_dataset
from t2tlite.data.input_pipeline import load_part

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def here(monkeypatch, capsys):
    """Runs a program as `program.run` does, but in this process."""

    def run(python, arguments, **environment):
        importlib.import_module(arguments[0]).main(arguments[1:])
        return json.loads(capsys.readouterr().out.rpartition("RESULT ")[2])

    monkeypatch.setattr(program, "run", run)
    return run


@pytest.fixture
def docs(tmp_path):
    """A folder with performance.md, its blocks filled with what must go."""
    text = (
        "before\n\n<!-- scaling -->\nold\n<!-- scaling end -->\n\n<!-- comparison"
        " -->\nold\n<!-- comparison end -->\n"
    )
    (tmp_path / "performance.md").write_text(text)
    return tmp_path


def corpus_arguments(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    corpus.add_arguments(parser)
    return parser.parse_args(arguments)


@pytest.mark.parametrize("name", ["input_throughput", "datagen_throughput"])
def test_program(here, name):
    quick = program.QUICK[name].split()
    result = here("", [name, "--pairs=300", *quick])
    numbers = {
        key: value for key, value in result.items() if not isinstance(value, str)
    }
    assert all(value > 0 for value in numbers.values())
    assert any(key.endswith("_per_second") for key in numbers)


def test_the_saved_job_is_what_is_trained_on(here, eagerly, tmp_path):
    chosen = [
        "--hparams_set=transformer_tiny",
        "--hparams=batch_size=200,num_hidden_layers=1",
        "--pairs=60",
    ]
    result = here(
        "",
        [
            "train_throughput",
            *chosen,
            "--steps=3",
            "--warm=1",
            f"--save_job={tmp_path / 'job.npz'}",
        ],
    )
    assert result["tokens_per_second"] > 0
    assert result["peak_memory_mb"] > 100  # TensorFlow alone
    job = program.load_job(tmp_path / "job.npz")
    assert (job.hidden_size, job.filter_size, job.num_layers, job.num_heads) == (
        128,
        512,
        1,
        4,
    )
    assert (job.vocab_size, job.warm, len(job.batches)) == (8000, 1, 3)
    args = corpus_arguments(*chosen)
    store = corpus.make_store(args, tmp_path)
    plan = training_plan(
        corpus.read_hparams(args), store.source_lengths, store.target_lengths, 1, seed=1
    )
    for step, (inputs, targets) in enumerate(job.batches):
        part = load_part(store, plan, step, 0, 1, 1)
        np.testing.assert_array_equal(inputs, part.inputs[0])
        np.testing.assert_array_equal(targets, part.targets[0])
        assert 0 < inputs.shape[0] * max(inputs.shape[1], targets.shape[1]) <= 200


def test_a_job_of_decoding(here, eagerly, tmp_path):
    quick = program.QUICK["decode_throughput"].split()
    flags = (
        "--hparams=dtype_policy=auto",
        "--batch=3",
        "--beam_size=2",
        f"--save_job={tmp_path / 'job.npz'}",
    )
    result = here("", ["decode_throughput", *quick, *flags])
    assert result["sentences_per_second"] > 0
    assert result["dtype"] in ("float32", "mixed_bfloat16")
    job = program.load_job(tmp_path / "job.npz")
    assert (job.beam_size, job.steps, job.warm) == (2, 3, 1)
    # one to warm up, then four sentences
    assert [len(inputs) for inputs, _ in job.batches] == [1, 3, 1]
    assert all(targets.shape == (len(inputs), 0) for inputs, targets in job.batches)


def test_wrong_number_of_steps_is_an_error():
    batch = (np.ones((2, 3), np.int32), np.ones((2, 0), np.int32))
    job = program.Job(
        4, 4, 1, 1, 10, warm=1, batches=[batch, batch], beam_size=2, steps=5
    )
    with pytest.raises(ValueError, match=r"must be decoded for 5 steps\. Received: 4"):
        program.measure_decoding("name", "float32", job, lambda inputs: 4)


@pytest.mark.parametrize(("mean_length", "spread"), [(28, 0.5), (14, 0.35), (9, 0)])
def test_random_pairs(mean_length, spread):
    sources, targets = corpus.random_pairs(
        np.random.default_rng(3), 20_000, 500, mean_length, spread
    )
    lengths = np.array([[len(row) + 1 for row in rows] for rows in (sources, targets)])
    assert lengths.mean(axis=1) == pytest.approx(mean_length, rel=0.02)
    logs = np.log(lengths)
    assert logs.std(axis=1) == pytest.approx(
        spread * np.sqrt(1 + 1 / 16), rel=0.1, abs=1e-9
    )
    if spread:  # the shared factor's part of the variance
        assert np.corrcoef(logs)[0, 1] == pytest.approx(16 / 17, abs=0.05)
    ids = np.concatenate(sources)
    assert (ids.min(), ids.max()) == (2, 499)
    counts = np.bincount(ids)
    # Zipf's law: ranks n, ..., 2 n - 1 have together the same share for each n
    ranks = counts[1:]
    assert ranks[2:4].sum() / ranks[8:16].sum() == pytest.approx(1, rel=0.1)


def test_text_files_instead_of_random_ids(tmp_path):
    (tmp_path / "a").write_text("one two three\nfour five\n" * 20)
    (tmp_path / "b").write_text("eins zwei drei\nvier fünf\n" * 20)
    args = corpus_arguments(
        f"--source={tmp_path / 'a'}", f"--target={tmp_path / 'b'}", "--vocab_size=300"
    )
    store = corpus.make_store(args, tmp_path)
    assert len(store) == 40
    assert (store.source_lengths[0], store.target_lengths[0]) == (
        store.source_lengths[2],
        store.target_lengths[2],
    )


def test_find_python(tmp_path):
    for name, status in (("a", 1), ("b", 0), ("c", 0)):
        python = tmp_path / name / "bin" / "python"
        python.parent.mkdir(parents=True)
        python.write_text(f"#!/bin/sh\nexit {status}\n")
        python.chmod(0o755)
    assert compare.find_python("no_such_package", tmp_path) == str(
        tmp_path / "b" / "bin" / "python"
    )
    assert compare.find_python("no_such_package", None) is None
    assert compare.find_python("numpy", None) is not None


def test_every_peer_of_the_comparison_has_a_program():
    for measurement in compare.MEASUREMENTS:
        for name, command in measurement.commands.items():
            path = ROOT / "benchmarks" / f"{command.split()[0].replace('.', '/')}.py"
            compile(path.read_text(encoding="utf-8"), path, "exec")
            assert name == compare.OURS or name in compare.PEERS


def test_the_table_has_medians_and_ratios():
    ours, torch = ([{"program": name, "speed": x} for x in speeds] for name, speeds in (
        ("t2tlite", (1500, 1000, 1200)), ("PyTorch 9", (500, 900, 600))
    ))  # fmt: skip
    measurement = compare.Measurement("training", {"speed": "tokens/s"}, {})
    pythons = {"t2tlite": "python", "PyTorch": "python", "CTranslate2": None}
    text = compare.summary(
        [measurement], {"training": {"t2tlite": ours, "PyTorch": torch}}, pythons, 3
    )
    cells = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in text.splitlines()[:3]
    ]
    assert cells[0] == ["", "t2tlite", "PyTorch"]
    assert cells[2] == ["training: tokens/s", "1,200", "600 (2.00)"]
    assert "PyTorch 9" in text
    assert "CTranslate2: not installed; pip install ctranslate2." in text


def test_scaling_keeps_points_and_writes_its_block(docs, monkeypatch):
    seconds = iter([2.0, 8.0, 4.0, 5.0])

    def run(python, arguments):
        assert arguments[0] == "train_throughput"
        return {
            "seconds_per_step": next(seconds),
            "tokens_per_second": 123.4,
            "peak_memory_mb": 2345.6,
        }

    monkeypatch.setattr(program, "run", run)
    scaling.main([f"--docs={docs}", "--what", "batch", "--values", "512", "2048"])
    # one more, one again
    scaling.main([f"--docs={docs}", "--what", "batch", "--values", "1024", "2048"])
    text = (docs / "performance.md").read_text()
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in text.splitlines()
        if line.startswith("|")
    ]
    assert rows[2:] == [
        ["512", "2", "123", "2,346"],
        ["1,024", "4", "123", "2,346"],
        ["2,048", "5", "123", "2,346"],
    ]
    machine = document.machine()
    assert text.startswith(
        f"before\n\n<!-- scaling -->\nAll on {machine}.\n\n### Batch\n"
    )
    assert text.endswith(
        "<!-- scaling end -->\n\n<!-- comparison -->\nold\n<!-- comparison end -->\n"
    )
    assert "](performance/batch.svg)" in text
    drawing = (docs / "performance" / "batch.svg").read_bytes()
    scaling.main([f"--docs={docs}", "--plot"])
    assert (docs / "performance" / "batch.svg").read_bytes() == drawing


def test_a_document_without_the_block_is_an_error(docs):
    with pytest.raises(
        ValueError,
        match="must have a block between <!-- other --> and <!-- other end -->",
    ):
        document.replace_block(docs / "performance.md", "other", "text")


def test_the_project_has_both_blocks(docs):
    shutil.copy(ROOT / "docs" / "performance.md", docs)
    for name in ("comparison", "scaling"):
        document.replace_block(docs / "performance.md", name, f"new {name}")
    text = (docs / "performance.md").read_text(encoding="utf-8")
    assert "<!-- comparison -->\nnew comparison\n<!-- comparison end -->" in text
    assert "<!-- scaling -->\nnew scaling\n<!-- scaling end -->" in text


def test_equal_time_gives_opennmt_tf_the_hparams():
    hparams = registry.get_hparams("transformer_multi30k").override("batch_size=1024")
    files = equal_time.onmt_files(hparams, Path("/runs/onmt"), frequency=400)
    assert (
        "num_layers=4, num_units=128,\n    num_heads=4, ffn_inner_dim=512,\n    dropout=0.3"
        in files["model.py"]
    )
    lines = [line.strip() for line in files["config.yml"].splitlines()]
    assert {
        "batch_size: 1024",
        "learning_rate: 1.5",
        "label_smoothing: 0.1",
        "save_checkpoints_steps: 400",
    } <= {*lines}
    assert "decay_params: {model_dim: 128, warmup_steps: 1000}" in lines
    assert "model_dir: /runs/onmt/model" in lines


def test_equal_time_stops_a_command_that_still_runs(tmp_path):
    log = tmp_path / "run" / "log"
    endless = [
        sys.executable,
        "-c",
        "import time; print('begun', flush=True); time.sleep(60)",
    ]
    assert equal_time.stop_after(0.01, endless, log) > 0
    with pytest.raises(
        RuntimeError, match=r"until it is stopped, but ended before\. Look into .*log"
    ):
        equal_time.stop_after(1, [sys.executable, "-c", "pass"], log)


def test_results_state_the_formulas_costs_of_the_papers_tables():
    tables = paper_tables.tables(ROOT / "docs")
    text = (ROOT / "docs" / "paper-tables.md").read_text(encoding="utf-8")
    for name, table in tables.items():
        assert f"<!-- {name} -->\n{table}<!-- {name} end -->" in text


def test_repeated_shards_are_data_to_train_on(tiny_run, tmp_path):
    dataset = open_dataset(tiny_run.data)
    command_memory.repeat_shards(dataset.folder, tmp_path / dataset.name, 3)
    three = open_dataset(tmp_path)
    assert three.manifest.training.pairs == 3 * dataset.manifest.training.pairs
    sources = dataset.store("train").source_lengths
    np.testing.assert_array_equal(
        three.store("train").source_lengths, np.tile(sources, 3)
    )


def test_training_alone_is_measured_at_each_size(
    tiny_run, tmp_path, monkeypatch, capsys
):
    """The data of the first size are made, not repeated."""
    dataset = open_dataset(tiny_run.data)
    monkeypatch.setattr(command_memory, "PROBLEM", dataset.name)
    monkeypatch.setattr(
        command_memory,
        "datagen",
        lambda args, data, text: shutil.copytree(tiny_run.data, data),
    )
    monkeypatch.setattr(
        command_memory, "cost", lambda *flags: command_memory.Cost(123.0, 4.5)
    )
    command_memory.main(
        [
            f"--folder={tmp_path}",
            "--millions",
            "1",
            "2",
            "--commands",
            "trainer",
            "--pairs=10",
        ]
    )
    pairs = [
        open_dataset(tmp_path / f"data-{millions}").manifest.training.pairs
        for millions in (1, 2)
    ]
    assert pairs == [
        dataset.manifest.training.pairs,
        2 * dataset.manifest.training.pairs,
    ]
    output = capsys.readouterr().out
    assert "| t2t-trainer, MB |" in re.sub(" +", " ", output)
    assert "| 2 | 123 | 4.5 |" in re.sub(" +", " ", output)


def test_a_measured_command_that_fails_is_an_error():
    with pytest.raises(
        RuntimeError, match=r"t2t-evalb failed with status 1:\n(.|\n)*--gold"
    ):
        command_memory.cost("evalb")
    assert min(command_memory.cost("evalb", "--help", lines=1)) > 0


@pytest.mark.slow
def test_every_sweep(here, eagerly, docs):
    scaling.main(["--quick", f"--docs={docs}"])
    results = json.loads((docs / "performance" / "scaling.json").read_text())
    assert list(results) == ["format_version", *scaling.SWEEPS]
    for name, sweep in scaling.SWEEPS.items():
        (point,) = results[name].values()
        assert all(point["result"][key] > 0 for key in sweep.shown)


@pytest.mark.slow
def test_the_comparison_without_peers(here, docs, monkeypatch, capsys):
    monkeypatch.setattr(compare, "find_python", lambda package, folder: None)
    compare.main(["--quick", "--repeats=1", f"--docs={docs}"])
    results = json.loads((docs / "performance" / "comparison.json").read_text())[
        "results"
    ]
    assert all(len(runs[compare.OURS]) == 1 for runs in results.values())
    text = (docs / "performance.md").read_text()
    for title in results:
        assert title in text
    assert "PyTorch: not installed; pip install torch." in text
    assert text.count("old") == 1  # the other block


def test_a_file_to_decode_needs_a_model_that_the_peers_also_have(tiny_run, tmp_path):
    with pytest.raises(
        ValueError, match="The run must be pre-norm with one shared embedding"
    ):
        file_decoding.write_job(tiny_run.run, ["red cat"], 2, tmp_path / "job.npz")


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("embedding/weight", "embedding/weight"),
        ("transformer/encoder_norm/beta", "encoder_norm/beta"),
        (
            "transformer/decoder_0/cross_attention_residual/norm/beta",
            "decoder_0/cross_attention_residual/norm/beta",
        ),
        (
            "transformer/decoder_0/feed_forward_residual/feed_forward/inner/bias",
            "decoder_0/feed_forward/inner/bias",
        ),
    ],
)
def test_names_of_weights_for_the_peers(path, name):
    assert file_decoding.short_name(path) == name


def test_a_peer_gets_sentences_longest_first_and_padded(tmp_path):
    rows = {
        f"s:{i}": np.arange(2, 2 + length, dtype=np.int32)
        for i, length in enumerate((1, 3, 2))
    }
    positions = np.zeros((4, 2), np.float32)
    np.savez(tmp_path / "job.npz", settings='{"batch": 2}', positions=positions, **rows)
    batches = [
        (chosen, ids.tolist())
        for chosen, ids in FileJob(str(tmp_path / "job.npz")).batches()
    ]
    assert batches == [([1, 2], [[2, 3, 4], [2, 3, 0]]), ([0], [[2]])]
