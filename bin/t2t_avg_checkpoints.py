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
The paper averages the last 5 checkpoints of its base models and the last 20 of its big
ones. t2t-trainer keeps the newest 20 (--keep_checkpoint_max), one of each evaluation
and one every ten minutes.
"""

from __future__ import annotations

from t2tlite.bin import flags

AVERAGED = 5  # checkpoints, if neither a number nor steps are given


def check(args: flags.Args) -> None:
    """Raises if there is no run, or its averages would replace other checkpoints."""
    folder = flags.run_folder(args)
    folder.hparams()
    folder.check_checkpoint_folders()


@flags.command(
    __doc__,
    "problem hparams_set output_dir n from_step to_step verbosity",
    check=check,
)
def main(args: flags.Args) -> None:
    """Averages, and reports what was averaged."""
    from t2tlite.programs.runs.keras_run import average_run

    folder = flags.run_folder(args)
    of_steps = args.from_step is not None or args.to_step is not None
    count = AVERAGED if args.n is None and not of_steps else args.n
    path, averaged = average_run(folder.path, count, args.from_step or 0, args.to_step)
    if count and len(averaged) < count:
        where = " of these steps" if of_steps else ""
        print(
            f"Checkpoints{where} in {folder}: {len(averaged)}, fewer than {count}; all"
            " are averaged."
        )
    print(
        f"Averaged {len(averaged)} checkpoints, {averaged[0]} to {averaged[-1]}, into"
        f" {path}."
    )


if __name__ == "__main__":
    raise SystemExit(main())
