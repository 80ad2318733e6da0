"""Messages on the newest, best and averaged checkpoint of a run, and on which is
used.
"""

from __future__ import annotations

from pathlib import Path

from t2tlite.files.checkpoint_paths import list_checkpoints, step_of
from t2tlite.run_folder import RunFolder
from t2tlite.run_records import DevEvaluation

# of metrics of decoded dev, in percent
METRIC_NAMES = {
    "bleu": "BLEU",
    "chrf2": "chrF2",
    "f1": "F1",
    "exact_match": "exact match",
    "token_accuracy": "token accuracy",
}


def after_training(run: RunFolder, stops_early: bool) -> list[str]:
    """Lines on the newest and the best checkpoint of a run, their metrics on dev, and
    how to choose one.

    `stops_early`: whether early stopping is on. Empty if there is no best checkpoint.
    """
    best = run.best()
    checkpoints = run.checkpoints()
    if best is None or not checkpoints:
        return []
    by = f"dev {METRIC_NAMES.get(best.chosen_by, best.chosen_by)}"
    newest = step_of(checkpoints[-1])
    if best.step == newest:
        return [
            f"Its newest checkpoint, of step {newest:,}, is also the best by {by}:"
            f" {_metrics(best)}."
        ]
    evaluations = run.evaluations()
    newest_shown = f"step {newest:,}"
    worse = 0
    for evaluation in evaluations:
        if evaluation.step == newest:
            newest_shown = f"step {newest:,}: {_metrics(evaluation)}"
        worse += evaluation.step > best.step
    lines = [
        f"Newest checkpoint, {newest_shown}. t2t-decoder uses it by default.",
        (
            f"Best checkpoint by {by}, step {best.step:,}: {_metrics(best)}."
            " t2t-decoder --checkpoint_path=best uses it."
        ),
    ]
    if best.step == 0:
        lines.append(
            "No evaluation was better than that of the start: the best checkpoint has"
            " the weights of --warm_start_from."
        )
    if worse and not stops_early:
        times = "evaluation" if worse == 1 else f"{worse} evaluations"
        hint = "--early_stopping_evals=N stops training after N such evaluations."
        lines.append(f"The last {times} found none better; {hint}")
    return lines


def checkpoints_to_average(
    run: RunFolder, count: int | None, from_step: int, to_step: int | None
) -> list[str]:
    """The newest `count` checkpoints of a run from `from_step` to `to_step`, oldest
    first; all if there are fewer, or if `count` is None.

    Raises FileNotFoundError and ValueError if there is no run, or no such checkpoint.
    """
    run.hparams()  # raises if there is no run
    paths = run.checkpoints()
    if count is not None and count < 1:
        raise ValueError(f"--n must be at least 1. Received: {count}.")
    if not paths:
        raise FileNotFoundError(
            f"A run needs a checkpoint to average. {run} has none. Train first."
        )
    within = []
    for path in paths:
        step = step_of(path)
        if from_step <= step and (to_step is None or step <= to_step):
            within.append(path)
    if not within:
        last = "the newest" if to_step is None else f"step {to_step:,}"
        raise ValueError(
            "There must be checkpoints from --from_step to --to_step. Received: from"
            f" step {from_step:,} to {last}; {run} has those of {len(paths)} steps,"
            f" {step_of(paths[0]):,} to {step_of(paths[-1]):,}."
        )
    return within[-count:] if count else within


def checkpoint_notes(run: RunFolder, checkpoint: str) -> list[str]:
    """Notes on a checkpoint that is about to be used, one line each.

    They say if it is not the newest, if another is the best, and if it is later than
    the newest. The latter means that training was rolled back: newer checkpoints were
    deleted to train again from an earlier one.
    """
    newest = _newest_step(run.path)
    best = _newest_step(run.best_folder)
    if checkpoint in run.checkpoints()[-1:]:
        if best in (None, newest):
            return []
        return [
            f"Using the newest checkpoint, of step {newest:,}; the best by dev, of step"
            f" {best:,}, is --checkpoint_path=best."
        ]
    notes = [f"Using checkpoint {checkpoint}."]
    folder = Path(checkpoint).parent
    made_by_run = run.best_folder.resolve(), run.averaged_folder.resolve()
    is_later = newest is not None and step_of(checkpoint) > newest
    if is_later and folder.resolve() in made_by_run:
        notes.append(
            f"It is later than the newest checkpoint of {run} (step {newest:,}): it"
            " comes from training that was rolled back. t2t-trainer resumes only"
            f" without it. Delete {folder}, or put the missing checkpoints back."
        )
    return notes


def _newest_step(folder: Path) -> int | None:
    """The step of the newest checkpoint in a folder; None if there is none."""
    checkpoints = list_checkpoints(folder)
    return step_of(checkpoints[-1]) if checkpoints else None


def _metrics(evaluation: DevEvaluation) -> str:
    """`dev loss 2.3456, perplexity 10.441, accuracy 0.5210, BLEU 23.45`."""
    shown = []
    for name, value in evaluation.metrics.items():
        shown.append(f"{METRIC_NAMES.get(name, name)} {shown_value(name, value)}")
    return f"dev {', '.join(shown)}"


def shown_value(metric: str, value: float | None) -> str:
    """The value of a metric of dev with its usual number of digits; empty if there is
    none.
    """
    if value is None:
        return ""
    digits = 4
    if metric == "perplexity":
        digits = 3
    elif metric in METRIC_NAMES:
        digits = 2
    return f"{value:.{digits}f}"
