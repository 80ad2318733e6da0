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
import inspect
import textwrap

from t2tlite import registry
from t2tlite.bin import groups
from t2tlite.bin.command import command
from t2tlite.bin.flag_fields import require
from t2tlite.checked_fields import (
    checked_field,
    facts_of,
    merged_changes,
    optional_field,
)
from t2tlite.config import HParams
from t2tlite.files.checkpoint_paths import checkpoint_at
from t2tlite.programs.runs.start import Devices, check_apart, run_hparams, train_on
from t2tlite.run_folder import RunFolder, run_of
from t2tlite.training.loop_config import LoopConfig, LoopOptions

EXAMPLE = (
    "t2t-trainer --problem=grammar_ende --hparams_set=transformer_tiny --generate_data"
)
WIDTH = 110  # of --show_hparams


@dataclasses.dataclass(frozen=True)
class TrainerFlags(
    groups.TrainingFlags,
    groups.TrainingDataFlags,
    groups.RegistryFlags,
    groups.TensorFlowFlags,
):
    """What is trained, on which data, and for how long."""

    train_steps: int | None = optional_field(
        int, "Optimizer steps in total; by default the hparam set's train_steps.", low=1
    )
    loop: LoopOptions = dataclasses.field(default_factory=LoopOptions)
    global_batch_tokens: int | None = optional_field(
        int,
        "Tokens per optimizer step on all GPUs together, padding counted, of the longer"
        " side: 25000 is the paper's. Then any number of GPUs trains on the same"
        " batches; batch_size is the most that a GPU processes at a time, and"
        " accumulate_steps is derived. Sets the hparam of this name. By default"
        " batch_size x accumulate_steps x GPUs.",
    )
    worker_cpu: int = checked_field(
        1,
        "Replicas on the CPU, each with its share of the cores. With one replica a core"
        " a small model trained 1.2 times as fast. The batch grows with their number"
        " unless --global_batch_tokens is given.",
        low=1,
    )
    eval_bleu: bool = checked_field(
        False,
        "Decode dev at each evaluation, and choose the best checkpoint by BLEU (or"
        " F1).",
    )
    cluster_resolver: str = checked_field(
        "tf_config",
        "Where a worker reads the list of workers: tf_config, TensorFlow's variable"
        " TF_CONFIG, if it is set; slurm, the tasks of the job step that srun started.",
    )
    warm_start_from: str | None = optional_field(
        str,
        "Run folder or checkpoint whose weights a new run starts from; a resumed run"
        " does not need it. Without --hparams_set the new run also uses its hparams,"
        " with the learning rate lowered to where that run stopped.",
    )
    show_hparams: str | None = optional_field(
        str,
        "Print each field of this set, changed by --hparams, with meaning and base's"
        " value, and exit.",
    )

    def information(self) -> str:
        if self.show_hparams and not self.registry_help:
            return show_hparams(self.show_hparams, self.hparams)
        return super().information()

    def loop_config(self, hparams: HParams) -> LoopConfig:
        """Returns the settings of the loop; by default it trains the hparams' steps."""
        steps = self.train_steps or hparams.train_steps
        return LoopConfig(train_steps=steps, **vars(self.loop))


def show_hparams(name: str, changes: str) -> str:
    """Lists the fields of a set with the `changes` of --hparams; `*` marks those that
    differ from transformer_base.
    """
    base = HParams()
    shown = registry.get_hparams(name).override(changes)
    changed = f", changed by --hparams={changes}" if changes else ""
    doc = inspect.cleandoc(registry.hparams_doc(name))
    lines = [
        f"{name}{changed}",
        "",
        *textwrap.wrap(" ".join(doc.split()), WIDTH),
        "",
        "`*` marks fields that differ from transformer_base, the paper's base model,"
        " whose value is in brackets.",
        "",
    ]
    for field in dataclasses.fields(HParams):
        value = getattr(shown, field.name)
        usual = getattr(base, field.name)
        if value == usual:
            lines.append(f"  {field.name}={value}")
        else:
            lines.append(f"* {field.name}={value}  [{usual}]")
        meaning = textwrap.wrap(
            facts_of(field).meaning, WIDTH - 6, break_on_hyphens=False
        )
        lines += [f"      {line}" for line in meaning]
    return "\n".join(lines)


def check(flags: TrainerFlags, folder: RunFolder) -> None:
    """Checks names, values, folders and data, before TensorFlow is loaded."""
    folder.check_path()
    check_apart(folder.path, flags.data_folder(), flags.problem)
    start = None if folder.checkpoints() else flags.warm_start_from
    if start:
        checkpoint_at(start)  # raises if there is none
    if start and not flags.hparams_set:
        hparams = run_of(start).hparams()
    else:
        hparams = _hparams(flags, folder)
    hparams.override(flags.hparams)
    flags.check_data()


@command(TrainerFlags, __doc__)
def main(flags: TrainerFlags) -> None:
    """Trains a run; makes the data first with --generate_data."""
    if not flags.output_dir:
        require(EXAMPLE, problem=flags.problem, hparams_set=flags.hparams_set)
    folder = flags.run_folder()
    check(flags, folder)
    flags.load_tensorflow()
    from t2tlite.programs.runs.train import TrainingOptions

    hparams = _hparams(flags, folder).override(flags.hparams)
    if flags.global_batch_tokens is not None:
        hparams = dataclasses.replace(
            hparams, global_batch_tokens=flags.global_batch_tokens
        )
    devices = Devices(flags.worker_gpu, flags.worker_cpu, flags.cluster_resolver)
    command = ["t2t-trainer", *_resumed(flags, folder).words(defaults=True)]
    options = TrainingOptions(flags.eval_bleu, flags.warm_start_from, command)
    config = flags.loop_config(hparams)
    trained = train_on(devices, flags.open_data, hparams, folder, config, options)
    print("\n".join(trained.summary))


def _hparams(flags: TrainerFlags, folder: RunFolder) -> HParams:
    """Returns the hparams of the named set, of the run to resume, or of the run to
    start from.
    """
    if not flags.hparams_set:
        hparams = run_hparams(folder, flags.warm_start_from)
        if hparams is not None:
            return hparams
        require(EXAMPLE, hparams_set=flags.hparams_set)
    return registry.get_hparams(flags.hparams_set or "")


def _resumed(flags: TrainerFlags, folder: RunFolder) -> TrainerFlags:
    """Returns the flags to record. A run that resumes without --hparams_set keeps the
    recorded set and its changes.
    """
    before = folder.flags() if folder.checkpoints() and not flags.hparams_set else {}
    if "hparams_set" not in before:
        return flags
    recorded = before.get("global_batch_tokens", "")
    tokens = int(recorded) if recorded.isdecimal() else None
    return dataclasses.replace(
        flags,
        hparams_set=before["hparams_set"],
        hparams=merged_changes(before.get("hparams", ""), flags.hparams),
        global_batch_tokens=flags.global_batch_tokens or tokens,
    )


if __name__ == "__main__":
    raise SystemExit(main())
