"""A run that is served, and what can be asked of it; the catalogue of all of them."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from t2tlite.config import DecodeHParams, HParams
from t2tlite.decoding.engine import ALIGNMENTS, TENSORFLOW
from t2tlite.programs.serving.errors import SHOWN, RequestError
from t2tlite.programs.serving.languages import TREE
from t2tlite.programs.serving.options import (
    MAX_ATTENTION_WEIGHTS,
    MAX_BEAM_SIZE,
    MAX_SEARCH_TOKENS,
    MAX_SENTENCE_TOKENS,
)
from t2tlite.run_folder import RunFolder

if TYPE_CHECKING:  # they load TensorFlow
    from t2tlite.decoding.alignment import Alignment
    from t2tlite.programs.runs.translator import Translator
    from t2tlite.programs.visualise.attention import Attention
    from t2tlite.tasks.parsing import Parse
    from t2tlite.tasks.task import Output

WARM_UP = "Warm up."  # decoded once before the first request


@dataclasses.dataclass(frozen=True, eq=False)
class ServedModel:
    """A loaded run and its language pair."""

    translator: Translator
    source: str
    target: str
    options: DecodeHParams  # unless a request says otherwise
    max_beam_size: int = MAX_BEAM_SIZE
    # before every source, for a model that translates to several languages
    tag: str = ""
    examples: tuple[str, ...] = ()  # sentences that the page offers

    def tagged(self, sources: Sequence[str]) -> list[str]:
        """The sources as the model was trained on them, with the tag before each."""
        if not self.tag:
            return list(sources)
        return [f"{self.tag} {source}" for source in sources]

    @property
    def makes_trees(self) -> bool:
        """Whether this is a parser."""
        return self.translator.task.makes_trees

    @property
    def aligns(self) -> bool:
        """Whether its engine computes word alignments."""
        return ALIGNMENTS in self.translator.engine.supported

    def decode_options(
        self, n_best: int = 1, beam_size: int | None = None, alpha: float | None = None
    ) -> DecodeHParams:
        """The options of a request; RequestError 400 if one is out of range.

        The beam is at least as large as the n-best list. An n-best list is the whole
        beam, so that lists of different lengths can share a batch.
        """
        beam = beam_size or max(self.options.beam_size, n_best)
        if not 1 <= n_best <= beam <= self.max_beam_size:
            raise RequestError(
                400,
                "n_best must be from 1 to beam_size, and beam_size at most"
                f" {self.max_beam_size}. Received: n_best={n_best}, beam_size={beam}.",
            )
        alpha = self.options.alpha if alpha is None else float(alpha)
        return_beams = beam if n_best > 1 else 1
        try:
            return dataclasses.replace(
                self.options, beam_size=beam, return_beams=return_beams, alpha=alpha
            )
        except ValueError as error:
            raise RequestError(400, str(error)) from error

    def token_counts(
        self,
        sentences: Sequence[str],
        targets: bool = False,
        limit: int | None = None,
        advice: str = "Split it.",
    ) -> list[int]:
        """The tokens of each source or target, EOS included.

        RequestError 413 if one has more than `limit`, EOS not counted, or than the
        model can read.
        """
        encoder = (
            self.translator.target_encoder
            if targets
            else self.translator.source_encoder
        )
        texts = sentences if targets else self.tagged(sentences)
        longest = self.translator.max_source_tokens
        limit = longest if limit is None else min(limit, longest)
        counts = [len(ids) + 1 for ids in encoder.encode_batch(texts)]
        for sentence, count in zip(sentences, counts, strict=True):
            if count > limit + 1:
                received = (
                    f"Received: one of {count - 1:,} tokens, beginning"
                    f" {sentence[:SHOWN]!r}."
                )
                raise RequestError(
                    413,
                    f"A sentence must have at most {limit:,} tokens. {received}"
                    f" {advice}",
                )
        return counts

    def search_token_counts(
        self, sentences: Sequence[str], beam_size: int
    ) -> list[int]:
        """`token_counts` of sentences to search; RequestError 413 also if one is too
        long for the beam.

        A search cannot be interrupted, so its tokens and their product with the beam
        size are bounded.
        """
        limit = MAX_SEARCH_TOKENS // beam_size
        if limit >= min(self.translator.max_source_tokens, MAX_SENTENCE_TOKENS):
            return self.token_counts(sentences, limit=MAX_SENTENCE_TOKENS)
        advice = f"Split it, or ask for a beam_size below {beam_size}."
        return self.token_counts(sentences, limit=limit, advice=advice)

    @functools.cached_property
    def hparams(self) -> HParams:
        """The hparams of the run."""
        return RunFolder(self.translator.run).hparams()

    def check_weights(self, source_tokens: int, target_tokens: int = 0) -> None:
        """RequestError 413 if the attention of a sentence and its translation has too
        many weights; tokens are counted with EOS.
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

    def warm_up(self) -> None:
        """Builds what requests use by default, so that the first request is quick."""
        # of others, attention loads TensorFlow when it is asked for
        if self.translator.engine.name == TENSORFLOW:
            Attending(self, _nothing).run([(WARM_UP, WARM_UP)])
        if self.makes_trees:
            Parsing(self).run([WARM_UP])
            return
        Scoring(self).run([(WARM_UP, WARM_UP)])
        Decoding(self, self.decode_options(), aligned=self.aligns).run([WARM_UP])


class AlignedOutput(NamedTuple):
    """An output, and its word alignment if that was computed."""

    output: Output
    alignment: Alignment | None = None


@dataclasses.dataclass(frozen=True)
class Decoding:
    """Sentences to their n-best translations, each a list of outputs."""

    model: ServedModel
    options: DecodeHParams
    aligned: bool = False  # also their word alignments

    @property
    def width(self) -> int:
        return self.options.beam_size

    def run(self, items: Sequence[str]) -> list[list[AlignedOutput]]:
        translator, sources = self.model.translator, self.model.tagged(items)
        n_best = translator.decode(sources, self.options)
        if not self.aligned:
            return [[AlignedOutput(output) for output in outputs] for outputs in n_best]
        aligned = translator.align(
            sources, n_best, tag_words=len(self.model.tag.split())
        )
        return [
            list(map(AlignedOutput, *sentence))
            for sentence in zip(n_best, aligned, strict=True)
        ]


@dataclasses.dataclass(frozen=True)
class Parsing:
    """Sentences to their best parses."""

    model: ServedModel

    @property
    def width(self) -> int:
        return self.model.options.beam_size

    def run(self, items: Sequence[str]) -> list[Parse]:
        return self.model.translator.parse(
            items, **dataclasses.asdict(self.model.options)
        )


@dataclasses.dataclass(frozen=True)
class Scoring:
    """Pairs of source and target to log-probabilities."""

    model: ServedModel
    width: ClassVar[int] = 1

    def run(self, items: Sequence[tuple[str, str]]) -> list[float]:
        sources, targets = zip(*items, strict=True)
        return list(self.model.translator.score(self.model.tagged(sources), targets))


# of the attention, the sentence of the request, and the number of words before it that
# are the model's tag
AttentionAnswer = Callable[["Attention", str, int], bytes]


@dataclasses.dataclass(frozen=True)
class Attending:
    """Pairs of a sentence and its translation, or None for the model's own, to answers
    that `answer` makes of their attention weights.
    """

    model: ServedModel
    answer: AttentionAnswer
    width: ClassVar[int] = 1

    def run(self, items: Sequence[tuple[str, str | None]]) -> list[bytes]:
        return [self._answer(source, target) for source, target in items]

    def _answer(self, source: str, target: str | None) -> bytes:
        translator = self.model.translator
        [tagged] = self.model.tagged([source])
        pair = translator.sentence_pair(tagged, target)
        self.model.check_weights(len(pair.source_tokens), len(pair.target_tokens))
        tag_words = len(self.model.tag.split())
        return self.answer(translator.attention_of(pair), source, tag_words)


def _nothing(attention: Attention, source: str, tag_words: int) -> bytes:
    return b""


class Catalogue:
    """The served models by language pair."""

    def __init__(self, models: Sequence[ServedModel]) -> None:
        self.models = list(models)

    def translator(
        self, source: str | None = None, target: str | None = None
    ) -> ServedModel:
        """The model that translates so; RequestError 400 if there is none, or several
        and none is named.
        """
        return self._find(False, source, target)

    def parser(self, source: str | None = None) -> ServedModel:
        """The parser of a language; RequestError 400 if there is none."""
        return self._find(True, source, None)

    def any_model(
        self, source: str | None = None, target: str | None = None
    ) -> ServedModel:
        """The model of a pair, whose target may be TREE; RequestError 400 as the
        others.
        """
        return (
            self.parser(source) if target == TREE else self.translator(source, target)
        )

    def languages(self) -> dict[str, list[str]]:
        """The languages that can be translated to from each language; every language
        served is a key.
        """
        targets_of: dict[str, list[str]] = {}
        for model in self.models:
            if not model.makes_trees:
                targets_of.setdefault(model.source, []).append(model.target)
                targets_of.setdefault(model.target, [])
        return {code: sorted(targets) for code, targets in sorted(targets_of.items())}

    def _find(
        self, makes_trees: bool, source: str | None, target: str | None
    ) -> ServedModel:
        models = [model for model in self.models if model.makes_trees == makes_trees]
        matches = [
            m
            for m in models
            if source in (None, m.source) and target in (None, m.target)
        ]
        if len(matches) == 1:
            return matches[0]
        problem = _no_parser(source, models)
        if not makes_trees:
            problem = _no_translator(source, target, models)
        raise RequestError(400, problem)


def _no_parser(source: str | None, parsers: Sequence[ServedModel]) -> str:
    """What is wrong with the language of a request to parse."""
    if not parsers:
        return (
            "A parser must be served to parse. Received: a server without one. Start"
            " t2t-serve with the run of a parser."
        )
    served = ", ".join(model.source for model in parsers)
    if source is None:
        return f"source must be one of {served}. Received: none. Add the field source."
    return (
        f"source must be a language that a parser is served for: {served}. Received:"
        f" {source[:SHOWN]}. Choose one of these."
    )


def _no_translator(
    source: str | None, target: str | None, translators: Sequence[ServedModel]
) -> str:
    """What is wrong with the languages of a request to translate."""
    if not translators:
        return (
            "A model that translates must be served. Received: a server of parsers."
            " Send sentences to /v1/parse, or start t2t-serve with another run."
        )
    served = ", ".join(f"{model.source}-{model.target}" for model in translators)
    required = f"source and target must be one of the pairs served: {served}."
    if source and target:
        received = f"{source[:SHOWN]}-{target[:SHOWN]}"
        return f"{required} Received: {received}. Choose one of these."
    received = "neither"
    if source or target:
        given, other = ("source", "target") if source else ("target", "source")
        code = source or target or ""
        received = f"{given} {code[:SHOWN]} without a {other}"
    return f"{required} Received: {received}. Give both."
