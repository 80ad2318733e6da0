"""The settings of the training loop; each field is a flag of t2t-trainer of the same name."""

from __future__ import annotations

import dataclasses
from typing import Any


def _flag(default: Any, text: str, least: int = 0) -> Any:
    """A field whose flag has this help text, and whose value is at least `least`."""
    return dataclasses.field(default=default, metadata={"help": text, "least": least})


@dataclasses.dataclass(frozen=True)
class LoopConfig:
    """The training loop's settings."""

    train_steps: int = _flag(
        dataclasses.MISSING, "Optimizer steps in total; by default the hparam set's train_steps.", least=1
    )
    eval_steps: int = _flag(0, "Batches in each evaluation on dev; 0 means all of dev.")
    local_eval_frequency: int = _flag(1000, "Steps between evaluations on dev; 0 means only at the end.")
    early_stopping_evals: int = _flag(
        0,
        "Early stopping: stop after this many evaluations in a row without a better one, by dev loss, or with "
        "--eval_bleu by BLEU or F1; 0 means never.",
    )
    save_checkpoints_secs: int = _flag(
        600, "Seconds between checkpoints, evaluation not counted; one is also saved at each evaluation."
    )
    keep_checkpoint_max: int = _flag(20, "Number of newest checkpoints to keep, besides the best on dev.", least=1)
    random_seed: int = _flag(1, "Seed of initial weights, batch order and dropout.")

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value, least = getattr(self, field.name), field.metadata["least"]
            if value < least:
                raise ValueError(f"{field.name} must be at least {least}. Received: {value}.")
        if self.early_stopping_evals and not self.local_eval_frequency:
            raise ValueError(
                "early_stopping_evals requires evaluations during training. Received: local_eval_frequency=0, with "
                f"early_stopping_evals={self.early_stopping_evals}. Raise local_eval_frequency, or leave it out."
            )
