"""The format saved_model: text in, text out, for TensorFlow and TensorFlow Serving
without t2tlite.
"""

import dataclasses
import fnmatch
import importlib.util
from pathlib import Path

from t2tlite.config import DecodeHParams
from t2tlite.decoding.text_decoder import TextDecoder
from t2tlite.files.atomic_file import copy_file
from t2tlite.machine import quiet_stderr
from t2tlite.programs.export.plan import ExportFormat, ExportPlan, Facts
from t2tlite.programs.export.verification import OpenedExport
from t2tlite.tasks.parsing import ParsingTask
from t2tlite.vocabularies.sentencepiece_encoder import SentencePieceEncoder

VERSION = "1"  # the folder of the only version in TensorFlow Serving's layout
ASSETS = "assets.extra"  # of a SavedModel, for files that are not part of its graph


@dataclasses.dataclass(frozen=True)
class SavedModelFormat(ExportFormat):
    """Writes a SavedModel, whose graph has vocabulary, beam search and model."""

    name = "saved_model"
    supported = frozenset(
        {
            "beam_size",
            "alpha",
            "extra_length",
            "batch_size",
            "return_beams",
            "min_length",
            "no_repeat_ngram_size",
            "t2t_rules",
        }
    )  # sampling is not among them

    def check(self, plan: ExportPlan) -> None:
        super().check(plan)
        types = [entry.type for entry in plan.run.manifest().vocabularies]
        has_text = importlib.util.find_spec("tensorflow_text") is not None
        if "sentencepiece" in types and not has_text:
            raise ValueError(
                "A SavedModel with a SentencePiece vocabulary needs tensorflow-text,"
                " which is not installed. Use format=ctranslate2."
            )
        path = str(plan.folder)
        if "\\" in path or not fnmatch.fnmatchcase(path, path):
            raise ValueError(
                "The path of a SavedModel must have no brackets or backslashes, which"
                f" are a pattern to TensorFlow. Received: {path}."
            )

    def write(self, model: TextDecoder, folder: Path, decoding: DecodeHParams) -> Facts:
        """Saves the graph, and the vocabularies that cannot be part of it."""
        from t2tlite.programs.export.graph import save_graph  # loads TensorFlow

        signature = _signature(model)
        with quiet_stderr():  # SentencePiece prints messages
            save_graph(model, decoding, signature, folder / VERSION)
        for encoder in dict.fromkeys(model.encoders):
            if not isinstance(encoder, SentencePieceEncoder):
                assets = folder / VERSION / ASSETS
                assets.mkdir(exist_ok=True)
                copy_file(encoder.path, assets / encoder.path.name)
        return {"signature": signature}

    def open(
        self, model: TextDecoder, folder: Path, decoding: DecodeHParams
    ) -> OpenedExport:
        from t2tlite.programs.export.graph import LoadedGraph  # loads TensorFlow

        signature = _signature(model)
        with quiet_stderr():
            return LoadedGraph(model, decoding, signature, folder / VERSION)


def _signature(model: TextDecoder) -> str:
    """The name of the function that decodes."""
    return "parse" if isinstance(model.task, ParsingTask) else "translate"
