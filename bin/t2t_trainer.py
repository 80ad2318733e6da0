"""t2t-trainer trains a model on a problem's data, or resumes an earlier run.

The paper's big model, after t2t-datagen, on all GPUs of the machine, with the paper's
batches:
  t2t-trainer --problem=wmt_ende --hparams_set=transformer_big \\
      --global_batch_tokens=25000

A small model on generated sentences, which are made first, in minutes on a CPU:
  t2t-trainer --problem=grammar_ende --hparams_set=transformer_tiny --generate_data

With other hyperparameters than the set's, and with folders of your own:
  t2t-trainer --problem=wmt_ende --hparams_set=transformer_base \\
      --hparams=batch_size=2048,accumulate_steps=8 --data_dir=DATA --output_dir=RUN

The run in --output_dir has hparams.json, the vocabulary, checkpoints model.ckpt-N, and
in RUN/best the best by dev: by its loss, or with --eval_bleu by BLEU or F1. TensorBoard
events show the training; cost.json has its time and its floating-point operations,
which the last line prints. Before the first step it estimates the memory that training
needs, and tries the largest batch. Ctrl-C, SIGTERM or SIGHUP saves a checkpoint; the
same command, also without --hparams_set and --warm_start_from, resumes from there with
exactly the batches that would have come next. Several machines train together if
TF_CONFIG names them, or with --cluster_resolver=slurm: see docs/distributed.md.
RUN/flags.txt records the command: --flagfile=RUN/flags.txt gives the same flags, and
later ones change them. Next: t2t-decoder --problem=PROBLEM --hparams_set=HPARAMS_SET
--split=test. It uses the newest checkpoint, or with --checkpoint_path=best the best.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from t2tlite import registry
from t2tlite.bin import check_files, flags
from t2tlite.checked_fields import merged_changes
from t2tlite.console import say
from t2tlite.files.checkpoint_paths import checkpoint_at
from t2tlite.run_folder import RunFolder, run_of
from t2tlite.training.loop_config import LoopConfig

if TYPE_CHECKING:
    from t2tlite.config import HParams

EXAMPLE = (
    "t2t-trainer --problem=grammar_ende --hparams_set=transformer_tiny --generate_data"
)


def check(args: flags.Args) -> None:
    """Raises, before TensorFlow is loaded, for wrong names, values, folders and
    data.
    """
    if not args.output_dir:
        flags.require(args, "problem", "hparams_set", example=EXAMPLE)
    folder = flags.run_folder(args)
    folder.check_path()
    check_files.check_apart(args, folder.path)
    start = None if folder.checkpoints() else args.warm_start_from
    if start:
        checkpoint_at(start)  # raises if there is none
    if start and not args.hparams_set:
        hparams = run_of(start).hparams()
    else:
        hparams = _hparams(args, folder)
    hparams = hparams.override(args.hparams)
    flags.filled(LoopConfig, args, train_steps=hparams.train_steps)
    if args.output_dir is None:
        say(f"The run is in {folder}.")
    flags.check_data(args)


@flags.command(
    __doc__,
    "problem hparams_set hparams data_dir output_dir",
    LoopConfig,
    "global_batch_tokens eval_bleu worker_gpu cluster_resolver warm_start_from",
    "generate_data tmp_dir num_processes problem_options t2t_usr_dir registry_help"
    " show_hparams verbosity",
    check=check,
)
def main(args: flags.Args) -> None:
    """Trains a run; makes the data first with --generate_data."""
    folder = flags.run_folder(args)
    hparams = _hparams(args, folder).override(args.hparams)
    if args.global_batch_tokens is not None:
        hparams = dataclasses.replace(
            hparams, global_batch_tokens=args.global_batch_tokens
        )
    config = flags.filled(LoopConfig, args, train_steps=hparams.train_steps)

    import tensorflow as tf

    from t2tlite.programs.runs import checkpoint_choice, train
    from t2tlite.training import checkpoints, cluster, run_cost, workers
    from t2tlite.training.strategy import gpu_name, make_strategy, trains_on_gpu

    strategy = make_strategy(
        args.worker_gpu, cluster.find_cluster(args.cluster_resolver)
    )
    command = ["t2t-trainer", *flags.words(_resumed(args, folder), defaults=True)]
    options = train.TrainingOptions(args.eval_bleu, args.warm_start_from, command)
    try:
        with workers.lost_worker_is_an_error(strategy):
            # the other workers find the data that it makes in a shared folder
            with workers.chief_first(strategy):
                dataset = flags.open_data(args)
            evaluation, _ = train.train_run(
                dataset, hparams, folder, config, strategy, options
            )
    except tf.errors.ResourceExhaustedError as error:
        raise flags.CommandError(
            f"There is not enough memory ({checkpoints.reason_of(error)}). Lower"
            " batch_size and raise accumulate_steps by the same factor: training stays"
            " the same."
        ) from error
    print(f"Trained {dataset.name}: dev {evaluation}. The run is in {folder}.")
    for line in checkpoint_choice.after_training(
        folder, config.early_stopping_evals > 0
    ):
        print(line)
    if costs := folder.costs():
        print(
            run_cost.cost_line(costs[-1], gpu_name() if trains_on_gpu(strategy) else "")
        )


def _hparams(args: flags.Args, folder: RunFolder) -> HParams:
    """The named set, or the hparams of the run to resume, or of the run to start
    from.
    """
    if folder.checkpoints() and not args.hparams_set:
        return folder.hparams()
    if args.hparams_set or not args.warm_start_from:
        return registry.get_hparams(
            *flags.require(args, "hparams_set", example=EXAMPLE)
        )
    from t2tlite.programs.runs.train import warm_start_hparams

    hparams = warm_start_hparams(args.warm_start_from)
    say(
        f"Without --hparams_set: the hparams of {args.warm_start_from}, with"
        f" learning_rate_constant={hparams.learning_rate_constant:g}, so that the rate"
        " rises to its value when that run stopped."
    )
    return hparams


def _resumed(args: flags.Args, folder: RunFolder) -> flags.Args:
    """The flags to record. A run resumed without --hparams_set keeps its recorded set,
    with its changes.
    """
    before = folder.flags() if folder.checkpoints() and not args.hparams_set else {}
    if "hparams_set" not in before:
        return args
    tokens = args.global_batch_tokens or before.get("global_batch_tokens")
    kept = {
        "hparams_set": before["hparams_set"],
        "hparams": merged_changes(before.get("hparams", ""), args.hparams),
        "global_batch_tokens": tokens,
    }
    return flags.Args(**vars(args) | kept)


if __name__ == "__main__":
    raise SystemExit(main())
