"""What training a run decodes, and records in addition to its checkpoints."""

from __future__ import annotations

import dataclasses
import json
import re
from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf
from tiny_run import SMALL, small, train

import t2tlite
from t2tlite.programs.runs.train import scored_text
from t2tlite.run_folder import RunFolder


def test_sources_that_are_evaluated_but_cannot_be_decoded(tiny_run, load):
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
    assert scored_text(hparams, store, model) == (["a"], ["A"])


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
