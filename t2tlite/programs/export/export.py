"""Exports the model of a run for other programs: one path for every format.

An export is complete, verified and moved to its place, or leaves nothing behind.
"""

import contextlib
import dataclasses
from collections.abc import Iterator
from pathlib import Path

import t2tlite
from t2tlite.console import say
from t2tlite.decoding.text_decoder import TextDecoder
from t2tlite.files.atomic_file import atomic_folder
from t2tlite.files.own_files import only_process
from t2tlite.files.records import write_record
from t2tlite.programs.export.ctranslate2_formats import ArgosFormat, CTranslate2Format
from t2tlite.programs.export.plan import RECORD, ExportFormat, ExportPlan
from t2tlite.programs.export.saved_model import SavedModelFormat
from t2tlite.programs.export.verification import sample_sentences
from t2tlite.programs.templates import fill_in

README = "programs/export/readme.md.jinja"
FORMATS: dict[str, type[ExportFormat]] = {
    "saved_model": SavedModelFormat,
    "ctranslate2": CTranslate2Format,
    "argos": ArgosFormat,
}


def open_format(name: str, **options: str) -> ExportFormat:
    """The format of this name with these options, of which empty ones are left out.
    Raises ValueError for an unknown format or option.
    """
    if name not in FORMATS:
        raise ValueError(
            f"format must be one of {', '.join(FORMATS)}. Received: {name!r}."
        )
    known = [field.name for field in dataclasses.fields(FORMATS[name])]
    given = {}
    for option, value in options.items():
        if value and option not in known:
            raise ValueError(
                f"format={name} has no option {option}. Received: {option}={value}."
            )
        if value:
            given[option] = value
    return FORMATS[name](**given)


def export_model(model: TextDecoder, plan: ExportPlan) -> str:
    """Writes, verifies and puts in place an export of a model that TensorFlow loaded.

    `plan` has been checked. Returns what was verified to equal the run's output. Raises
    ValueError if the output differs, another process is exporting to the folder or has
    written one there meanwhile, and OSError if it cannot be written.
    """
    name = plan.format.name
    # of a parser, which chooses among them, the whole beam
    count = model.task.hypotheses(plan.decoding.return_beams, plan.decoding.beam_size)
    decoding = dataclasses.replace(plan.decoding, return_beams=count)
    record = {
        "format": name,
        "t2tlite": t2tlite.__version__,
        "problem": model.manifest.name,
        "checkpoint": model.checkpoint,
        "step": model.step,
        "decode_hparams": dataclasses.asdict(decoding),
        "options": dataclasses.asdict(plan.format),
    }
    sentences, origin = sample_sentences(model)
    with (
        only_process(plan.work, "export to a folder"),
        atomic_folder(plan.folder, plan.work, plan.check_replaceable) as unfinished,
    ):
        say(f"Writing the model as {name} ...")
        with _writing(plan.folder):
            facts = plan.format.write(model, unfinished, decoding)
            write_record(unfinished / RECORD, record)
            vocabularies = model.manifest.vocabularies
            readme = fill_in(README, {**record, **facts, "vocabularies": vocabularies})
            (unfinished / "README.md").write_text(readme, encoding="utf-8")
        say(f"Decoding {len(sentences)} sentences with the export and the run ...")
        compared = plan.format.verify(model, unfinished, decoding, sentences)
    return f"{compared} of {len(sentences)} sentences {origin}"


@contextlib.contextmanager
def _writing(folder: Path) -> Iterator[None]:
    """Turns an error of writing, also one of TensorFlow's, into an OSError that names
    the export's folder.
    """
    import tensorflow as tf  # loaded with the model

    try:
        yield
    except (OSError, tf.errors.OpError) as error:
        raise OSError(f"export_dir={folder} cannot be written: {error}.") from error
