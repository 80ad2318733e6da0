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
which the last line prints. Before the first step it tries the largest batch, whether it
fits in memory. Ctrl-C, SIGTERM or SIGHUP saves a checkpoint; the same command, also
without --hparams_set, --warm_start_from, --problem and --data_dir, resumes from there
with exactly the batches that would have come next. Other flags that are left out, such
as --train_steps, have their defaults again. RUN/flags.txt records the command:
--flagfile=RUN/flags.txt gives the same flags, and later ones change them. Several
machines train together if TF_CONFIG names them, or with --cluster_resolver=slurm: see
docs/distributed.md. Next: t2t-decoder --problem=PROBLEM --hparams_set=HPARAMS_SET
--split=test. It uses the newest checkpoint, or with --checkpoint_path=best the best.
"""

import dataclasses

from t2tlite import registry
from t2tlite.bin import groups
from t2tlite.bin.command import command, load_tensorflow
from t2tlite.bin.flags import require
from t2tlite.checked_fields import optional_field
from t2tlite.programs.runs.training import (
    Training,
    TrainingOptions,
    check_folders,
    data_of_run,
    run_hparams,
    set_and_changes,
)
from t2tlite.training.loop_config import LoopConfig, LoopOptions


@dataclasses.dataclass(frozen=True)
class TrainerFlags(
    TrainingOptions,
    LoopOptions,
    groups.TensorFlowFlags,
    groups.RegistryFlags,
    groups.TrainingDataFlags,
    groups.TrainingFlags,
):
    """What is trained, on which data, and for how long."""

    train_steps: int | None = optional_field(
        int, "Optimizer steps in total; by default the hparam set's train_steps.", low=1
    )
    global_batch_tokens: int | None = optional_field(
        int,
        "Tokens per optimizer step on all GPUs together, padding counted, of the longer"
        " side: 25000 is the paper's. Any number of GPUs then trains on the same"
        " batches.",
    )


@command
def main(flags: TrainerFlags) -> None:
    """Trains a run; makes the data first with --generate_data."""
    if not flags.output_dir:
        require(problem=flags.problem, hparams_set=flags.hparams_set)
    folder = groups.run_folder(flags)
    if not flags.data_dir:
        problem, data_dir = data_of_run(folder)
        problem = flags.problem or problem
        flags = dataclasses.replace(flags, problem=problem, data_dir=data_dir)
    start = flags.warm_start_from
    check_folders(folder, groups.data_folder(flags), flags.problem, start)
    hparams = None if flags.hparams_set else run_hparams(folder, start)
    if hparams is None:
        require(hparams_set=flags.hparams_set)
        hparams = registry.get_hparams(flags.hparams_set or "")
    hparams = hparams.override(groups.hparam_changes(flags))
    hparams_set, changes = set_and_changes(flags.hparams_set, hparams, folder, start)
    recorded = dataclasses.replace(
        flags,
        global_batch_tokens=None,  # which is one of the hparams
        hparams_set=hparams_set,
        hparams=changes,
    )
    data = groups.training_data(flags)
    load_tensorflow()
    from t2tlite.programs.runs.train import train_run

    steps = flags.train_steps or hparams.train_steps
    training = Training(
        folder=folder,
        data=data,
        hparams=hparams,
        config=LoopConfig(train_steps=steps, **flags.values_of(LoopOptions)),
        command=["t2t-trainer", *recorded.words(defaults=True)],
        options=flags,
        gpus=flags.worker_gpu,
    )
    print("\n".join(train_run(training)))


if __name__ == "__main__":
    raise SystemExit(main())
