"""The Dockerfile copies what exists, and starts t2t-serve with flags that it has."""

from __future__ import annotations

import fnmatch
import json
import re
from pathlib import Path

from t2tlite.bin import definitions

ROOT = Path(__file__).resolve().parents[1]
LINES = re.sub(r"\\\n", "", (ROOT / "Dockerfile").read_text(encoding="utf-8")).splitlines()


def arguments(instruction: str) -> list[str]:
    """What follows each instruction of this name."""
    return [line.split(maxsplit=1)[1] for line in LINES if line.startswith(f"{instruction} ")]


def test_what_is_copied_exists_and_is_not_ignored():
    copied = [name for line in arguments("COPY") if "--from" not in line for name in line.split()[:-1]]
    assert copied
    patterns = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    kept = [pattern[1:] for pattern in patterns if pattern.startswith("!")]
    assert "*" in patterns  # everything else stays out, runs and data among it
    for name in copied:
        assert (ROOT / name).exists(), name
        assert any(fnmatch.fnmatch(name, pattern) for pattern in kept), name
    assert sorted(kept) == sorted(name for name in copied if name != "./")


def test_it_starts_the_server_without_the_rights_of_root():
    (entry,), (command,), (user,) = arguments("ENTRYPOINT"), arguments("CMD"), arguments("USER")
    program, *flags = [*json.loads(entry), *json.loads(command)]
    assert f'{program} = "t2tlite.bin.{program.replace("-", "_")}:main"' in (ROOT / "pyproject.toml").read_text()
    names = [flag.removeprefix("--").partition("=")[0] for flag in flags]
    assert set(names) <= set(definitions.DEFINITIONS)
    assert re.fullmatch(r"[1-9]\d*", user)  # a number, so that Kubernetes can see that it is not root
    (port,) = [flag.partition("=")[2] for flag in flags if flag.startswith("--port")]
    assert arguments("EXPOSE") == [port]
    (check,) = arguments("HEALTHCHECK")
    assert f"http://127.0.0.1:{port}/ready" in check
