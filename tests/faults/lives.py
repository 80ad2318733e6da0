"""A process that has imported everything and forks one child for each command: a life,
which ends or is killed.

Importing TensorFlow takes seconds and forking none; nothing of TensorFlow may have run
before the fork. A request is a line of JSON, `Life`; the answer, when the child has
ended, is its status as `os.wait` returns it.

In the child every call and return of a function of the library is an event of the phase
it happens in, and every file operation that Python makes one of the file operations in
that phase. The child sends itself SIGKILL at the event asked for, or some time after
it, when TensorFlow may be in the middle of anything.
"""

from __future__ import annotations

import collections
import importlib
import json
import os
import signal
import sys
import threading
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import t2tlite

COMMANDS = ("t2t_datagen", "t2t_trainer", "t2t_avg_checkpoints", "t2t_decoder")
PHASES = {  # function -> what happens in it; the innermost counts
    "read_corpus": "reading text",
    "learn_vocabulary": "learning the vocabulary",
    "write_shards": "writing shards",
    "train": "training",
    "_save": "saving",
    "evaluate_and_keep": "evaluating",
    "save_best": "keeping the best",
    "average_checkpoints": "averaging",
    "decode_file": "decoding",
    "decode_split": "decoding a split",
}
FILE_OPERATIONS = {
    "open",
    "replace",
    "rename",
    "fsync",
    "unlink",
    "mkdir",
    "rmdir",
    "truncate",
}
LIBRARY = str(Path(t2tlite.__file__).parent)
COUNTED = tuple(
    f"{LIBRARY}/{package}/"
    for package in ("data", "decoding", "files", "programs", "training")
)


class Life(NamedTuple):
    """One command, and when it is killed."""

    command: str  # one of COMMANDS
    argv: list[str]
    folder: str  # the working directory
    output: str  # the file for stdout and stderr
    # the file for the number of events by phase, or, of a life that was killed, its
    # last phase
    events: str
    phase: str = ""  # it is killed in this phase, or not at all
    event: int = 0  # at the event of this number, from 1
    delay: float = 0.0  # this many seconds after it

    def live(self) -> int:
        """What a child does: runs the command and returns its exit status."""
        os.chdir(self.folder)
        output = os.open(self.output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(output, 1)
        os.dup2(output, 2)
        counts: collections.Counter[str] = collections.Counter()

        def count(frame: FrameType, event: str, function: Any) -> None:
            if event.startswith("c_"):
                if function.__name__ not in FILE_OPERATIONS:
                    return
            elif not frame.f_code.co_filename.startswith(COUNTED):
                return
            phase = self.phase_of(frame) + (": files" if event.startswith("c_") else "")
            counts[phase] += 1
            if phase == self.phase and counts[phase] == self.event:
                (
                    threading.Timer(self.delay, self.kill).start()
                    if self.delay
                    else self.kill(phase)
                )

        sys.setprofile(count)
        try:
            return importlib.import_module(f"t2tlite.bin.{self.command}").main(
                self.argv
            )
        finally:
            sys.setprofile(None)
            Path(self.events).write_text(json.dumps(counts))

    def kill(self, phase: str = "") -> None:
        """Ends this process as nothing can prevent."""
        frame = sys._current_frames()[threading.main_thread().ident or 0]
        Path(self.events).write_text(json.dumps(phase or self.phase_of(frame)))
        os.kill(os.getpid(), signal.SIGKILL)

    def phase_of(self, innermost: FrameType) -> str:
        """What is being done, by the active functions of the library."""
        frame: FrameType | None = innermost
        while frame:
            if frame.f_code.co_name in PHASES and frame.f_code.co_filename.startswith(
                LIBRARY
            ):
                return PHASES[frame.f_code.co_name]
            frame = frame.f_back
        return f"start or end of {self.command}"


def main() -> None:
    """Imports, then serves requests."""
    library = (
        "programs.runs.train",
        "programs.runs.load",
        "programs.bulk.decode_split",
        "data.generate",
    )
    for name in (*library, *(f"bin.{name}" for name in COMMANDS)):
        importlib.import_module(f"t2tlite.{name}")
    import tensorflow_text  # noqa: F401

    from t2tlite.data import encode_shards
    from t2tlite.programs.bulk import decode_file, decode_split

    encode_shards.CHUNK_PAIRS = 50  # several shards
    decode_file.FILE_WINDOW = decode_split.SPLIT_WINDOW = 32
    for line in sys.stdin:
        life = Life(*json.loads(line))
        child = os.fork()
        if not child:
            status = 70
            try:
                status = life.live()
                sys.stdout.flush()
            finally:
                os._exit(status)
        print(os.waitpid(child, 0)[1], flush=True)


if __name__ == "__main__":
    main()
