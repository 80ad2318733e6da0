"""Messages on the newest, best and averaged checkpoint of a run, and on which is
used.
"""

from __future__ import annotations

from pathlib import Path

from t2tlite.files.checkpoint_paths import list_checkpoints, step_of
from t2tlite.run_folder import DevEvaluation, RunFolder

# of metrics of decoded dev, in percent
NAMES = {"bleu": "BLEU", "chrf2": "chrF2", "f1": "F1"}


def after_training(run: RunFolder, stops_early: bool) -> list[str]:
    """Lines on the newest and the best checkpoint of a run, their metrics on dev, and
    how to choose one.

    `stops_early`: whether early stopping is on. Empty if there is no best checkpoint.
    """
    best, checkpoints = run.best(), run.checkpoints()
    if best is None or not checkpoints:
        return []
    by = next(
        (f"dev {NAMES[name]}" for name in ("bleu", "f1") if name in best.metrics),
        "dev loss",
    )
    newest = step_of(checkpoints[-1])
    if best.step == newest:
        return [
            f"Its newest checkpoint, of step {newest:,}, is also the best by {by}:"
            f" {_metrics(best)}."
        ]
    evaluations = run.evaluations()
    of_newest = [
        _metrics(evaluation) for evaluation in evaluations if evaluation.step == newest
    ]
    newest_shown = ": ".join([f"step {newest:,}", *of_newest[:1]])
    lines = [
        f"Newest checkpoint, {newest_shown}. t2t-decoder uses it by default.",
        (
            f"Best checkpoint by {by}, step {best.step:,}: {_metrics(best)}."
            " t2t-decoder --checkpoint_path=best uses it."
        ),
    ]
    worse = sum(evaluation.step > best.step for evaluation in evaluations)
    if worse and not stops_early:
        times = "evaluation" if worse == 1 else f"{worse} evaluations"
        hint = "--early_stopping_evals=N stops training after N such evaluations."
        lines.append(f"The last {times} found none better; {hint}")
    return lines


def checkpoint_notes(run: RunFolder, checkpoint: str) -> list[str]:
    """Notes on a checkpoint that is about to be used, one line each.

    They say whether it is not the newest, another is the best, or it is later than the
    newest, of training that was rolled back: newer checkpoints were deleted to train
    again from an earlier one.
    """
    newest, best = (
        step_of((list_checkpoints(folder) or [""])[-1])
        for folder in (run.path, run.best_folder)
    )
    if checkpoint in run.checkpoints()[-1:]:
        if best in (0, newest):
            return []
        return [
            f"Using the newest checkpoint, of step {newest:,}; the best by dev, of step"
            f" {best:,}, is --checkpoint_path=best."
        ]
    notes = [f"Using checkpoint {checkpoint}."]
    folder, step = Path(checkpoint).parent, step_of(checkpoint)
    if (
        newest
        and step > newest
        and folder.resolve()
        in (run.best_folder.resolve(), run.averaged_folder.resolve())
    ):
        notes.append(
            f"It is later than the newest checkpoint of {run} (step {newest:,}): it"
            " comes from training that was rolled back. t2t-trainer resumes only"
            f" without it. Delete {folder}, or put the missing checkpoints back."
        )
    return notes


def _metrics(evaluation: DevEvaluation) -> str:
    """`dev loss 2.3456, perplexity 10.441, accuracy 0.5210, BLEU 23.45`."""
    digits = {"perplexity": 3, **dict.fromkeys(NAMES, 2)}
    shown = (
        f"{NAMES.get(name, name)} {value:.{digits.get(name, 4)}f}"
        for name, value in evaluation.metrics.items()
    )
    return f"dev {', '.join(shown)}"
