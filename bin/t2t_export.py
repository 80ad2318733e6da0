"""t2t-export writes a trained run in a format that other programs read.

  t2t-export --output_dir=RUN --export_dir=DIR --format=saved_model

saved_model  DIR/1, which TensorFlow and TensorFlow Serving load without t2tlite:
             sentences in, n-best lists out; of a run with tensor2tensor's vocabulary
             token ids, in and out.
keras        DIR/model.keras, which keras.saving.load_model opens: the model alone,
             its vocabulary beside it.
ctranslate2  DIR is a model of CTranslate2, fast on CPUs
             (pip install 't2tlite[ctranslate2]'), with its vocabulary;
             --quantization=int8 makes it smaller and faster, and changes some
             translations.

--checkpoint_path=averaged (or best, ...) chooses the weights,
--decode_hparams=beam_size=8,alpha=1.0 the decoding defaults of an export that includes
the search; otherwise they are the run's.

Before the command reports success, it decodes some sentences with the export and with
the run: texts must be equal, scores and log-probabilities within 0.0001. For
ctranslate2 it requires this of greedy search only (log-probabilities within 0.001), and
reports how many beam-search translations are equal; with a quantization it reports both
numbers. DIR appears when everything is written and verified; after an error nothing is
left behind, and an earlier export is unchanged. DIR/README.md says how to use the
export. A model or an option that a format cannot express is an error that names it.
docs/export.md has examples.
"""

from __future__ import annotations

from t2tlite.bin import flags
from t2tlite.console import say
from t2tlite.files.checkpoint_paths import find_checkpoint
from t2tlite.programs.export import formats
from t2tlite.programs.export.export_folder import ExportFolder


def settings_of(args: flags.Args) -> formats.Settings:
    """What to export; raises for wrong flags, a missing run, or a folder that is in
    use.
    """
    from t2tlite.programs.runs.translator import decode_options

    flags.require(args, "export_dir", "format")
    formats.check_format(args.format)
    run = flags.run_folder(args)
    run.hparams()
    checkpoint = find_checkpoint(run.path, args.checkpoint_path)
    folder = ExportFolder(args.export_dir, args.overwrite)
    folder.check_apart_from(run, checkpoint)
    folder.check()
    return formats.Settings(
        decode_options(run.manifest(), args.decode_hparams), args.quantization or ""
    )


@flags.command(
    __doc__,
    "problem hparams_set output_dir export_dir format quantization overwrite"
    " checkpoint_path decode_hparams",
    "t2t_usr_dir verbosity",
    check=settings_of,
)
def main(args: flags.Args) -> None:
    """Exports the run, and reports what was compared with it."""
    from t2tlite.programs.export import export

    folder = ExportFolder(args.export_dir, args.overwrite)
    run = flags.run_folder(args)
    say(f"Loading {run} ...")
    model = flags.load_run(run, args.checkpoint_path)
    settings = settings_of(args)
    try:
        compared = export.export_model(model, folder, args.format, settings, say)
    except ImportError as error:
        raise flags.CommandError(str(error)) from error
    print(
        f"Exported {model.checkpoint} to {folder.path}. Equal to the run: {compared}."
    )


if __name__ == "__main__":
    raise SystemExit(main())
