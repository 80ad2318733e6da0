"""t2t-import turns checkpoints that tensor2tensor trained into a run directory of
t2tlite.

  t2t-import --t2t_checkpoint=train_dir --output_dir=RUN \\
      --t2t_vocab=vocab.translate_ende_wmt32k.32768.subwords

--t2t_checkpoint is tensor2tensor's --output_dir, all of whose checkpoints are imported,
or one of them, DIR/model.ckpt-N. --t2t_vocab is the vocabulary, or the source's and the
target's, comma-separated. hparams.json (or --t2t_hparams) and flags_t2t.txt, which
names the problem, are looked for in the checkpoint's folder and in the one above;
without the latter, --problem=wsj_parsing declares the model a parser. TensorFlow 1 is
not needed.

RUN is then used like any other run:
  t2t-decoder --output_dir=RUN --decode_from_file=in.txt --decode_to_file=out.txt
  t2t-avg-checkpoints --output_dir=RUN --n=5
  t2t-trainer --warm_start_from=RUN --data_dir=data --output_dir=RUN2
It decodes by tensor2tensor's rules, to the same text; --decode_hparams=t2t_rules=false
selects t2tlite's own. To train it further, make data with the same vocabulary:
t2t-datagen --vocab_file=RUN/vocab.subwords ...

The model must be `transformer` with dot-product attention, pre- or post-norm,
embeddings shared or not; of any other, the hparams that differ are named.
docs/from-tensor2tensor.md has the details.
"""

import dataclasses

from t2tlite.bin import groups
from t2tlite.bin.command import command, load_tensorflow
from t2tlite.checked_fields import optional_field, required_field
from t2tlite.programs.tensor2tensor.import_run import T2TFiles, import_run
from t2tlite.run_folder import RunFolder


@dataclasses.dataclass(frozen=True, kw_only=True)
class ImportFlags(groups.TensorFlowFlags, groups.ProblemFlags):
    """Which checkpoints are imported, and into which run."""

    t2t_checkpoint: str = required_field(
        str, "tensor2tensor's run folder, or one of its checkpoints, DIR/model.ckpt-N."
    )
    t2t_vocab: tuple[str, ...] = required_field(
        tuple, "Its .subwords vocabulary, or source's and target's, comma-separated."
    )
    t2t_hparams: str | None = optional_field(
        str,
        "Its hparams.json; by default beside the checkpoint, or in the folder above.",
    )
    output_dir: str = required_field(str, "Folder of the run that is written.")
    target_space_id: int | None = optional_field(
        int, "Row of the target space embedding; by default the one trained, or 0."
    )


@command
def main(flags: ImportFlags) -> None:
    """Imports the checkpoints, and prints what was imported."""
    files = T2TFiles.find(
        flags.t2t_checkpoint, flags.t2t_vocab, flags.t2t_hparams, flags.problem
    )
    load_tensorflow()
    folder = RunFolder(flags.output_dir)
    words = ["t2t-import", *flags.words(defaults=True)]
    print(import_run(files, folder, words, flags.target_space_id))


if __name__ == "__main__":
    raise SystemExit(main())
