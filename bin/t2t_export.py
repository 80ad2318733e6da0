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
from t2tlite.programs.export.export import export_model, find_format
from t2tlite.programs.export.plan import ExportPlan
from t2tlite.programs.runs.translator import decode_options


def plan_of(args: flags.Args) -> ExportPlan:
    """What to export. Raises for a missing flag, a wrong format or a missing run."""
    flags.require(args, "export_dir", "format")
    export_format = find_format(args.format)
    run = flags.run_folder(args)
    hparams = run.hparams()
    manifest = run.manifest()
    return ExportPlan(
        run=run,
        checkpoint=find_checkpoint(run.path, args.checkpoint_path),
        hparams=hparams,
        manifest=manifest,
        format=export_format,
        decoding=decode_options(manifest, args.decode_hparams),
        quantization=args.quantization or "",
        export_dir=args.export_dir,
        overwrite=args.overwrite,
    )


@flags.command(
    __doc__,
    "problem hparams_set output_dir export_dir format quantization overwrite"
    " checkpoint_path decode_hparams",
    "t2t_usr_dir verbosity",
    check=lambda args: plan_of(args).check(),
)
def main(args: flags.Args) -> None:
    """Exports the run, and reports what was compared with it."""
    plan = plan_of(args)
    say(f"Loading {plan.run} ...")
    model = flags.load_run(plan.run, args.checkpoint_path)
    compared = export_model(model, plan, say)
    print(
        f"Exported {model.checkpoint} to {plan.folder}. Equal to the run: {compared}."
    )


if __name__ == "__main__":
    raise SystemExit(main())
