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
    later = [each for each in run.evaluations() if each.step > best.step]
    newest_shown = f"step {newest:,}"
    if later and later[-1].step == newest:
        newest_shown += f": {_metrics(later[-1])}"
    lines = [
        f"Newest checkpoint, {newest_shown}. t2t-decoder uses it by default.",
        (
            f"Best checkpoint by {by}, step {best.step:,}: {_metrics(best)}."
            " t2t-decoder --checkpoint_path=best uses it."
        ),
    ]
    if later and not stops_early:
        times = "evaluation" if len(later) == 1 else f"{len(later)} evaluations"
        lines.append(
            f"The last {times} found none better; --early_stopping_evals=N stops"
            " training after N such evaluations."
        )
    return lines


def checkpoints_to_average(
    run: RunFolder, count: int | None, from_step: int, to_step: int | None
) -> list[str]:
    """The newest `count` checkpoints of a run from `from_step` to `to_step`, oldest
    first; all if there are fewer, or if `count` is None.

    Raises FileNotFoundError and ValueError if there is no run, or no such checkpoint.
    """
    run.hparams()  # raises if there is no run
    steps = {step_of(path): path for path in run.checkpoints()}
    if not steps:
        raise FileNotFoundError(
            f"A run needs a checkpoint to average. {run} has none. Train first."
        )
    last = max(steps) if to_step is None else to_step
    within = [path for step, path in steps.items() if from_step <= step <= last]
    if not within:
        raise ValueError(
            "There must be checkpoints from --from_step to --to_step. Received: from"
            f" step {from_step:,} to step {last:,}; {run} has those of {len(steps)}"
            f" steps, {min(steps):,} to {max(steps):,}."
        )
    return within[-count:] if count else within


def checkpoint_notes(run: RunFolder, checkpoint: str) -> list[str]:
    """Notes on a checkpoint that is about to be used, one line each.

    They say if it is not the newest, if another is the best, and if it is later than
    the newest. The latter means that training was rolled back: newer checkpoints were
    deleted to train again from an earlier one.
    """
    newest = run.checkpoints()[-1:]
    if [checkpoint] == newest:
        best = list_checkpoints(run.best_folder)[-1:]
        if not best or step_of(best[0]) == step_of(checkpoint):
            return []
        return [
            f"Using the newest checkpoint, of step {step_of(checkpoint):,}; the best by"
            f" dev, of step {step_of(best[0]):,}, is --checkpoint_path=best."
        ]
    notes = [f"Using checkpoint {checkpoint}."]
    folder = Path(checkpoint).parent
    is_of_run = folder.resolve().parent == run.path.resolve()
    if newest and is_of_run and step_of(checkpoint) > step_of(newest[0]):
        notes.append(
            f"It is later than the newest checkpoint of {run} (step"
            f" {step_of(newest[0]):,}): it comes from training that was rolled back."
            f" t2t-trainer resumes only without it. Delete {folder}, or put the missing"
            " checkpoints back."
        )
    return notes


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
