"""The graph of a SavedModel: sentences in, hypotheses of beam search out, without
t2tlite and without Python.

It computes what `TextDecoder.decode` and `score_hypotheses` compute, in tensors of the
same shapes.
"""

# B batch, S source length, T target length, M beam size, N hypotheses returned, L most
# positions

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

import tensorflow as tf

from t2tlite.config import DecodeHParams
from t2tlite.data.batch_plan import bucket_boundaries
from t2tlite.decoding.engine import LONGEST_BUCKET
from t2tlite.decoding.rules import rules_of
from t2tlite.decoding.search_ops import BeamResult
from t2tlite.decoding.tensorflow_engine import log_probs, search
from t2tlite.decoding.text_decoder import TextDecoder
from t2tlite.programs.export.compare import keras_model
from t2tlite.programs.export.graph_text import (
    SentencePieceText,
    graph_text,
    stripped,
    tree_words,
)
from t2tlite.types import PAD, Tensor

GraphFunction = Callable[..., dict[str, Tensor]]  # a tf.function
# each is a search of its own in the graph; the run's default is added
BEAM_SIZES = (1, 2, 4, 8)


class GraphTask(NamedTuple):
    """The part of a task (t2tlite/tasks) that a graph can compute."""

    signature: str  # the name of the signature that decodes
    source: Callable[[Tensor], Tensor]  # Task.source, for a batch of strings
    return_beams: int | None  # its default, unless it is the run's; 0 is the whole beam
    note: str = ""  # for README.md: what the graph leaves out


TASKS = {
    "translation": GraphTask("translate", lambda sentences: sentences, None),
    "parsing": GraphTask(
        "parse",
        tree_words,
        return_beams=0,
        note=(
            "`parse` returns linearised trees as they were decoded. t2tlite's Python"
            " code (t2tlite/tasks/parsing.py) chooses the one that fits the words best"
            " and makes the tree over these words."
        ),
    ),
}


class DecodingGraph:
    """The functions of a SavedModel, to be traced.

    Beam size is a static shape of the search, so a search is traced for each of
    `beam_sizes`.
    """

    def __init__(self, model: TextDecoder, options: DecodeHParams) -> None:
        self._model, self._options = keras_model(model), options
        self._limit = model.max_source_tokens
        self._longest = self._model.hparams.max_positions or LONGEST_BUCKET
        self.task = TASKS[model.task.name]
        self._source_form = TASKS[model.task_under(options).name].source
        self.source, self.target = map(graph_text, model.encoders)
        self.beam_sizes = sorted({*BEAM_SIZES, options.beam_size})
        by_default = self.task.return_beams
        self.return_beams = options.return_beams if by_default is None else by_default

    def module(self) -> tuple[tf.Module, dict[str, GraphFunction]]:
        """The module to save (weights, vocabularies and functions), and the functions
        by signature.

        The default signature takes only sentences, since TensorFlow Serving's REST API
        requires every input.
        """
        decode, score = self._decoding_function(), self._scoring_function()

        def by_default(sentences: Tensor) -> dict[str, Tensor]:
            return decode(sentences)

        default = tf.function(
            by_default,
            autograph=False,
            input_signature=(self.source.spec("sentences"),),
        )
        module = tf.Module()
        module.weights = [
            variable.value for variable in self._model.trainable_variables
        ]
        module.tokenizers = [
            side.tokenizer for side in (self.source, self.target) if side.tokenizer
        ]
        module.score = score
        setattr(module, self.task.signature, decode)
        return module, {
            "serving_default": default,
            self.task.signature: decode,
            "score": score,
        }

    def _decoding_function(self) -> GraphFunction:
        options = self._options

        def decode(
            sentences: Tensor,
            beam_size: Tensor = tf.constant(options.beam_size),  # noqa: B008  the form that signatures need
            alpha: Tensor = tf.constant(options.alpha),  # noqa: B008
            extra_length: Tensor = tf.constant(options.extra_length),  # noqa: B008
            return_beams: Tensor = tf.constant(self.return_beams),  # noqa: B008
        ) -> dict[str, Tensor]:
            wanted = tf.where(return_beams == 0, beam_size, return_beams)  # N
            with tf.control_dependencies(
                self._checks(beam_size, alpha, extra_length, wanted)
            ):
                result = self._decode(
                    tf.identity(sentences), beam_size, alpha, extra_length, wanted
                )
            outputs = {self.target.noun: self.target.decode(result.ids)}
            return outputs | {"scores": result.scores, "log_probs": result.log_probs}

        inputs = (
            self.source.spec("sentences"),
            tf.TensorSpec((), tf.int32, "beam_size"),
            tf.TensorSpec((), tf.float32, "alpha"),
            tf.TensorSpec((), tf.int32, "extra_length"),
            tf.TensorSpec((), tf.int32, "return_beams"),
        )
        return tf.function(decode, autograph=False, input_signature=inputs)

    def _scoring_function(self) -> GraphFunction:
        def score(sources: Tensor, targets: Tensor) -> dict[str, Tensor]:
            counts = tf.shape(sources)[0], tf.shape(targets)[0]
            message = "Each source needs a target. Received, of each:"
            with tf.control_dependencies(
                [tf.debugging.Assert(counts[0] == counts[1], [message, *counts])]
            ):
                inputs, goals = (
                    self._pad(self.source.encode(sources)),
                    self._pad(self.target.encode(targets)),
                )
            return {"log_probs": log_probs(self._model, inputs, goals)}

        inputs = self.source.spec("sources"), self.target.spec("targets")
        return tf.function(score, autograph=False, input_signature=inputs)

    def _decode(
        self,
        sentences: Tensor,
        beam_size: Tensor,
        alpha: Tensor,
        extra_length: Tensor,
        wanted: Tensor,
    ) -> BeamResult:
        """The `wanted` best hypotheses: ids [B, N, L], scores and log-probabilities [B,
        N].
        """
        rules = rules_of(self._options)
        if isinstance(self.source, SentencePieceText):
            sentences = self._source_form(sentences)
            sentences = stripped(sentences) if rules.strips else sentences
        rows = self.source.encode(sentences)
        inputs = self._pad(rows)  # [B, S]
        lengths = tf.cast(rows.row_lengths(), tf.int32) - 1  # [B], the EOS not counted
        empty = self.source.blank(sentences) | (lengths == 0)
        if rules.depends_on_batch:  # the batch has one length limit
            lengths = tf.fill(
                tf.shape(lengths), tf.reduce_max(tf.where(empty, 0, lengths))
            )
        # the EOS is one of the decoded tokens; a blank sentence has none
        limits = lengths + tf.minimum(extra_length, LONGEST_BUCKET) + 1
        max_lengths = tf.where(empty, 0, tf.minimum(limits, self._longest))
        # L
        length = tf.minimum(_padded_length(tf.reduce_max(max_lengths)), self._longest)

        def with_beam(size: int) -> Callable[[], BeamResult]:
            options = dataclasses.replace(self._options, beam_size=size, return_beams=1)
            return lambda: search(
                self._model, options, inputs, max_lengths, length, alpha, wanted, {}
            )

        index = tf.argmax(
            tf.constant(self.beam_sizes) == beam_size, output_type=tf.int32
        )
        result = tf.switch_case(index, [with_beam(size) for size in self.beam_sizes])
        return BeamResult(*(x[:, :wanted] for x in result))

    def _pad(self, rows: tf.RaggedTensor) -> Tensor:
        """Ragged ids [B, (S)] -> int32 [B, S], padded to a bucket boundary as
        `TensorFlowEngine` does.
        """
        longest = tf.cast(
            tf.reduce_max(tf.concat([rows.row_lengths(), [1]], axis=0)), tf.int32
        )
        message = (
            f"A sentence must have at most {self._limit:,} tokens. Split it, or leave"
            " it blank. Received, tokens:"
        )
        with tf.control_dependencies(
            [tf.debugging.Assert(longest <= self._limit + 1, [message, longest - 1])]
        ):
            block = rows.to_tensor(PAD)
        width = tf.minimum(_padded_length(longest), self._longest)
        return tf.pad(block, ((0, 0), (0, width - tf.shape(block)[1])))

    def _checks(
        self, beam_size: Tensor, alpha: Tensor, extra_length: Tensor, wanted: Tensor
    ) -> list[tf.Operation]:
        known = ", ".join(map(str, self.beam_sizes))
        rules = (
            (
                tf.reduce_any(tf.constant(self.beam_sizes) == beam_size),
                f"beam_size must be one of {known}",
                beam_size,
            ),
            (
                (alpha >= 0) & (alpha <= 10),
                "alpha must be at least 0 and at most 10",
                alpha,
            ),
            (extra_length >= 0, "extra_length must be at least 0", extra_length),
            (
                (wanted >= 1) & (wanted <= beam_size),
                "return_beams must be at most beam_size, or 0 for all",
                wanted,
            ),
        )
        return [
            tf.debugging.Assert(good, [f"{rule}. Received:", value])
            for good, rule, value in rules
        ]


def _padded_length(length: Tensor) -> Tensor:
    """The smallest bucket boundary that is at least `length`, or `length` beyond the
    last; int32 scalars.
    """
    boundaries = bucket_boundaries(LONGEST_BUCKET)
    at = tf.searchsorted(tf.constant(boundaries), length[None])[0]
    return tf.where(
        at < len(boundaries),
        tf.gather(boundaries, tf.minimum(at, len(boundaries) - 1)),
        length,
    )
