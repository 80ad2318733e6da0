"""What the training loop is given: its settings, a model with its data, and hooks."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from t2tlite.checked_fields import (
    MAX_SEED,
    CheckedFields,
    checked_field,
    required_field,
)

if TYPE_CHECKING:
    import tensorflow as tf

    from t2tlite.data.token_store import TokenStore
    from t2tlite.run_folder import RunFolder
    from t2tlite.tasks.task import Score
    from t2tlite.types import Seq2SeqModel


@dataclasses.dataclass(frozen=True)
class TrainingSetup:
    """A model, the data to train it on, and the run directory that keeps the result."""

    strategy: tf.distribute.Strategy
    # built in the strategy's scope, with the hparams of its training
    model: Seq2SeqModel
    train_store: TokenStore
    # by name; the first one decides which checkpoint is the best
    dev_sets: Mapping[str, TokenStore]
    # gets checkpoints, costs and TensorBoard events
    run: RunFolder
    target_vocab_size: int
    # floating-point operations to train on one token, for cost.json
    flops_per_token: float = 0.0
    # of each corpus in `train_store`, for the hparam corpus_weights
    corpus_pairs: Sequence[int] = ()
    # a checkpoint whose weights a new run starts from; None for random weights, and for
    # a run that resumes
    warm_start: str | None = None


@dataclasses.dataclass(frozen=True)
class Hooks:
    """What a program adds to training."""

    # decodes the dev sets of these names, and returns their scores; that of the first
    # then chooses the best checkpoint
    score: Callable[[Sequence[str]], Mapping[str, Score]] | None = None
    # called before the first step; writes what the run is trained with
    begin: Callable[[], None] | None = None


@dataclasses.dataclass(frozen=True)
class LoopOptions(CheckedFields):
    """The training loop's settings that have defaults."""

    called = "train"
    largest = 2**63 - 1  # some take a very large number for "never"

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
            raise ValueError(
                "early_stopping_evals requires evaluations during training. Received:"
                " local_eval_frequency=0."
            )


@dataclasses.dataclass(frozen=True, kw_only=True)
class LoopConfig(LoopOptions):
    """The training loop's settings."""

    train_steps: int = required_field(int, "Optimizer steps in total.", low=1)
