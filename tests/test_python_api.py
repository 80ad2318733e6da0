"""`t2tlite.prepare`, `t2tlite.train` and the layers, as docs/python.md uses them."""

import dataclasses
import random
import re
import signal
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf
from documents import ROOT
from tiny_task import sentences

import t2tlite
from t2tlite import layers
from t2tlite.run_folder import RunFolder
from t2tlite.training import loop
from t2tlite.training.signals import Interrupted

TINY = {"hidden_size": 16, "filter_size": 16, "num_heads": 2, "num_hidden_layers": 1}
FILES = {
    "train_source": "train.en",
    "train_target": "train.de",
    "dev_source": "dev.en",
    "dev_target": "dev.de",
}


def example(start: str) -> str:
    """The code of docs/python.md that begins so."""
    text = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    (code,) = re.findall(rf"^```python\n({start}.*?)^```$", text, re.M | re.S)
    return code


@pytest.fixture
def files(tmp_path, monkeypatch):
    """A current folder with files to train on."""
    monkeypatch.chdir(tmp_path)
    for split, seed in (("train", 1), ("dev", 2)):
        for language, lines in zip(
            ("en", "de"), zip(*sentences(60, seed), strict=True), strict=True
        ):
            text = "".join(f"{line}\n" for line in lines)
            Path(f"{split}.{language}").write_text(text, encoding="utf-8")
    return tmp_path


@pytest.mark.slow
def test_ten_lines_from_two_files_to_a_translation(files, capsys):
    code = example("import t2tlite\n\ndata")
    assert len(code.splitlines()) <= 12
    quick = {**TINY, "train_steps": 2}
    names: dict[str, object] = {}
    exec(code.replace('"transformer_multi30k"', repr(quick)), names)
    said = capsys.readouterr()
    assert said.err.count("Training on ") == 1
    assert "INFO" not in said.err + said.out
    run = RunFolder("runs/mine")
    assert names["model"].step == 2
    # the command's record, with which t2t-trainer resumes
    assert run.flags()["problem"] == "parallel_text"
    assert "hidden_size=16" in run.flags()["hparams"]

    code = example("small = ").replace(
        '"transformer_tiny", num_heads=2', '"transformer_tiny", **q'
    )
    code = code.replace("train_steps=500", "train_steps=2").replace(", num_heads=2", "")
    exec(code.replace("train_steps=800", "train_steps=3"), names | {"q": TINY})
    small = RunFolder("runs/small")
    assert small.hparams().batch_size == 1024
    assert small.flags()["hparams_set"] == "transformer_base"
    assert t2tlite.load("runs/small").step == 3


@pytest.mark.slow
def test_an_interrupted_call_resumes_when_it_is_repeated(files, monkeypatch):
    data = t2tlite.prepare("parallel_text", **FILES)
    train_step = loop.make_train_step

    def interrupted(*arguments):
        step = train_step(*arguments)

        def run(batches, stop):
            signal.raise_signal(signal.SIGINT)  # as a notebook's stop button
            return step(batches, stop)

        return run

    monkeypatch.setattr(loop, "make_train_step", interrupted)
    with pytest.raises(Interrupted, match="SIGINT at step 1; a checkpoint is saved"):
        t2tlite.train(data, TINY, "run", train_steps=4)
    monkeypatch.setattr(loop, "make_train_step", train_step)
    assert t2tlite.train(data, TINY, "run", train_steps=4).step == 4


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"train_source": "no.en"}, FileNotFoundError, r"no\.en"),
        ({"train_source": "dev.en"}, ValueError, "equally many lines"),
        ({"train_source": 5}, ValueError, "train_source must be"),
        (
            {"train_source": np.array(["a cat"])},
            ValueError,
            "train_source must be .* of type ndarray. Sentences are read from files",
        ),
        (
            {"trainsource": "train.en"},
            ValueError,
            "A problem has no field 'trainsource'",
        ),
        ({"train_source": ["train.en"] * 2}, ValueError, "must name as many files"),
        ({"data_dir": None}, TypeError, "not .*NoneType"),
    ],
)  # fmt: skip
def test_wrong_data(files, options, error, message):
    Path("dev.en").write_text("one line\n")
    with pytest.raises(error, match=message):
        t2tlite.prepare("parallel_text", **FILES | options)
    assert not Path("data").exists()


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        (("nothing", {}, "run"), {}, ValueError, "There is no problem 'nothing'"),
        (("parallel_text", {}, "run"), {}, FileNotFoundError, r"t2tlite\.prepare\('par"),
        ((5, {}, "run"), {}, TypeError, r"t2tlite\.prepare returned.*Received: 5\."),
        (("parallel_text", None, "run"), {}, TypeError, "NoneType"),
        (("parallel_text", "transformer_tny", "run"), {}, ValueError, "Did you mean"),
        (("parallel_text", {"heads": 2}, "run"), {}, ValueError, "no field 'heads'"),
        (("parallel_text", {}, None), {}, TypeError, "not .*NoneType"),
        (("parallel_text", {}, "data"), {}, ValueError, "different folders"),
        (("parallel_text", {}, "run"), {"train_stps": 1}, ValueError, "'train_steps'"),
        (("parallel_text", {}, "run"), {"train_steps": 0}, ValueError, "train_steps"),
        (("parallel_text", {}, "run"), {"eval_bleu": "no"}, ValueError, "of type bool"),
        (("parallel_text", {}, "run"), {"warm_start_from": "nowhere"}, FileNotFoundError, "There is no checkpoint at nowhere"),
    ],
)  # fmt: skip
def test_wrong_training(tmp_path, monkeypatch, arguments, options, error, message):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error, match=message):
        t2tlite.train(*arguments, **options)
    assert not Path("run").exists()


@pytest.mark.slow
def test_training_leaves_the_random_numbers_of_its_caller(files):
    data = t2tlite.prepare("parallel_text", **FILES, num_processes=np.int64(1))
    drawn = []
    for trains in (False, True):
        keras.utils.set_random_seed(7)
        if trains:
            changes = TINY | {"batch_size": np.int64(512), "train_steps": np.int32(9)}
            settings = {"eval_steps": np.int64(1), "random_seed": np.int32(3)}
            t2tlite.train(
                data,
                changes,
                "run",
                train_steps=np.int32(2),
                eval_bleu=np.False_,
                **settings,
            )
        numbers = [random.random(), np.random.random(), keras.random.uniform(())]
        drawn.append([*numbers, tf.random.uniform(())])
    assert np.array(drawn[0]).tolist() == np.array(drawn[1]).tolist()
    assert RunFolder("run").flags()["random_seed"] == "3"


def test_loading_leaves_the_random_numbers_of_its_caller(tiny_run):
    state = random.getstate()
    assert t2tlite.load(tiny_run.run, np.int64(80), threads=np.int64(1)).step == 80
    assert random.getstate() == state


def test_hparams_with_changes():
    changed = t2tlite.get_hparams("transformer_big", num_heads=8)
    big = t2tlite.get_hparams("transformer_big")
    assert changed == dataclasses.replace(big, num_heads=8)
    with pytest.raises(ValueError, match="no field 'heads'"):
        t2tlite.get_hparams("transformer_big", heads=8)


def test_mistakes_and_names_need_no_tensorflow():
    code = (
        "import sys, t2tlite; t2tlite.get_problem('grammar_ende');"
        " t2tlite.get_hparams('transformer_base')\n"
        "try: t2tlite.train('grammar_ende', 'transformer_base', 'run', data_dir='none')\n"
        "except FileNotFoundError: print('tensorflow' in sys.modules)"
    )
    shown = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert shown.stdout == "False\n"


@pytest.mark.filterwarnings(
    "ignore:__array__ implementation:DeprecationWarning"  # Keras's, when it saves
)
def test_the_layers_in_a_keras_model(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    exec(
        example("import keras\nimport numpy as np\n\nfrom").replace(
            "(256, 9)", "(32, 9)"
        ),
        names,
    )
    model, same = names["model"], names["same"]
    ids = names["sentences"][:4]
    np.testing.assert_array_equal(same(ids), model(ids))
    # padding has no influence on what is not padding
    attention = next(
        layer for layer in model.layers if isinstance(layer, layers.MultiHeadAttention)
    )
    x = np.array(model.layers[1](ids))
    mask = layers.padding_mask(np.where(np.arange(9) < 6, ids, 0))
    changed = x.copy()
    changed[:, 6:] += 1.0
    np.testing.assert_array_equal(
        attention(x, bias=mask)[:, :6], attention(changed, bias=mask)[:, :6]
    )


@pytest.mark.filterwarnings(
    "ignore:__array__ implementation:DeprecationWarning"  # Keras's, when it saves
)
def test_another_process_loads_the_keras_model_of_a_run(
    tiny_run, model, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(t2tlite, "load", lambda run: model)
    exec(example("model = t2tlite.load"), {"t2tlite": t2tlite})
    program = example("import keras\nimport numpy as np\n\nimport t2tlite")
    program = program.replace("runs/demo/grammar_ende", str(tiny_run.run))
    program += "np.savez('arrays', inputs=inputs, targets=targets, logits=logits)"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)
    arrays = np.load("arrays.npz")
    logits = np.asarray(model.engine.model(arrays["inputs"], arrays["targets"]))
    np.testing.assert_allclose(
        arrays["logits"], logits, rtol=0, atol=2e-5 * np.abs(logits).max()
    )


def test_all_names_exist():
    assert t2tlite.layers is layers
    assert issubclass(t2tlite.Transformer, keras.Model)
    for name in (*t2tlite.__all__, *layers.__all__):
        assert hasattr(t2tlite, name) or hasattr(layers, name)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        t2tlite.nothing  # noqa: B018


@pytest.mark.skipif(sys.platform != "linux", reason="needs names that are bytes")
def test_names_that_are_not_utf_8_are_refused_at_once(files):
    name = "lat\udcedn"
    Path("train.en").rename(f"{name}.en")
    message = r"File names must be UTF-8\. Received: '.*lat\\udcedn"
    given = FILES | {"train_source": f"{name}.en"}
    with pytest.raises(ValueError, match=message):
        t2tlite.prepare("parallel_text", **given)
    for call in (
        lambda: t2tlite.prepare("parallel_text", name, **FILES),
        lambda: t2tlite.train("parallel_text", TINY, name),
        lambda: t2tlite.load(name),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    assert sorted(path.name for path in files.iterdir()) == sorted(
        [f"{name}.en", "train.de", "dev.en", "dev.de"]
    )
