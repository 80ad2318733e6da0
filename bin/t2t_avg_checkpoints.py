"""t2t-avg-checkpoints averages checkpoints of a run, as the paper does before it
decodes.

The newest five, or as many as there are:
  t2t-avg-checkpoints --output_dir=RUN

The newest 20; or all of some steps, for example those around the best evaluation:
  t2t-avg-checkpoints --output_dir=RUN --n=20
  t2t-avg-checkpoints --output_dir=RUN --from_step=8000 --to_step=12000

writes RUN/averaged/model.ckpt-N, an ordinary checkpoint, in place of an earlier
average. Use it with
  t2t-decoder --output_dir=RUN --checkpoint_path=averaged ...
It prints the loss on dev of the average, the newest and the best checkpoint: averaging
helps once the dev loss hardly falls, and makes it worse before. The data is where it
was during training, or in --data_dir if it has moved.

The paper averages the last 5 checkpoints of its base models and the last 20 of its big
ones. t2t-trainer keeps the newest 20 (--keep_checkpoint_max), one of each evaluation
and one every ten minutes.
"""

import dataclasses

from t2tlite.bin import groups
from t2tlite.bin.command import command, load_tensorflow
from t2tlite.checked_fields import optional_field
from t2tlite.console import counted
from t2tlite.programs.runs.load import newest_checkpoints, run_dataset

AVERAGED = 5  # checkpoints, if neither a number nor steps are given


@dataclasses.dataclass(frozen=True)
class AverageFlags(groups.TensorFlowFlags, groups.DataFlags, groups.RunFlags):
    """Which checkpoints are averaged."""

    n: int | None = optional_field(
        int,
        "Number of the newest checkpoints at most; by default 5, or all steps given.",
        low=1,
    )
    from_step: int | None = optional_field(int, "Only this step and later ones.")
    to_step: int | None = optional_field(int, "Only this step and earlier ones.")


@command
def main(flags: AverageFlags) -> None:
    """Averages the checkpoints, and reports which, and how good the average is."""
    folder = groups.run_folder(flags)
    folder.folders()  # raises if one is a link
    of_steps = flags.from_step is not None or flags.to_step is not None
    count = AVERAGED if flags.n is None and not of_steps else flags.n
    chosen = count, flags.from_step or 0, flags.to_step
    newest_checkpoints(folder, *chosen)  # raises if there is none
    dataset = None
    lines = []
    try:
        dataset = run_dataset(folder, flags.data_dir)
    except (OSError, ValueError) as error:
        if flags.data_dir:
            raise
        lines.append(f"The average was not measured. {error}")

    load_tensorflow()
    from t2tlite.programs.runs.keras_run import average_run, comparison

    # a run that is being trained may have lost its oldest meanwhile
    averaged = newest_checkpoints(folder, *chosen)
    path, losses = average_run(folder, averaged, dataset)
    number = counted(len(averaged), "checkpoint")
    ends = " to ".join(dict.fromkeys([averaged[0], averaged[-1]]))
    print(f"Averaged {number}, {ends}, into {path}.")
    if losses:
        lines = comparison(losses)
    print("\n".join(lines))


if __name__ == "__main__":
    raise SystemExit(main())
