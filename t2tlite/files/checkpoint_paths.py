"""Paths of checkpoints: `model.ckpt-N`, N being the step, in a run directory or a folder inside it."""

from __future__ import annotations

import re
from pathlib import Path

CHECKPOINT_PREFIX = "model.ckpt"


def list_checkpoints(folder: Path) -> list[str]:
    """The checkpoints directly in a folder, `folder/model.ckpt-N`, oldest first; empty if there is no such folder."""
    name = re.compile(rf"{re.escape(CHECKPOINT_PREFIX)}-\d+\.index")
    found = [str(path.with_suffix("")) for path in folder.glob("*.index") if name.fullmatch(path.name)]
    return sorted(found, key=step_of)


def find_checkpoint(run: Path, path: str | Path | None = None) -> str:
    """The checkpoint to use: `path`, or the newest checkpoint of the run directory `run`.

    `path` is a checkpoint (RUN/model.ckpt-N) or a folder of checkpoints, also relative to `run`. Raises
    FileNotFoundError if there is no such checkpoint.
    """
    named = Path(str(path).removesuffix(".index")).expanduser() if path else run
    for where in (named, run / named):
        if Path(f"{where}.index").exists():
            return str(where)
        if found := list_checkpoints(where):
            return found[-1]
    others = ", ".join(Path(other).name for other in list_checkpoints(run))
    raise FileNotFoundError(
        f"There is no checkpoint at {named}. Expected {CHECKPOINT_PREFIX}-N.index and its data file, as t2t-trainer "
        f"writes them. {f'{run} has {others}.' if others else 'Train first, or name another.'}"
    )


def step_of(path: str) -> int:
    """The N of `model.ckpt-N`; 0 if the name has no step."""
    match = re.search(r"-(\d+)$", path)
    return int(match[1]) if match else 0
