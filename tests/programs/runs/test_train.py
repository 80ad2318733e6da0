"""What training a run records in addition to its checkpoints: samples in TensorBoard,
and the environment.
"""

from __future__ import annotations

import dataclasses
import json
import re
from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tiny_run import SMALL, events, small, tensors, train, trainer_flags

import t2tlite
from t2tlite.bin import t2t_trainer
from t2tlite.decoding.text_decoder import Decoded
from t2tlite.programs.runs.dev_decoder import DevScorer, SampleDecoder, scored_text
from t2tlite.programs.runs.load import run_dataset
from t2tlite.run_folder import RunFolder
from t2tlite.tasks.task import Score
from t2tlite.training import dev_sets


@pytest.mark.slow
def test_samples_in_tensorboard_leave_training_as_it_is(
    tiny_run, tmp_path, monkeypatch
):
    """Decoded at each evaluation, with dropout in training: the weights are those of a
    run without samples.
    """
    without, sampled = tmp_path / "without", tmp_path / "sampled"
    how = ["--train_steps=6", "--local_eval_frequency=3"]
    assert small(tiny_run, without, *how) == 0
    monkeypatch.setattr(dev_sets, "SAMPLES_AFTER_SECONDS", -1.0)
    assert (
        t2t_trainer.main(trainer_flags(tiny_run, sampled, f"--hparams={SMALL}", *how))
        == 0
    )
    expected, actual = (
        tensors(without / "model.ckpt-6"),
        tensors(sampled / "model.ckpt-6"),
    )
    for name in expected:
        np.testing.assert_array_equal(actual[name], expected[name], err_msg=name)

    (path,) = sampled.glob("events.*")
    accumulator = EventAccumulator(str(path), size_guidance={"tensors": 0})
    accumulator.Reload()
    shown = {
        event.step: tf.make_ndarray(event.tensor_proto)
        for event in accumulator.Tensors("samples")
    }
    assert list(shown) == [3, 6]
    assert shown[6].shape == (7, 3)
    assert shown[6][0].tolist() == [b"source", b"output", b"reference"]
    dev = run_dataset(RunFolder(tiny_run.run)).store("dev")
    assert shown[6][1, 0].decode() == dev.source_text()[0]
    assert shown[6][6, 2].decode() == dev.target_text()[33]  # 5/6 of 40
    assert "samples" not in events(without)


def test_dev_source_too_long_to_decode_is_no_sample(tiny_run, load):
    """It is known before training; 4,096 tokens were once the end of a training at its
    first evaluation.
    """
    model = load(tiny_run.run, None)
    sources = ["red cat sees dog", "cat " * 5000, "fish likes mouse"]
    lengths = np.array(
        [len(ids) + 1 for ids in model.source_encoder.encode_batch(sources)]
    )
    assert lengths[1] > 4096
    store = SimpleNamespace(
        source_lengths=lengths,
        target_lengths=np.array([2, 2, 2]),
        source_text=lambda: sources,
        target_text=lambda: ["a", "b", "c"],
    )
    setup = SimpleNamespace(
        model=model.engine.model,
        dev_sets={"dev": store},
        deciding_dev_set=store,
        strategy=tf.distribute.get_strategy(),
    )
    dataset = SimpleNamespace(
        encoders=(model.source_encoder, model.target_encoder), manifest=model.manifest
    )
    samples = SampleDecoder(setup, dataset).samples()
    assert [(source, reference) for source, _, reference in samples] == [
        (sources[0], "a"),
        (sources[2], "c"),
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(model), "decode_and_score", lambda _, *pairs: decoded(pairs))
        scores = DevScorer(setup, model).score(["dev"])
    assert scores == {"dev": Score("BLEU", {"BLEU": 7.0}, {"BLEU": "signature"})}


def decoded(arguments):
    """A BLEU of 7 if the sources and references are those of the short pairs."""
    assert arguments[:2] == (["red cat sees dog", "fish likes mouse"], ["a", "c"])
    return Decoded([], Score("BLEU", {"BLEU": 7.0}, {"BLEU": "signature"}))


def test_sources_that_are_evaluated_but_cannot_be_decoded(tiny_run, load, capsys):
    """A model trained on pairs of 4,096 tokens evaluates what it cannot decode."""
    model = load(tiny_run.run, None)
    hparams = dataclasses.replace(
        model.engine.model.hparams, max_length=4096, batch_size=4096
    )
    store = SimpleNamespace(
        source_lengths=np.array([2049, 2050, 4097]),
        target_lengths=np.array([9, 9, 9]),
        source_text=lambda: ["a", "b", "c"],
        target_text=lambda: ["A", "B", "C"],
    )
    assert scored_text(hparams, store, model, "dev") == (["a"], ["A"])
    assert (
        "Not decoded, and not part of the score: 1 source of dev of more than 2,048"
        in capsys.readouterr().err
    )
    store.source_lengths = np.array([2050, 2050, 4097])
    with pytest.raises(ValueError, match=r"at most 2,048 tokens\. Received: none in d"):
        scored_text(hparams, store, model, "dev")


def test_environment_is_recorded(tiny_run):
    recorded = json.loads((tiny_run.run / "environment.json").read_text())
    assert recorded["tensorflow"] == tf.__version__
    assert recorded["replicas"] == 1
    assert re.match(r"\S+ CPU, \d+ cores$", recorded["device"])


@pytest.mark.slow
def test_restricted_self_attention_trains_and_decodes(tiny_run, tmp_path, capsys):
    """Through the commands' own path; afterwards its radius can no longer change."""
    run = tmp_path / "run"
    restricted = f"--hparams={SMALL},self_attention_radius=2"
    assert (
        train(tiny_run, run, restricted, "--train_steps=1", "--local_eval_frequency=0")
        == 0
    )
    assert RunFolder(run).hparams().self_attention_radius == 2
    (translation,) = t2tlite.load(run).translate(["red cat sees dog"], beam_size=1)
    assert isinstance(translation, str)
    capsys.readouterr()
    assert small(tiny_run, run, "--train_steps=2") == 1
    assert "which differs in self_attention_radius (" in capsys.readouterr().err
