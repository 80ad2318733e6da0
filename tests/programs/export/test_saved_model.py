"""The format saved_model: TensorFlow alone gives with it what the run gives."""

import concurrent.futures
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from exports import export
from tiny_run import change_manifest

from t2tlite.config import HParams
from t2tlite.decoding.tensorflow_engine import TensorFlowEngine
from t2tlite.models.transformer import Transformer
from t2tlite.programs.runs.translator import Translator

pytestmark = pytest.mark.usefixtures("loaded_once")

SENTENCES = [
    "red cat sees dog today",
    "",
    "fish bites horse",
    " \u2003",
    "the same thing (as before) 12",
    "bird",
]

# A program without t2tlite: reads lists of sentences and writes [[texts, scores,
# log_probs], ...].
PROGRAM = """
import json, sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("t2tlite", "keras_hub"):
            raise ImportError(name)

sys.meta_path.insert(0, Refuse())
import tensorflow as tf
import tensorflow_text

model = tf.saved_model.load(sys.argv[1])
results = []
for sentences in json.loads(sys.argv[2]):
    found = model.translate(tf.constant(sentences, tf.string))
    texts = [[text.decode() for text in row] for row in found["texts"].numpy()]
    results.append([texts, found["scores"].numpy().tolist(), found["log_probs"].numpy().tolist()])
assert not any(name.partition(".")[0] == "t2tlite" for name in sys.modules)
print(json.dumps(results))
"""


OPTIONS = {
    "beam_size": 3,
    "alpha": 1.0,
    "extra_length": 20,
    "return_beams": 2,
    "min_length": 7,
    "no_repeat_ngram_size": 1,
}


@pytest.fixture(scope="module")
def exported(model, tmp_path_factory) -> Path:
    """The one that all tests read."""
    return model.export(tmp_path_factory.mktemp("saved_model") / "out", **OPTIONS)


@pytest.fixture(scope="module")
def loaded(exported):
    return tf.saved_model.load(str(exported / "1"))


def lists(outputs):
    """The lists of texts, scores and log-probabilities of a signature's outputs."""
    texts = []
    for row in np.asarray(outputs["texts"]):
        texts.append([text.decode() for text in row])
    return texts, np.asarray(outputs["scores"]), np.asarray(outputs["log_probs"])


def check(model, actual, sentences):
    """The run's n-best lists; places that are left over are empty."""
    texts, scores, log_probs = actual
    expected = model.decode(sentences, model.options(**OPTIONS))
    for row, *values, n_best in zip(texts, scores, log_probs, expected, strict=True):
        count = len(n_best)
        assert row == [each.text for each in n_best] + [""] * (len(row) - count)
        ours = [[each.score, each.log_prob] for each in n_best]
        theirs = np.transpose(values)
        np.testing.assert_allclose(theirs[:count], ours, rtol=0, atol=1e-4)
        assert (theirs[count:] < -1e8).all()


def test_the_decoding_options_of_the_export_count(model, loaded):
    texts, _, _ = actual = lists(loaded.translate(tf.constant(SENTENCES)))
    check(model, actual, SENTENCES)
    assert len(texts[0][0].split()) >= 7


def test_a_program_without_t2tlite_gets_what_the_run_gives(model, exported, tmp_path):
    calls = [SENTENCES, SENTENCES * 9, [""], []]
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(exported / "1"), json.dumps(calls)],
        cwd=tmp_path, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr[-3000:]
    for actual, sentences in zip(json.loads(result.stdout), calls, strict=True):
        check(model, actual, sentences)


def test_the_session_of_tensorflow_serving(model, exported):
    """Which calls a signature by the names of tensors."""
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        graph = tf.compat.v1.saved_model.load(session, ["serve"], str(exported / "1"))
        results = []
        for name in ("serving_default", "translate"):
            signature = graph.signature_def[name]
            assert list(signature.inputs) == ["sentences"]
            outputs = {name: info.name for name, info in signature.outputs.items()}
            inputs = {signature.inputs["sentences"].name: SENTENCES}
            results.append(session.run(outputs, inputs))
    for outputs in results:
        check(model, lists(outputs), SENTENCES)


def test_concurrent_searches_have_separate_caches(loaded):
    """The cache of keys and values is written in place."""
    batches = []
    for count in range(1, 12, 2):
        batches.append([SENTENCES[count % len(SENTENCES)]] * count)

    def decode(batch):
        return lists(loaded.translate(tf.constant(batch)))

    one_by_one = [decode(batch) for batch in batches]
    with concurrent.futures.ThreadPoolExecutor(4) as threads:
        together = list(threads.map(decode, batches))
    for ours, theirs in zip(one_by_one, together, strict=True):
        assert ours[0] == theirs[0]
        np.testing.assert_allclose(ours[1], theirs[1], rtol=0, atol=1e-5)


def test_a_long_sentence_is_refused(loaded):
    error = tf.errors.InvalidArgumentError
    with pytest.raises(error, match=r"must have at most 2,048 tokens.*tokens:\] \["):
        loaded.translate(tf.constant(["q" * 3000]))


def test_the_programs_of_readme_and_document_run(exported, monkeypatch, capsys):
    document = (Path(__file__).parents[3] / "docs" / "export.md").read_text()
    document = document.partition("\n## SavedModel\n")[2].replace("DIR/1", "1")
    readme = (exported / "README.md").read_text()
    monkeypatch.chdir(exported)
    for text, output in ((readme, "shape=(2, 2)"), (document, "[('', 0.0), ")):
        exec(text.partition("```python\n")[2].partition("```")[0], {})
        assert output in capsys.readouterr().out


SMALL = "hidden_size=16,filter_size=24,num_heads=2,num_hidden_layers=2,max_length=64"
PRE_NORM = "layer_preprocess_sequence=n,layer_postprocess_sequence=da"
VARIANTS = {
    "pre_norm_learned_positions": f"{PRE_NORM},pos=emb,use_target_space_embedding=true",
    "radius_unshared": (
        "self_attention_radius=4,shared_embedding_and_softmax_weights=false,num_encoder_layers=1"
    ),
    "bfloat16": "dtype_policy=mixed_bfloat16,pos=timing_halves",
    "no_positions": "pos=none,attention_key_channels=8",
}


def untrained(model: Translator, changes: str) -> Translator:
    """A model with random weights, and vocabulary and data of the trained one."""
    hparams = HParams().override(f"{SMALL},{changes}")
    sizes = [encoder.vocab_size for encoder in model.encoders]
    other = Transformer.from_hparams(hparams, *sizes)
    random = np.random.default_rng(1)
    for variable in other.weights:
        variable.assign_add(0.3 * random.normal(size=variable.shape).astype(np.float32))
    engine = TensorFlowEngine(other)
    checkpoint = "RUN/model.ckpt-7"
    return Translator(engine, model.encoders, model.manifest, checkpoint, run=model.run)


@pytest.mark.slow
@pytest.mark.parametrize("name", VARIANTS)
def test_every_model_can_be_exported(model, name, tmp_path):
    """The command's own verification compares n-best lists and log-probabilities."""
    other = untrained(model, VARIANTS[name])
    folder = other.export(tmp_path / "out", extra_length=5)
    loaded = tf.saved_model.load(str(folder / "1"))
    texts, _, _ = lists(loaded.translate(tf.constant(SENTENCES[:1])))
    assert texts == [other.translate(SENTENCES[:1], extra_length=5)]
    if name == "pre_norm_learned_positions":
        error = tf.errors.InvalidArgumentError
        with pytest.raises(error, match=r"must have at most 63 tokens"):
            loaded.translate(tf.constant(["q" * 64]))


def test_refused(tiny_run_copy, tmp_path, capsys, monkeypatch):
    """Before anything is written."""
    target = tmp_path / "out[1]"

    def refused(*flags: str) -> str:
        assert export(tiny_run_copy, target, "--format=saved_model", *flags) == 1
        assert not target.exists()
        return capsys.readouterr().err

    message = refused("--decode_hparams=sampling_method=random")
    assert "format=saved_model supports alpha, " in message
    assert "Received: sampling_method=random." in message
    assert f"no SavedModel from a path with '['. Received: {target}. " in refused()
    monkeypatch.setitem(sys.modules, "tensorflow_text", None)  # as on Windows
    assert "needs the package tensorflow-text" in refused()
    change_manifest(tiny_run_copy, task="parsing")
    assert "needs a translation model" in refused()
    change_manifest(tiny_run_copy, task="translation")
    manifest = json.loads((tiny_run_copy / "manifest.json").read_text())
    subwords = manifest["vocabulary"] | {"file": "vocab.subwords", "type": "subwords"}
    change_manifest(tiny_run_copy, vocabulary=subwords)
    assert "vocabularies. Received: twenty_words. Use format=ctranslate2." in refused()
