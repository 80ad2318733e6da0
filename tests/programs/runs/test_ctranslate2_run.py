"""A run decodes with CTranslate2 as with TensorFlow; its model is converted once, and
again when it is another.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest

import t2tlite
from t2tlite.data.dataset import open_dataset
from t2tlite.programs.export import ctranslate2_engine
from t2tlite.programs.export.ctranslate2_engine import open_translator
from t2tlite.programs.runs import load as runs

load_converted = functools.partial(runs.load, engine="ctranslate2")


@pytest.fixture(scope="module")
def sources(tiny_run):
    return open_dataset(tiny_run.data, "twenty_words").store("dev").source_text()


@pytest.fixture(scope="module")
def converted(tiny_run, tmp_path_factory):
    """The run, loaded with CTranslate2 from a copy."""
    run = tmp_path_factory.mktemp("converted") / "run"
    shutil.copytree(tiny_run.run, run, ignore=shutil.ignore_patterns("decodes"))
    return load_converted(run)


def folder_of(run):
    """The converted model's folder."""
    [folder] = (run / "ctranslate2").iterdir()
    assert folder.name.startswith("float32-")
    return folder


def contents(run):
    return {path.name: path.stat().st_mtime_ns for path in folder_of(run).iterdir()}


@pytest.mark.parametrize(
    "options",
    [{"beam_size": 1}, {"beam_size": 4, "return_beams": 2}, {"t2t_rules": True}],
    ids=str,
)
def test_outputs_are_those_of_tensorflow(tiny_run, load, converted, sources, options):
    model = load(tiny_run.run, None)
    options = model.options(**options)
    ours, theirs = (
        [hypothesis[0] for hypothesis in each.decode(["", *sources], options)]
        for each in (model, converted)
    )
    assert [hypothesis.text for hypothesis in theirs] == [
        hypothesis.text for hypothesis in ours
    ]
    for name in ("score", "log_prob"):
        values = [
            [getattr(hypothesis, name) for hypothesis in each]
            for each in (theirs, ours)
        ]
        np.testing.assert_allclose(*values, atol=1e-4)


@pytest.mark.parametrize(("on_gpu", "threads"), [(False, 3), (True, 1)])
def test_a_cpu_decodes_several_batches_at_a_time(
    converted, monkeypatch, on_gpu, threads
):
    if on_gpu:  # it gets no number of translators
        monkeypatch.setattr(
            ctranslate2_engine,
            "open_translator",
            lambda path, quantization, threads: open_translator(path, quantization),
        )
    assert load_converted(converted.run, threads=3).engine.threads == threads


def test_log_probabilities_are_those_of_tensorflow(tiny_run, load, converted, sources):
    targets = [*reversed(sources[1:]), ""]
    ours, theirs = (
        each.score(sources, targets) for each in (load(tiny_run.run, None), converted)
    )
    np.testing.assert_allclose(theirs, ours, rtol=1e-5, atol=1e-4)


def test_attention_is_of_the_keras_model_loaded_on_demand(tiny_run, load, converted):
    assert converted.engine.parameters == load(tiny_run.run, None).engine.parameters
    ours, theirs = (
        each.attention("red cat sees dog", "katze rot hund sieht")
        for each in (load(tiny_run.run, None), converted)
    )
    np.testing.assert_allclose(theirs.cross, ours.cross, atol=1e-5)


def test_a_model_is_converted_once_for_each_checkpoint(
    tiny_run, tiny_run_copy, load, capsys
):
    load_converted(tiny_run_copy)
    before = contents(tiny_run_copy)
    load_converted(tiny_run_copy)
    assert contents(tiny_run_copy) == before
    assert capsys.readouterr().err == (
        f"Converting {tiny_run_copy}/model.ckpt-120 for CTranslate2 (float32), once: it"
        f" is kept in {folder_of(tiny_run_copy)}.\n"
    )
    older = load_converted(tiny_run_copy, "40")
    assert older.notes == [f"Using checkpoint {tiny_run_copy}/model.ckpt-40."]
    assert set(contents(tiny_run_copy)) == set(before)
    pair = "red cat sees dog", "katze rot hund sieht"
    expected = load(tiny_run.run, tiny_run.run / "model.ckpt-40").score(*pair)
    assert older.score(*pair) == pytest.approx(expected, abs=1e-4)


def test_a_damaged_model_says_what_to_do(tiny_run_copy):
    load_converted(tiny_run_copy)
    folder = folder_of(tiny_run_copy)
    message = f"CTranslate2 cannot load {folder}, which is made again if deleted: "
    (folder / "model.bin").write_bytes(b"half")
    with pytest.raises(ValueError, match=message):
        load_converted(tiny_run_copy)
    (folder / "model.bin").unlink()
    with pytest.raises(ValueError, match=message):
        load_converted(tiny_run_copy)


def test_what_a_killed_conversion_left_is_removed(tiny_run_copy, sources):
    left = tiny_run_copy / "ctranslate2" / ".converting"
    left.mkdir(parents=True)
    (left / "model.bin").write_text("half")
    load_converted(tiny_run_copy).translate(sources)
    assert folder_of(tiny_run_copy)


def test_a_damaged_checkpoint_is_an_error_and_leaves_nothing(tiny_run_copy):
    data = tiny_run_copy / "model.ckpt-120.data-00000-of-00001"
    data.write_bytes(data.read_bytes()[:1000])
    with pytest.raises(
        ValueError, match=r"Checkpoint .*model\.ckpt-120 cannot be restored: "
    ):
        load_converted(tiny_run_copy)
    assert not (tiny_run_copy / "ctranslate2").exists()


def test_a_run_that_cannot_be_written_is_an_error(tiny_run_copy):
    (tiny_run_copy / "ctranslate2").write_text("a file")
    with pytest.raises(OSError, match=r"ctranslate2"):
        load_converted(tiny_run_copy)


def test_tensorflow_is_not_imported_where_the_model_is_converted(converted):
    program = (
        "import sys, t2tlite\n"
        f"model = t2tlite.load({str(converted.run)!r}, engine='ctranslate2')\n"
        "print(model.translate(['red cat sees dog']))\n"
        "print(sorted({'tensorflow', 'keras'} & set(sys.modules)))\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env=environment,
        check=True,
    )
    assert done.stdout.splitlines() == [
        str(converted.translate(["red cat sees dog"])),
        "[]",
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"engine": "torch"}, r"engine must be one of tensorflow, ctranslate2\. Received: 'torch'"),
        ({"quantization": "int8"}, r"quantization goes with engine=ctranslate2..* Received: int8 with"),
        ({"engine": "ctranslate2", "quantization": "int4"}, r"on this cpu must be one of float32, .* Received: 'int4'"),
    ],
)  # fmt: skip
def test_mistakes(tiny_run, arguments, message):
    with pytest.raises(ValueError, match=message):
        t2tlite.load(tiny_run.run, **arguments)
