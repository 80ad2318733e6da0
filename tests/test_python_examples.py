"""The examples of docs/python.md run, and their results have the form shown; their
values depend on the run.
"""

import contextlib
import doctest
import io
import re
from pathlib import Path

import pytest

import t2tlite
from t2tlite.programs.runs.translator import Translator
from t2tlite.tasks.parsing import ParsingTask

DOCUMENT = Path(__file__).resolve().parents[1] / "docs" / "python.md"


def form(shown: str) -> str:
    """What a result shows, with another run's numbers, texts and names made equal."""
    shown = re.sub(r"'[^']*'", "TEXT", shown)
    shown = re.sub(r"(problem|hparams set|run) [\w./-]+", r"\1 NAME", shown)
    return re.sub(r"-?\d[\d,]*(\.\d+)?(e-?\d+)?", "NUMBER", shown).strip()


def run_example(source: str, names: dict[str, object]) -> str:
    """What an example prints, or its error as the document shows it."""
    out = io.StringIO()
    try:
        with contextlib.redirect_stdout(out):
            exec(compile(source, "<example>", "single"), names)
    except ValueError as error:
        return f"Traceback (most recent call last):\n{type(error).__name__}: {error}"
    return out.getvalue()


@pytest.fixture
def loads(tiny_run, load, monkeypatch, tmp_path) -> None:
    """Lets examples load the tiny run, as that of a parser too, and write into a folder
    of their own.
    """
    model = load(tiny_run.run, None)
    parser = Translator(
        model.engine, model.encoders, model.manifest, model.checkpoint, model.run
    )
    parser.task = ParsingTask()
    monkeypatch.setattr(
        t2tlite,
        "load",
        lambda run, checkpoint_path=None: parser if str(run).endswith("gum") else model,
    )
    monkeypatch.chdir(tmp_path)


def test_examples_of_the_document(loads):
    names: dict[str, object] = {}
    examples = doctest.DocTestParser().get_examples(
        DOCUMENT.read_text(encoding="utf-8")
    )
    assert len(examples) >= 15
    for example in examples:
        assert form(run_example(example.source, names)) == form(example.want), (
            example.source
        )
    assert sorted(path.name for path in Path().iterdir()) == [
        "attention.html",
        "cross.svg",
        "data",
    ]
