"""t2t-datagen makes a problem's data: a vocabulary, token shards, and a manifest of what they were made from.

Data of our own making, nothing needed:
  t2t-datagen --problem=grammar_ende --data_dir=data

Your own files, line by line translations of each other, plain text or .gz:
  t2t-datagen --problem=parallel_text --data_dir=data --vocab_size=8000 \\
      --train_source=train.en --train_target=train.de --dev_source=dev.en --dev_target=dev.de

The paper's English-German; the files are looked for in, or downloaded to, --tmp_dir:
  t2t-datagen --problem=wmt_ende --data_dir=data --tmp_dir=raw

Parse trees: the Penn Treebank's files, or train.trees, dev.trees and test.trees of your own, in --tmp_dir:
  t2t-datagen --problem=wsj_parsing --data_dir=data --tmp_dir=treebank

The data lies in DATA_DIR/PROBLEM; the problem and its PROBLEM_rev share it. The text is checked before anything is
written. A run that was interrupted goes on when the same command is given again; complete data is left alone.
Next: t2t-trainer --problem=PROBLEM --data_dir=DATA_DIR --hparams_set=transformer_base --output_dir=RUN.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from t2tlite import registry
from t2tlite.bin import flags

FLAGS = (
    "problem",
    "data_dir",
    "tmp_dir",
    "num_processes",
    *flags.PROBLEM_OPTIONS,
    "t2t_usr_dir",
    "registry_help",
)


def run(args: flags.Args) -> None:
    """Makes the data and prints a summary."""
    import t2tlite.problems  # registers them

    flags.import_user_package(args.t2t_usr_dir)
    if args.registry_help:
        import t2tlite.hparams  # noqa: F401

        print(registry.registry_help())
        return
    flags.require(args, "problem", "data_dir")
    problem = registry.problem(args.problem, **flags.problem_options(args))
    # imported late: each encoding process imports this module, and wants nothing of it
    from t2tlite.data.generate import generate

    tmp_dir = None if args.tmp_dir is None else Path(args.tmp_dir).expanduser()
    print(generate(problem, Path(args.data_dir).expanduser(), tmp_dir, args.num_processes))


def main(argv: Sequence[str] | None = None) -> int:
    """The command t2t-datagen."""
    return flags.run_command(__doc__, FLAGS, run, argv)


if __name__ == "__main__":
    raise SystemExit(main())
