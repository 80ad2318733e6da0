"""The format saved_model: TensorFlow alone gives with it what the run gives."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

import t2tlite
from t2tlite.bin import t2t_export
from t2tlite.config import HParams
from t2tlite.data.manifest import RunManifest
from t2tlite.decoding.tensorflow_engine import TensorFlowEngine
from t2tlite.models.transformer import Transformer
from t2tlite.programs.export import graph
from t2tlite.programs.export.saved_model import SavedModelFormat
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

# A program without t2tlite: reads [[sentences, options], ...] and writes [[texts,
# scores, log_probs], ...].
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
for sentences, options in json.loads(sys.argv[2]):
    found = model.translate(tf.constant(sentences, tf.string), **options)
    texts = [[text.decode() for text in row] for row in found["texts"].numpy()]
    results.append([texts, found["scores"].numpy().tolist(), found["log_probs"].numpy().tolist()])
pairs = model.score(tf.constant(["red cat", ""]), tf.constant(["katze rot", ""]))["log_probs"].numpy().tolist()
assert not any(name.partition(".")[0] == "t2tlite" for name in sys.modules)
print(json.dumps([results, pairs]))
"""


@pytest.fixture(
    scope="module", params=["one", pytest.param("all", marks=pytest.mark.slow)]
)
def beam_sizes(request) -> tuple[int, ...]:
    """The beam sizes of the export: a search is traced for each, which takes
    seconds.
    """
    return (4,) if request.param == "one" else (1, 2, 4, 8)


@pytest.fixture(scope="module")
def exported(model, beam_sizes, tmp_path_factory) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        if beam_sizes == (4,):
            patch.setattr(graph, "BEAM_SIZES", ())  # the run's is 4
        return model.export(tmp_path_factory.mktemp("saved_model") / "out")


@pytest.fixture(scope="module")
def loaded(exported):
    return tf.saved_model.load(str(exported / "1"))


@pytest.fixture
def one_search(monkeypatch):
    """Leaves out the searches with other beam sizes than the default."""
    monkeypatch.setattr(graph, "BEAM_SIZES", ())


def expected(model, sentences, **options):
    """The run's n-best lists: texts, scores and log-probabilities."""
    actual = model.decode(sentences, model.options(**options))
    return [
        [
            (hypothesis.text, hypothesis.score, hypothesis.log_prob)
            for hypothesis in n_best
        ]
        for n_best in actual
    ]


def lists(outputs):
    """The lists of texts, scores and log-probabilities of a signature's outputs."""
    texts, *values = (
        np.asarray(outputs[name]) for name in ("texts", "scores", "log_probs")
    )
    return [[text.decode() for text in row] for row in texts], *values


def check(actual, wanted):
    """The same hypotheses; places that are left over are empty."""
    texts, scores, log_probs = actual
    assert len(texts) == len(wanted)
    for row, *values, hypotheses in zip(texts, scores, log_probs, wanted, strict=True):
        count = len(hypotheses)
        assert row[:count] == [text for text, *_ in hypotheses]
        ours = [[score, log_prob] for _, score, log_prob in hypotheses]
        np.testing.assert_allclose(
            np.transpose(values)[:count], ours, rtol=0, atol=1e-4
        )
        assert row[count:] == [""] * (len(row) - count)
        assert (np.transpose(values)[count:] < -1e8).all()


def test_loaded_model_gives_what_the_run_gives(model, loaded):
    for options in ({}, {"alpha": 0.0, "extra_length": 1, "return_beams": 3}):
        check(
            lists(loaded.translate(tf.constant(SENTENCES), **options)),
            expected(model, SENTENCES, **options),
        )


ALL = pytest.mark.parametrize("beam_sizes", ["all"], indirect=True)


@pytest.mark.slow
@ALL
def test_a_program_without_t2tlite_gets_what_the_run_gives(model, exported, tmp_path):
    calls = [
        (SENTENCES, {}),
        (SENTENCES[:1], {"beam_size": 1}),
        (SENTENCES, {"beam_size": 8, "alpha": 0.0, "return_beams": 3}),
        (SENTENCES * 9, {"beam_size": 2, "extra_length": 1, "return_beams": 2}),
        ([""], {}),
        ([], {}),
    ]
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(exported / "1"), json.dumps(calls)],
        cwd=tmp_path, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr[-3000:]
    results, pairs = json.loads(result.stdout)
    for actual, (sentences, options) in zip(results, calls, strict=True):
        check(actual, expected(model, sentences, **options))
    np.testing.assert_allclose(
        pairs, model.score(["red cat", ""], ["katze rot", ""]), atol=1e-4
    )


@pytest.mark.slow
@ALL
def test_the_session_of_tensorflow_serving_fills_in_the_defaults(model, exported):
    """Which calls a signature by the names of tensors, and need not feed inputs that
    have a default.
    """
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        graph = tf.compat.v1.saved_model.load(session, ["serve"], str(exported / "1"))
        assert sorted(graph.signature_def["serving_default"].inputs) == ["sentences"]
        signature = graph.signature_def["translate"]
        assert sorted(signature.defaults) == [
            "alpha",
            "beam_size",
            "extra_length",
            "return_beams",
        ]
        outputs = {name: info.name for name, info in signature.outputs.items()}
        names = {name: info.name for name, info in signature.inputs.items()}
        actual = session.run(outputs, {names["sentences"]: SENTENCES})
        wide = session.run(
            outputs,
            {
                names["sentences"]: SENTENCES,
                names["beam_size"]: 8,
                names["return_beams"]: 0,
            },
        )
        signature = graph.signature_def["serving_default"]
        outputs = {name: info.name for name, info in signature.outputs.items()}
        default = session.run(outputs, {signature.inputs["sentences"].name: SENTENCES})
    for outputs, options in (
        (actual, {}),
        (default, {}),
        (wide, {"beam_size": 8, "return_beams": 8}),
    ):
        check(lists(outputs), expected(model, SENTENCES, **options))


def test_concurrent_searches_have_separate_caches(loaded):
    """The cache of keys and values is written in place."""
    batches = [
        [sentence] * count
        for count, sentence in enumerate(SENTENCES * 2, 1)
        if count % 2
    ]

    def decode(batch):
        return {
            name: value.numpy()
            for name, value in loaded.translate(
                tf.constant(batch), return_beams=0
            ).items()
        }

    one_by_one = [decode(batch) for batch in batches]
    with concurrent.futures.ThreadPoolExecutor(4) as threads:
        together = list(threads.map(decode, batches))
    for ours, theirs in zip(one_by_one, together, strict=True):
        np.testing.assert_array_equal(ours["texts"], theirs["texts"])
        np.testing.assert_allclose(ours["scores"], theirs["scores"], rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"beam_size": 3}, r"beam_size must be one of SIZES\. Received:\] \[3\]"),
        (
            {"return_beams": 5},
            r"return_beams must be at most beam_size, or 0 for all\. Received:\] \[5\]",
        ),
        (
            {"alpha": -1.0},
            r"alpha must be at least 0 and at most 10\. Received:\] \[-1\]",
        ),
        ({"extra_length": -1}, r"extra_length must be at least 0\. Received:\] \[-1\]"),
        (
            {"sentences": ["q" * 3000]},
            r"must have at most 2,048 tokens.*Received, tokens:\] \[",
        ),
    ],
)
def test_bad_options_and_long_sentences_are_refused(
    loaded, beam_sizes, options, message
):
    with pytest.raises(
        tf.errors.InvalidArgumentError,
        match=message.replace("SIZES", ", ".join(map(str, beam_sizes))),
    ):
        loaded.translate(**{"sentences": tf.constant(["red cat"]), **options})


def test_scoring_needs_pairs(loaded):
    with pytest.raises(
        tf.errors.InvalidArgumentError,
        match=r"Each source needs a target.*\] \[2\] \[1\]",
    ):
        loaded.score(tf.constant(["a", "b"]), tf.constant(["c"]))


@pytest.mark.slow
@ALL
def test_the_programs_of_readme_and_document_run(exported, monkeypatch, capsys):
    document = (
        (Path(__file__).parents[3] / "docs" / "export.md")
        .read_text()
        .partition("\n## SavedModel\n")[2]
    )
    readme = (exported / "README.md").read_text()
    monkeypatch.chdir(exported)
    for text, output in (
        (readme, "shape=(2, 1)"),
        (document.replace("DIR/1", "1"), "[('', 0.0), ('', -1000000000.0)"),
    ):
        exec(text.partition("```python\n")[2].partition("```")[0], {})
        assert output in capsys.readouterr().out
    assert "`beam_size` (1, 2, 4, 8; by default 4), `alpha` (by default 0.6)" in readme


@pytest.mark.slow
def test_the_command_exports_with_other_defaults(
    tiny_run, tmp_path, capsys, one_search
):
    flags = [
        f"--output_dir={tiny_run.run}",
        f"--export_dir={tmp_path / 'out'}",
        "--format=saved_model",
    ]
    options = {
        "beam_size": 3,
        "alpha": 1.0,
        "return_beams": 2,
        "min_length": 7,
        "no_repeat_ngram_size": 1,
    }
    changes = ",".join(f"{name}={value}" for name, value in options.items())
    assert t2t_export.main([*flags, f"--decode_hparams={changes}"]) == 0
    assert (
        "Equal to the run: n-best lists and log-probabilities of 12 sentences of dev."
        in capsys.readouterr().out
    )
    loaded = tf.saved_model.load(str(tmp_path / "out" / "1"))
    actual, model = (
        lists(loaded.translate(tf.constant(SENTENCES))),
        t2tlite.load(tiny_run.run),
    )
    check(actual, expected(model, SENTENCES, **options))
    assert len(actual[0][0][0].split()) > len(
        expected(model, SENTENCES)[0][0][0].split()
    )


def test_other_weights_are_found(model, tmp_path, monkeypatch, one_search):
    """Changed between writing and reading."""

    original = SavedModelFormat.write

    def write(self, model, folder, plan):
        weight = model.engine.model.target_embedding.weight
        before = weight.numpy()
        weight.assign(before * 1.01)
        try:
            return original(self, model, folder, plan)
        finally:
            weight.assign(before)

    monkeypatch.setattr(SavedModelFormat, "write", write)
    with pytest.raises(
        ValueError, match=r"An export must decode as the run does\. Received for '"
    ):
        model.export(tmp_path / "out", beam_size=1)
    assert not list(tmp_path.iterdir())


SMALL = "hidden_size=16,filter_size=24,num_heads=2,num_hidden_layers=2,max_length=64"
PRE_NORM = "layer_preprocess_sequence=n,layer_postprocess_sequence=da"
VARIANTS = {
    "pre_norm_learned_positions": f"{PRE_NORM},pos=emb,use_target_space_embedding=true",
    "radius_unshared": (
        "self_attention_radius=4,shared_embedding_and_softmax_weights=false,num_encoder_layers=1"
    ),
    "bfloat16": "dtype_policy=mixed_bfloat16,pos=timing_halves",
    "xla": "jit_compile=true,pos=none,attention_key_channels=8",
}


def untrained(
    model: Translator, changes: str, manifest: RunManifest | None = None
) -> Translator:
    """A model with random weights, and vocabulary and data of the trained one."""
    hparams = HParams().override(f"{SMALL},{changes}")
    other = Transformer.from_hparams(
        hparams, model.source_encoder.vocab_size, model.target_encoder.vocab_size
    )
    random = np.random.default_rng(1)
    for variable in other.weights:
        variable.assign_add(0.3 * random.normal(size=variable.shape).astype(np.float32))
    engine = TensorFlowEngine(other, hparams.jit_compile)
    return Translator(
        engine, model.encoders, manifest or model.manifest, "RUN/model.ckpt-7"
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", VARIANTS)
def test_every_model_can_be_exported(model, name, tmp_path, one_search):
    """The command's own verification compares n-best lists and log-probabilities."""
    other = untrained(model, VARIANTS[name])
    loaded = tf.saved_model.load(
        str(other.export(tmp_path / "out", extra_length=5) / "1")
    )
    texts, _, _ = lists(loaded.translate(tf.constant(SENTENCES[:1])))
    assert texts == [other.translate(SENTENCES[:1], extra_length=5)]
    if name == "pre_norm_learned_positions":
        with pytest.raises(
            tf.errors.InvalidArgumentError, match=r"must have at most 63 tokens"
        ):
            loaded.translate(tf.constant(["q" * 64]))


@pytest.mark.slow
def test_a_parser_gives_the_sequences_of_the_beam(model, tmp_path, one_search):
    manifest = dataclasses.replace(model.manifest, task="parsing")
    parser = untrained(model, "pos=timing", manifest)
    loaded = tf.saved_model.load(
        str(parser.export(tmp_path / "out", extra_length=8, beam_size=2) / "1")
    )
    assert not hasattr(loaded, "translate")
    sentence = " the\tcat (of  the house) "
    texts, scores, _ = lists(loaded.parse(tf.constant([sentence])))
    ours = parser.decode(
        [sentence], parser.options(extra_length=8, beam_size=2, return_beams=2)
    )[0]
    ours = sorted(ours, key=lambda parse: -parse.score)
    assert texts == [[parse.sequence for parse in ours]]
    np.testing.assert_allclose(scores, [[parse.score for parse in ours]], atol=1e-4)
    assert (
        "`parse` returns linearised trees as they were decoded"
        in (tmp_path / "out" / "README.md").read_text()
    )
