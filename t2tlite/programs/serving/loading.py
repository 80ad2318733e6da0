"""Loads the runs that are served, and warms them up."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from t2tlite.decoding.source_text import evenly_spaced
from t2tlite.programs.runs.checkpoint_choice import checkpoint_notes
from t2tlite.programs.runs.load import load, run_dataset
from t2tlite.programs.runs.translator import Translator, decode_options
from t2tlite.programs.serving.batching import WORKERS
from t2tlite.programs.serving.detection import detect
from t2tlite.programs.serving.languages import language_name
from t2tlite.programs.serving.models import WARM_UP, Catalogue, ServedModel
from t2tlite.programs.serving.options import MAX_BEAM_SIZE, RunOptions
from t2tlite.run_folder import RunFolder

EXAMPLES, MAX_EXAMPLE = 4, 60  # sentences for the page; characters of each


def load_catalogue(
    options: RunOptions, pairs: Sequence[tuple[str, str]], report: Callable[[str], None]
) -> Catalogue:
    """The models of the runs, warm. Raises ValueError or OSError if a run cannot be
    loaded.
    """
    detect(WARM_UP, ["en"])  # loads the classifier, so that the first request is quick
    models: list[ServedModel] = []
    # by run, which may translate to several languages
    loaded: dict[str, Translator] = {}
    tags = options.tags or ("",) * len(pairs)
    for run, (source, target), tag in zip(options.runs, pairs, tags, strict=True):
        started = time.monotonic()
        tagged = f", by the tag {tag}" if tag else ""
        report(
            f"Loading {run}: {language_name(source)} to"
            f" {language_name(target)}{tagged}."
        )
        if run not in loaded:
            loaded[run] = load(
                run,
                options.checkpoint_path,
                options.engine,
                options.quantization,
                report=report,
                jit_compile=False,  # XLA would compile anew for each length
                threads=WORKERS,
            )
            for note in checkpoint_notes(RunFolder(run), loaded[run].checkpoint):
                report(note)
        translator = loaded[run]
        if tag and len(translator.source_encoder.encode(tag)) > 1:
            report(
                f"The tag {tag} is not one piece of the vocabulary of {run}. Was the"
                " model trained with it?"
            )
        defaults = decode_options(translator.manifest, options.decode_hparams)
        beam_size, examples = (
            max(MAX_BEAM_SIZE, defaults.beam_size),
            example_sentences(run, tag),
        )
        model = ServedModel(
            translator, source, target, defaults, beam_size, tag, examples
        )
        model.warm_up()
        models.append(model)
        report(
            f"Loaded step {translator.step:,} in {time.monotonic() - started:.1f}"
            " seconds."
        )
    return Catalogue(models)


def example_sentences(run: str, tag: str = "") -> tuple[str, ...]:
    """Short sources of dev, those with the tag without it; none if the run's data is
    not where it was in training.
    """
    try:
        sources = run_dataset(RunFolder(run)).store("dev").source_text()
    except (OSError, ValueError):
        return ()
    sentences = dict.fromkeys(
        text.removeprefix(tag).strip() for text in sources if text.startswith(tag)
    )
    short = [sentence for sentence in sentences if 0 < len(sentence) <= MAX_EXAMPLE]
    return tuple(short[i] for i in evenly_spaced(len(short), EXAMPLES))
