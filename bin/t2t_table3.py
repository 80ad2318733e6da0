"""t2t-table3 trains the rows of the paper's Table 3 on a problem, measures each on dev,
and writes the table.

The paper's experiments, on all GPUs of the machine, after t2t-datagen:
  t2t-table3 --problem=wmt_ende --output_dir=table3

Their cost by formula; nothing is trained:
  t2t-table3 --problem=wmt_ende --dry_run

The base model, the rows of group A and one row of group C, each with two seeds:
  t2t-table3 --problem=wmt_ende --output_dir=table3 --rows=base,A,hs256 --seeds=1,2

Scaled down: a row is relative to the base (hs256 halves the width, h1 has an eighth of
the heads), which --hparams_set, --hparams and --train_steps change:
  t2t-table3 --problem=parallel_text --output_dir=table3 --train_steps=4000 \\
      --hparams=hidden_size=256,filter_size=1024,num_hidden_layers=3

Rows: base; A: h1 h4 h16 h32 (heads); B: k128 k256 (size of keys); C: l2 l4 l8 (layers)
hs256 hs1024 (width) ff1024 ff4096; D: dr0 dr2 (dropout) ls0 ls2 (label smoothing); E:
pos_learned; and big, only if it is named, for three times as many steps.

O/ROW (--output_dir=O) is a run, which t2t-trainer trains, and whose dev split
t2t-decoder decodes with a beam of 4; further seeds are in O/ROW.seed2, ... The table of
the runs in O, beside the paper's, is O/table3.md after each row.
Ctrl-C, SIGTERM or SIGHUP saves a checkpoint; the same command resumes from there, and
finished rows are not trained again.

Several processes, such as one for each GPU (CUDA_VISIBLE_DEVICES), can fill one O: give
each --rows of its own. The table has the rows of all; a row that another process is
training is refused.
"""

import contextlib
import dataclasses
import shlex
import sys
from pathlib import Path

from t2tlite import registry
from t2tlite.bin import groups, t2t_decoder, t2t_trainer
from t2tlite.bin.command import command, load_tensorflow
from t2tlite.bin.flags import require
from t2tlite.checked_fields import checked_field, optional_field, parse_value
from t2tlite.config import HParams
from t2tlite.console import say
from t2tlite.programs.runs.training import TRANSFORMER_BASE, check_apart, dataset_of
from t2tlite.programs.table3.rows import ROWS, Row, select
from t2tlite.run_folder import RunFolder
from t2tlite.run_records import Identity

SAME = ("problem", "hparams_set", "hparams", "random_seed")  # flags of a finished row


@dataclasses.dataclass(frozen=True)
class Table3Flags(
    groups.TensorFlowFlags, groups.TrainingDataFlags, groups.TrainingFlags
):
    """Which rows are trained, on which data, and for how long."""

    output_dir: str | None = optional_field(
        str, "Folder of the table, in which each row has a run."
    )
    rows: tuple[str, ...] = checked_field(
        tuple(row.name for row in ROWS if row.name != "big"),
        "Rows and groups (A to E), comma-separated.",
    )
    seeds: tuple[str, ...] = checked_field(
        ("1",), "Train each row with each of these seeds, comma-separated."
    )
    train_steps: int | None = optional_field(
        int, "Optimizer steps; by default those of the hparam set."
    )
    dry_run: bool = checked_field(
        False, "Do not train; print the sizes and costs of the rows by formula."
    )

    def named_set(self) -> HParams:
        """Returns the hparams of --hparams_set."""
        hparams: HParams = registry.get_hparams(self.hparams_set or TRANSFORMER_BASE)
        return hparams

    def base(self) -> HParams:
        """Returns the hparams that each row changes."""
        base = self.named_set().override(groups.hparam_changes(self))
        steps = base.train_steps if self.train_steps is None else self.train_steps
        return dataclasses.replace(base, train_steps=steps)

    def of_row(self, row: Row, seed: str) -> t2t_trainer.TrainerFlags:
        """Returns t2t-trainer's flags for a row."""
        name = row.name if seed == "1" else f"{row.name}.seed{seed}"
        hparams = row.apply(self.base())
        return t2t_trainer.TrainerFlags(
            **self.values_of(groups.TensorFlowFlags),
            **self.values_of(groups.DataFlags),
            worker_gpu=self.worker_gpu,
            hparams_set=self.hparams_set or TRANSFORMER_BASE,
            hparams=",".join(hparams.changes(self.named_set())),
            output_dir=str(Path(self.output_dir or "", name)),
            keep_checkpoint_max=2,  # nothing is averaged; twenty rows need space
            random_seed=parse_value("--seeds", seed, int),
        )


@command
def main(flags: Table3Flags) -> None:
    """Trains the rows, or estimates their cost; makes the data first with
    --generate_data.
    """
    require(problem=flags.problem, rows=flags.rows, seeds=flags.seeds)
    folder = Path(flags.output_dir or "")
    if not flags.dry_run:
        require(output_dir=flags.output_dir)
        check_apart(folder, groups.data_folder(flags), flags.problem)
    rows = select(flags.rows)
    runs = []
    for seed in dict.fromkeys(flags.seeds):
        for row in rows:
            runs.append(flags.of_row(row, seed))
    data = groups.training_data(flags)
    load_tensorflow()
    manifest = dataset_of(data).manifest

    from t2tlite.programs.table3.table import cost_table, write_table

    if flags.dry_run:
        print(cost_table(rows, flags.base(), manifest))
        return
    words = shlex.join(["t2t-table3", *flags.words()])
    for run in runs:
        _train_and_decode(run, Identity.of(manifest))
        table = write_table(folder, manifest.name, words)
    print(table.read_text(encoding="utf-8"), end="")


def _train_and_decode(flags: t2t_trainer.TrainerFlags, data: Identity) -> None:
    """Runs t2t-trainer and t2t-decoder for a row, unless it is finished on this data.
    What they print goes to standard error.
    """
    import keras

    from t2tlite.programs.table3.table import BEAM_SIZE, read_result

    run = RunFolder(flags.output_dir or "")
    recorded = run.flags()
    now = [str(getattr(flags, name) or "") for name in SAME]
    is_same = now == [recorded.get(name, "") for name in SAME]
    is_finished = is_same and read_result(run)
    if is_finished and not run.identity().difference(data, "vocabulary", "pairs"):
        say(f"{run} is finished.")
        return
    decoder = t2t_decoder.DecoderFlags(
        **flags.values_of(groups.TensorFlowFlags),
        data_dir=flags.data_dir,
        output_dir=flags.output_dir,
        split="dev",
        decode_hparams=f"beam_size={BEAM_SIZE}",
    )
    try:
        with contextlib.redirect_stdout(sys.stderr):
            t2t_trainer.main.run(flags)
            t2t_decoder.main.run(decoder)
    finally:
        keras.utils.clear_session()  # models that are no longer used


if __name__ == "__main__":
    raise SystemExit(main())
