"""t2t-avg-checkpoints averages the newest checkpoints of a run, as the paper does before it decodes.

  t2t-avg-checkpoints --output_dir=RUN --n=5

writes RUN/averaged/model.ckpt-N, an ordinary checkpoint. Use it with
  t2t-decoder --output_dir=RUN --checkpoint_path=RUN/averaged ...
The paper averages the last 5 checkpoints of its base models and the last 20 of its big ones.
"""

from __future__ import annotations

from t2tlite.bin import flags


@flags.command(__doc__, "problem", "hparams_set", "output_dir", "n", "verbosity")
def main(args: flags.Args) -> None:
    """Averages, and reports what was averaged."""
    from t2tlite.runs.load import average_run

    path, averaged = average_run(flags.run_folder(args).path, args.n)
    print(f"Averaged {len(averaged)} checkpoints, {averaged[0]} to {averaged[-1]}, into {path}.")


if __name__ == "__main__":
    raise SystemExit(main())
