"""Averages checkpoints of a run, and compares the average on dev with the newest and
the best checkpoint.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import tensorflow as tf

from t2tlite.console import say
from t2tlite.data.dataset import Dataset
from t2tlite.files.checkpoint_paths import list_checkpoints, remove_unfinished, step_of
from t2tlite.files.lock import only_process
from t2tlite.programs.runs.keras_run import built_model
from t2tlite.run_folder import RunFolder
from t2tlite.run_records import Identity
from t2tlite.training.checkpoints import (
    average_checkpoints,
    reason_of,
    restore_weights,
)
from t2tlite.training.evaluation import (
    ALL_DEV_SETS,
    Evaluation,
    left_out,
    make_evaluation,
    together,
)
from t2tlite.types import Seq2SeqModel

AVERAGE = "the average"

# dev set, the one that decides first -> "the newest (step 9)", "the best (step 6)" or
# AVERAGE -> metrics
Measured = Mapping[str, Mapping[str, Evaluation]]


class Average(NamedTuple):
    """An averaged checkpoint, and how it compares with others."""

    path: str
    measured: Measured  # empty without data


def average_run(
    folder: RunFolder, checkpoints: Sequence[str], dataset: Dataset | None
) -> Average:
    """Averages checkpoints of a run, oldest first, into RUN/averaged, and evaluates the
    newest, the best and the average on each dev set of `dataset`, unless that is None.

    Raises ValueError if another process is averaging them, and MemoryError if there is
    not enough memory to evaluate; the average is then written.
    """
    model = built_model(folder, checkpoints[-1])
    with only_process(folder.averaged_folder, "average a run's checkpoints"):
        remove_unfinished(folder.averaged_folder)
        path = average_checkpoints(model, checkpoints, folder.averaged_folder)
    if dataset is None:
        return Average(path, {})
    if folder.identity().difference(Identity.of(dataset.manifest), "pairs"):
        say(f"The pairs in {dataset.folder} are not those that the run was trained on.")
    newest = folder.checkpoints()[-1]
    candidates = {f"the newest (step {step_of(newest):,})": newest}
    for best in list_checkpoints(folder.best_folder)[-1:]:
        if step_of(best) != step_of(newest):
            candidates[f"the best (step {step_of(best):,})"] = best
    candidates[AVERAGE] = path
    try:
        return Average(path, _evaluated(model, candidates, dataset))
    except tf.errors.ResourceExhaustedError as error:
        raise MemoryError(
            f"The average is in {path}. There is not enough memory to measure it:"
            f" {reason_of(error)}."
        ) from error


def _evaluated(
    model: Seq2SeqModel, candidates: Mapping[str, str], dataset: Dataset
) -> Measured:
    """The metrics of checkpoints on each dev set and, of several, on all together."""
    strategy = tf.distribute.get_strategy()
    evaluate = {}
    for split, name in dataset.manifest.dev_sets.items():
        store = dataset.store(split)
        line = left_out(model.hparams, store, name)
        if line:
            say(line)
        evaluate[name] = make_evaluation(strategy, model, store)
    measured: dict[str, dict[str, Evaluation]] = defaultdict(dict)
    for candidate, path in candidates.items():
        restore_weights(model, path)
        evaluations = []
        for name, evaluate_dev in evaluate.items():
            evaluation = evaluate_dev()
            measured[name][candidate] = evaluation
            evaluations.append(evaluation)
        if len(evaluations) > 1:
            measured[ALL_DEV_SETS][candidate] = together(evaluations)
    return measured


def comparison(measured: Measured) -> list[str]:
    """Lines on the measured dev losses, and on whether the average is worse than the
    newest or the best checkpoint.
    """
    lines = []
    for dev_set, evaluations in measured.items():
        losses = []
        for candidate, evaluation in evaluations.items():
            losses.append(f"{candidate} {evaluation.loss:.4f}")
        lines.append(f"Loss on {dev_set}: {', '.join(losses)}.")
    decisive = next(iter(measured.values()))
    average = decisive[AVERAGE].loss
    better = []
    for candidate, evaluation in decisive.items():
        if candidate != AVERAGE and not average <= evaluation.loss:
            better.append(candidate)
    if not better:
        lines.append(
            "By dev loss, no checkpoint is better than the average: t2t-decoder"
            " --checkpoint_path=averaged uses it."
        )
    else:
        lines.append(
            f"The average is worse than {' and '.join(better)}. Averaging helps once"
            " the dev loss hardly falls; before, use --checkpoint_path=newest or best."
        )
    return lines
