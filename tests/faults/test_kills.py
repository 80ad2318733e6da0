"""A run that is killed again and again, from making its data to decoding, ends as one
that is never interrupted.

T2TLITE_KILLS is the number of kills, by default a few; `make test-faults` makes many.
T2TLITE_KILLS_SEED draws others.
"""

import collections
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from lives import PHASES, Life
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tiny_run import PACKAGE, SMALL, tensors

KILLS = int(os.environ.get("T2TLITE_KILLS", "6"))
SEED = int(os.environ.get("T2TLITE_KILLS_SEED", "1"))
EVERY = 3  # steps between evaluations
PROBLEM = ["--t2t_usr_dir=package", "--problem=twenty_words", "--data_dir=data"]
TRAINING = [
    *PROBLEM,
    "--output_dir=run",
    "--hparams_set=twenty_words_tiny",
    f"--hparams={SMALL},batch_size=256,accumulate_steps=2",  # with dropout
    f"--train_steps={EVERY * max(4, KILLS // 2)}",
    f"--local_eval_frequency={EVERY}",
    "--keep_checkpoint_max=4",
    # at evaluations only, so that the same ones remain
    "--save_checkpoints_secs=1000000",
]
CONTINUED = [
    *PROBLEM,
    "--output_dir=continued",
    "--warm_start_from=run",
    f"--train_steps={2 * EVERY}",
    f"--local_eval_frequency={EVERY}",
    "--save_checkpoints_secs=1000000",
]
SPLIT = [
    "--output_dir=run",
    "--checkpoint_path=run/averaged",
    "--decode_hparams=beam_size=2,extra_length=2,batch_size=32",
]
DECODING = [*SPLIT, "--decode_from_file=in.txt"]


class Stage(NamedTuple):
    """A part of the work."""

    command: str
    flags: list[str]
    share: float  # of the kills


STAGES = [
    Stage("t2t_datagen", [*PROBLEM, "--num_processes=1", "--train_size=400"], 0.1),
    Stage("t2t_trainer", TRAINING, 0.35),
    Stage("t2t_avg_checkpoints", ["--output_dir=run", "--n=3"], 0.1),
    Stage("t2t_trainer", CONTINUED, 0.1),
    Stage("t2t_decoder", [*DECODING, "--decode_to_file=out.txt"], 0.1),
    Stage("t2t_decoder", [*DECODING, "--decode_to_file=out.txt.gz"], 0.1),
    Stage("t2t_decoder", [*SPLIT, "--split=test"], 0.15),
]


class Lives:
    """Runs commands in a folder, each in a process of its own."""

    def __init__(self, server: subprocess.Popen[str], folder: Path) -> None:
        self.server = server
        self.work = folder / "work"
        self.output = folder / "out"
        self.events = folder / "events"

    def begin(self) -> None:
        """Makes an empty folder of work: always the same path, which some files of a
        run record.
        """
        shutil.rmtree(self.work, ignore_errors=True)
        (self.work / "package").mkdir(parents=True)
        (self.work / "package" / "__init__.py").write_text(PACKAGE, encoding="utf-8")
        words, draw = re.findall(r'"([a-z]+)": "[a-z]+"', PACKAGE), random.Random(3)
        lines = [
            " ".join(draw.choices(words, k=draw.randint(1, 6))) for _ in range(300)
        ]
        (self.work / "in.txt").write_text("".join(f"{line}\n" for line in lines))

    def live(self, stage: Stage, *moment: object) -> tuple[bool, str, Any]:
        """Runs a command to its end or its kill. Returns whether it was killed, its
        output and what was counted.
        """
        life = Life(
            stage.command,
            stage.flags,
            *map(str, (self.work, self.output, self.events)),
            *moment,
        )
        print(json.dumps(life), file=self.server.stdin, flush=True)
        status = int(self.server.stdout.readline())
        output = self.output.read_text(errors="replace")
        failure = f"{stage} ended with status {status}: {output[-2000:]}"
        assert status in (0, signal.SIGKILL), failure
        return status == signal.SIGKILL, output, json.loads(self.events.read_text())


@pytest.fixture(scope="module")
def lives(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lives]:
    with subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("lives.py"))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONWARNINGS": "ignore"},
    ) as server:
        yield Lives(server, tmp_path_factory.mktemp("kills"))
        server.stdin.close()


def contents(work: Path) -> dict[str, object]:
    """What must be the same, by name: everything but times and TensorFlow's count of
    savings.
    """
    files: dict[str, object] = {}
    for path in work.rglob("*"):
        if not path.is_file() or "package" in path.parts:
            continue
        name = str(path.relative_to(work))
        # a metric of dev that was written twice counts once, as TensorBoard shows
        if path.name.startswith("events."):
            accumulator = EventAccumulator(str(path), size_guidance={"tensors": 0})
            for tag in accumulator.Reload().Tags()["tensors"]:
                for e in accumulator.Tensors(tag) if tag.startswith("dev/") else ():
                    files[f"{tag} {e.step}"] = e.tensor_proto.tensor_content
        elif path.suffix == ".index":
            for key, array in tensors(path.with_suffix("")).items():
                files[f"{name} {key}"] = np.asarray(array).tobytes()
        elif path.suffix == ".json":
            files[name] = without_times(json.loads(path.read_text()))
        else:
            # of a checkpoint: see its index
            files[name] = None if ".data-" in name else path.read_bytes()
    return files


def without_times(record: object) -> object:
    if isinstance(record, list):
        return [without_times(value) for value in record]
    if not isinstance(record, dict):
        return record
    names = [name for name in record if "seconds" not in name]
    return {name: without_times(record[name]) for name in names}


@pytest.mark.slow
def test_a_run_killed_many_times_equals_an_uninterrupted_one(lives, capsys):
    lives.begin()
    events = [lives.live(stage)[2] for stage in STAGES]
    assert set(PHASES.values()) <= {phase for counted in events for phase in counted}
    expected = contents(lives.work)
    lives.begin()
    draw, to_come, phases, resumed = random.Random(SEED), 0.0, collections.Counter(), []
    for stage, possible in zip(STAGES, events, strict=True):
        # with those that came too late in the stage before
        to_come += stage.share * KILLS
        killed = True
        while killed:
            moment: tuple[object, ...] = ()
            if to_come >= 1:
                phase, count = draw.choice(list(possible.items()))
                moment = (
                    phase,
                    draw.randint(1, max(1, count * 3 // KILLS)),
                    draw.choice((0, draw.uniform(0, 0.01))),
                )
            killed, output, counted = lives.live(stage, *moment)
            steps = re.findall(r"resuming from step ([\d,]+)", output)
            resumed += [int(step.replace(",", "")) for step in steps]
            if killed:
                to_come -= 1
                phases[counted] += 1
    files = contents(lives.work)
    different = []
    for name in files.keys() | expected.keys():
        if files.get(name, 0) != expected.get(name, 0):
            different.append(name)
    with capsys.disabled():
        print(f"\nKills by phase: {phases}. Resumed from steps {sorted(set(resumed))}.")
    assert not different, sorted(different)
    assert phases
