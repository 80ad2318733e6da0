"""Runs that decode together: t2t-decoder --output_dir=A,B and t2tlite.load([A, B])."""

import json
import shutil

import keras
import numpy as np
import pytest
from numpy_softmax import softmax
from tiny_run import change_manifest, last_of_each

import t2tlite
from t2tlite.bin import t2t_decoder, t2t_report
from t2tlite.files.atomic_file import write_text
from t2tlite.files.checkpoint_paths import saving_folder
from t2tlite.models.transformer import Transformer
from t2tlite.run_folder import RunFolder
from t2tlite.training.checkpoints import write_weights

# models decode few sentences here, for which tracing a search takes longer
pytestmark = pytest.mark.usefixtures("eagerly", "loaded_once")

SENTENCES = ["red cat sees dog", "", "fish likes mouse", "black horse bites bird today"]


@pytest.fixture(scope="module")
def runs(tiny_run, tmp_path_factory):
    """The tiny run; the same at an earlier step; and one of another architecture that
    has learned nothing.
    """
    base = tmp_path_factory.mktemp("ensemble")
    ignored = shutil.ignore_patterns("decodes", "model.ckpt-120*", "best")
    earlier = shutil.copytree(tiny_run.run, base / "earlier", ignore=ignored)
    ignored = shutil.ignore_patterns("decodes", "model.ckpt-*", "best")
    other = shutil.copytree(tiny_run.run, base / "other, larger", ignore=ignored)
    values = json.loads((other / "hparams.json").read_text(encoding="utf-8"))
    values |= {"hidden_size": 48, "num_decoder_layers": 2, "pos": "emb"}
    write_text(other / "hparams.json", json.dumps(values))
    folder = RunFolder(other)
    sizes = folder.manifest().vocabulary_sizes
    # of other weights, an output's pieces might not be those that encode its text
    keras.utils.set_random_seed(1)
    model = Transformer.from_hparams(folder.hparams(), *sizes)
    with saving_folder(other) as saving:
        write_weights(model, saving, 7)
    return tiny_run.run, earlier, other


@pytest.fixture
def ensemble(runs, load):
    return load(runs, None)


def decode(runs, *more):
    names = ",".join(map(str, runs))
    return t2t_decoder.main(last_of_each(f"--output_dir={names}", *more))


def mean_log_prob(models, source: str, target: str) -> float:
    """log of the product of mean probabilities, by NumPy on each model's logits."""
    inputs = np.array([[*models[0].source_encoder.encode(source), 1]], np.int32)
    ids = [*models[0].target_encoder.encode(target), 1]
    total = 0.0
    for model in models:
        logits = np.asarray(model.engine.model(inputs, np.array([ids], np.int32)))
        total = total + softmax(logits)[0][np.arange(len(ids)), ids]
    return float(np.log(total / len(models)).sum())


def test_scores_are_logarithms_of_mean_probabilities(runs, ensemble, load):
    models = [load(run, None) for run in runs]
    for source in SENTENCES[::2]:
        for hypothesis in ensemble.n_best(source, 2):
            expected = mean_log_prob(models, source, hypothesis.text)
            assert hypothesis.log_prob == pytest.approx(expected, abs=1e-3)
            given = ensemble.score(source, hypothesis.text)
            assert given == pytest.approx(expected, abs=1e-3)


def test_a_run_with_itself_is_the_run(tiny_run, model):
    twice = t2tlite.load((tiny_run.run, tiny_run.run))
    assert twice.translate(SENTENCES) == model.translate(SENTENCES)
    assert t2tlite.load((tiny_run.run,)).translate(SENTENCES[0]) == model.translate(
        SENTENCES[0]
    )
    assert repr(twice).endswith(f", step 120, run {tiny_run.run},{tiny_run.run}>")


def test_options_of_decoding_work(ensemble):
    source = SENTENCES[0]
    assert ensemble.translate(source, prefix="hund").startswith("hund")
    drawn = {"sampling_method": "random", "sampling_seed": 3}
    assert ensemble.translate(source, **drawn) == ensemble.translate(source, **drawn)
    [aligned] = ensemble.align([source], [ensemble.n_best(source, 1)])[0]
    assert [target for _, target in aligned] == list(range(len(aligned)))
    assert len(aligned) > 1


def test_split_is_recorded_apart_from_the_single_run(tiny_run_copy, runs, capsys):
    assert decode([tiny_run_copy, runs[1]], "--split=dev") == 0
    shown = capsys.readouterr().out
    [path] = (tiny_run_copy / "decodes").glob("dev.120.ensemble2-*.json")
    checkpoints = [f"{tiny_run_copy}/model.ckpt-120", f"{runs[1]}/model.ckpt-80"]
    assert f", checkpoint {', '.join(checkpoints)}, translations " in shown
    folder = RunFolder(tiny_run_copy)
    record = folder.decode_record(path.stem)
    assert [record.checkpoint, *record.other_checkpoints] == checkpoints
    assert f"BLEU {record.scores['BLEU']:.2f}" in shown
    assert len(folder.decoded_lines(record)) == 40
    assert t2t_report.main([f"--output_dir={tiny_run_copy}"]) == 0
    report = (folder.path / "report.md").read_text(encoding="utf-8")
    assert "model.ckpt-120 in an ensemble of 2 runs" in report


def test_files_and_given_pairs(runs, load, tmp_path, capsys):
    source, pairs = tmp_path / "in.txt", tmp_path / "pairs.tsv"
    source.write_text("\n".join(SENTENCES), encoding="utf-8")
    assert decode(runs[:2], f"--decode_from_file={source}") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines == load(runs[:2], None).translate(SENTENCES)
    pairs.write_text(f"{SENTENCES[0]}\t{lines[0]}\n", encoding="utf-8")
    assert decode(runs[:2], f"--score_file={pairs}") == 0
    shown = float(capsys.readouterr().out.split()[0])
    models = [load(run, None) for run in runs[:2]]
    expected = mean_log_prob(models, SENTENCES[0], lines[0])
    assert shown == pytest.approx(expected, abs=1e-3)


def test_a_folder_may_have_a_comma_in_its_name(runs, tmp_path, capsys):
    source = tmp_path / "in.txt"
    source.write_text("red cat sees dog\n", encoding="utf-8")
    assert decode(runs[2:], f"--decode_from_file={source}") == 0
    assert "ensemble" not in capsys.readouterr().err


@pytest.fixture
def copied(tiny_run_copy):
    """A copy of the tiny run to change."""
    return tiny_run_copy


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"problem": "grammar_ende"}, "Received: RUN and COPY, which differ in problem (twenty_words, grammar_ende). Leave"),
        ({"reverse": True}, "differ in problem (twenty_words, twenty_words_rev)."),
        ({"languages": {"source": "en", "target": "fr"}}, "differ in languages (en-de, en-fr)."),
        ({"vocabulary": "0" * 64}, f", {'0' * 12})."),
    ],
)  # fmt: skip
def test_other_data_is_refused(tiny_run, copied, capsys, changes, message):
    if "vocabulary" in changes:
        manifest = json.loads((copied / "manifest.json").read_text(encoding="utf-8"))
        changes = {"vocabulary": manifest["vocabulary"] | {"sha256": "0" * 64}}
    change_manifest(copied, **changes)
    assert decode([tiny_run.run, copied], "--split=dev") == 1
    message = message.replace("RUN", str(tiny_run.run)).replace("COPY", str(copied))
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--engine=ctranslate2"], "such as best. Received: ctranslate2, None."),
        (["--checkpoint_path=a/model.ckpt-3"], "An ensemble needs engine=tensorflow, and a checkpoint_path that each run has"),
        (["--checkpoint_path=120"], "There is no checkpoint at"),
        (["--beam_runner=DirectRunner"], "--beam_runner goes with --decode_from_file."),
    ],
)  # fmt: skip
def test_flags_of_one_run_are_refused(runs, capsys, flags, message):
    assert decode(runs[:2], "--split=dev", *flags) == 1
    assert message in capsys.readouterr().err


def test_absent_run_is_named(runs, capsys):
    assert decode([runs[0], "absent"], "--split=dev") == 1
    assert "Received: absent, which has no hparams.json" in capsys.readouterr().err
    with pytest.raises(FileNotFoundError, match="Received: absent, which"):
        t2tlite.load((runs[0], "absent"))
    with pytest.raises(ValueError, match="one run folder or several"):
        t2tlite.load(())
    with pytest.raises(TypeError, match=r"not '?int"):
        t2tlite.load((runs[0], 3))


def test_what_has_no_meaning_for_several_models(ensemble, tmp_path):
    with pytest.raises(ValueError, match=r"shown of one run\. .* ensemble of 3\."):
        ensemble.attention("red cat")
    with pytest.raises(ValueError, match=r"exported of one run\. .* ensemble of 3\."):
        ensemble.export(tmp_path / "out")
