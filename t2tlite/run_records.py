"""The records of a run directory, which `RunFolder` reads and writes as JSON files."""

from __future__ import annotations

import dataclasses

from t2tlite.files.records import Amount, Count

# the metric of dev that chooses the best checkpoint unless dev is decoded
LOSS = "loss"


@dataclasses.dataclass(frozen=True)
class Environment:
    """The software and hardware that trained a run."""

    t2tlite: str
    tensorflow: str
    keras: str
    numpy: str
    python: str
    device: str
    replicas: Count


@dataclasses.dataclass(frozen=True)
class RunCost:
    """The cost of training up to a checkpoint."""

    step: Count  # the checkpoint's
    # optimizer steps counted: `step`, unless cost.json was deleted meanwhile
    steps: Count
    # spent in the training loop, compilation and saving included, evaluation left out
    seconds: Amount
    device_seconds: Amount  # the same, times the number of devices
    tokens: Count  # source and target tokens trained on, padding left out
    # floating-point operations: tokens times the cost of a token by formula
    # (training/cost.py)
    flops: Amount


NO_COST = RunCost(step=0, steps=0, seconds=0.0, device_seconds=0.0, tokens=0, flops=0.0)


@dataclasses.dataclass(frozen=True)
class CostFile:
    """cost.json: the cost of training up to each checkpoint that exists, oldest
    first.
    """

    costs: tuple[RunCost, ...]


@dataclasses.dataclass(frozen=True)
class TrainedWith:
    """What a run's training depends on in addition to its hparams."""

    random_seed: int
    data_sha256: str  # of the training and dev pairs
    replicas: Count
    # of an optimizer step: batch_size x accumulate_steps x replicas
    global_batch_tokens: Count
    # the run or checkpoint whose weights it started from
    warm_start_from: str | None = None


@dataclasses.dataclass(frozen=True)
class DevEvaluation:
    """The result of an evaluation on dev during training."""

    step: Count
    # loss, perplexity, accuracy; also bleu and chrf2, or f1, if dev was decoded
    metrics: dict[str, Amount]
    # the same of the other dev sets, and of all together, by name; None without others
    other_sets: dict[str, dict[str, Amount]] | None = None
    # of the best: the metric by which it was chosen; None in older runs
    criterion: str | None = None

    @property
    def chosen_by(self) -> str:
        """The metric by which the best was chosen."""
        if self.criterion:
            return self.criterion
        return next((name for name in ("bleu", "f1") if name in self.metrics), LOSS)


@dataclasses.dataclass(frozen=True)
class EvaluationsFile:
    """evaluations.json, oldest first."""

    evaluations: tuple[DevEvaluation, ...]


@dataclasses.dataclass(frozen=True)
class DecodeRecord:
    """How a split was decoded, and its scores."""

    split: str
    step: Count
    checkpoint: str
    sentences: Count
    scores: dict[str, int | float]  # percent, or counts, which are whole numbers
    # how they were computed, by score; one for scores that are computed together
    signatures: dict[str, str]
    decode_hparams: dict[str, bool | int | float | str]
    seconds: Amount
    engine: str = "tensorflow"
    quantization: str = ""  # of the weights, if the engine is ctranslate2
    # of the other runs of an ensemble
    other_checkpoints: tuple[str, ...] = ()
    # of the record's files, without ending; taken from the file name when read
    name: str = ""
