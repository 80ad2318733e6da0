"""The records of a run directory, which `RunFolder` reads and writes as JSON files, and
the identity of a run, which follows from them.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Self

from t2tlite.config import MODEL_FIELDS, HParams
from t2tlite.data.manifest import RunManifest
from t2tlite.files.records import Amount, Count

# the metric of dev that chooses the best checkpoint unless dev is decoded
LOSS = "loss"
SHOWN_DIGITS = 12  # of a SHA-256 in messages


@dataclasses.dataclass(frozen=True)
class Identity:
    """What a run is a run of. A field that is None is not known."""

    problem: str | None = None  # with _rev
    languages: str | None = None  # such as en-de
    vocabulary: str | None = None  # SHA-256, or that of the source's + the target's
    pairs: str | None = None  # SHA-256 of the training and dev pairs
    random_seed: int | None = None
    # of an imported run: the row of the target space embedding
    target_space: int | None = None
    model: Mapping[str, Any] | None = None  # hparams that weights depend on
    # whose loss scale is part of a checkpoint
    mixed_float16: bool | None = None

    @classmethod
    def of(
        cls,
        manifest: RunManifest | None,
        hparams: HParams | None = None,
        random_seed: int | None = None,
    ) -> Self:
        """Returns the identity of a run on this data with these hparams."""
        fields: dict[str, Any] = {"random_seed": random_seed}
        if manifest:
            fields["problem"] = manifest.name
            fields["languages"] = "-".join(manifest.language_pair)
            hashes = [entry.sha256[:SHOWN_DIGITS] for entry in manifest.vocabularies]
            fields["vocabulary"] = "+".join(dict.fromkeys(hashes))
            fields["target_space"] = manifest.target_space
            if manifest.splits:
                fields["pairs"] = manifest.pairs_sha256[:SHOWN_DIGITS]
        if hparams:
            model = {name: getattr(hparams, name) for name in MODEL_FIELDS}
            fields["model"] = {**model, "max_length": hparams.max_positions}
            fields["mixed_float16"] = hparams.dtype_policy == "mixed_float16"
        return cls(**fields)

    def difference(self, other: Self, *names: str) -> str:
        """Describes the first of these fields in which another run differs, with the
        values here and there: "num_heads (2, 4)". Empty if there is none.
        """
        for name in names:
            here = getattr(self, name)
            there = getattr(other, name)
            if None in (here, there) or here == there:
                continue
            if name != "model":
                here, there = {name: here}, {name: there}
            changes = []
            for field, value in here.items():
                if value != there[field]:
                    changes.append(f"{field} ({value}, {there[field]})")
            return ", ".join(changes)
        return ""

    def require_same(
        self,
        other: Self,
        names: Sequence[str],
        required: str,
        received: str,
        advice: str,
    ) -> None:
        """Raises ValueError if another run differs in one of these fields. `received`
        names the two runs: "A and B, which differ".
        """
        if difference := self.difference(other, *names):
            raise ValueError(
                f"{required} Received: {received} in {difference}. {advice}"
            )


@dataclasses.dataclass(frozen=True)
class RunFile:
    """A record that a run may lack, and its file there."""

    file: ClassVar[str]


@dataclasses.dataclass(frozen=True)
class Environment(RunFile):
    """The software and hardware that trained a run."""

    file = "environment.json"

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
class CostFile(RunFile):
    """The cost of training up to each checkpoint that exists, oldest first."""

    file = "cost.json"

    costs: tuple[RunCost, ...]


@dataclasses.dataclass(frozen=True)
class TrainedWith(RunFile):
    """What a run's training depends on in addition to its hparams."""

    file = "training.json"

    random_seed: int
    replicas: Count
    # of an optimizer step: batch_size x accumulate_steps x replicas
    global_batch_tokens: Count
    # the run or checkpoint whose weights it started from
    warm_start_from: str | None = None


@dataclasses.dataclass(frozen=True)
class DevEvaluation(RunFile):
    """The result of an evaluation on dev during training; the file is of the best."""

    file = "best/best.json"

    step: Count
    # loss, perplexity, accuracy; also bleu and chrf2, or f1, if dev was decoded
    metrics: dict[str, Amount]
    # the same of the other dev sets, by name; None without others
    other_sets: dict[str, dict[str, Amount]] | None = None
    # of the best: the metric by which it was chosen; None in older runs
    criterion: str | None = None

    @property
    def chosen_by(self) -> str:
        """The metric by which the best was chosen."""
        if self.criterion:
            return self.criterion
        for name in ("bleu", "f1"):
            if name in self.metrics:
                return name
        return LOSS


OnEvaluation = Callable[[DevEvaluation], object]


@dataclasses.dataclass(frozen=True)
class EvaluationsFile(RunFile):
    """The evaluations on dev, oldest first."""

    file = "evaluations.json"

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
    # half of the 95% confidence interval, by score, if it was asked for
    intervals: dict[str, float] = dataclasses.field(default_factory=dict)
    # of the other runs of an ensemble
    other_checkpoints: tuple[str, ...] = ()
    # of the record's files, without ending; taken from the file name when read
    name: str = ""
