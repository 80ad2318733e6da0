"""The graph of a SavedModel: sentences in, hypotheses of beam search out, without
t2tlite and without Python.

It computes what `TextDecoder.decode` and `score_hypotheses` compute, in tensors of the
same shapes.
"""

# B batch, S source length, T target length, M beam size, N hypotheses returned, L most
# positions

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import tensorflow as tf

from t2tlite.config import DecodeHParams
from t2tlite.data.batch_plan import bucket_boundaries, padded_length
from t2tlite.decoding.engine import LONGEST_BUCKET
from t2tlite.decoding.rules import rules_of
from t2tlite.decoding.search_ops import BeamResult, is_filled
from t2tlite.decoding.tensorflow_engine import log_probs, search
from t2tlite.decoding.text_decoder import TextDecoder
from t2tlite.layers.sublayer import forward_only
from t2tlite.programs.export.graph_text import (
    SentencePieceText,
    graph_text,
    stripped,
    tree_words,
)
from t2tlite.programs.export.verification import NBest, keras_model
from t2tlite.tasks.task import Output
from t2tlite.types import PAD, Tensor

GraphFunction = Callable[..., dict[str, Tensor]]  # a tf.function
# each is a search of its own in the graph; the run's default is added
BEAM_SIZES = (1, 2, 4, 8)


class DecodingGraph:
    """The functions of a SavedModel, to be traced.

    Beam size is a static shape of the search, so a search is traced for each of
    `beam_sizes`.

    Args:
        model: what the graph computes.
        options: the defaults of the optional inputs; the others are fixed.
        signature: the name of the function that decodes.
        return_beams: the default number of hypotheses, 0 for the whole beam.
        splits_words: whether sentences are prepared as ParsingTask.source does.
    """

    def __init__(
        self,
        model: TextDecoder,
        options: DecodeHParams,
        signature: str,
        return_beams: int,
        splits_words: bool,
    ) -> None:
        self._model = keras_model(model)
        self._options = options
        self._splits_words = splits_words
        self._limit = model.max_source_tokens
        self._longest = self._model.hparams.max_positions or LONGEST_BUCKET
        self._padded_lengths = _padded_lengths(self._longest)
        self._encoders = model.encoders
        self.source = graph_text(model.source_encoder)
        self.target = graph_text(model.target_encoder)
        self.beam_sizes = sorted({*BEAM_SIZES, options.beam_size})
        self.signature = signature
        self.return_beams = return_beams

    def outside_vocabularies(self) -> list[Path]:
        """The files of the vocabularies that are not part of the graph, each once."""
        sides = self.source, self.target
        paths = []
        for encoder, side in zip(self._encoders, sides, strict=True):
            if side.tokenizer is None and encoder.path not in paths:
                paths.append(encoder.path)
        return paths

    @forward_only()
    def save(self, folder: Path) -> None:
        """Writes the SavedModel: weights, vocabularies and signatures.

        The default signature takes only sentences, since TensorFlow Serving's REST API
        requires every input.
        """
        decode = self._decoding_function()
        score = self._scoring_function()

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
        setattr(module, self.signature, decode)
        signatures = {
            "serving_default": default,
            self.signature: decode,
            "score": score,
        }
        tf.saved_model.save(module, str(folder), signatures)

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
            checks = self._checks(beam_size, alpha, extra_length, wanted)
            with tf.control_dependencies(checks):
                sentences = tf.identity(sentences)
                result = self._decode(sentences, beam_size, alpha, extra_length, wanted)
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
            equal = tf.debugging.Assert(counts[0] == counts[1], [message, *counts])
            with tf.control_dependencies([equal]):
                inputs = self._pad(self.source.encode(sources))
                goals = self._pad(self.target.encode(targets))
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
            if self._splits_words:
                sentences = tree_words(sentences)
            if rules.strips:
                sentences = stripped(sentences)
        rows = self.source.encode(sentences)
        inputs = self._pad(rows)  # [B, S]
        lengths = tf.cast(rows.row_lengths(), tf.int32) - 1  # [B], the EOS not counted
        empty = self.source.blank(sentences) | (lengths == 0)
        longest = tf.reduce_max(tf.where(empty, 0, lengths))
        extra_length = tf.minimum(extra_length, LONGEST_BUCKET)
        limits = rules.limits(lengths, extra_length, longest)
        # the EOS is one of the decoded tokens; a blank sentence has none
        max_lengths = tf.where(empty, 0, tf.minimum(limits, self._longest))
        greatest = tf.maximum(tf.reduce_max(max_lengths), 0)  # of no sentences: 0
        length = tf.gather(self._padded_lengths, greatest)  # L

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
        lengths = tf.concat([rows.row_lengths(), [1]], axis=0)
        longest = tf.cast(tf.reduce_max(lengths), tf.int32)
        message = (
            f"A sentence must have at most {self._limit:,} tokens. Split it, or leave"
            " it blank. Received, tokens:"
        )
        within = tf.debugging.Assert(longest <= self._limit + 1, [message, longest - 1])
        with tf.control_dependencies([within]):
            block = rows.to_tensor(PAD)
            width = tf.gather(self._padded_lengths, tf.identity(longest))
        return tf.pad(block, ((0, 0), (0, width - tf.shape(block)[1])))

    def _checks(
        self, beam_size: Tensor, alpha: Tensor, extra_length: Tensor, wanted: Tensor
    ) -> list[tf.Operation]:
        """The operations that fail for a bad value of an optional input."""

        def check(good: Tensor, rule: str, value: Tensor) -> tf.Operation:
            return tf.debugging.Assert(good, [f"{rule}. Received:", value])

        known = ", ".join(map(str, self.beam_sizes))
        return [
            check(
                tf.reduce_any(tf.constant(self.beam_sizes) == beam_size),
                f"beam_size must be one of {known}",
                beam_size,
            ),
            check(
                (alpha >= 0) & (alpha <= 10),
                "alpha must be at least 0 and at most 10",
                alpha,
            ),
            check(extra_length >= 0, "extra_length must be at least 0", extra_length),
            check(
                (wanted >= 1) & (wanted <= beam_size),
                "return_beams must be at most beam_size, or 0 for all",
                wanted,
            ),
        ]


def _padded_lengths(longest: int) -> np.ndarray:
    """The length to which `Decoder` pads a sequence of each length up to `longest`:
    int32 [longest + 1].
    """
    boundaries = bucket_boundaries(LONGEST_BUCKET)
    padded = [padded_length(length, boundaries) for length in range(longest + 1)]
    return np.minimum(padded, longest).astype(np.int32)


class LoadedGraph:
    """A SavedModel that was read back, called with text even if it takes and returns
    token ids.
    """

    def __init__(
        self,
        model: TextDecoder,
        options: DecodeHParams,
        signature: str,
        folder: Path,
    ) -> None:
        self._model = model
        self._options = options
        self._loaded = tf.saved_model.load(str(folder))
        self._decode = getattr(self._loaded, signature)
        self._source = graph_text(model.source_encoder)
        self._target = graph_text(model.target_encoder)

    def decode(self, sentences: Sequence[str]) -> NBest:
        """The hypotheses of each sentence's whole beam, best first."""
        if self._source.tokenizer is None:  # otherwise the graph prepares the sentences
            task = self._model.task_under(self._options)
            sentences = [task.source(sentence) for sentence in sentences]
            if rules_of(self._options).strips:
                sentences = [sentence.strip() for sentence in sentences]
        inputs = self._source.batch(sentences)
        outputs = self._decode(inputs, return_beams=0)
        texts = outputs[self._target.noun].numpy()
        scores = outputs["scores"].numpy()
        log_probs = outputs["log_probs"].numpy()
        n_best_lists = []
        for columns in zip(texts, scores, log_probs, strict=True):
            n_best_list = []
            for output, score, log_prob in zip(*columns, strict=True):
                if is_filled(score):
                    text = self._target.text(output)
                    hypothesis = Output(text, float(score), float(log_prob))
                    n_best_list.append(hypothesis)
            n_best_lists.append(n_best_list)
        return n_best_lists

    def score(self, sources: Sequence[str], targets: Sequence[str]) -> list[float]:
        """The log-probability of each target given its source."""
        outputs = self._loaded.score(
            self._source.batch(sources), self._target.batch(targets)
        )
        return outputs["log_probs"].numpy().tolist()
