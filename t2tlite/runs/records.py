"""The records of a run directory; `run_folder.py` reads and writes them."""

from __future__ import annotations

import dataclasses
from typing import Any


@dataclasses.dataclass(frozen=True)
class Environment:
    """What a run was trained with."""

    t2tlite: str
    tensorflow: str
    keras: str
    numpy: str
    python: str
    device: str
    replicas: int


@dataclasses.dataclass(frozen=True)
class RunCost:
    """What training up to a checkpoint has cost."""

    step: int  # the checkpoint's
    steps: int  # optimizer steps counted: `step`, unless the run was begun by a version that did not count
    seconds: float  # spent in the training loop, compilation and saving included, evaluation left out
    device_seconds: float  # the same, times the number of devices
    tokens: int  # source and target tokens trained on, padding left out
    flops: float  # floating-point operations: tokens times the cost of one by formula (training/cost.py)


NO_COST = RunCost(step=0, steps=0, seconds=0.0, device_seconds=0.0, tokens=0, flops=0.0)


@dataclasses.dataclass(frozen=True)
class CostFile(RunCost):
    """cost.json: what the newest checkpoint cost, and what the older ones did that are still there."""

    earlier: tuple[RunCost, ...]


@dataclasses.dataclass(frozen=True)
class BestCheckpoint:
    """The best checkpoint by dev."""

    step: int
    metrics: dict[str, float]  # loss, perplexity, accuracy, and bleu or f1 where dev was decoded


@dataclasses.dataclass(frozen=True)
class DecodeRecord:
    """How a split was decoded, and its scores."""

    split: str
    step: int
    checkpoint: str
    sentences: int
    scores: dict[str, int | float]  # percent, or where a whole number a count
    signature: str
    decode_hparams: dict[str, Any]
    seconds: float

    @property
    def name(self) -> str:
        """The name of the record's files, without ending."""
        return f"{self.split}.{self.step}"
