"""The metrics of a run over its steps, read from the event files that training wrote
for TensorBoard.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

import tensorflow as tf
from google.protobuf.message import DecodeError
from tensorboard.backend.event_processing.event_file_loader import RawEventFileLoader
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.util.tensor_util import make_ndarray

LATEST = 1e11  # seconds since 1970: a later time is damage
# bytes of a record beside its content: length (8), checksums of length and content (4
# each)
RECORD_OVERHEAD = 16


@dataclasses.dataclass
class History:
    """The content of a run's event files."""

    # name -> step -> value
    metrics: dict[str, dict[int, float]] = dataclasses.field(default_factory=dict)
    # of training and evaluation, without the pauses between starts
    seconds: float = 0.0
    # on each thing that cannot be read
    complaints: list[str] = dataclasses.field(default_factory=list)

    def drop_after(self, step: int) -> None:
        """Forgets the values of later steps, and metrics without values."""
        for name, values in list(self.metrics.items()):
            for later in [number for number in values if number > step]:
                del values[later]
            if not values:
                del self.metrics[name]


def read_history(folder: Path) -> History:
    """Reads the event files in a run directory, one for each start of training.

    Training that was killed resumes a few steps back: a later file replaces the values
    of earlier ones after that checkpoint, and its own evaluation's if that was
    repeated. A damaged file is read up to the damage.
    """
    history = History()
    # their names begin with the time
    for path in sorted(folder.glob("events.out.tfevents.*")):
        metrics, times = _read_file(path, history.complaints)
        if not metrics:
            continue
        history.seconds += max(times) - min(times)
        # Training steps follow the checkpoint, which may be evaluated again first.
        firsts = []
        for name, values in metrics.items():
            firsts.append(min(values) - int(name.startswith("train/")))
        history.drop_after(min(firsts))
        for name, values in metrics.items():
            history.metrics.setdefault(name, {}).update(sorted(values.items()))
    return history


def _read_file(
    path: Path, complaints: list[str]
) -> tuple[dict[str, dict[int, float]], list[float]]:
    """The scalars of one file, and the times of its events."""
    metrics: dict[str, dict[int, float]] = {}
    times: list[float] = []
    size, read = path.stat().st_size, 0
    try:
        # stops silently at a wrong length or checksum
        for record in RawEventFileLoader(str(path)).Load():
            read += len(record) + RECORD_OVERHEAD
            event = Event.FromString(record)
            if event.step < 0 or not 0 <= event.wall_time < LATEST:
                raise ValueError(
                    f"an event of step {event.step:,} at {event.wall_time} s"
                )
            times.append(event.wall_time)
            for value in event.summary.value:
                if (
                    value.metadata.plugin_data.plugin_name == "scalars"
                    and not value.tensor.tensor_shape.dim
                ):
                    metrics.setdefault(value.tag, {})[event.step] = float(
                        make_ndarray(value.tensor).item()
                    )
    except (tf.errors.OpError, OSError, ValueError, TypeError, DecodeError) as error:
        complaints.append(f"{path.name} cannot be read: {str(error).splitlines()[0]}")
    else:
        if read < size:
            complaints.append(
                f"{path.name} is damaged, cut short or still being written: the last"
                f" {size - read:,} of {size:,} bytes cannot be read, and what training"
                " recorded there is missing here."
            )
    return metrics, times
