"""t2t-datagen makes a problem's data: a vocabulary, token shards, and a manifest of
what they were made from.

Generated data, which needs no files:
  t2t-datagen --problem=grammar_ende

Your own files, translations of each other line by line, plain text, .gz, .xz or .bz2:
  t2t-datagen --problem=parallel_text \\
      --train_source=train.en --train_target=train.de \\
      --dev_source=dev.en --dev_target=dev.de

The same from one file, a tab between source and target, without pairs that are also
in dev or test:
  t2t-datagen --problem=parallel_text --train_tsv=train.tsv --dev_tsv=dev.tsv \\
      --drop=test_overlap

A translation memory, TMX, of which two languages are chosen:
  t2t-datagen --problem=parallel_text --train_tmx=memory.tmx --dev_tsv=dev.tsv \\
      --source_language=en --target_language=de

The paper's English-German; the files are looked for in, or downloaded to, --tmp_dir:
  t2t-datagen --problem=wmt_ende --tmp_dir=raw

Parse trees: the Penn Treebank's files, or train.trees, dev.trees and test.trees of your
own, in --tmp_dir:
  t2t-datagen --problem=wsj_parsing --tmp_dir=treebank

On many machines, with Apache Beam (pip install 't2tlite[beam]') and a --data_dir that
all share; the result is the same:
  t2t-datagen --problem=wmt_enfr --tmp_dir=raw --data_dir=/shared/data \\
      --beam_runner=FlinkRunner --beam_options='--flink_master=HOST:8081 \\
      --environment_type=EXTERNAL --environment_config=localhost:50000'

The data is written to DATA_DIR/PROBLEM (--data_dir, by default `data`), also for
PROBLEM_rev, after the text was checked. The same command resumes after an interruption;
complete data is kept. Next: t2t-trainer --problem=PROBLEM
--hparams_set=transformer_base.
"""

import dataclasses

from t2tlite.bin import groups
from t2tlite.bin.command import command
from t2tlite.programs.runs.training import make_data


@dataclasses.dataclass(frozen=True)
class DatagenFlags(groups.RegistryFlags, groups.BeamFlags, groups.MakeDataFlags):
    """Which data is made, and where."""


@command
def main(flags: DatagenFlags) -> None:
    """Makes the data and prints a summary."""
    pipeline = groups.beam_pipeline(flags)
    print(make_data(groups.data_to_make(flags, pipeline)))


if __name__ == "__main__":
    raise SystemExit(main())
