"""The figures of a run over its steps, read from the event files that training wrote for TensorBoard."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import tensorflow as tf
from tensorboard.backend.event_processing.event_file_loader import RawEventFileLoader
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.util import tensor_util

RECORD_OVERHEAD = 16  # bytes of a record besides its content: length (8), checksums of length (4) and content (4)


@dataclasses.dataclass
class History:
    """What the event files of a run say.

    Attributes:
        figures: name, such as "dev/loss" -> step -> value, in the order of the steps.
        seconds: the time that training took, evaluations included and pauses between two starts left out.
        files: how many files were read.
        complaints: what could not be read, a sentence each.
    """

    figures: dict[str, dict[int, float]] = dataclasses.field(default_factory=dict)
    seconds: float = 0.0
    files: int = 0
    complaints: list[str] = dataclasses.field(default_factory=list)


def read_history(folder: Path) -> History:
    """Reads the event files in a run's folder, one for each time that the training was started.

    A training that was killed goes on from its last checkpoint, a few steps back: from its first step on, a later file
    replaces what earlier ones say.

    Args:
        folder: the run's folder.

    Returns:
        What could be read. A damaged file counts up to the damage, with a complaint.
    """
    history = History()
    for path in sorted(folder.glob("events.out.tfevents.*")):  # their names begin with the time
        figures, times = _read_file(path, history.complaints)
        history.files += 1
        if not figures:
            continue
        history.seconds += max(times) - min(times)
        start = min(min(by_step) for by_step in figures.values())
        for by_step in history.figures.values():
            for step in [step for step in by_step if step >= start]:
                del by_step[step]
        for name, by_step in figures.items():
            history.figures.setdefault(name, {}).update(by_step)
    history.figures = {name: dict(sorted(by_step.items())) for name, by_step in history.figures.items() if by_step}
    return history


def _read_file(path: Path, complaints: list[str]) -> tuple[dict[str, dict[int, float]], list[float]]:
    """The scalars of one file, and the times of its events."""
    figures: dict[str, dict[int, float]] = {}
    times: list[float] = []
    read = 0
    try:
        for record in RawEventFileLoader(str(path)).Load():  # stops without a word where a checksum is wrong
            read += len(record) + RECORD_OVERHEAD
            event = Event.FromString(record)
            times.append(event.wall_time)
            for value in event.summary.value:
                if value.metadata.plugin_data.plugin_name in ("scalars", "") and value.HasField("tensor"):
                    figures.setdefault(value.tag, {})[event.step] = float(tensor_util.make_ndarray(value.tensor))
    except (tf.errors.OpError, OSError, ValueError, TypeError) as error:
        complaints.append(f"{path.name} cannot be read: {str(error).splitlines()[0]}")
        return figures, times
    size = path.stat().st_size
    if read < size:
        complaints.append(
            f"{path.name} is damaged, cut short or still being written: the last {size - read:,} of {size:,} bytes "
            "cannot be read, and what training noted there is missing here."
        )
    return figures, times
