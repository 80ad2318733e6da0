"""Loads the runs that are served, and warms them up."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from t2tlite.programs.runs.checkpoint_choice import remarks
from t2tlite.programs.runs.engines import load_with_engine
from t2tlite.programs.runs.translator import Translator, decode_options
from t2tlite.programs.serving.detection import detect
from t2tlite.programs.serving.languages import language_name
from t2tlite.programs.serving.options import MAX_BEAM_SIZE, RunOptions
from t2tlite.programs.serving.served_model import WARM_UP, Catalogue, ServedModel
from t2tlite.run_folder import RunFolder


def load_catalogue(options: RunOptions, pairs: Sequence[tuple[str, str]], report: Callable[[str], None]) -> Catalogue:
    """The models of the runs, warm. Raises ValueError or OSError if a run cannot be loaded."""
    detect(WARM_UP, ["en"])  # loads the classifier, so that the first request is quick
    models = []
    for run, (source, target) in zip(options.runs, pairs, strict=True):
        started = time.monotonic()
        report(f"Loading {run}: {language_name(source)} to {language_name(target)}.")
        translator = load_with_engine(run, options.checkpoint_path, options.engine, options.quantization, report)
        for remark in remarks(RunFolder(run), translator.checkpoint):
            report(remark)
        if translator.jit_compile:  # XLA would compile anew for each length
            encoders = translator.source_encoder, translator.target_encoder
            translator = Translator(translator.model, encoders, translator.manifest, False, translator.checkpoint)
        defaults = decode_options(translator.manifest, options.decode_hparams)
        model = ServedModel(translator, source, target, defaults, max(MAX_BEAM_SIZE, defaults.beam_size))
        model.warm_up()
        models.append(model)
        report(f"Loaded step {translator.step:,} in {time.monotonic() - started:.1f} seconds.")
    return Catalogue(models)
