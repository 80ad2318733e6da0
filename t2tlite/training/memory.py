"""What memory training needs: an estimate by formula, and advice if it is too much."""

# R rows, S source length, T target length of the micro-batch that needs the most

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator

import tensorflow as tf

from t2tlite.config import HParams
from t2tlite.machine import available_memory
from t2tlite.training.checkpoints import reason_of
from t2tlite.training.cost import memory_parts
from t2tlite.training.strategy import trains_on_gpu


@dataclasses.dataclass(frozen=True)
class MemoryNeed:
    """The estimated memory of a replica in training; `str` describes it in a line."""

    hparams: HParams
    vocabulary_sizes: tuple[int, int]  # source and target
    # BatchPlan.largest_shapes: rows of the global batch, S, T
    shapes: list[tuple[int, int, int]]
    replicas: int
    available: int | None  # bytes that a replica can have; None if unknown

    @property
    def shape(self) -> tuple[int, int, int]:
        """(R, S, T) of the micro-batch that needs the most."""
        parts = self.replicas * self.hparams.accumulate_steps
        micro_batches = [(-(-rows // parts), s, t) for rows, s, t in self.shapes]
        return max(micro_batches, key=self._bytes)

    @property
    def bytes(self) -> float:
        return self._bytes(self.shape)

    @property
    def fits(self) -> bool:
        """Whether the available memory is more than the estimate, or unknown."""
        return self.available is None or self.bytes < self.available

    def __str__(self) -> str:
        parts = []
        for name, size in self._parts(self.shape).items():
            if size > self.bytes / 100:
                parts.append(f"{name} {_size(size)}")
        rows, source, target = self.shape
        line = (
            f"Memory of a replica, estimated: {_size(self.bytes)} in the largest batch,"
            f" {rows} pairs of {source} + {target} tokens ({', '.join(parts)})"
        )
        if self.available is not None:
            line += f"; {_size(self.available)} are available"
        return f"{line}."

    def advice(self) -> str:
        """A sentence on which hparams to change to need less memory."""
        h = self.hparams
        limit = min(self.bytes, self.available or self.bytes)
        for factor in range(2, h.batch_size // h.max_length + 1):
            size, remainder = divmod(h.batch_size, factor)
            if remainder:
                continue
            steps = h.accumulate_steps * factor
            less = dataclasses.replace(h, batch_size=size, accumulate_steps=steps)
            if dataclasses.replace(self, hparams=less).bytes < limit:
                change = f"batch_size={size}"
                if not h.global_batch_tokens:  # otherwise accumulate_steps is derived
                    change += f" and accumulate_steps={steps}"
                return f"Set {change}: the batches stay the same."
        return (
            "Lower batch_size and max_length, or hidden_size, filter_size and the"
            " number of layers."
        )

    @contextlib.contextmanager
    def explaining_errors(self) -> Iterator[None]:
        """Turns TensorFlow's error into a MemoryError that says what training needs.

        A full disk has the same error. Code that writes files turns it into an OSError
        first (`checkpoints.writing`).
        """
        try:
            yield
        except (tf.errors.ResourceExhaustedError, MemoryError) as error:
            raise MemoryError(
                f"Training needs more memory than there is: {reason_of(error)}."
                f" {self} {self.advice()}"
            ) from error

    def _bytes(self, shape: tuple[int, int, int]) -> float:
        return sum(self._parts(shape).values())

    def _parts(self, shape: tuple[int, int, int]) -> dict[str, float]:
        rows, source, target = shape
        return memory_parts(self.hparams, self.vocabulary_sizes, (source, target), rows)


def device_memory(strategy: tf.distribute.Strategy) -> int | None:
    """Bytes that a device can have now; None if unknown.

    For a GPU what TensorFlow may use; for a CPU what the machine and the process's
    control group have left, divided among its replicas.
    """
    if not trains_on_gpu(strategy):
        available = available_memory()
        if available is None:
            return None
        return available // len(strategy.extended.worker_devices)
    # nothing else in TensorFlow's API knows the limit
    with tf.compat.v1.Session(graph=tf.Graph()) as session:
        gpus = [d for d in session.list_devices() if d.device_type == "GPU"]
    return min([gpu.memory_limit_bytes for gpu in gpus], default=None)


def _size(size: float) -> str:
    return f"{size / 1e6:.0f} MB" if size < 1e9 else f"{size / 1e9:.1f} GB"
