"""t2t-export writes a trained run in a format that other programs read.

  t2t-export --output_dir=RUN --export_dir=DIR --format=saved_model

saved_model  DIR/1, which TensorFlow and TensorFlow Serving load without t2tlite:
             sentences in, n-best lists out; for translation with
             SentencePiece vocabularies.
ctranslate2  DIR is a model of CTranslate2, fast on CPUs
             (pip install 't2tlite[ctranslate2]'), with its vocabulary;
             --quantization=int8 makes it smaller and faster, and changes some
             translations.
argos        DIR/translate-en_de.argosmodel, a package that Argos Translate and
             LibreTranslate install (pip install 't2tlite[ctranslate2]');
             --languages=en-de names its languages if the run does not record them.

--checkpoint_path=averaged (or best, ...) chooses the weights,
--decode_hparams=beam_size=8,alpha=1.0 the decoding options of an export that includes
the search; otherwise they are the run's.

Before the command reports success, it translates some sentences with the export and
with the run, ctranslate2 and argos by greedy search, and reports how many translations
are equal: all must be, unless weights are quantised or the run computes in 16 bits. DIR
appears when everything is written and compared; after an error nothing is left behind,
and an earlier export is unchanged. DIR/README.md says how to use the export. A model or
an option that a format cannot express is an error that names it. docs/export.md has
examples.
"""

import dataclasses

from t2tlite.bin import groups
from t2tlite.bin.command import command, load_tensorflow
from t2tlite.checked_fields import checked_field, required_field
from t2tlite.console import say
from t2tlite.files.checkpoint_paths import find_checkpoint
from t2tlite.programs.export import export, formats
from t2tlite.programs.runs import load, translator


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExportFlags(groups.TensorFlowFlags, groups.DecodingFlags, groups.RunFlags):
    """Which run is exported, and how."""

    export_dir: str = required_field(str, "Folder of the export, which is created.")
    format: str = required_field(
        str, f"Format of the export: {', '.join(formats.FORMATS)}."
    )
    overwrite: bool = checked_field(
        False, "Replace an export in --export_dir, with all that its folder holds."
    )
    languages: str = checked_field(
        "",
        "Of --format=argos: codes of source and target, such as en-de; by default the"
        " run's.",
    )


@command
def main(flags: ExportFlags) -> None:
    """Exports the run, and reports what was compared with it."""
    export_format = formats.open_format(
        flags.format,
        quantization=flags.quantization or "",
        languages=flags.languages,
    )
    run = groups.existing_run(flags)
    plan = export.ExportPlan(
        run=run,
        checkpoint=find_checkpoint(run.path, flags.checkpoint_path),
        format=export_format,
        decoding=translator.decode_options(run.manifest(), flags.decode_hparams),
        export_dir=flags.export_dir,
        overwrite=flags.overwrite,
    )
    plan.check()
    load_tensorflow()
    say(f"Loading {run} ...")
    model = load.load(run.path, flags.checkpoint_path)
    for note in model.notes:
        say(note)
    compared = export.export_model(model, plan)
    print(
        f"Exported {model.checkpoint} to {plan.folder}. Equal to the run: {compared}."
    )


if __name__ == "__main__":
    raise SystemExit(main())
