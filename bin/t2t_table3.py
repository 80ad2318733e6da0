"""t2t-table3 trains the rows of the paper's Table 3 on a problem, measures each on dev,
and writes the table.

The paper's experiments, on all GPUs of the machine, after t2t-datagen:
  t2t-table3 --problem=wmt_ende --output_dir=table3

Their cost by formula, and with --time also from a few timed steps of each row; nothing
is trained:
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

O/ROW (--output_dir=O) is a run like t2t-trainer's, whose dev split is decoded at the
end, as t2t-decoder does; further seeds are in O/ROW.seed2, ... The table so far, beside
the paper's, is O/table3.md, table3.json and table3.png after each row. Ctrl-C, SIGTERM
or SIGHUP saves a checkpoint; the same command resumes from there, and finished rows are
not trained again.

Several processes, such as one for each GPU (CUDA_VISIBLE_DEVICES), can fill one O: give
each --rows of its own. The table has the rows of all; a row that another process is
training is refused.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

from t2tlite import registry
from t2tlite.bin import groups
from t2tlite.bin.command import command, load_tensorflow
from t2tlite.bin.flag_fields import CommandError, field_of, require
from t2tlite.checked_fields import MAX_SEED, checked, checked_field, optional_field
from t2tlite.programs.runs.start import check_apart, ready
from t2tlite.programs.table3.rows import ROWS, select
from t2tlite.training.loop_config import LoopConfig, LoopOptions

# of each row; nothing is averaged, and twenty rows need their space
KEPT_CHECKPOINTS = 2


@dataclasses.dataclass(frozen=True)
class Table3Flags(
    groups.TrainingFlags,
    groups.TrainingDataFlags,
    groups.PackageFlags,
    groups.TensorFlowFlags,
):
    """Which rows are trained, on which data, and for how long."""

    output_dir: str | None = optional_field(
        str, "Folder in which each row has a run, and of the table. It has no default."
    )
    rows: tuple[str, ...] | None = optional_field(
        tuple, "Rows and groups (A to E), comma-separated; by default all but big."
    )
    seeds: tuple[str, ...] = checked_field(
        ("1",), "Train each row once with each of these seeds, comma-separated."
    )
    train_steps: int | None = optional_field(
        int, "Optimizer steps in total; by default the hparam set's train_steps."
    )
    dry_run: bool = checked_field(
        False, "Do not train; print the sizes and costs of the rows by formula."
    )
    time: bool = checked_field(
        False,
        "With --dry_run: also time a few steps of each row, and estimate hours.",
    )
    local_eval_frequency: int = field_of(LoopOptions, "local_eval_frequency")
    save_checkpoints_secs: int = field_of(LoopOptions, "save_checkpoints_secs")

    def seed_numbers(self) -> list[int]:
        """Returns the seeds as numbers. Raises ValueError for a wrong one."""
        numbers = [int(text) for text in self.seeds if text.isdecimal()]
        if not numbers or len(set(numbers)) < len(self.seeds):
            raise ValueError(
                "--seeds must be whole numbers, all different. Received:"
                f" {','.join(self.seeds)!r}."
            )
        for number in numbers:
            checked("seeds", int, number, 0, MAX_SEED)
        return numbers


@command(Table3Flags, __doc__)
def main(flags: Table3Flags) -> None:
    """Trains the rows, or estimates their cost; makes the data first with
    --generate_data.
    """
    output_dir = Path(flags.output_dir or "")
    if flags.time and not flags.dry_run:
        raise CommandError("--time goes with --dry_run. Received: --time alone.")
    if not flags.dry_run:
        require(output_dir=flags.output_dir)
        check_apart(output_dir, groups.data_folder(flags), flags.problem)
    base = registry.get_hparams(flags.hparams_set or "transformer_base").override(
        flags.hparams
    )
    if flags.train_steps is not None:
        base = dataclasses.replace(base, train_steps=flags.train_steps)
    rows = select(flags.rows or [row.name for row in ROWS if row.name != "big"])
    for row in rows:
        row.apply(base)  # raises now if a row does not fit
    seeds = flags.seed_numbers()
    data = groups.training_data(flags)
    load_tensorflow()
    dataset = ready(data)

    from t2tlite.programs.table3 import dry_run, sweep
    from t2tlite.training import cluster, signals, strategy

    if cluster.find_cluster():
        raise CommandError(
            f"t2t-table3 trains on one machine. Received: {cluster.VARIABLE} with"
            " several workers. Unset it; several machines can share the work by"
            " --rows, each with an --output_dir of its own."
        )
    replicas = strategy.make_strategy(flags.worker_gpu)
    base = strategy.with_dtype_policy(
        base.for_replicas(replicas.num_replicas_in_sync), replicas
    )
    if flags.dry_run:
        with signals.interrupt_ends_process():
            print(
                dry_run.cost_table(rows, base, dataset, replicas.num_replicas_in_sync),
                flush=True,
            )
            for part in (
                dry_run.timed_rows(rows, base, len(seeds), dataset, replicas)
                if flags.time
                else ()
            ):
                print(part, end="", flush=True)
        return
    config = LoopConfig(
        train_steps=base.train_steps,
        local_eval_frequency=flags.local_eval_frequency,
        save_checkpoints_secs=flags.save_checkpoints_secs,
        keep_checkpoint_max=KEPT_CHECKPOINTS,
    )
    words = ["t2t-table3", *flags.words()]
    table = sweep.Sweep(dataset, base, output_dir, replicas, config, words)
    print(table.run(rows, seeds).read_text(encoding="utf-8"), end="")


if __name__ == "__main__":
    raise SystemExit(main())
