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
embeddings shared or not; of any other, the hparams that differ are named. Checkpoints
can be added to RUN later. docs/from-tensor2tensor.md has the details.
"""

from __future__ import annotations

import functools
from pathlib import Path

from tqdm import tqdm

from t2tlite.bin import flags
from t2tlite.console import say
from t2tlite.programs.tensor2tensor.t2t_files import T2TFiles


def files_of(args: flags.Args) -> T2TFiles:
    """The files to import. Raises if one is missing, before TensorFlow is loaded."""
    flags.require(args, "t2t_checkpoint", "t2t_vocab", "output_dir")
    checkpoint, *vocabularies = map(Path, (args.t2t_checkpoint, *args.t2t_vocab))
    hparams_file = Path(args.t2t_hparams) if args.t2t_hparams else None
    files = T2TFiles(
        checkpoint,
        vocabularies,
        hparams_file,
        target_space=args.target_space_id,
        problem=args.problem,
    )
    files.check()
    return files


@flags.command(
    __doc__,
    "t2t_checkpoint t2t_vocab t2t_hparams output_dir problem target_space_id verbosity",
    check=files_of,
)
def main(args: flags.Args) -> None:
    """Imports the checkpoints, and reports what was imported and what differs in
    training.
    """
    from t2tlite.programs.tensor2tensor.import_run import import_run

    files = files_of(args)
    folder = flags.run_folder(args)
    progress = functools.partial(
        tqdm, desc="importing", unit="checkpoint", leave=False, disable=None
    )
    imported = import_run(
        files, folder, ["t2t-import", *flags.words(args, defaults=True)], progress
    )
    for note in imported.notes:
        say(f"Note: {note}")
    names = ", ".join(Path(path).name for path in imported.checkpoints)
    space = (
        ""
        if imported.target_space is None
        else f", target space {imported.target_space}"
    )
    print(
        f"Imported {names}: {imported.parameters:,} parameters{space}. The optimizer's"
        f" state is not imported. The run is in {folder}."
    )


if __name__ == "__main__":
    raise SystemExit(main())
