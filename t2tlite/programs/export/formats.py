"""The formats of exports: each writes any model that it can express, and reads it back
to be compared with the run.
"""

import abc
import dataclasses
import functools
import importlib.util
import json
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from t2tlite.checked_fields import CheckedFields, checked, checked_field
from t2tlite.config import DecodeHParams
from t2tlite.console import say
from t2tlite.data import language_codes
from t2tlite.decoding.text_decoder import TextDecoder
from t2tlite.files import own_files
from t2tlite.machine import quiet_stderr
from t2tlite.programs.export import ctranslate2_engine, ctranslate2_spec
from t2tlite.programs.export.ctranslate2_engine import FLOAT32, CTranslate2Engine
from t2tlite.run_folder import RunFolder
from t2tlite.tasks.parsing import ParsingTask
from t2tlite.types import Seq2SeqModel

ReadmeFacts = Mapping[str, object]  # what readme.md.jinja needs beside the record
# the best output of each sentence, as a sequence
Translate = Callable[[Sequence[str], DecodeHParams], list[str]]

VERSION = "1"  # the folder of the only version in TensorFlow Serving's layout
# in an .argosmodel
MODEL = "model"
VOCABULARY = "sentencepiece.model"

# batch_size that decodes all sentences in one batch, so that rounding is the same too
ONE_BATCH = 1_000_000


def keras_model(model: TextDecoder) -> Seq2SeqModel:
    """The model that TensorFlow computes with; ValueError if another engine does."""
    keras: Seq2SeqModel | None = getattr(model.engine, "model", None)
    if keras is None:
        raise ValueError(
            "A model to export must be loaded without an engine. Received:"
            f" engine={model.engine.name}."
        )
    return keras


def best_sequences(
    model: TextDecoder, sentences: Sequence[str], options: DecodeHParams
) -> list[str]:
    """The best output of each sentence as a sequence, all decoded in one batch."""
    options = dataclasses.replace(options, batch_size=ONE_BATCH)
    n_best = model.decode(sentences, options, task=model.task.as_sequences())
    return [outputs[0].text for outputs in n_best]


@dataclasses.dataclass(frozen=True)
class ExportFormat(CheckedFields, abc.ABC):
    """A format of exports: writes any model that it can express, and reads it back.

    A subclass is a frozen dataclass, whose fields are the options of the format.
    """

    name: ClassVar[str]
    supported: ClassVar[frozenset[str]]  # fields of DecodeHParams
    # what is compared with the run, and options of both then
    compared: ClassVar[str] = "translations"
    compared_with: ClassVar[Mapping[str, Any]] = {}

    def check(self, run: RunFolder, folder: Path) -> None:
        """Raises ValueError that names what the format cannot express, or the package
        that it needs, and for a `folder` that it cannot be loaded from.
        """

    @abc.abstractmethod
    def write(
        self, model: TextDecoder, folder: Path, decoding: DecodeHParams
    ) -> ReadmeFacts:
        """Writes the export into an empty folder."""

    @abc.abstractmethod
    def open(self, model: TextDecoder, folder: Path) -> Translate:
        """Reads back what was written."""

    def is_exact(self, model: TextDecoder) -> bool:
        """Whether the export must decode as the run does."""
        return keras_model(model).compute_dtype == FLOAT32


@dataclasses.dataclass(frozen=True)
class SavedModelFormat(ExportFormat):
    """A SavedModel, whose graph has vocabulary, beam search and model: text in, text
    out, for TensorFlow and TensorFlow Serving without t2tlite.
    """

    name = "saved_model"
    supported = CTranslate2Engine.supported | {"min_length", "no_repeat_ngram_size"}

    def check(self, run: RunFolder, folder: Path) -> None:
        manifest = run.manifest()
        kinds = {entry.type for entry in manifest.vocabularies}
        if manifest.task == ParsingTask.name or kinds != {"sentencepiece"}:
            raise ValueError(
                "format=saved_model needs a translation model with SentencePiece"
                f" vocabularies. Received: {manifest.name}. Use format=ctranslate2."
            )
        if importlib.util.find_spec("tensorflow_text") is None:
            raise ValueError("format=saved_model needs the package tensorflow-text.")
        if "[" in str(folder):  # of a pattern to TensorFlow
            raise ValueError(
                "TensorFlow loads no SavedModel from a path with '['. Received:"
                f" {folder}. Use another export_dir, or format=ctranslate2."
            )

    def write(
        self, model: TextDecoder, folder: Path, decoding: DecodeHParams
    ) -> ReadmeFacts:
        from t2tlite.programs.export.graph import save_graph  # loads TensorFlow

        with quiet_stderr():  # SentencePiece prints messages
            save_graph(model, keras_model(model), decoding, folder / VERSION)
        return {}

    def open(self, model: TextDecoder, folder: Path) -> Translate:
        import tensorflow as tf  # loaded with the model

        with quiet_stderr():
            loaded = tf.saved_model.load(str(folder / VERSION))

        def translate(sentences: Sequence[str], options: DecodeHParams) -> list[str]:
            outputs = loaded.translate(tf.constant(sentences))
            return [row[0].decode() for row in outputs["texts"].numpy()]

        return translate


@dataclasses.dataclass(frozen=True)
class CTranslate2Format(ExportFormat):
    """A model directory of CTranslate2, with our vocabularies."""

    name = "ctranslate2"
    supported = CTranslate2Engine.supported
    compared = "greedy translations"  # beam searches differ
    compared_with: ClassVar[Mapping[str, Any]] = {"beam_size": 1, "return_beams": 1}
    quantization: str = checked_field(
        FLOAT32, "", choices=ctranslate2_engine.QUANTIZATIONS
    )

    def check(self, run: RunFolder, folder: Path) -> None:
        ctranslate2_engine.import_ctranslate2()
        ctranslate2_engine.check_expressible(run.hparams())

    def write(
        self, model: TextDecoder, folder: Path, decoding: DecodeHParams
    ) -> ReadmeFacts:
        keras = keras_model(model)
        weights = {}
        for variable in keras.trainable_variables:
            weights[variable.path] = variable.numpy()
        ctranslate2_spec.convert(
            keras.hparams, weights, model.encoders, folder, self.quantization
        )
        return {"patience": ctranslate2_engine.PATIENCE}

    def open(self, model: TextDecoder, folder: Path) -> Translate:
        return self._open(model, folder, self.quantization)

    def _open(self, model: TextDecoder, folder: Path, compute_type: str) -> Translate:
        engine = CTranslate2Engine(
            ctranslate2_engine.open_translator(folder, compute_type),
            model.encoders,
            compute_type,
            model.engine.max_positions,
            model.engine.parameters,
            lambda: keras_model(model),
        )
        exported = TextDecoder(engine, model.encoders, model.manifest)
        return functools.partial(best_sequences, exported)

    def is_exact(self, model: TextDecoder) -> bool:
        return self.quantization == FLOAT32 and super().is_exact(model)


@dataclasses.dataclass(frozen=True)
class ArgosFormat(CTranslate2Format):
    """A package that Argos Translate and LibreTranslate install: a zip file with one
    folder, which has a model directory of CTranslate2, a SentencePiece model for both
    languages, and metadata.
    """

    name = "argos"
    compared = "greedy translations with ARGOS_COMPUTE_TYPE=auto"
    languages: str = checked_field("", "Such as en-de; by default the run's.")

    def check(self, run: RunFolder, folder: Path) -> None:
        super().check(run, folder)
        manifest = run.manifest()
        pair = language_codes.pair_of_run(str(run), manifest, self.languages or None)
        note = language_codes.contradiction(str(run), manifest, pair)
        if note:
            say(note)
        source, target = manifest.vocabularies
        if source != target or source.type != "sentencepiece":
            raise ValueError(
                "format=argos needs one SentencePiece vocabulary. Received:"
                f" {source.file} and {target.file}. Use format=ctranslate2."
            )

    def write(
        self, model: TextDecoder, folder: Path, decoding: DecodeHParams
    ) -> ReadmeFacts:
        from_code, to_code = language_codes.pair_of_run(
            repr(model), model.manifest, self.languages or None
        )
        name = f"translate-{from_code}_{to_code}"
        metadata = {
            # greater than those of published packages, whose updates then do not
            # replace this one
            "package_version": f"{model.step}.0",
            "argos_version": "1.9",
            "from_code": from_code,
            "from_name": language_codes.language_name(from_code),
            "to_code": to_code,
            "to_name": language_codes.language_name(to_code),
            "type": "translate",
        }
        package = folder / name
        (package / MODEL).mkdir(parents=True)
        super().write(model, package / MODEL, decoding)
        vocabulary = package / MODEL / model.source_encoder.path.name
        vocabulary.rename(package / VOCABULARY)
        text = json.dumps(metadata, ensure_ascii=False, indent=2)
        (package / "metadata.json").write_text(text, encoding="utf-8")
        shutil.make_archive(str(package), "zip", folder, name)
        (folder / f"{name}.zip").rename(folder / f"{name}.argosmodel")
        own_files.remove(package)
        return {"package": name, **metadata}

    def open(self, model: TextDecoder, folder: Path) -> Translate:
        """Computes in the type that Argos Translate chooses."""
        [archive] = folder.glob("*.argosmodel")
        with tempfile.TemporaryDirectory() as unpacked:
            shutil.unpack_archive(archive, unpacked, "zip")
            directory = Path(unpacked) / archive.stem / MODEL
            return self._open(model, directory, ctranslate2_engine.AUTO)

    def is_exact(self, model: TextDecoder) -> bool:
        return False


FORMATS: dict[str, type[ExportFormat]] = {
    format_class.name: format_class
    for format_class in (SavedModelFormat, CTranslate2Format, ArgosFormat)
}


def open_format(name: str, **options: str) -> ExportFormat:
    """The format of this name with these options, of which empty ones are left out.
    Raises ValueError for an unknown format or option, or a bad value.
    """
    checked("format", str, name, choices=FORMATS)
    format_class = FORMATS[name]
    given = {option: value for option, value in options.items() if value}
    for option in given:
        if option not in format_class.__dataclass_fields__:
            raise ValueError(f"format={name} has no option {option}. Leave it out.")
    return format_class(**given)
