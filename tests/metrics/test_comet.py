"""COMET, by a package of its name and interface; the real one is not run here."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from t2tlite.metrics.corpus_metrics import MetricOptions, make_metrics

# The interface of unbabel-comet 2.2: download_model, load_from_checkpoint, predict.
# Its score is the share of the reference's words that are in the translation, halved
# if the source is part of that.
PACKAGE = """
import types

def download_model(model, saving_directory=None, local_files_only=False):
    if model != "Unbabel/wmt22-comet-da":
        raise KeyError(f"Model '{model}' not supported by COMET.")
    return "downloaded/checkpoints/model.ckpt"

def load_from_checkpoint(path, reload_hparams=False, strict=False, local_files_only=False):
    return Model(path)

class Model:
    def __init__(self, path):
        self.path = str(path)

    def predict(self, samples, batch_size=16, gpus=1, mc_dropout=0, progress_bar=True,
                accelerator="auto", num_workers=None, length_batching=True):
        assert self.path.endswith(".ckpt") and gpus == 0
        scores = []
        for sample in samples:
            wanted = sample["ref"].split()
            score = sum(word in sample["mt"].split() for word in wanted) / len(wanted)
            scores.append(score / 2 if sample["src"] in sample["mt"] else score)
        return types.SimpleNamespace(scores=scores, system_score=sum(scores) / len(scores))
"""
TORCH = "class cuda:\n    is_available = staticmethod(lambda: False)\n"


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """The folder in which the packages are installed."""
    folder = tmp_path / "packages"
    for name, text in (("comet", PACKAGE), ("torch", TORCH)):
        (folder / name).mkdir(parents=True)
        (folder / name / "__init__.py").write_text(text, encoding="utf-8")
    metadata = folder / "unbabel_comet-2.2.4.dist-info" / "METADATA"
    metadata.parent.mkdir()
    metadata.write_text("Metadata-Version: 2.1\nName: unbabel-comet\nVersion: 2.2.4\n")
    return folder


@pytest.fixture
def bleu(package, tmp_path):
    """Runs t2t-bleu on three translations where the package is installed."""
    texts = {
        "src": "ein Hund\neine Katze\nein Haus",
        "out": "a dog\nthe cat\nein Haus",
        "old": "x\ny\nz",
        "ref": "a dog\na cat\nein Haus",
        "two.ckpt": "",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text, encoding="utf-8")

    def run(*flags: str) -> subprocess.CompletedProcess:
        program = (
            "import sys; from t2tlite.bin import t2t_bleu as t; sys.exit(t.main())"
        )
        argv = ["--translation=out", "--reference=ref", "--metrics=comet", *flags]
        return subprocess.run(
            [sys.executable, "-c", program, *argv],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(package)},
        )

    return run


def test_score_and_signature(bleu):
    """By hand: (2/2 + 1/2 + 2/2 halved) / 3 = 2/3."""
    done = bleu("--source=src")
    expected = "COMET|nrefs:1|model:Unbabel/wmt22-comet-da|version:2.2.4 = 66.67\n"
    assert (done.stdout, done.returncode) == (expected, 0), done.stderr


def test_two_systems_are_compared_with_a_model_of_a_file(bleu):
    done = bleu("--source=src", "--compare=old", "--comet_model=two.ckpt")
    assert done.returncode == 0, done.stderr
    assert "COMET   0.00 (0.00 ± 0.00)  66.67 (" in done.stdout
    assert (
        "COMET|nrefs:1|bs:1000|seed:12345|model:two.ckpt|version:2.2.4" in done.stdout
    )


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ([], "comet needs one source and one reference for each translation. Received: no sources, 1 references."),
        (["--source=src", "--reference=out"], "Received: sources, 2 references. Give"),
        (["--source=src", "--comet_model=mine"],
         "Received: mine: \"Model 'mine' not supported by COMET.\"."),
        (["--source=two.ckpt"], "two.ckpt"),
    ],
)  # fmt: skip
def test_what_it_cannot_score(bleu, flags, message):
    done = bleu(*flags)
    assert (done.returncode, done.stdout) == (1, "")
    assert message in done.stderr


def test_missing_package():
    with pytest.raises(ValueError, match=r"pip install 't2tlite\[comet\]'$"):
        make_metrics(["bleu", "comet"], MetricOptions())
