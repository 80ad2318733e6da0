"""A run that is served, and what can be asked of it; the catalogue of all runs, and how
it is loaded.
"""

from __future__ import annotations

import dataclasses
import functools
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from starlette.exceptions import HTTPException

from t2tlite.config import DecodeHParams, HParams
from t2tlite.console import say
from t2tlite.data.language_codes import distance, language_name
from t2tlite.decoding.engine import ALIGNMENTS, TENSORFLOW
from t2tlite.decoding.text_decoder import evenly_spaced
from t2tlite.programs.runs.load import load, run_dataset
from t2tlite.programs.runs.translator import Translator, decode_options
from t2tlite.programs.serving.batching import WORKERS
from t2tlite.programs.serving.languages import ServedPair, detect
from t2tlite.programs.serving.options import (
    MAX_SEARCH_TOKENS,
    MAX_SERVED_TOKENS,
    ServedRunOptions,
)
from t2tlite.programs.serving.requests import SHOWN, check_limit
from t2tlite.run_folder import RunFolder
from t2tlite.tasks.parsing import ParsingTask

if TYPE_CHECKING:
    from t2tlite.tasks.task import Output

WARM_UP = "Warm up."  # decoded once before the first request
MAX_EXAMPLES = 4  # sentences that the page offers
MAX_EXAMPLE = 60  # characters of an example


@dataclasses.dataclass(frozen=True, eq=False)
class ServedModel:
    """A loaded run and its language pair."""

    translator: Translator
    source: str
    target: str
    options: DecodeHParams  # unless a request says otherwise
    # before every source, for a model that translates to several languages
    tag: str = ""
    examples: tuple[str, ...] = ()

    @property
    def makes_trees(self) -> bool:
        """Whether this is a parser."""
        return isinstance(self.translator.task, ParsingTask)

    @property
    def aligns(self) -> bool:
        """Whether word alignments can be computed."""
        return ALIGNMENTS in self.translator.engine.supported and not self.makes_trees

    @functools.cached_property
    def hparams(self) -> HParams:
        """The hparams of the run."""
        return RunFolder(self.translator.run).hparams()

    # results

    def decode(
        self, sentences: Sequence[str], options: DecodeHParams, aligned: bool = False
    ) -> list[list[Output]]:
        """The n-best list of each sentence, with word alignments if `aligned`, or its
        parse.
        """
        if self.makes_trees:
            parses = self.translator.parse(sentences, **dataclasses.asdict(options))
            return [[parse] for parse in parses]
        sources = self.tagged(sentences)
        n_best = self.translator.decode(sources, options)
        if aligned:
            return self.translator.aligned(sources, n_best, self.tag_words)
        return n_best

    def score(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """The log-probability of each pair of source and target."""
        sources, targets = zip(*pairs, strict=True)
        return list(self.translator.score(self.tagged(sources), targets))

    def tagged(self, sources: Sequence[str]) -> list[str]:
        """The sources as the model was trained on them, with the tag before each."""
        if not self.tag:
            return list(sources)
        return [f"{self.tag} {source}" for source in sources]

    @property
    def tag_words(self) -> int:
        """The number of words of the tag."""
        return len(self.tag.split())

    # limits

    @functools.lru_cache(maxsize=64)  # noqa: B019  # models live as long as the process
    def decode_options(
        self, n_best: int = 1, beam_size: int | None = None, alpha: float | None = None
    ) -> DecodeHParams:
        """The options of a request. Raises HTTPException 400 if the beam is too small.

        The beam is at least as large as the n-best list. An n-best list is the whole
        beam, so that lists of different lengths can share a batch.
        """
        beam = beam_size or max(self.options.beam_size, n_best)
        most = 1 if self.makes_trees else beam
        if n_best > most:
            raise HTTPException(
                400,
                f"alternatives must be at most {most - 1}: less than beam_size, and 0"
                f" to parse. Received: {n_best - 1}. Ask for fewer.",
            )
        if alpha is None:
            alpha = self.options.alpha
        return_beams = beam if n_best > 1 else 1
        return dataclasses.replace(
            self.options, beam_size=beam, return_beams=return_beams, alpha=alpha
        )

    def token_counts(
        self, sentences: Sequence[str], targets: bool = False, limit: int | None = None
    ) -> list[int]:
        """The number of tokens of each source or target, EOS included.

        Raises HTTPException 413 if a sentence has more than `limit`, EOS not counted,
        or more than the model can read.
        """
        if targets:
            encoded = self.translator.target_encoder.encode_batch(sentences)
        else:
            sources = self.tagged(sentences)
            encoded = self.translator.source_encoder.encode_batch(sources)
        longest = self.translator.max_source_tokens
        limit = min(limit or longest, longest)
        counts = []
        for sentence, ids in zip(sentences, encoded, strict=True):
            advice = f"Split it: {sentence[:SHOWN]!r}..."
            check_limit("A sentence", len(ids), limit, "tokens", advice)
            counts.append(len(ids) + 1)
        return counts

    def search_token_counts(
        self, sentences: Sequence[str], beam_size: int
    ) -> list[int]:
        """`token_counts` of sentences to search. A search cannot be interrupted, so a
        wide one must have fewer tokens.
        """
        limit = min(MAX_SERVED_TOKENS, MAX_SEARCH_TOKENS // beam_size)
        return self.token_counts(sentences, limit=limit)


class Catalogue:
    """The served models by language pair."""

    def __init__(self, models: Sequence[ServedModel]) -> None:
        self.models = list(models)
        self.translators = [model for model in models if not model.makes_trees]

    def model(self, source: str | None, target: str | None) -> ServedModel:
        """The model of a language pair, whose target may be TREE. Raises HTTPException
        400 if there is none, or several and not both languages are given.
        """
        by_distance: dict[tuple[int, int], list[ServedModel]] = {}
        for model in self.models:
            to_source = distance(source, model.source)
            to_target = distance(target, model.target)
            if to_source is not None and to_target is not None:
                by_distance.setdefault((to_target, to_source), []).append(model)
        if by_distance:
            nearest = by_distance[min(by_distance)]
            if len(nearest) == 1:
                return nearest[0]
        served = ", ".join(f"{each.source}-{each.target}" for each in self.models)
        received = f"source {source or 'missing'}, target {target or 'missing'}"
        raise HTTPException(
            400,
            f"source and target must be one of the pairs served: {served}. Received:"
            f" {received[: 2 * SHOWN]}.",
        )

    def languages(self) -> dict[str, list[str]]:
        """The languages that each language can be translated to; every language served
        is a key.
        """
        targets_of: dict[str, list[str]] = {}
        for model in self.translators:
            targets_of.setdefault(model.source, []).append(model.target)
            targets_of.setdefault(model.target, [])
        return {code: sorted(targets) for code, targets in sorted(targets_of.items())}

    def translators_to(self, wanted: str | None) -> list[ServedModel]:
        """The models that translate to what a request may mean by a language."""
        models = []
        for model in self.translators:
            if distance(wanted, model.target) is not None:
                models.append(model)
        return models


def load_catalogue(options: ServedRunOptions, pairs: Sequence[ServedPair]) -> Catalogue:
    """The models of the pairs, warm. Raises ValueError or OSError if a run cannot be
    loaded.
    """
    detect(WARM_UP, ["en"])  # loads the classifier, so that the first request is quick
    models: list[ServedModel] = []
    # by run; a run may translate to several languages
    translators: dict[str, Translator] = {}
    for run, source, target, tag in pairs:
        started = time.monotonic()
        say_with_time(
            f"Loading {run}: {language_name(source)} to {language_name(target)}."
        )
        if run not in translators:
            translators[run] = load(
                run,
                options.checkpoint_path,
                options.engine,
                options.quantization,
                jit_compile=False,  # XLA would compile anew for each length
                threads=WORKERS,
            )
            for note in translators[run].notes:
                say_with_time(note)
        translator = translators[run]
        translator.engine.threads = 1  # a worker decodes its batch by itself
        defaults = decode_options(translator.manifest, options.decode_hparams)
        examples = example_sentences(run, tag)
        model = ServedModel(translator, source, target, defaults, tag, examples)
        _warm_up(model)
        models.append(model)
        seconds = time.monotonic() - started
        say_with_time(f"Loaded step {translator.step:,} in {seconds:.1f} seconds.")
    return Catalogue(models)


def _warm_up(model: ServedModel) -> None:
    """Builds what requests use by default, so that the first request is quick."""
    translator = model.translator
    # with CTranslate2, the first request for attention loads TensorFlow
    if translator.engine.name == TENSORFLOW:
        translator.attention_of(translator.sentence_pair(WARM_UP, WARM_UP))
    if not model.makes_trees:
        model.score([(WARM_UP, WARM_UP)])
    for sentences in ([WARM_UP], [WARM_UP] * 2):  # alone and together
        model.decode(sentences, model.decode_options(), model.aligns)


def say_with_time(line: str) -> None:
    """Prints a line of progress with the time."""
    say(f"{time.strftime('%H:%M:%S')} {line}")


def example_sentences(run: str, tag: str = "") -> tuple[str, ...]:
    """Short sources of the dev split, without the tag; none if the run's data is no
    longer where it was in training. With a tag, only sources that have it.
    """
    try:
        sources = run_dataset(RunFolder(run)).store("dev").source_text()
    except (OSError, ValueError):
        return ()
    short: dict[str, None] = {}
    for source in sources:
        sentence = source.removeprefix(tag).strip()
        if source.startswith(tag) and 0 < len(sentence) <= MAX_EXAMPLE:
            short[sentence] = None
    sentences = list(short)
    return tuple(sentences[i] for i in evenly_spaced(len(sentences), MAX_EXAMPLES))
