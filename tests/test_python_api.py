"""`t2tlite.prepare`, `t2tlite.train` and the layers, as docs/python.md uses them."""

import collections
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
from t2tlite.bin import t2t_datagen, t2t_decoder, t2t_trainer
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
        ({"train_source": np.array(["a cat"])}, ValueError, r"must be of type tuple\. Received: array"),
        ({"trainsource": "train.en"}, ValueError, "A problem has no field 'trainsource'"),
        ({"train_source": ["train.en"] * 2}, ValueError, "must be equally many"),
        ({"data_dir": None}, TypeError, "not .*NoneType"),
        ({"data_dir": ""}, ValueError, "A path must not be empty"),
    ],
)  # fmt: skip
def test_wrong_data(files, options, error, message):
    Path("dev.en").write_text("one line\n")
    with pytest.raises(error, match=message):
        t2tlite.prepare("parallel_text", **FILES | options)
    assert not Path("data").exists()
    assert not Path("parallel_text").exists()


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        (("nothing", {}, "run"), {}, ValueError, "There is no problem 'nothing'"),
        (("parallel_text", {}, "run"), {}, FileNotFoundError, r"t2tlite\.prepare\('par"),
        ((5, {}, "run"), {}, TypeError, r"t2tlite\.prepare returned.*Received: 5\."),
        (("parallel_text", None, "run"), {}, TypeError, "dict of changes. Received: None"),
        (("parallel_text", {}, ""), {}, ValueError, "A path must not be empty"),
        (("parallel_text", "transformer_tny", "run"), {}, ValueError, "Did you mean"),
        (("parallel_text", {"heads": 2}, "run"), {}, ValueError, "no field 'heads'"),
        (("parallel_text", {}, None), {}, TypeError, "not .*NoneType"),
        (("parallel_text", {}, "data"), {}, ValueError, r"apart from the data\. Received: data twice"),
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


def test_pairs_in_memory(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    train, dev = sentences(60, 1), sentences(9, 2)
    languages = {"source_language": "en", "target_language": "de"}
    columns = zip(*map(list, zip(*train, strict=True)), strict=True)
    # as of DataFrame.itertuples: of a class that cannot be pickled
    rows = map(collections.namedtuple("Row", "en de")._make, dev)
    data = t2tlite.prepare(pairs=columns, dev_pairs=rows, **languages)
    size = f"{data.manifest.vocabulary.size:,}"
    folder = Path("data/pairs")
    assert repr(data) == (
        f"<Dataset: problem pairs, 60 pairs, vocabulary {size}, folder {folder}>"
    )
    assert data.manifest.language_pair == ("en", "de")
    assert list(data.store("dev").source_text()) == [source for source, _ in dev]
    assert "given" not in data.manifest.options

    written = (folder / "manifest.json").stat().st_mtime_ns
    t2tlite.prepare(pairs=train, dev_pairs=dev, **languages)
    assert (folder / "manifest.json").stat().st_mtime_ns == written
    shard = folder / "train-00000.arrow"
    shard.unlink()  # pairs are read to compare, and then to make the data again
    t2tlite.prepare(pairs=iter(train), dev_pairs=iter(dev), **languages)
    assert shard.exists()
    with pytest.raises(ValueError, match="from something else: pairs now yields other"):
        t2tlite.prepare(pairs=train[1:], dev_pairs=dev, **languages)
    with pytest.raises(ValueError, match=r"splits was train,dev, now train,dev,test"):
        t2tlite.prepare(pairs=train, dev_pairs=dev, test_pairs=dev, **languages)
    named = t2tlite.prepare(pairs=train, dev_pairs=dev, test_pairs=dev, name="mine")
    assert (named.folder, named.name) == (Path("data/mine"), "mine")
    assert list(named.manifest.splits) == ["train", "dev", "test"]
    assert t2t_datagen.main(["--problem=mine"]) == 1
    said = capsys.readouterr().err
    assert "There is no problem 'mine'." in said


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"pairs": [("a", "b"), ("c", float("nan"))]}, ValueError, r"^pairs, train pair 2: a pair .* two strings, each one line, is required\. Received: \('c', nan\)\."),
        ({"dev_pairs": ["ab"]}, ValueError, "^pairs, dev pair 1: .* Received: 'ab'"),
        ({"pairs": [{"en": "a", "de": "b"}]}, ValueError, "pair 1: .* Received: {'en'"),
        ({"pairs": [("a\nb", "c")]}, ValueError, "pair 1: .* one line, "),
        ({"pairs": 5}, TypeError, "not iterable"),
        ({"pairs": []}, ValueError, "a pair to keep in train"),
        ({"dev_pairs": None}, ValueError, r"\(pairs and dev_pairs\).* Received: train\."),
        ({"pairs": None, "dev_pairs": None}, ValueError, r"Received: none\."),
        ({"vocabsize": 9}, ValueError, "no field 'vocabsize'. Did you mean 'vocab_size'"),
        ({"name": "../x"}, ValueError, "name must be a word, .* Received: '../x'"),
        ({"name": "mine_rev"}, ValueError, "without _rev at its end"),
        ({"problem": "parallel_text"}, TypeError, "Give a problem, or pairs"),
    ],
)  # fmt: skip
def test_wrong_pairs(tmp_path, monkeypatch, arguments, error, message):
    monkeypatch.chdir(tmp_path)
    right = {"pairs": [("a", "b")], "dev_pairs": [("c", "d")]}
    with pytest.raises(error, match=message):
        t2tlite.prepare(**right | arguments)
    assert not list(Path().iterdir())


@pytest.mark.slow
def test_a_run_is_used_without_its_pairs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    data = t2tlite.prepare(pairs=sentences(60, 1), dev_pairs=sentences(9, 2))
    steps = []
    arguments = {"train_steps": 3, "local_eval_frequency": 1}

    def stop_at_2(record):
        recorded = RunFolder("run").evaluations()
        assert recorded[-1] == record
        steps.append(record.step)
        if record.step == 2:
            raise ArithmeticError("enough")

    with pytest.raises(ArithmeticError, match="enough"):
        t2tlite.train(data, TINY, "run", on_evaluation=stop_at_2, **arguments)
    capsys.readouterr()
    names = {"t2tlite": t2tlite, "data": data, "quick": TINY, "arguments": arguments}
    code = example("def show").replace('"transformer_tiny"', "quick")
    exec(code.replace('"runs/pairs"', '"run", **arguments'), names)
    model = names["model"]
    assert capsys.readouterr().out.startswith("3 {'loss': ")
    steps.append(3)
    assert [each.step for each in model.evaluations] == steps
    assert {"loss", "perplexity", "accuracy"} == set(model.evaluations[0].metrics)

    assert t2t_trainer.main(["--flagfile=run/flags.txt", "--train_steps=4"]) == 0
    Path("in").write_text("the cat\n")
    options = "--decode_hparams=beam_size=1,extra_length=2"
    files = ["--decode_from_file=in", "--decode_to_file=out"]
    assert t2t_decoder.main(["--output_dir=run", *files, options]) == 0
    assert t2t_decoder.main(["--output_dir=run", "--split=dev", options]) == 0
    assert t2tlite.load("run").manifest.name == "pairs"


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
    message = r"File names must be UTF-8, .* Received: '.*lat\\udcedn"
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
