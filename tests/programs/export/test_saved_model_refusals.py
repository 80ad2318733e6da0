"""What the format saved_model refuses before anything is written."""

from __future__ import annotations

import dataclasses
import sys

import pytest

from t2tlite import registry
from t2tlite.programs.runs.translator import Translator
from t2tlite.tasks.task import TranslationTask

pytestmark = pytest.mark.usefixtures("loaded_once")


def test_a_task_of_the_users_is_refused_by_name(model, tmp_path, monkeypatch):
    class Summaries(TranslationTask):
        name = "summaries"

    monkeypatch.setitem(registry._tasks, "summaries", Summaries)
    manifest = dataclasses.replace(model.manifest, task="summaries")
    other = Translator(model.engine, model.encoders, manifest)
    with pytest.raises(
        ValueError,
        match=(
            r"exports the tasks translation, text_to_text, parsing\. Received: a run of .*"
            r" 'summaries'"
        ),
    ):
        other.export(tmp_path / "out")
    assert not list(tmp_path.iterdir())


def test_sampling_is_refused_by_name(model, tmp_path):
    message = (
        r"format=saved_model supports alpha, .*\. Received: sampling_method=random,"
        r" sampling_temp=0\.5\. Leave"
    )
    with pytest.raises(ValueError, match=message):
        model.export(tmp_path / "out", sampling_method="random", sampling_temp=0.5)
    assert not list(tmp_path.iterdir())


def test_without_tensorflow_text_nothing_is_written(model, tmp_path, monkeypatch):
    """As on Windows; it is known before the model is loaded."""
    monkeypatch.setitem(sys.modules, "tensorflow_text", None)
    message = (
        r"^A SavedModel with a SentencePiece vocabulary needs tensorflow-text, .* a run"
        r" with vocab\.model\. Export on another system or Python, or with"
        r" format=ctranslate2\.$"
    )
    with pytest.raises(ValueError, match=message):
        model.export(tmp_path / "out")
    assert not list(tmp_path.iterdir())
