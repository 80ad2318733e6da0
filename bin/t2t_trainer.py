"""t2t-trainer trains a model on a problem's data, or goes on where an earlier run stopped.

The embedded grammar, data and all, in minutes on a processor:
  t2t-trainer --generate_data --problem=grammar_ende --hparams_set=transformer_tiny --data_dir=data --output_dir=run

The paper's big model, after t2t-datagen, on all GPUs of the machine:
  t2t-trainer --problem=wmt_ende --hparams_set=transformer_big --data_dir=data --output_dir=run

With other hyperparameters than the set's:
  t2t-trainer --problem=... --hparams_set=transformer_base --hparams=batch_size=2048,accumulate_steps=8 ...

RUN (--output_dir) gets everything decoding needs: hparams.json, the vocabulary, checkpoints model.ckpt-N, the best
checkpoint by dev in RUN/best, TensorBoard events, and cost.json, the time and floating-point operations of training so
far (a line at the end shows them beside what the paper's way of estimating gives). Ctrl-C or SIGTERM saves a
checkpoint; the same command goes on from there with the very batches that would have come next. batch_size is in tokens
for each replica (GPU).
Next: t2t-decoder --output_dir=RUN --decode_from_file=in.txt --decode_to_file=out.txt.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from t2tlite import registry
from t2tlite.bin import flags

if TYPE_CHECKING:
    from t2tlite.config import HParams
    from t2tlite.data.dataset import Dataset

FLAGS = (
    "problem",
    "hparams_set",
    "hparams",
    "data_dir",
    "output_dir",
    "train_steps",
    "eval_steps",
    "local_eval_frequency",
    "eval_bleu",
    "early_stopping_evals",
    "save_checkpoints_secs",
    "keep_checkpoint_max",
    "worker_gpu",
    "random_seed",
    "warm_start_from",
    "generate_data",
    "tmp_dir",
    "num_processes",
    *flags.PROBLEM_OPTIONS,
    "t2t_usr_dir",
    "registry_help",
    "verbosity",
)


def run(args: flags.Args) -> None:
    """Trains, after making the data if asked to."""
    import t2tlite.hparams
    import t2tlite.problems  # noqa: F401

    flags.import_user_package(args.t2t_usr_dir)
    if args.registry_help:
        print(registry.registry_help())
        return
    flags.require(args, *(() if args.warm_start_from else ("hparams_set",)), "data_dir", "output_dir")
    hparams = _hparams(args).override(args.hparams)
    if args.generate_data:
        make_data(args)
    elif flags.problem_options(args):
        given = ", ".join(f"--{name}" for name in flags.problem_options(args))
        raise flags.CommandError(f"{given}: options of the data go with --generate_data, or to t2t-datagen.")

    import tensorflow as tf

    from t2tlite.runs.train_run import train_run
    from t2tlite.training.loop import Interrupted, Schedule
    from t2tlite.training.run_cost import cost_line, read_cost

    schedule = Schedule(
        train_steps=hparams.train_steps if args.train_steps is None else args.train_steps,
        eval_steps=args.eval_steps,
        local_eval_frequency=args.local_eval_frequency,
        early_stopping_evals=args.early_stopping_evals,
        save_checkpoints_secs=args.save_checkpoints_secs,
        keep_checkpoint_max=args.keep_checkpoint_max,
        random_seed=args.random_seed,
        warm_start_from=args.warm_start_from,
    )
    folder = Path(args.output_dir).expanduser()
    dataset, strategy = open_data(args), make_strategy(args.worker_gpu)
    command = flags.recorded("t2t-trainer", args)
    try:
        evaluation = train_run(dataset, hparams, folder, schedule, strategy, args.eval_bleu, command)
    except Interrupted as stop:
        raise flags.Stopped(str(stop), stop.signal_number) from None
    except tf.errors.ResourceExhaustedError as error:
        reason = str(error).strip().split("\n")[0]
        raise flags.CommandError(
            f"Memory or disk does not suffice ({reason}). Where it is memory, lower batch_size and raise "
            "accumulate_steps by the same factor: training stays the same."
        ) from error
    if cost := read_cost(folder):
        print(cost_line(cost, strategy.extended.worker_devices[0]))
    print(
        f"Trained {dataset.name}: dev loss {evaluation.loss:.4f}, perplexity {evaluation.perplexity:.3f}, accuracy "
        f"{evaluation.accuracy:.4f}. The run lies in {folder}."
    )


def _hparams(args: flags.Args) -> HParams:
    """The named set, or those of the run to start from."""
    if args.hparams_set:
        return registry.hparams(args.hparams_set)
    from t2tlite.runs.train_run import warm_start_hparams

    hparams = warm_start_hparams(args.warm_start_from)
    print(
        f"Without --hparams_set: the hparams of {args.warm_start_from}, with learning_rate_constant="
        f"{hparams.learning_rate_constant:g}, so that the rate rises to where it was when that run stopped.",
        file=sys.stderr,
    )
    return hparams


def make_data(args: flags.Args) -> None:
    """Makes the problem's data as t2t-datagen does, or finds it complete."""
    from t2tlite.data.generate import generate

    flags.require(args, "problem")
    problem = registry.problem(args.problem, **flags.problem_options(args))
    tmp_dir = None if args.tmp_dir is None else Path(args.tmp_dir).expanduser()
    print(generate(problem, Path(args.data_dir).expanduser(), tmp_dir, args.num_processes), file=sys.stderr)


def open_data(args: flags.Args) -> Dataset:
    """The data; a problem's name that nobody knows is the mistake to speak of where there is none."""
    from t2tlite.data.dataset import open_dataset

    try:
        return open_dataset(Path(args.data_dir).expanduser(), args.problem or None)
    except FileNotFoundError as error:
        if args.problem:
            registry.problem(args.problem)
        raise FileNotFoundError(f"{error} Or add --generate_data to this command.") from error


def make_strategy(worker_gpu: int | None) -> Any:
    """MirroredStrategy over the GPUs, or the processor; several machines where TF_CONFIG names them."""
    import tensorflow as tf

    if os.environ.get("TF_CONFIG"):
        return tf.distribute.MultiWorkerMirroredStrategy()
    gpus = tf.config.list_physical_devices("GPU")
    if worker_gpu is not None and not 0 <= worker_gpu <= len(gpus):
        raise ValueError(
            f"--worker_gpu must be from 0 to the number of GPUs that TensorFlow sees here, {len(gpus)}. "
            f"Received: {worker_gpu}."
        )
    wanted = len(gpus) if worker_gpu is None else worker_gpu
    return tf.distribute.MirroredStrategy([f"GPU:{i}" for i in range(wanted)] or ["CPU:0"])


def main(argv: Sequence[str] | None = None) -> int:
    """The command t2t-trainer."""
    return flags.run_command(__doc__, FLAGS, run, argv)


if __name__ == "__main__":
    raise SystemExit(main())
