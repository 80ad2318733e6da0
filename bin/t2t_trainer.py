"""t2t-trainer trains a model on a problem's data, or resumes an earlier run.

The paper's big model, after t2t-datagen, on all GPUs of the machine:
  t2t-trainer --problem=wmt_ende --hparams_set=transformer_big

A small model on generated sentences, which are made first, in minutes on a CPU:
  t2t-trainer --problem=grammar_ende --hparams_set=transformer_tiny --generate_data

With other hyperparameters than the set's, and with folders of your own:
  t2t-trainer --problem=wmt_ende --hparams_set=transformer_base --hparams=batch_size=2048,accumulate_steps=8 \\
      --data_dir=DATA --output_dir=RUN

The data is read from --data_dir, by default `data`. The run is written to --output_dir, by default
runs/PROBLEM-HPARAMS_SET. It has everything that decoding needs: hparams.json, the vocabulary, checkpoints model.ckpt-N,
and the best checkpoint by dev in RUN/best. TensorBoard events show the training; cost.json has its time and its
floating-point operations, which a line at the end compares with the paper's way of estimating them.
Ctrl-C or SIGTERM saves a checkpoint; the same command resumes from there with the very batches that would have come
next. batch_size is in tokens per replica (GPU).
Next: t2t-decoder --problem=PROBLEM --hparams_set=HPARAMS_SET --split=test.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from t2tlite import registry
from t2tlite.bin import flags

if TYPE_CHECKING:
    from t2tlite.config import HParams


@flags.command(
    __doc__,
    *"problem hparams_set hparams data_dir output_dir".split(),
    *flags.LOOP,
    *"eval_bleu worker_gpu warm_start_from generate_data tmp_dir num_processes".split(),
    *(flags.PROBLEM_OPTIONS, "t2t_usr_dir", "registry_help", "verbosity"),
)
def main(args: flags.Args) -> None:
    """Trains, after making the data if asked to."""
    folder = flags.run_folder(args)
    if args.output_dir is None:
        print(f"The run is in {folder}.", file=sys.stderr)
    hparams = _hparams(args).override(args.hparams)
    config = flags.loop_config(args, hparams.train_steps)
    dataset = flags.open_data(args)

    import tensorflow as tf

    from t2tlite.runs.train import RunOptions, train_run
    from t2tlite.training.run_cost import cost_line
    from t2tlite.training.strategy import make_strategy

    strategy = make_strategy(args.worker_gpu)
    options = RunOptions(args.eval_bleu, args.warm_start_from, flags.recorded("t2t-trainer", args))
    try:
        evaluation = train_run(dataset, hparams, folder, config, strategy, options)
    except tf.errors.ResourceExhaustedError as error:
        reason = str(error).strip().splitlines()[0]
        raise flags.CommandError(
            f"Memory or disk does not suffice ({reason}). If it is memory, lower batch_size and raise accumulate_steps "
            "by the same factor: training stays the same."
        ) from error
    if costs := folder.costs():
        print(cost_line(costs[-1], strategy.extended.worker_devices[0]))
    print(f"Trained {dataset.name}: {evaluation}. The run is in {folder}.")


def _hparams(args: flags.Args) -> HParams:
    """The named set, or the hparams of the run to start from."""
    if args.hparams_set or not args.warm_start_from:
        import t2tlite.hparams  # noqa: F401  registers the sets

        flags.require(args, "hparams_set")
        return registry.hparams(args.hparams_set)
    from t2tlite.runs.train import warm_start_hparams

    hparams = warm_start_hparams(args.warm_start_from)
    print(
        f"Without --hparams_set: the hparams of {args.warm_start_from}, with learning_rate_constant="
        f"{hparams.learning_rate_constant:g}, so that the rate rises to its value when that run stopped.",
        file=sys.stderr,
    )
    return hparams


if __name__ == "__main__":
    raise SystemExit(main())
