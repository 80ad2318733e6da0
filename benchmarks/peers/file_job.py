"""A file_decoding job for the peers' programs: its weights and batches, and the file of
outputs.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from program import PAD


class FileJob:
    """The job in a file that file_decoding.py wrote."""

    def __init__(self, path: str) -> None:
        with np.load(path) as file:
            self.weights: dict[str, np.ndarray] = {}
            sentences: dict[int, np.ndarray] = {}
            for name in file.files:
                kind, _, rest = name.partition(":")
                if kind == "w":
                    self.weights[rest] = file[name]
                elif kind == "s":
                    sentences[int(rest)] = file[name]
            self.sentences = [sentences[i] for i in range(len(sentences))]
            self.positions: np.ndarray = file["positions"]  # [positions, D]
            self.settings: dict[str, Any] = json.loads(str(file["settings"]))

    def batches(self) -> Iterator[tuple[list[int], np.ndarray]]:
        """Yields sentence numbers and padded ids [R, S], the longest first."""
        order = sorted(
            range(len(self.sentences)), key=lambda i: -len(self.sentences[i])
        )
        size = self.settings["batch"]
        for first in range(0, len(order), size):
            chosen = order[first : first + size]
            rows = [self.sentences[i] for i in chosen]
            ids = np.full((len(rows), max(map(len, rows))), PAD, rows[0].dtype)
            for i, row in enumerate(rows):
                ids[i, : len(row)] = row
            yield chosen, ids


def decode_file(
    translate: Callable[[np.ndarray], list[list[int]]], job: FileJob
) -> None:
    """Translates the job, and writes the ids of each output in a line. `translate` maps
    ids [R, S] to the ids of the best outputs.
    """
    outputs: list[list[int]] = [[] for _ in job.sentences]
    for chosen, ids in job.batches():
        for i, output in zip(chosen, translate(ids), strict=True):
            outputs[i] = output
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        file.writelines(f"{json.dumps(output)}\n" for output in outputs)
