"""Averages checkpoints of a run, and compares the average on dev with the newest and
the best checkpoint.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import tensorflow as tf

from t2tlite.data.dataset import Dataset
from t2tlite.files.checkpoint_paths import list_checkpoints, remove_unfinished, step_of
from t2tlite.files.own_files import only_process
from t2tlite.programs.runs.keras_run import built_model
from t2tlite.run_folder import RunFolder
from t2tlite.training.checkpoints import (
    average_checkpoints,
    reason_of,
    restore_weights,
)
from t2tlite.training.evaluation import make_evaluation
from t2tlite.types import Seq2SeqModel

AVERAGE = "the average"

# "the newest (step 9)", "the best (step 6)" or AVERAGE -> its loss on dev
Losses = Mapping[str, float]


class Average(NamedTuple):
    """An averaged checkpoint, and how it compares with others."""

    path: str
    losses: Losses  # empty without data


def average_run(
    folder: RunFolder, checkpoints: Sequence[str], dataset: Dataset | None
) -> Average:
    """Averages checkpoints of a run, oldest first, into RUN/averaged, and evaluates the
    newest, the best and the average on the first dev set of `dataset`, unless that is
    None.

    Raises ValueError if another process is averaging them, and MemoryError if there is
    not enough memory to evaluate; the average is then written.
    """
    model = built_model(folder, checkpoints[-1])
    with only_process(folder.averaged_folder, "average a run's checkpoints"):
        remove_unfinished(folder.averaged_folder)
        path = average_checkpoints(model, checkpoints, folder.averaged_folder)
    if dataset is None:
        return Average(path, {})
    newest = folder.checkpoints()[-1]
    candidates = {f"the newest (step {step_of(newest):,})": newest}
    for best in list_checkpoints(folder.best_folder)[-1:]:
        if step_of(best) != step_of(newest):
            candidates[f"the best (step {step_of(best):,})"] = best
    candidates[AVERAGE] = path
    try:
        return Average(path, dev_losses(model, candidates, dataset))
    except tf.errors.ResourceExhaustedError as error:
        raise MemoryError(
            f"The average is in {path}. There is not enough memory to measure it:"
            f" {reason_of(error)}."
        ) from error


def dev_losses(
    model: Seq2SeqModel, candidates: Mapping[str, str], dataset: Dataset
) -> Losses:
    """The losses of checkpoints on the dev set that chooses the best."""
    split = next(iter(dataset.manifest.dev_sets))
    strategy = tf.distribute.get_strategy()
    evaluate = make_evaluation(strategy, model, dataset.store(split))
    losses = {}
    for candidate, path in candidates.items():
        restore_weights(model, path)
        losses[candidate] = evaluate().loss
    return losses


def comparison(losses: Losses) -> list[str]:
    """Lines on the dev losses, and on whether the average is worse than the newest or
    the best checkpoint.
    """
    shown = []
    better = []
    for candidate, loss in losses.items():
        shown.append(f"{candidate} {loss:.4f}")
        if candidate != AVERAGE and not losses[AVERAGE] <= loss:
            better.append(candidate)
    verdict = (
        "By dev loss, no checkpoint is better than the average: t2t-decoder"
        " --checkpoint_path=averaged uses it."
    )
    if better:
        verdict = (
            f"The average is worse than {' and '.join(better)}. Averaging helps once"
            " the dev loss hardly falls; before, use --checkpoint_path=newest or best."
        )
    return [f"Loss on dev: {', '.join(shown)}.", verdict]
