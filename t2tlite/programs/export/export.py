"""Exports the model of a run for other programs, in one of the formats of `formats.py`.

An export is complete, compared with the run and moved to its place, or leaves nothing
behind.
"""

import contextlib
import dataclasses
from collections.abc import Sequence
from pathlib import Path

import t2tlite
from t2tlite.config import DecodeHParams
from t2tlite.console import say
from t2tlite.data.dataset import open_dataset
from t2tlite.decoding.engine import check_supported
from t2tlite.decoding.text_decoder import TextDecoder
from t2tlite.files import atomic_file, own_files, records, same_file
from t2tlite.programs.export.formats import ExportFormat, best_sequences
from t2tlite.programs.templates import fill_in
from t2tlite.run_folder import RunFolder

README = "programs/export/readme.md.jinja"
RECORD = "export.json"  # a folder with this record is an export
EXAMPLES = "A sentence.", "Another one."  # in the README
SAMPLES = 12  # sentences that are decoded with the export and the run
LONGEST = 48  # tokens of one that is a sentence of dev
WORDS_EACH = 4  # of one that is made of the vocabulary


@dataclasses.dataclass(frozen=True)
class ExportPlan:
    """A run's model, and how and where it is to be exported."""

    run: RunFolder
    checkpoint: str
    format: ExportFormat
    decoding: DecodeHParams  # the export's, if it includes the search
    export_dir: str | Path
    overwrite: bool

    @property
    def folder(self) -> Path:
        """The folder of the export; of a link, the one that it leads to."""
        return Path(self.export_dir).expanduser().resolve()

    def check(self) -> None:
        """Creates the folder's parent.

        Raises ValueError if the format cannot express the model or an option, or the
        folder must not be replaced, and OSError if its parent cannot be made.
        """
        atomic_file.check_name(self.folder)
        name = self.format.name
        check_supported(f"format={name}", self.format.supported, self.decoding)
        self.format.check(self.run, self.folder)
        self.check_replaceable()
        self.folder.parent.mkdir(parents=True, exist_ok=True)

    def check_replaceable(self) -> None:
        """Raises ValueError unless the folder is new, empty, or an export that may be
        overwritten; and is apart from the run.
        """
        folder = self.folder
        inputs = self.run.path, Path(self.checkpoint).parent
        pairs = [(path, folder) for path in inputs]
        pairs += [(folder, path) for path in self.run.folders()]
        if any(same_file.is_within(*pair) for pair in pairs):
            raise ValueError(
                "export_dir must be apart from the run's own files. Received:"
                f" {folder}. Use {self.run.path / 'export'}."
            )
        if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
            return
        is_export = (folder / RECORD).is_file()
        if not (is_export and self.overwrite):
            raise ValueError(
                "export_dir must be a new folder, or with overwrite another export."
                f" Received: {folder}."
            )
        own_files.own(Path(self.export_dir).expanduser())  # would be replaced


def export_model(model: TextDecoder, plan: ExportPlan) -> str:
    """Writes a model that TensorFlow loaded, compares the export with the run, and puts
    it in place.

    `plan` has been checked. Returns how many translations are the run's. Raises
    ValueError if one is not and the format is exact, or another process is exporting to
    the folder or has written one there meanwhile, and OSError if it cannot be written.
    """
    from t2tlite.training.checkpoints import writing  # loads TensorFlow

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
    folder = plan.folder
    work = own_files.own(folder.with_name(f".{folder.name}.exporting"))
    with (
        own_files.only_process(work, "export to a folder"),
        atomic_file.atomic_folder(folder, work, plan.check_replaceable) as unfinished,
    ):
        say(f"Writing the model as {name} ...")
        with writing("The export", folder):
            facts = plan.format.write(model, unfinished, decoding)
        records.write_record(unfinished / RECORD, record)
        facts = {
            **record,
            **facts,
            "vocabularies": model.manifest.vocabularies,
            "examples": list(map(model.task.source, EXAMPLES)),
        }
        readme = fill_in(README, facts)
        (unfinished / "README.md").write_text(readme, encoding="utf-8")
        sentences = sample_sentences(model)
        say(f"Decoding {len(sentences)} sentences with the export and the run ...")
        equal = _count_equal(model, plan.format, unfinished, sentences, decoding)
    return f"{equal} of {len(sentences)} {plan.format.compared}"


def _count_equal(
    model: TextDecoder,
    export_format: ExportFormat,
    folder: Path,
    sentences: Sequence[str],
    decoding: DecodeHParams,
) -> int:
    """The number of sentences whose translation by the export is the run's. Raises
    ValueError for the first one that is not, if the format is exact.
    """
    options = dataclasses.replace(decoding, **export_format.compared_with)
    ours = best_sequences(model, sentences, options)
    theirs = export_format.open(model, folder)(sentences, options)
    equal = 0
    for sentence, expected, text in zip(sentences, ours, theirs, strict=True):
        if text == expected:
            equal += 1
        elif export_format.is_exact(model):
            raise ValueError(
                "An export must decode as the run does. Received for"
                f" {sentence!r}: {text!r} from the export, {expected!r} from the run."
                " Please report this."
            )
    return equal


def sample_sentences(model: TextDecoder) -> list[str]:
    """Sources of the run's dev data, or if that is gone or the run was imported,
    sentences of the vocabulary's words.
    """
    manifest = model.manifest
    encoder = model.source_encoder
    sources: list[str] = []
    if manifest.data_dir:
        with contextlib.suppress(OSError, ValueError):
            dataset = open_dataset(manifest.data_dir, manifest.name)
            sources = dataset.store("dev").source_text()
    samples = []
    for sentence, ids in zip(sources, encoder.encode_batch(sources), strict=True):
        if 0 < len(ids) <= min(LONGEST, model.max_source_tokens):
            samples.append(sentence)
    if samples:
        return samples[:: max(1, len(samples) // SAMPLES)][:SAMPLES]
    pieces = [encoder.decode([i]).strip() for i in range(2, encoder.vocab_size)]
    words = list(filter(str.isalnum, pieces))[: SAMPLES * WORDS_EACH]
    for start in range(0, len(words), WORDS_EACH):
        samples.append(" ".join(words[start : start + WORDS_EACH]))
    return samples
