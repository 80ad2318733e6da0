"""The newest, best and averaged checkpoint of a run: which there are, and which is
used.
"""

from t2tlite.files.checkpoint_paths import list_checkpoints, step_of
from t2tlite.run_folder import RunFolder, run_of

# of metrics of decoded dev, in percent
METRIC_NAMES = {
    "bleu": "BLEU",
    "chrf2": "chrF2",
    "f1": "F1",
    "exact_match": "exact match",
    "token_accuracy": "token accuracy",
}
DIGITS = {"perplexity": 3, **dict.fromkeys(METRIC_NAMES, 2)}  # otherwise 4


def after_training(run: RunFolder) -> list[str]:
    """Lines on the newest and the best checkpoint of a run, and which is used; empty if
    a best checkpoint does not exist.
    """
    best = run.best()
    checkpoints = run.checkpoints()
    if best is None or not checkpoints:
        return []
    shown = []
    for name, value in best.metrics.items():
        shown.append(f"{METRIC_NAMES.get(name, name)} {shown_value(name, value)}")
    metrics = ", ".join(shown)
    by = METRIC_NAMES.get(best.chosen_by, best.chosen_by)
    newest = step_of(checkpoints[-1])
    if best.step == newest:
        return [
            f"Its newest checkpoint, of step {newest:,}, is also the best by dev {by}:"
            f" dev {metrics}."
        ]
    return [
        f"Newest checkpoint: step {newest:,}. t2t-decoder uses it by default.",
        (
            f"Best checkpoint by dev {by}, step {best.step:,}: dev {metrics}."
            " t2t-decoder --checkpoint_path=best uses it."
        ),
    ]


def newest_checkpoints(
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


def notes_on_checkpoint(run: RunFolder, checkpoint: str) -> list[str]:
    """Notes on a checkpoint that is about to be used, one line each: if another is the
    best, if it is not the newest, and if training was rolled back to before it.
    """
    newest = run.checkpoints()[-1:]
    if [checkpoint] != newest:
        notes = [f"Using checkpoint {checkpoint}."]
        is_of_run = run_of(checkpoint).path.resolve() == run.path.resolve()
        if newest and is_of_run and step_of(checkpoint) > step_of(newest[0]):
            notes.append(
                f"It is later than the newest checkpoint of {run}, of step"
                f" {step_of(newest[0]):,}: training was rolled back."
            )
        return notes
    best = list_checkpoints(run.best_folder)[-1:]
    if not best or step_of(best[0]) == step_of(checkpoint):
        return []
    return [
        f"Using the newest checkpoint, of step {step_of(checkpoint):,}; the best by"
        f" dev, of step {step_of(best[0]):,}, is --checkpoint_path=best."
    ]


def shown_value(metric: str, value: float | None) -> str:
    """The value of a metric of dev with its usual number of digits; empty if there is
    none.
    """
    return "" if value is None else f"{value:.{DIGITS.get(metric, 4)}f}"
