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
from typing import TYPE_CHECKING, NamedTuple

from t2tlite import registry
from t2tlite.bin import check_files, flags
from t2tlite.checked_fields import check_seed
from t2tlite.programs.table3.rows import ROWS, Row, select
from t2tlite.training.loop_config import LoopConfig

if TYPE_CHECKING:
    from t2tlite.config import HParams

# of each row; nothing is averaged, and twenty rows need their space
KEPT_CHECKPOINTS = 2


class Sweep(NamedTuple):
    """What is to be trained."""

    base: HParams
    rows: list[Row]
    seeds: list[int]
    output_dir: Path  # unless nothing is trained


def sweep_of(args: flags.Args) -> Sweep:
    """What the flags ask for. Raises for wrong flags, and if there is no data."""
    if args.time and not args.dry_run:
        raise flags.CommandError("--time goes with --dry_run. Received: --time alone.")
    if not args.dry_run:
        (output_dir,) = flags.require(args, "output_dir")
        check_files.check_apart(args, Path(output_dir))
    base = registry.get_hparams(args.hparams_set or "transformer_base").override(
        args.hparams
    )
    if args.train_steps is not None:
        base = dataclasses.replace(base, train_steps=args.train_steps)
    rows = select(args.rows or [row.name for row in ROWS if row.name != "big"])
    for row in rows:
        row.apply(base)  # raises now if a row does not fit
    seeds = [int(text) for text in args.seeds if text.isdecimal()]
    if not seeds or len(set(seeds)) < len(args.seeds):
        raise ValueError(
            "--seeds must be whole numbers, all different. Received:"
            f" {','.join(args.seeds)!r}."
        )
    for seed in seeds:
        check_seed("seeds", seed)
    flags.check_data(args)
    return Sweep(base, rows, seeds, Path(args.output_dir or ""))


@flags.command(
    __doc__,
    "problem data_dir output_dir rows seeds hparams_set hparams train_steps dry_run"
    " time local_eval_frequency",
    "save_checkpoints_secs worker_gpu generate_data tmp_dir num_processes"
    " problem_options t2t_usr_dir verbosity",
    check=sweep_of,
)
def main(args: flags.Args) -> None:
    """Trains the rows, or estimates their cost; makes the data first with
    --generate_data.
    """
    base, rows, seeds, output_dir = sweep_of(args)
    dataset = flags.open_data(args)

    from t2tlite.programs.table3 import dry_run, sweep
    from t2tlite.training import cluster, signals, strategy

    if cluster.find_cluster():
        raise flags.CommandError(
            f"t2t-table3 trains on one machine. Received: {cluster.VARIABLE} with"
            " several workers. Unset it; several machines can share the work by"
            " --rows, each with an --output_dir of its own."
        )
    replicas = strategy.make_strategy(args.worker_gpu)
    base = strategy.with_dtype_policy(
        base.for_replicas(replicas.num_replicas_in_sync), replicas
    )
    if args.dry_run:
        with signals.interrupt_ends_process():
            print(
                dry_run.cost_table(rows, base, dataset, replicas.num_replicas_in_sync),
                flush=True,
            )
            for part in (
                dry_run.timed_rows(rows, base, len(seeds), dataset, replicas)
                if args.time
                else ()
            ):
                print(part, end="", flush=True)
        return
    config = flags.filled(
        LoopConfig,
        args,
        train_steps=base.train_steps,
        keep_checkpoint_max=KEPT_CHECKPOINTS,
    )
    command = ["t2t-table3", *flags.words(args)]
    table = sweep.Sweep(dataset, base, output_dir, replicas, config, command)
    print(table.run(rows, seeds).read_text(encoding="utf-8"), end="")


if __name__ == "__main__":
    raise SystemExit(main())
