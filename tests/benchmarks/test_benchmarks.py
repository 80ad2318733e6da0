"""The programs in benchmarks/ run, in this process and at tiny size; what they measure
is not tested.
"""

import argparse
import importlib
import json
import shutil
from pathlib import Path

import command_memory
import compare
import corpus
import document
import file_decoding
import numpy as np
import paper_tables
import program
import pytest
import scaling

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
    hparams = "--hparams=batch_size=200,num_hidden_layers=1"
    chosen = ["--hparams_set=transformer_tiny", hparams, "--pairs=60"]
    file = tmp_path / "job.npz"
    steps = ["--steps=3", "--warm=1", f"--save_job={file}"]
    result = here("", ["train_throughput", *chosen, *steps])
    assert result["tokens_per_second"] > 0
    assert result["peak_memory_mb"] > 100  # TensorFlow alone
    job = program.load_job(file)
    assert (job.hidden_size, job.num_layers, job.num_heads) == (128, 1, 4)
    assert (job.vocab_size, job.warm, len(job.batches)) == (8000, 1, 3)
    args = corpus_arguments(*chosen)
    store = corpus.make_store(args, tmp_path)
    lengths = store.source_lengths, store.target_lengths
    plan = training_plan(corpus.read_hparams(args), *lengths, 1, seed=1)
    for step, (inputs, targets) in enumerate(job.batches):
        part = load_part(store, plan, step, 0, 1, 1)
        np.testing.assert_array_equal(inputs, part.inputs[0])
        np.testing.assert_array_equal(targets, part.targets[0])


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
    measured = {"tokens_per_second": 123.4, "peak_memory_mb": 2345.6}

    def run(python, arguments):
        assert arguments[0] == "train_throughput"
        return {"seconds_per_step": next(seconds), **measured}

    monkeypatch.setattr(program, "run", run)
    flags = [f"--docs={docs}", "--what", "batch", "--values"]
    scaling.main([*flags, "512", "2048"])
    scaling.main([*flags, "1024", "2048"])  # one more, one again
    text = (docs / "performance.md").read_text()
    rows = [line for line in text.splitlines() if line.startswith("|")]
    values = [["512", "2"], ["1,024", "4"], ["2,048", "5"]]
    assert [row.strip("|").replace(" ", "").split("|") for row in rows[2:]] == [
        [*row, "123", "2,346"] for row in values
    ]
    assert text.startswith(f"before\n\n<!-- scaling -->\nAll on {document.machine()}.")
    assert "\n### Batch\n" in text
    assert text.endswith("<!-- comparison -->\nold\n<!-- comparison end -->\n")
    assert (docs / "performance" / "batch.svg").is_file()


def test_the_project_has_both_blocks(docs):
    shutil.copy(ROOT / "docs" / "performance.md", docs)
    for name in ("comparison", "scaling"):
        document.replace_block(docs / "performance.md", name, f"new {name}")
    text = (docs / "performance.md").read_text(encoding="utf-8")
    assert "<!-- comparison -->\nnew comparison\n<!-- comparison end -->" in text
    assert "<!-- scaling -->\nnew scaling\n<!-- scaling end -->" in text


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
