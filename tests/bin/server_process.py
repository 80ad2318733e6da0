"""t2t-serve as a process of its own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

resource = pytest.importorskip("resource", reason="not on Windows")

START_S = 180


class Process:
    """t2t-serve as a process of its own, which is killed at the end of the block and
    after so many seconds. `files` limits the files that it may open; `settings` are
    environment variables.
    """

    def __init__(
        self,
        *flags: str,
        seconds: float = START_S,
        files: int | None = None,
        settings: dict[str, str] | None = None,
    ) -> None:
        command = [sys.executable, "-m", "t2tlite.bin.t2t_serve", "--port=0", *flags]
        environment = {
            **os.environ,
            "PYTHONPATH": str(Path(__file__).resolve().parents[2]),
            **(settings or {}),
        }
        self.process = subprocess.Popen(
            command, stderr=subprocess.PIPE, text=True, env=environment
        )
        if files is not None:  # before it has loaded what it serves with
            limits = (files, files)
            resource.prlimit(self.process.pid, resource.RLIMIT_NOFILE, limits)
        self._timer = threading.Timer(seconds, self.process.kill)
        self._lines: list[str] = []

    def __enter__(self) -> Process:
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        self.process.kill()
        self.process.wait()
        self.process.stderr.close()

    def line(self, pattern: str) -> re.Match[str]:
        """The first line from here on in which the pattern is found."""
        for line in self.process.stderr:
            self._lines.append(line)
            match = re.search(pattern, line)
            if match:
                return match
        pytest.fail("".join(self._lines))

    def status(self) -> int:
        """The exit status, when the process has ended."""
        self.process.stderr.read()
        return self.process.wait(START_S)

    def sigterm(self) -> tuple[int, str]:
        """Sends SIGTERM; returns the exit status and what else was printed."""
        self.process.send_signal(signal.SIGTERM)
        printed = self.process.stderr.read()
        return self.process.wait(START_S), printed
