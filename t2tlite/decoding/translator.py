"""A trained model with its vocabularies and its task: text in, text out, scored or not. `t2tlite.load` makes one.

This is the one path from text to decoded and scored text: evaluation during training, `t2t-decoder`, Table 3 and the
Python API all call `Translator.decode` or `Translator.decode_and_score`.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple, cast

import numpy as np

from t2tlite.config import DecodeHParams
from t2tlite.data.manifest import RunManifest
from t2tlite.decoding.decoder import Decoder
from t2tlite.files.checkpoint_paths import step_of
from t2tlite.registry import did_you_mean
from t2tlite.tasks.catalogue import open_task
from t2tlite.tasks.parsing import Parse
from t2tlite.tasks.task import Hypothesis, Output, Score, Task
from t2tlite.tokens import EOS
from t2tlite.types import Seq2SeqModel
from t2tlite.visualise.attention import Attention
from t2tlite.vocabularies.encoders import TextEncoder

MAX_SOURCE_TOKENS = 2048  # of a sentence to decode; far beyond what training sees
BATCH_SENTENCES = 32  # decoded together under DecodeRules.batches_of_sentences unless batch_size says otherwise

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
    compiles the search with XLA. Sentences have no line breaks. A sentence of more than `max_source_tokens` raises a
    ValueError, whose message names its line, and `done` is called with the number of sentences after each batch.
    """

    def __init__(
        self,
        model: Seq2SeqModel,
        encoders: tuple[TextEncoder, TextEncoder],
        manifest: RunManifest,
        jit_compile: bool = False,
        checkpoint: str = "",
    ) -> None:
        self.model = model
        self.source_encoder, self.target_encoder = encoders
        self.manifest = manifest
        self.task = open_task(manifest.task, manifest.options)
        self.jit_compile = jit_compile
        self.checkpoint = checkpoint
        self.step = step_of(checkpoint)
        self._decoders: dict[DecodeHParams, Decoder] = {}

    # the path from text to text

    def decode(
        self, sentences: Sequence[str], options: DecodeHParams, done: Done = lambda count: None
    ) -> list[list[Output]]:
        """The `return_beams` best outputs of each sentence, best first: translations, or parses.

        A blank sentence gets one blank output. A parser takes words and punctuation separated by spaces, as in its
        training trees.
        """
        return self._decode(self.task_under(options), sentences, options, done)

    def decode_and_score(
        self,
        sources: Sequence[str],
        references: Sequence[str],
        options: DecodeHParams,
        done: Done = lambda count: None,
    ) -> Decoded:
        """Decodes sentences as `decode` does, and computes the task's metrics.

        References are the sentences' targets as the token store has them.
        """
        started = time.monotonic()
        n_best = self.decode(sources, options, done)
        seconds = time.monotonic() - started
        score = self.task.score(sources, references, [outputs[0].sequence for outputs in n_best])
        return Decoded(n_best, score, seconds)

    def task_under(self, options: DecodeHParams) -> Task:
        """The task that makes the outputs: the model's, unless the rules leave sequences as they are."""
        return self.task.as_sequences() if options.rules.leave_sequences else self.task

    # the Python API

    def translate(self, sentences: Sequence[str], **options: float) -> list[str]:
        """The best translation of each sentence, in order; a blank sentence stays blank. `decode` has n-best lists.

        Options are fields of DecodeHParams, such as `beam_size=8` or `alpha=1.0`, by default the problem's; a bad one
        raises a ValueError.
        """
        found = self._decode(self.task.as_sequences(), sentences, self.options(**options))
        return [outputs[0].text for outputs in found]

    def parse(self, sentences: Sequence[str], **options: float) -> list[Parse]:
        """The best parse of each sentence, in order, by a model of a parsing problem; a blank sentence has no tree.

        All hypotheses of the beam are compared: the best is the one that fits the words best (`ParsingTask.choose`).

        Words and punctuation are separated by spaces, as in the training trees; brackets may be written as they are or
        as -LRB- and -RRB-. Options are as for `translate`. A model that does not parse raises a ValueError.
        """
        found = self._decode(self.task.parser(self.manifest.name), sentences, self.options(**options))
        return [cast(Parse, outputs[0]) for outputs in found]

    def score(
        self,
        sources: Sequence[str],
        targets: Sequence[str],
        options: DecodeHParams | None = None,
        done: Done = lambda count: None,
    ) -> list[float]:
        """The log-probability (natural) of each target, its EOS included, given its source.

        Under DecodeRules.score_per_token: the negative of it, divided by the number of tokens. Of the options, by
        default the problem's, only batch_size and the rules matter. If there are not as many targets as sources, or one
        is longer than the limit, raises a ValueError.
        """
        _check(sources)
        _check(targets)
        if len(sources) != len(targets):
            raise ValueError(f"Each source needs a target. Received: {len(sources)} sources, {len(targets)} targets.")
        options = options or self.options()
        strip = options.rules.strip_sentences
        source_ids = self._encode(self.source_encoder, sources, strip)
        target_ids = self._encode(self.target_encoder, targets, strip)
        log_probs = self._decoder(options).score(source_ids, target_ids, done)
        if options.rules.score_per_token:
            return [-value / (len(ids) + 1) for value, ids in zip(log_probs, target_ids, strict=True)]
        return log_probs

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
        return Attention(source_pieces, target_pieces, encoder, decoder, cross, source, self._text(target_ids))

    def options(self, **changes: float) -> DecodeHParams:
        """The problem's decoding defaults with changes, such as `beam_size=8`; ValueError for a bad field or value."""
        fields = [field.name for field in dataclasses.fields(DecodeHParams)]
        for name in changes:
            if name not in fields:
                raise ValueError(f"decode_hparams has no field {name!r}. {did_you_mean(name, fields)}")
        return DecodeHParams(**{**self.manifest.decode_defaults, **changes})

    def check_lengths(self, sentences: Sequence[str]) -> None:
        """Raises ValueError where a sentence is longer than the limit; the message names its line."""
        self._encode(self.source_encoder, [self.task.source(sentence) for sentence in sentences])

    @property
    def max_source_tokens(self) -> int:
        """The longest sentence that can be decoded, its EOS not counted."""
        positions = self.model.max_positions
        return MAX_SOURCE_TOKENS if positions is None else positions - 1

    def _decode(
        self, task: Task, sentences: Sequence[str], options: DecodeHParams, done: Done = lambda count: None
    ) -> list[list[Output]]:
        _check(sentences)
        sources = [task.source(sentence) for sentence in sentences]
        encoded = self._encode(self.source_encoder, sources, options.rules.strip_sentences)
        ids = [row if source.strip() else [] for source, row in zip(sources, encoded, strict=True)]
        wanted = options.return_beams
        search = dataclasses.replace(options, return_beams=task.hypotheses(wanted, options.beam_size))
        batches = _batches_by_words(sources, options.batch_size) if options.rules.batches_of_sentences else None
        found = self._decoder(search).decode(ids, done, batches)
        return [
            task.choose(source, [Hypothesis(self._text(one.ids), one.score) for one in hypotheses], wanted)
            for source, hypotheses in zip(sources, found, strict=True)
        ]

    def _decoder(self, options: DecodeHParams) -> Decoder:
        if options not in self._decoders:
            self._decoders[options] = Decoder(self.model, options, self.jit_compile)
        return self._decoders[options]

    def _encode(self, encoder: TextEncoder, sentences: Sequence[str], strip: bool = False) -> list[list[int]]:
        _check(sentences)
        if strip:
            sentences = [sentence.strip() for sentence in sentences]
        limit = self.max_source_tokens
        encoded = encoder.encode_batch(sentences)
        for number, ids in enumerate(encoded, start=1):
            if len(ids) > limit:
                raise ValueError(
                    f"A sentence must have at most {limit:,} tokens. Received: line {number} with {len(ids):,} tokens, "
                    f"beginning {sentences[number - 1][:40]!r}. Split it, or leave it blank."
                )
        return encoded

    def _text(self, ids: list[int]) -> str:
        return self.target_encoder.decode(ids).replace("\n", " ")


def _batches_by_words(sentences: Sequence[str], batch_size: int) -> list[list[int]]:
    """Which sentences tensor2tensor decodes together: those with the most words first."""
    order = sorted(range(len(sentences)), key=lambda i: -len(sentences[i].split()))
    size = batch_size or BATCH_SENTENCES
    return [order[start : start + size] for start in range(0, len(order), size)]


def _check(sentences: Sequence[str]) -> None:
    if isinstance(sentences, str):
        raise ValueError("A list of sentences is required. Received: one string. Put it in a list.")
    for sentence in sentences:
        if not isinstance(sentence, str):
            raise ValueError(f"Each sentence must be a string. Received: {sentence!r}.")


def decode_options(manifest: RunManifest, changes: str = "") -> DecodeHParams:
    """The problem's decoding defaults, changed as --decode_hparams asks; ValueError for a bad field or value."""
    return DecodeHParams(**manifest.decode_defaults).override(changes)
