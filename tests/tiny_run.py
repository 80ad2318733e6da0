"""A language of twenty words, as a user's package, and a run that has learned to
translate it.
"""

import contextlib
import io
import json
import os
import shutil
from pathlib import Path
from typing import NamedTuple

import pytest
import tensorflow as tf
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from t2tlite.bin import t2t_trainer
from t2tlite.files.atomic_file import write_text
from t2tlite.files.own_files import only_process
from t2tlite.run_folder import RunFolder

PACKAGE = '''"""Problems and hparams of a user."""

import dataclasses
import random

from t2tlite import registry
from t2tlite.config import HParams
from t2tlite.data.problem import Problem

NOUNS = {"cat": "katze", "dog": "hund", "mouse": "maus", "bird": "vogel", "fish": "fisch", "horse": "pferd"}
COLOURS = {"red": "rot", "green": "gruen", "blue": "blau", "white": "weiss", "black": "schwarz"}
VERBS = {"sees": "sieht", "hears": "hoert", "likes": "mag", "seeks": "sucht", "bites": "beisst"}
ADVERBS = {"today": "heute", "often": "oft", "never": "nie", "now": "jetzt"}
WORDS = {**NOUNS, **COLOURS, **VERBS, **ADVERBS}


@registry.register_problem
@dataclasses.dataclass(frozen=True)
class TwentyWords(Problem):
    """A toy language: the colour goes behind its noun, and the verb to the end."""

    vocab_size: int = 500
    train_size: int = 1500
    source_language = "en"
    target_language = "de"

    def pairs(self, split, tmp_dir):
        draw = random.Random(split)
        for _ in range(self.train_size if split == "train" else 40):
            subject, object_ = draw.choice(list(NOUNS)), draw.choice(list(NOUNS))
            colours = draw.sample(list(COLOURS), draw.randint(0, 1))
            verb, adverbs = draw.choice(list(VERBS)), draw.sample(list(ADVERBS), draw.randint(0, 1))
            source = [*colours, subject, verb, object_, *adverbs]
            target = [subject, *colours, *adverbs, object_, verb]
            yield " ".join(source), " ".join(WORDS[word] for word in target)


@registry.register_hparams
def twenty_words_tiny():
    """Very small layers."""
    return HParams(
        hidden_size=32,
        filter_size=64,
        num_hidden_layers=1,
        num_heads=2,
        batch_size=1024,
        max_length=32,
        learning_rate_constant=0.4,
        learning_rate_warmup_steps=60,
        train_steps=120,
    )
'''


class TinyRun(NamedTuple):
    """What the commands have made."""

    package: Path  # for --t2t_usr_dir
    data: Path  # for --data_dir
    # for --output_dir; 120 steps, evaluated every 40. Read only: a test that changes it
    # copies it
    run: Path
    stdout: str  # of the training
    stderr: str


SMALL = "hidden_size=8,filter_size=8,num_heads=1,layer_prepostprocess_dropout=0.2"


def session_folder(factory: pytest.TempPathFactory) -> Path:
    """A folder that all processes of pytest-xdist share, and that is new in each
    session of tests.
    """
    base = factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


def user_package(factory: pytest.TempPathFactory) -> Path:
    """The folder of the package: one for all tests, since a process can import it only
    once.
    """
    package = session_folder(factory) / "twenty_words_package"
    write_text(package / "__init__.py", PACKAGE)
    return package


def shared_tiny_run(factory: pytest.TempPathFactory) -> TinyRun:
    """The run, trained by the first process that asks for it: tests ask for the fixture
    `tiny_run`.

    Each process has a copy of its own, which its tests decode into, with the copy's
    paths instead of the original's. If training fails, it fails in each process.
    """
    trained, folder = (
        session_folder(factory) / "trained_tiny_run",
        factory.mktemp("tiny_run") / "copy",
    )
    with only_process(
        session_folder(factory) / "tiny_run_lock", "train the tiny run", wait=True
    ):
        if not (trained / "stderr").exists():
            shutil.rmtree(trained, ignore_errors=True)
            train_tiny_run(
                TinyRun(
                    user_package(factory), trained / "data", trained / "run", "", ""
                )
            )
    shutil.copytree(trained, folder)
    for path in (
        folder / name
        for name in ("run/flags.txt", "run/manifest.json", "stdout", "stderr")
    ):
        path.write_text(
            path.read_text(encoding="utf-8").replace(str(trained), str(folder)),
            encoding="utf-8",
        )
    shown = (
        (folder / name).read_text(encoding="utf-8") for name in ("stdout", "stderr")
    )
    return TinyRun(user_package(factory), folder / "data", folder / "run", *shown)


def train_tiny_run(tiny_run: TinyRun) -> None:
    """Trains the run, and writes what it shows to files beside it: at the end, that of
    standard error.
    """
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        more = "--generate_data", "--num_processes=1", "--local_eval_frequency=40"
        status = t2t_trainer.main(trainer_flags(tiny_run, tiny_run.run, *more))
    assert status == 0, err.getvalue()
    write_text(tiny_run.run.parent / "stdout", out.getvalue())
    write_text(tiny_run.run.parent / "stderr", err.getvalue())


def trainer_flags(tiny_run: TinyRun, output_dir: Path, *flags: str) -> list[str]:
    """The flags of t2t-trainer; a flag given again in `flags` counts."""
    return last_of_each(
        f"--t2t_usr_dir={tiny_run.package}",
        "--problem=twenty_words",
        "--hparams_set=twenty_words_tiny",
        f"--data_dir={tiny_run.data}",
        f"--output_dir={output_dir}",
        *flags,
    )


def last_of_each(*flags: str) -> list[str]:
    """The flags without those that a later one replaces: a command refuses two values
    of a flag.
    """
    return list({flag.partition("=")[0]: flag for flag in flags}.values())


def train(tiny_run: TinyRun, output_dir: Path, *flags: str) -> int:
    """Calls t2t-trainer in this process and returns its exit status."""
    return t2t_trainer.main(trainer_flags(tiny_run, output_dir, *flags))


def change_manifest(run: Path, **changes: object) -> None:
    """Changes entries of a run's manifest.json; None deletes one."""
    manifest = json.loads((run / "manifest.json").read_text(encoding="utf-8")) | changes
    kept = {name: value for name, value in manifest.items() if value is not None}
    write_text(run / "manifest.json", json.dumps(kept))


def tensors(checkpoint: str | Path) -> dict:
    """Every array of a checkpoint by name, TensorFlow's count of savings left out."""
    reader = tf.train.load_checkpoint(str(checkpoint))
    names = [
        name
        for name in reader.get_variable_to_shape_map()
        if "save_counter" not in name and "OBJECT" not in name
    ]
    return {name: reader.get_tensor(name) for name in names}


def small(tiny_run, output_dir, *more):
    """Trains a very small model with dropout; returns the exit status."""
    return train(tiny_run, output_dir, f"--hparams={SMALL}", *more)


def events(folder):
    """Every scalar in a run's event files: name -> steps."""
    steps: dict[str, list[int]] = {}
    # oldest first
    for path in sorted(
        folder.glob("events.*"), key=lambda path: path.stat().st_mtime_ns
    ):
        accumulator = EventAccumulator(str(path), size_guidance={"tensors": 0})
        accumulator.Reload()
        for name in accumulator.Tags()["tensors"]:
            steps.setdefault(name, []).extend(
                event.step for event in accumulator.Tensors(name)
            )
    return steps


def checkpoint_names(folder):
    """The checkpoints of a run, oldest first: ["model.ckpt-40", ...]."""
    return sorted(
        (path.stem for path in folder.glob("model.ckpt-*.index")),
        key=lambda name: int(name.split("-")[1]),
    )


def before_writing(monkeypatch, kind, action):
    """Calls an action before a run writes a record of a kind."""
    write = RunFolder.write

    def wrapped(run, record):
        if isinstance(record, kind):
            action()
        write(run, record)

    monkeypatch.setattr(RunFolder, "write", wrapped)
