"""A run that is served, and what can be asked of it; the catalogue of all runs, and how
it is loaded.
"""

from __future__ import annotations

import dataclasses
import functools
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from t2tlite.config import DecodeHParams, HParams
from t2tlite.data.language_codes import distance, language_name
from t2tlite.decoding.engine import ALIGNMENTS, TENSORFLOW
from t2tlite.decoding.source_text import evenly_spaced
from t2tlite.programs.runs.load import load, run_dataset
from t2tlite.programs.runs.translator import Translator, decode_options
from t2tlite.programs.serving.batching import WORKERS
from t2tlite.programs.serving.languages import detect
from t2tlite.programs.serving.options import (
    MAX_ATTENTION_WEIGHTS,
    MAX_SEARCH_TOKENS,
    MAX_SERVED_TOKENS,
    ServedRunOptions,
)
from t2tlite.programs.serving.requests import SHOWN, RequestError
from t2tlite.run_folder import RunFolder
from t2tlite.tasks.parsing import ParsingTask

if TYPE_CHECKING:
    from t2tlite.programs.visualise.attention import Attention
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
        sources = self._tagged(sentences)
        n_best = self.translator.decode(sources, options)
        if aligned:
            return self.translator.aligned(sources, n_best, self.tag_words)
        return n_best

    def score(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """The log-probability of each pair of source and target."""
        sources, targets = zip(*pairs, strict=True)
        return list(self.translator.score(self._tagged(sources), targets))

    def attention(self, source: str, target: str | None) -> Attention:
        """The attention of a sentence and its translation, by default the model's own.
        Before the words of the sentence stand those of the model's tag.

        Raises RequestError 413 if it has too many weights.
        """
        [tagged] = self._tagged([source])
        pair = self.translator.sentence_pair(tagged, target)
        self.check_weights(len(pair.source_tokens), len(pair.target_tokens))
        return self.translator.attention_of(pair)

    def attend(
        self,
        pairs: Sequence[tuple[str, str | None]],
        answer: Callable[[Attention, str, int], bytes],
    ) -> list[bytes]:
        """The answers that `answer` makes of the attention of each pair, of its source,
        and of the number of the tag's words before it.
        """
        answers = []
        for source, target in pairs:
            attention = self.attention(source, target)
            answers.append(answer(attention, source, self.tag_words))
        return answers

    def warm_up(self) -> None:
        """Builds what requests use by default, so that the first request is quick."""
        # with CTranslate2, the first request for attention loads TensorFlow
        if self.translator.engine.name == TENSORFLOW:
            self.attention(WARM_UP, WARM_UP)
        if not self.makes_trees:
            self.score([(WARM_UP, WARM_UP)])
        self.decode([WARM_UP], self.decode_options(), self.aligns)

    def _tagged(self, sources: Sequence[str]) -> list[str]:
        """The sources as the model was trained on them, with the tag before each."""
        if not self.tag:
            return list(sources)
        return [f"{self.tag} {source}" for source in sources]

    @property
    def tag_words(self) -> int:
        """The number of words of the tag."""
        return len(self.tag.split())

    # limits

    def decode_options(
        self, n_best: int = 1, beam_size: int | None = None, alpha: float | None = None
    ) -> DecodeHParams:
        """The options of a request. Raises RequestError 400 if one is out of range.

        The beam is at least as large as the n-best list. An n-best list is the whole
        beam, so that lists of different lengths can share a batch.
        """
        beam = beam_size or max(self.options.beam_size, n_best)
        most = 1 if self.makes_trees else beam
        if n_best > most:
            raise RequestError(
                400,
                f"alternatives must be at most {most - 1}: less than beam_size, and 0"
                f" to parse. Received: {n_best - 1}. Ask for fewer.",
            )
        changes: dict[str, Any] = {"beam_size": beam}
        changes["return_beams"] = beam if n_best > 1 else 1
        if alpha is not None:
            changes["alpha"] = alpha
        try:
            return dataclasses.replace(self.options, **changes)
        except ValueError as error:
            raise RequestError(400, str(error)) from error

    def token_counts(
        self,
        sentences: Sequence[str],
        targets: bool = False,
        limit: int | None = None,
        advice: str = "Split it.",
    ) -> list[int]:
        """The number of tokens of each source or target, EOS included.

        Raises RequestError 413 if a sentence has more than `limit`, EOS not counted, or
        more than the model can read.
        """
        encoder = self.translator.source_encoder
        texts = sentences
        if targets:
            encoder = self.translator.target_encoder
        else:
            texts = self._tagged(sentences)
        longest = self.translator.max_source_tokens
        limit = longest if limit is None else min(limit, longest)
        counts = []
        for sentence, ids in zip(sentences, encoder.encode_batch(texts), strict=True):
            if len(ids) > limit:
                raise RequestError(
                    413,
                    f"A sentence must have at most {limit:,} tokens. Received: one of"
                    f" {len(ids):,} tokens, beginning {sentence[:SHOWN]!r}. {advice}",
                )
            counts.append(len(ids) + 1)
        return counts

    def search_token_counts(
        self, sentences: Sequence[str], beam_size: int
    ) -> list[int]:
        """`token_counts` of sentences to search. Raises RequestError 413 also if a
        sentence is too long for the beam: a search cannot be interrupted.
        """
        limit = MAX_SEARCH_TOKENS // beam_size
        if limit >= min(self.translator.max_source_tokens, MAX_SERVED_TOKENS):
            return self.token_counts(sentences, limit=MAX_SERVED_TOKENS)
        advice = f"Split it, or ask for a beam_size below {beam_size}."
        return self.token_counts(sentences, limit=limit, advice=advice)

    def check_weights(self, source_tokens: int, target_tokens: int = 0) -> None:
        """Raises RequestError 413 if the attention of a sentence and its translation
        has too many weights; tokens are counted with EOS.
        """
        encoder = self.hparams.encoder_layers * source_tokens**2
        keys = source_tokens + target_tokens
        decoder = self.hparams.decoder_layers * target_tokens * keys
        weights = self.hparams.num_heads * (encoder + decoder)
        if weights > MAX_ATTENTION_WEIGHTS:
            tokens = f"{source_tokens:,} tokens"
            if target_tokens:
                tokens += f" and their translation of {target_tokens:,}"
            raise RequestError(
                413,
                "The attention of a sentence must have at most"
                f" {MAX_ATTENTION_WEIGHTS:,} weights. Received: {weights:,}, for"
                f" {tokens}. Send a shorter sentence.",
            )


class Catalogue:
    """The served models by language pair."""

    def __init__(self, models: Sequence[ServedModel]) -> None:
        self.models = list(models)
        self.translators = [model for model in models if not model.makes_trees]

    def model(self, source: str | None, target: str | None) -> ServedModel:
        """The model of a language pair, whose target may be TREE. Raises RequestError
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
        raise RequestError(
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

    def targets(self, wanted: str | None) -> list[str]:
        """The served targets that a request may mean by a language."""
        codes = {model.target for model in self.translators}
        return sorted(code for code in codes if distance(wanted, code) is not None)


def load_catalogue(
    options: ServedRunOptions,
    pairs: Sequence[tuple[str, str]],
    report: Callable[[str], None],
) -> Catalogue:
    """The models of the runs, warm. Raises ValueError or OSError if a run cannot be
    loaded.
    """
    detect(WARM_UP, ["en"])  # loads the classifier, so that the first request is quick
    models: list[ServedModel] = []
    # by run; a run may translate to several languages
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
            loaded[run] = _load(run, options, report)
        translator = loaded[run]
        if tag and len(translator.source_encoder.encode(tag)) > 1:
            report(
                f"The tag {tag} is not one piece of the vocabulary of {run}. Was the"
                " model trained with it?"
            )
        defaults = decode_options(translator.manifest, options.decode_hparams)
        examples = example_sentences(run, tag)
        model = ServedModel(translator, source, target, defaults, tag, examples)
        model.warm_up()
        models.append(model)
        report(
            f"Loaded step {translator.step:,} in {time.monotonic() - started:.1f}"
            " seconds."
        )
    return Catalogue(models)


def _load(
    run: str, options: ServedRunOptions, report: Callable[[str], None]
) -> Translator:
    translator = load(
        run,
        options.checkpoint_path,
        options.engine,
        options.quantization,
        jit_compile=False,  # XLA would compile anew for each length
        threads=WORKERS,
    )
    translator.engine.threads = 1  # a worker decodes its batch by itself
    for note in translator.notes:
        report(note)
    return translator


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
