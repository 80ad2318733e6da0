"""A run as Python sees it: t2tlite.load, translate and score, and runs that are
incomplete or damaged.
"""

from __future__ import annotations

import gc
import json
import multiprocessing
import os
import shutil
import subprocess
import sys
import weakref

import numpy as np
import pytest
import tensorflow as tf

import t2tlite
from t2tlite.decoding import tensorflow_engine
from t2tlite.programs.runs.load import load

SENTENCES = [
    "red cat sees dog",
    "",
    "fish likes mouse",
    "black horse bites bird today",
    "dog hears dog often",
]
TRANSLATIONS = [
    "katze rot hund sieht",
    "",
    "fisch maus mag",
    "pferd schwarz heute vogel beisst",
    "hund oft hund hoert",
]


def test_import_is_light():
    code = (
        "import sys, t2tlite; print(sorted({'tensorflow', 'keras', 'numpy'} &"
        " set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


def test_translates_in_order_and_keeps_blanks(model):
    assert model.translate(SENTENCES) == TRANSLATIONS
    assert model.translate([" \t"]) == [""]
    assert model.translate([]) == []


def test_one_string_gives_one_result(model):
    assert model.translate(SENTENCES[0]) == TRANSLATIONS[0]
    assert model.translate("") == ""
    assert model.translate(iter(SENTENCES)) == TRANSLATIONS
    assert model.n_best(SENTENCES[0], 2) == model.n_best(SENTENCES[:1], 2)[0]
    assert (
        model.score(SENTENCES[0], TRANSLATIONS[0])
        == model.score(SENTENCES[:1], TRANSLATIONS[:1])[0]
    )


def test_n_best(model):
    actual = model.n_best(SENTENCES, 3)
    assert [hypotheses[0].text for hypotheses in actual] == TRANSLATIONS
    # a blank sentence has one
    assert [len(hypotheses) for hypotheses in actual] == [3, 1, 3, 3, 3]
    assert actual == model.decode(SENTENCES, model.options(return_beams=3))
    assert len(model.n_best(SENTENCES[0])) == 4  # the beam size
    assert len(model.n_best(SENTENCES[0], beam_size=1)) == 1
    with pytest.raises(
        ValueError,
        match=r"return_beams must be at most beam_size\. Received: 5 and 4\.",
    ):
        model.n_best(SENTENCES[0], 5)


def test_in_short(tiny_run, model):
    assert repr(model) == (
        f"<Translator: problem twenty_words, {model.engine.parameters:,} parameters,"
        f" step 120, run {tiny_run.run}>"
    )


@pytest.mark.parametrize(
    ("sentences", "options", "message"),
    [
        (["dog", b"red cat"], {}, r"at index 1 must be one string\. Received: b'red cat', not yet decoded"),
        (["dog", None], {}, r"sentence at index 1 must be one string\. Received: None\."),
        (["cat"], {"beamsize": 3}, r"decode_hparams has no field 'beamsize'\. Did you mean 'beam_size'"),
        (["cat"], {"beam_size": 0}, r"beam_size must be at least 1"),
        (["cat"], {"beam_size": "8"}, r"beam_size must be of type int\. Received: '8'\."),
        (["cat", "cat " * 2100], {}, r"at most 2,048 tokens\. Received: line 2 with 2,1\d\d, beginning 'cat ca"),
        (["\udc80"], {}, r"Text must be Unicode without lone surrogates, .* Received: '\\udc80'"),
    ],
)  # fmt: skip
def test_what_cannot_be_translated(model, sentences, options, message):
    with pytest.raises(ValueError, match=message):
        model.translate(sentences, **options)


def test_what_cannot_be_scored(model):
    with pytest.raises(
        ValueError,
        match=r"Each source needs a target\. Received: 2 and 1\.",
    ):
        model.score(["a", "b"], ["c"])


def test_results_do_not_depend_on_the_batch(model):
    wide = model.n_best(SENTENCES, 2)
    narrow = model.n_best(SENTENCES[::-1], 2, batch_size=1)[::-1]
    for n_best, others in zip(narrow, wide, strict=True):
        assert [output.text for output in n_best] == [output.text for output in others]
        scores = [output.score for output in others]
        assert [output.score for output in n_best] == pytest.approx(scores, abs=1e-5)
    together = model.score(SENTENCES, TRANSLATIONS)
    alone = model.score(SENTENCES, TRANSLATIONS, batch_size=8)
    np.testing.assert_allclose(alone, together, atol=1e-5)


@pytest.mark.parametrize("differs", ["vocabulary", "heads"])
def test_checkpoint_of_another_run_of_the_same_shapes(tiny_run, tmp_path, differs):
    """Vocabularies of one size, or two and four heads, have weights of one shape."""
    other = shutil.copytree(tiny_run.run, tmp_path / "other")
    t2tlite.load(tiny_run.run, other / "best")  # of the same model
    if differs == "heads":
        path = other / "hparams.json"
        content = path.read_text().replace('"num_heads": 2', '"num_heads": 4')
        reason = r"num_heads \(2, 4\)"
    else:
        path = other / "manifest.json"
        sha256 = json.loads(path.read_text())["vocabulary"]["sha256"]
        content = path.read_text().replace(sha256, "0" * 64)
        reason = r"vocabulary \("
    assert content != path.read_text()
    path.write_text(content)
    with pytest.raises(ValueError, match=f"of the same model.*other/best.*{reason}"):
        t2tlite.load(tiny_run.run, other / "best")


def test_checkpoint_of_choice(tiny_run, model, loaded_once):
    assert (model.step, model.checkpoint) == (120, f"{tiny_run.run}/model.ckpt-120")
    assert t2tlite.load(tiny_run.run, f"{tiny_run.run}/model.ckpt-80.index").step == 80
    best = t2tlite.load(str(tiny_run.run), tiny_run.run / "best")
    assert best.checkpoint.startswith(f"{tiny_run.run}/best/model.ckpt-")
    early = t2tlite.load(tiny_run.run, f"{tiny_run.run}/model.ckpt-40")
    pair = ["red cat sees dog"], ["katze rot hund sieht"]
    assert early.score(*pair)[0] < model.score(*pair)[0]


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("manifest.json", r"A run needs its manifest\.json\. .* has none\."),
        ("vocab.model", r"copy/vocab\.model is missing\. Copy it again from where the run was trained\."),
        ("model.ckpt-*", r"There is no checkpoint at .*copy, with model\.ckpt-N\.index and its data file\."),
        ("hparams.json", r"The run must be a folder .* Received: .*copy, which has no hparams\.json\."),
    ],
)  # fmt: skip
def test_missing_files(tiny_run_copy, file, message):
    for path in tiny_run_copy.glob(file):
        path.unlink()
    with pytest.raises(FileNotFoundError, match=message):
        load(tiny_run_copy)


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("hparams.json", '{"hidden_size": 2000000000}', r"ckpt-120 cannot be restored: hparams .* need [\d,]+ weights, not "),
        ("manifest.json", '{"format_version": 1}', r"manifest\.json is damaged: "),
        ("vocab.model", "none", r"copy/vocab\.model must have the SHA-256 recorded"),
    ],
)  # fmt: skip
def test_damaged_files(tiny_run_copy, file, content, message):
    (tiny_run_copy / file).write_text(content)
    with pytest.raises(ValueError, match=message):
        load(tiny_run_copy)


@pytest.mark.parametrize(
    "chosen", ["missing", "averaged", "./missing", 77, 0, "0", True, b"best", 2.0]
)
def test_a_missing_checkpoint_is_reported_without_flags(tiny_run, chosen):
    with pytest.raises(FileNotFoundError, match=r"There is no checkpoint at") as error:
        t2tlite.load(tiny_run.run, chosen)
    assert "--" not in str(error.value)


def test_what_a_model_traced_goes_with_it(tiny_run, monkeypatch):
    graphs = []

    def traced(function):
        def traced_function(*arguments):
            graphs.append(weakref.ref(tf.compat.v1.get_default_graph()))
            return function(*arguments)

        return traced_function

    for name in ("search", "log_probs", "mean_cross_attention"):
        function = traced(getattr(tensorflow_engine, name))
        monkeypatch.setattr(tensorflow_engine, name, function)
    model = load(tiny_run.run)
    translation = model.translate(SENTENCES[0], beam_size=1)
    model.score(SENTENCES[0], translation)
    model.align([SENTENCES[0]], model.n_best([SENTENCES[0]], 1, beam_size=1))
    assert len(graphs) >= 3
    dropped = weakref.ref(model)
    del model
    gc.collect()
    assert dropped() is None
    assert [graph() for graph in graphs] == [None] * len(graphs)


def test_a_fork_does_not_wait_forever(tiny_run, monkeypatch):
    model = load(tiny_run.run)
    message = r"in a fork of the process that loaded it\. Use .*'spawn'"
    monkeypatch.setattr(os, "getpid", lambda: 0)  # the child's
    for use in (
        lambda: model.translate(SENTENCES[0]),
        lambda: model.score(SENTENCES[0], SENTENCES[0]),
        lambda: model.attention(SENTENCES[0], SENTENCES[0]),
        lambda: t2tlite.load(tiny_run.run),
    ):
        with pytest.raises(RuntimeError, match=message):
            use()


@pytest.mark.slow
def test_a_spawned_process_translates(tiny_run):
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(_translated, (tiny_run.run,)) == TRANSLATIONS[0]


def _translated(run):
    return t2tlite.load(run).translate(SENTENCES[0])
