"""The settings of the training loop. TensorFlow is not needed."""

import dataclasses

from t2tlite.checked_fields import (
    MAX_SEED,
    CheckedFields,
    checked_field,
    required_field,
)


@dataclasses.dataclass(frozen=True)
class LoopOptions(CheckedFields):
    """The training loop's settings that have defaults."""

    called = "train"

    eval_steps: int = checked_field(
        0, "Batches in each evaluation on dev; 0 means all of dev.", low=0
    )
    local_eval_frequency: int = checked_field(
        1000, "Steps between evaluations on dev; 0 means only at the end.", low=0
    )
    early_stopping_evals: int = checked_field(
        0,
        "Early stopping: stop after this many evaluations in a row without a better"
        " one, by dev loss, or with --eval_bleu by BLEU or F1; 0 means never.",
        low=0,
    )
    save_checkpoints_secs: int = checked_field(
        600,
        "Seconds between checkpoints, evaluation not counted; one is also saved at each"
        " evaluation.",
        low=0,
    )
    keep_checkpoint_max: int = checked_field(
        20, "Number of newest checkpoints to keep, besides the best on dev.", low=1
    )
    random_seed: int = checked_field(
        1, "Seed of initial weights, batch order and dropout.", low=0, high=MAX_SEED
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.early_stopping_evals and not self.local_eval_frequency:
            raise ValueError("early_stopping_evals requires local_eval_frequency.")


@dataclasses.dataclass(frozen=True, kw_only=True)
class LoopConfig(LoopOptions):
    """The training loop's settings."""

    train_steps: int = required_field(int, "Optimizer steps in total.", low=1)
