"""A trained model with its vocabularies and its task: text in, text out, scored or not. `t2tlite.load` makes one.

This is the one path from text to decoded and scored text: evaluation during training, `t2t-decoder`, Table 3 and the
Python API all call `Translator.decode` or `Translator.decode_and_score`.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple, cast, overload

import numpy as np

from t2tlite.config import DecodeHParams
from t2tlite.data.manifest import RunManifest
from t2tlite.decoding.alignment import Alignment, align, words_of_pieces
from t2tlite.decoding.model_facts import NO_FACTS, ModelFacts
from t2tlite.decoding.sentences import (
    NO_FILE,
    Origin,
    batches_by_words,
    check_lengths,
    check_sentences,
    encode_within,
    listed,
    one_or_all,
)
from t2tlite.decoding.token_decoder import Engine, TokenDecoder, TokenHypothesis
from t2tlite.files.checkpoint_paths import step_of
from t2tlite.tasks.catalogue import open_task
from t2tlite.tasks.parsing import Parse
from t2tlite.tasks.task import Hypothesis, Output, Score, Task
from t2tlite.tokens import EOS
from t2tlite.types import Seq2SeqModel
from t2tlite.visualise.attention import Attention
from t2tlite.vocabularies.encoders import TextEncoder

MAX_SOURCE_TOKENS = 2048  # of a sentence to decode; far beyond what training sees

MOST_DECODERS = 32  # that a Translator keeps, each for other options

Done = Callable[[int], object]  # called with the number of sentences after each batch, for a progress bar


class Decoded(NamedTuple):
    """Sentences decoded and scored."""

    n_best: list[list[Output]]  # of each sentence, best first
    score: Score
    seconds: float  # that decoding took, without scoring

    @property
    def best(self) -> list[Output]:
        """The best output of each sentence."""
        return [outputs[0] for outputs in self.n_best]


class Translator:
    """A trained model with its vocabularies (of source and target) and its task.

    `manifest` is the run's, `checkpoint` the path of the weights ("" for a model that is being trained). `jit_compile`
    compiles the search with XLA. `engine` computes with the weights; by default TensorFlow does, with those of `model`.
    `facts` is what `repr` shows in addition. Sentences have no line breaks. A sentence of more than `max_source_tokens`
    raises a ValueError, whose message names its line, and `done` is called with the number of sentences after each
    batch.

    Of `translate`, `n_best`, `parse` and `score`, each takes one string and returns one result, or takes strings and
    returns a list. Their options are fields of DecodeHParams, such as `beam_size=8` or `alpha=1.0`, by default the
    problem's; a bad one raises a ValueError.
    """

    def __init__(
        self,
        model: Seq2SeqModel,
        encoders: tuple[TextEncoder, TextEncoder],
        manifest: RunManifest,
        jit_compile: bool = False,
        checkpoint: str = "",
        engine: Engine | None = None,
        facts: ModelFacts = NO_FACTS,
    ) -> None:
        if engine is None:
            from t2tlite.decoding.decoder import TensorFlowEngine  # loads TensorFlow

            engine = TensorFlowEngine(model, jit_compile)
        self.model = model
        self.engine = engine
        self.source_encoder, self.target_encoder = encoders
        self.manifest = manifest
        self.task = open_task(manifest.task, manifest.options)
        self.jit_compile = jit_compile
        self.checkpoint = checkpoint
        self.step = step_of(checkpoint)
        self.facts = facts
        self._decoders: dict[DecodeHParams, TokenDecoder] = {}

    def __repr__(self) -> str:
        """Problem, hparam set, parameters, step and the metrics recorded for it, run."""
        return f"<Translator: {self.facts.sentence(self.manifest.name, self.model.count_params(), self.step)}>"

    # the path from text to text

    def decode(
        self,
        sentences: Sequence[str],
        options: DecodeHParams,
        done: Done = lambda count: None,
        origin: Origin = NO_FILE,
        prefix: Sequence[str] | None = None,
    ) -> list[list[Output]]:
        """The `return_beams` best outputs of each sentence, best first: translations, or parses.

        A blank sentence gets one blank output. A parser takes words and punctuation separated by spaces, as in its
        training trees. `prefix` has the text with which the decoded sequence of each sentence begins, "" for any.
        """
        return self._decode(self.task_under(options), sentences, options, done, origin, prefix)

    def decode_and_score(
        self,
        sources: Sequence[str],
        references: Sequence[str],
        options: DecodeHParams,
        done: Done = lambda count: None,
        slow_metrics: bool = False,
    ) -> Decoded:
        """Decodes sentences as `decode` does, and computes the task's metrics, if asked also those that take long.

        References are the sentences' targets as the token store has them.
        """
        started = time.monotonic()
        n_best = self.decode(sources, options, done)
        seconds = time.monotonic() - started
        score = self.task.score(sources, references, [outputs[0].sequence for outputs in n_best], slow_metrics)
        return Decoded(n_best, score, seconds)

    def task_under(self, options: DecodeHParams) -> Task:
        """The task that makes the outputs: the model's, unless the rules leave sequences as they are."""
        return self.task.as_sequences() if options.rules.leave_sequences else self.task

    # the Python API; mypy's complaint is that a string is an Iterable[str] too

    @overload
    def translate(  # type: ignore[overload-overlap]
        self, sentences: str, *, prefix: str | None = None, **options: float | str
    ) -> str: ...
    @overload
    def translate(
        self, sentences: Iterable[str], *, prefix: Iterable[str] | None = None, **options: float | str
    ) -> list[str]: ...
    def translate(
        self,
        sentences: str | Iterable[str],
        *,
        prefix: str | Iterable[str] | None = None,
        **options: float | str,
    ) -> str | list[str]:
        """The best translation of each sentence, in order; a blank sentence stays blank.

        `prefix` is the text with which the translation begins, for each sentence, "" for any. Its last word may be
        continued.
        """
        starts = None if prefix is None else listed(prefix)
        found = self._decode(self.task.as_sequences(), listed(sentences), self.options(**options), prefix=starts)
        return one_or_all(sentences, [outputs[0].text for outputs in found])

    @overload
    def n_best(  # type: ignore[overload-overlap]
        self, sentences: str, count: int | None = None, **options: float | str
    ) -> list[Output]: ...
    @overload
    def n_best(
        self, sentences: Iterable[str], count: int | None = None, **options: float | str
    ) -> list[list[Output]]: ...
    def n_best(
        self, sentences: str | Iterable[str], count: int | None = None, **options: float | str
    ) -> list[Output] | list[list[Output]]:
        """The `count` best hypotheses of each sentence, best first, by default as many as `beam_size`.

        Each has its `text`, its `score` (as the beam search orders them) and its log-probability `log_prob`; a parser's
        are parses, see `parse`. A blank sentence has one blank hypothesis. Raises a ValueError if `count` is greater
        than `beam_size`.
        """
        chosen = self.options(**options)
        chosen = dataclasses.replace(chosen, return_beams=chosen.beam_size if count is None else count)
        return one_or_all(sentences, self.decode(listed(sentences), chosen))

    @overload
    def parse(self, sentences: str, **options: float | str) -> Parse: ...  # type: ignore[overload-overlap]
    @overload
    def parse(self, sentences: Iterable[str], **options: float | str) -> list[Parse]: ...
    def parse(self, sentences: str | Iterable[str], **options: float | str) -> Parse | list[Parse]:
        """The best parse of each sentence, in order, by a model of a parsing problem; a blank sentence has no tree.

        All hypotheses of the beam are compared: the best is the one that fits the words best (`ParsingTask.choose`).

        Words and punctuation are separated by spaces, as in the training trees; brackets may be written as they are or
        as -LRB- and -RRB-. A model that does not parse raises a ValueError.
        """
        found = self._decode(self.task.parser(self.manifest.name), listed(sentences), self.options(**options))
        return one_or_all(sentences, [cast(Parse, outputs[0]) for outputs in found])

    @overload
    def score(  # type: ignore[overload-overlap]
        self, sources: str, targets: str, options: DecodeHParams | None = ..., done: Done = ..., origin: Origin = ...
    ) -> float: ...
    @overload
    def score(
        self,
        sources: Iterable[str],
        targets: Iterable[str],
        options: DecodeHParams | None = ...,
        done: Done = ...,
        origin: Origin = ...,
    ) -> list[float]: ...
    def score(
        self,
        sources: str | Iterable[str],
        targets: str | Iterable[str],
        options: DecodeHParams | None = None,
        done: Done = lambda count: None,
        origin: Origin = NO_FILE,
    ) -> float | list[float]:
        """The log-probability (natural) of each target, its EOS included, given its source.

        Under DecodeRules.score_per_token: the negative of it, divided by the number of tokens. Of the options, by
        default the problem's, only batch_size and the rules matter. If there are not as many targets as sources, or one
        is longer than the limit, raises a ValueError.
        """
        if isinstance(sources, str) != isinstance(targets, str):
            received = f"{type(sources).__name__} and {type(targets).__name__}"
            raise ValueError(f"Source and target must both be strings, or both lists. Received: {received}.")
        source_list, target_list = listed(sources), listed(targets)
        if len(source_list) != len(target_list):
            received = f"{len(source_list)} sources, {len(target_list)} targets"
            raise ValueError(f"Each source needs a target. Received: {received}.")
        options = options or self.options()
        strip = options.rules.strip_sentences
        source_ids = self._encode(self.source_encoder, source_list, strip, origin)
        target_ids = self._encode(self.target_encoder, target_list, strip, origin)
        log_probs = self._decoder(options).score(source_ids, target_ids, done)
        if options.rules.score_per_token:
            log_probs = [-value / (len(ids) + 1) for value, ids in zip(log_probs, target_ids, strict=True)]
        return one_or_all(sources, log_probs)

    def align(self, sentences: Sequence[str], n_best: Sequence[Sequence[Output]]) -> list[list[Alignment]]:
        """The word alignment of each output of each sentence, by the rule in decoding/alignment.py.

        The outputs are those that `decode` returned for the sentences. The words of a parse are those of the decoded
        sequence. One pass over all pairs computes their cross-attention.
        """
        sources = [self.task.source(sentence) for sentence in sentences]
        source_ids = self._encode(self.source_encoder, sources)
        places = [(i, output) for i, outputs in enumerate(n_best) for output in outputs]
        ids = [source_ids[i] if output.ids else [] for i, output in places]
        weights = self._decoder(self.options()).cross_attention(ids, [output.ids for _, output in places])
        words = [
            words_of_pieces(self.source_encoder, row, source) for source, row in zip(sources, source_ids, strict=True)
        ]
        found: list[list[Alignment]] = [[] for _ in sentences]
        for (i, output), matrix in zip(places, weights, strict=True):
            target_words = words_of_pieces(self.target_encoder, output.ids, output.sequence)
            found[i].append(align(matrix, words[i], target_words) if matrix.size else [])
        return found

    def attention(self, source: str, target: str | None = None) -> Attention:
        """The pieces of a sentence and its translation, and the attention weights of every head of every layer.

        `target` is by default the model's own translation, by beam search with the problem's options. A notebook shows
        the result as a page; `t2tlite.visualise` draws it. A blank source raises a ValueError.
        """
        source = self.task.source(source)
        source_ids = self._encode(self.source_encoder, [source])[0]
        if not source.strip():
            raise ValueError(f"A sentence must have words for its attention to be shown. Received: {source!r}.")
        if target is None:
            target_ids = self._decoder(self.options(return_beams=1)).decode([source_ids])[0][0].ids
        else:
            target_ids = self._encode(self.target_encoder, [target])[0]
        # a translation may fill all positions that the model knows
        sides = [*source_ids, EOS], [*target_ids, EOS][: self.model.max_positions]
        inputs, targets = (np.array([ids], np.int32) for ids in sides)  # one sentence: no padding
        found = self.model.attention(inputs, targets)
        encoder, decoder, cross = ([np.asarray(layer)[0] for layer in stack] for stack in found)
        source_pieces, target_pieces = self.source_encoder.pieces(sides[0]), self.target_encoder.pieces(sides[1])
        texts = source, self._text(target_ids)
        return Attention(source_pieces, target_pieces, encoder, decoder, cross, *texts, self.facts.run, self.step)

    def export(
        self,
        export_dir: str | Path,
        format: str = "saved_model",
        *,
        overwrite: bool = False,
        quantization: str = "",
        **options: float | str,
    ) -> Path:
        """Exports the model for other programs, as t2t-export does, and returns the folder; docs/export.md says more.

        Options are as for `translate`: the export's defaults. Raises as `t2tlite.export.export.export_model`.
        """
        from t2tlite.export.export import export_model
        from t2tlite.export.export_folder import ExportFolder
        from t2tlite.export.settings import Settings

        settings = Settings(self.options(**options), quantization)
        return export_model(self, ExportFolder(export_dir, overwrite), format, settings).path

    def options(self, **changes: float | str) -> DecodeHParams:
        """The problem's decoding defaults with changes, such as `beam_size=8`; ValueError for a bad field or value."""
        return DecodeHParams.of({**self.manifest.decode_defaults, **changes})

    def check_lengths(self, sentences: Iterable[str], origin: Origin = NO_FILE) -> None:
        """Raises ValueError where a sentence is longer than the limit; the message names its line."""
        check_lengths(self.max_source_tokens, self.source_encoder, map(self.task.source, sentences), origin)

    def check_pair_lengths(self, pairs: Iterable[tuple[str, str]], origin: Origin = NO_FILE) -> None:
        """Raises ValueError where a source or target to score is longer than the limit; the message names its line."""
        for i, (source, target) in enumerate(pairs):
            check_lengths(self.max_source_tokens, self.source_encoder, [source], origin.after(i))
            check_lengths(self.max_source_tokens, self.target_encoder, [target], origin.after(i))

    @property
    def max_source_tokens(self) -> int:
        """The longest sentence that can be decoded, its EOS not counted."""
        positions = self.model.max_positions
        return MAX_SOURCE_TOKENS if positions is None else positions - 1

    def _decode(
        self,
        task: Task,
        sentences: Sequence[str],
        options: DecodeHParams,
        done: Done = lambda count: None,
        origin: Origin = NO_FILE,
        prefix: Sequence[str] | None = None,
    ) -> list[list[Output]]:
        check_sentences(sentences)
        sources = [task.source(sentence) for sentence in sentences]
        encoded = self._encode(self.source_encoder, sources, options.rules.strip_sentences, origin)
        ids = [row if source.strip() else [] for source, row in zip(sources, encoded, strict=True)]
        wanted = options.return_beams
        search = dataclasses.replace(options, return_beams=task.hypotheses(wanted, options.beam_size))
        batches = batches_by_words(sources, options.batch_size) if options.rules.batches_of_sentences else None
        prefixes = None if prefix is None else self._encode_prefixes(sentences, prefix, options, origin)
        found = self._decoder(search).decode(ids, done, batches, prefixes)
        return [
            task.choose(source, [self._hypothesis(one) for one in hypotheses], wanted)
            for source, hypotheses in zip(sources, found, strict=True)
        ]

    def _encode_prefixes(
        self, sentences: Sequence[str], prefix: Sequence[str], options: DecodeHParams, origin: Origin
    ) -> list[list[int]]:
        if len(prefix) != len(sentences):
            raise ValueError(
                "Each sentence needs a prefix, which may be empty. Received: "
                f"{len(sentences)} sentences, {len(prefix)} prefixes."
            )
        encoded = self._encode(self.target_encoder, prefix, options.rules.strip_sentences, origin)
        return [ids if text.strip() else [] for text, ids in zip(prefix, encoded, strict=True)]

    def _decoder(self, options: DecodeHParams) -> TokenDecoder:
        decoder = self._decoders.pop(options, None) or self.engine.decoder(options)
        self._decoders[options] = decoder  # that used last is last
        if len(self._decoders) > MOST_DECODERS:
            del self._decoders[next(iter(self._decoders))]
        return decoder

    def _encode(
        self, encoder: TextEncoder, sentences: Sequence[str], strip: bool = False, origin: Origin = NO_FILE
    ) -> list[list[int]]:
        return encode_within(self.max_source_tokens, encoder, sentences, strip, origin)

    def _hypothesis(self, found: TokenHypothesis) -> Hypothesis:
        return Hypothesis(self._text(found.ids), found.score, found.log_prob, tuple(found.ids))

    def _text(self, ids: list[int]) -> str:
        return self.target_encoder.decode(ids).replace("\n", " ")


def decode_options(manifest: RunManifest, changes: str = "") -> DecodeHParams:
    """The problem's decoding defaults, changed as --decode_hparams asks; ValueError for a bad field or value."""
    return DecodeHParams.of(manifest.decode_defaults).override(changes)
