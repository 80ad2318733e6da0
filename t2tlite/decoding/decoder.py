"""Decodes token ids with TensorFlow, by beam search or sampling, and scores given targets."""

# B batch, S source length, T target length, M beam size, L maximum length

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from t2tlite.config import DecodeHParams
from t2tlite.data.batch_plan import padded_length
from t2tlite.decoding.beam_search import BeamResult, beam_search, is_filled
from t2tlite.decoding.constraints import Constraint, all_of, forced_prefix, min_length, no_repeat_ngram
from t2tlite.decoding.sampling import sample
from t2tlite.decoding.token_decoder import TENSORFLOW, TokenDecoder, TokenHypothesis, memory_error
from t2tlite.tokens import EOS, PAD
from t2tlite.types import Seq2SeqModel, Tensor

NOTHING_MORE: Mapping[str, Tensor] = {}
MOST_SEARCHES = 32  # that an engine keeps, for other options each

IDS = tf.TensorSpec((None, None), tf.int32)
SCALARS = tf.int32, tf.float32, tf.int32  # length, alpha, n_best
MORE = {"prefixes": IDS, "uniforms": tf.TensorSpec((None, None, None), tf.float32)}


class TensorFlowEngine:
    """Computes with a Keras model. With `jit_compile`, XLA compiles the search once for each padded shape.

    Building a search takes seconds, so decoders share those that they can: alpha and, of a beam, the number of
    hypotheses that are returned are inputs of a search. The `MOST_SEARCHES` used last are kept.
    """

    name, quantization = TENSORFLOW, ""

    def __init__(self, model: Seq2SeqModel, jit_compile: bool = False) -> None:
        self.max_positions, self.jit_compile = model.max_positions, jit_compile

        @functools.lru_cache(MOST_SEARCHES)
        def compiled(options: DecodeHParams, *more: str) -> Callable[..., BeamResult]:
            def decode(
                inputs: Tensor, max_lengths: Tensor, length: Tensor, alpha: Tensor, n_best: Tensor,
                more: Mapping[str, Tensor],
            ) -> BeamResult:  # fmt: skip
                return search(model, inputs, max_lengths, length, options, alpha, n_best, more)

            if jit_compile:  # static shapes: one program for each
                return tf.function(decode, autograph=False, jit_compile=True)
            lengths, scalars = tf.TensorSpec((None,), tf.int32), [tf.TensorSpec((), kind) for kind in SCALARS]
            given = {name: MORE[name] for name in more}
            return tf.function(decode, autograph=False, input_signature=(IDS, lengths, *scalars, given))

        def score(inputs: Tensor, targets: Tensor) -> Tensor:
            return log_probs(model, inputs, targets)

        def attend(inputs: Tensor, targets: Tensor) -> Tensor:
            layers = [tf.reduce_mean(weights, axis=1) for weights in model.attention(inputs, targets).cross]
            return tf.add_n(layers) / len(layers)  # [B, T, S]

        self._compiled_search = compiled
        self.log_probs = tf.function(score, autograph=False, input_signature=(IDS, IDS))
        self.cross_attention = tf.function(attend, autograph=False, input_signature=(IDS, IDS))

    def decoder(self, options: DecodeHParams) -> TokenDecoder:
        return Decoder(self, options)

    def search(
        self,
        options: DecodeHParams,
        inputs: np.ndarray,
        max_lengths: np.ndarray,
        length: int,
        more: Mapping[str, np.ndarray],
    ) -> BeamResult:
        """The function `search` below, compiled."""
        n_best = options.return_beams
        kind = dataclasses.replace(
            options, alpha=0.0, batch_size=0, extra_length=0, sampling_seed=0,
            return_beams=n_best if options.samples else 1,
        )  # fmt: skip
        scalars = length if self.jit_compile else np.int32(length), np.float32(options.alpha), np.int32(n_best)
        return self._compiled_search(kind, *more)(inputs, max_lengths, *scalars, more)


class Decoder(TokenDecoder):
    """Decodes and scores token ids with a trained model."""

    def __init__(self, engine: TensorFlowEngine, options: DecodeHParams) -> None:
        super().__init__(options, engine.max_positions)
        self._engine = engine

    def _decode_batch(
        self, sources: list[Sequence[int]], max_lengths: np.ndarray, prefixes: list[Sequence[int]]
    ) -> list[list[TokenHypothesis]]:
        inputs = self._pad(sources)
        length = min(padded_length(int(max_lengths.max()), self._boundaries), self._longest)
        more = {}
        if any(prefixes):
            more["prefixes"] = _block(prefixes, length)
        if self.options.samples:
            more["uniforms"] = self._uniforms(sources, max_lengths, length)
        try:
            found = self._engine.search(self.options, inputs, max_lengths, length, more)
        except tf.errors.ResourceExhaustedError:
            if len(sources) == 1:
                raise memory_error(len(sources[0]), self.options.hypotheses) from None
            half = len(sources) // 2
            parts = slice(half), slice(half, None)
            halves = [self._decode_batch(sources[part], max_lengths[part], prefixes[part]) for part in parts]
            return [*halves[0], *halves[1]]
        sentences = zip(*(x.numpy()[:, : self.options.return_beams] for x in found), strict=True)
        return [
            [
                TokenHypothesis(_content(ids), float(score), float(log_prob))
                for ids, score, log_prob in zip(*sentence, strict=True)
                if is_filled(score)
            ]
            for sentence in sentences
        ]

    def _uniforms(self, sources: list[Sequence[int]], max_lengths: np.ndarray, length: int) -> np.ndarray:
        """Random numbers float32 [B, M, L]; those of a sentence depend on it and the seed alone."""
        found: np.ndarray = np.zeros((len(sources), self.options.hypotheses, length), np.float32)
        for rows, source, limit in zip(found, sources, max_lengths, strict=True):
            for number, row in enumerate(rows):
                random = np.random.default_rng([self.options.sampling_seed, number, *source])
                row[:limit] = random.random(limit, dtype=np.float32)
        return found

    def _score_batch(self, sources: list[Sequence[int]], targets: list[Sequence[int]]) -> Any:
        return self._engine.log_probs(self._pad(sources), self._pad(targets)).numpy()

    def _pad(self, rows: Sequence[Sequence[int]]) -> np.ndarray:
        """Rows with their EOS, padded to a bucket boundary: int32 [B, S]."""
        width = min(padded_length(max(map(len, rows)) + 1, self._boundaries), self._longest)
        return _block([[*row, EOS] for row in rows], width)

    def _attend_batch(self, sources: list[Sequence[int]], targets: list[Sequence[int]]) -> Any:
        return self._engine.cross_attention(self._pad(sources), self._pad(targets)).numpy()


def _block(rows: Sequence[Sequence[int]], width: int) -> np.ndarray:
    """Rows padded to a width: int32 [B, width]."""
    block: np.ndarray = np.zeros((len(rows), width), np.int32)
    for at, row in enumerate(rows):
        block[at, : len(row)] = row
    return block


def _constraints(options: DecodeHParams) -> Constraint | None:
    """What the options forbid; None if nothing."""
    found = [no_repeat_ngram(options.no_repeat_ngram_size)] if options.no_repeat_ngram_size else []
    return all_of([*found, min_length(options.min_length)] if options.min_length else found)


def search(
    model: Seq2SeqModel,
    inputs: Tensor,
    max_lengths: Tensor,
    length: int | Tensor,
    options: DecodeHParams,
    alpha: float | Tensor,
    n_best: int | Tensor,
    more: Mapping[str, Tensor] = NOTHING_MORE,
) -> BeamResult:
    """Beam search or sampling for sources int32 [B, S], each with its EOS, in a graph.

    `alpha` and `n_best` count instead of the options' alpha and return_beams. `more` may have prefixes, int32 [B, L]
    padded with PAD, and must have uniforms, float32 [B, M, L], for sampling.
    """
    constraints = _constraints(options)
    how = {
        "max_lengths": max_lengths,
        "alpha": alpha if options.beam_size > 1 or options.samples or options.rules.penalise_greedy else 0.0,
        "penalise_unfinished": options.rules.penalise_unfinished,
        "constrain": forced_prefix(more["prefixes"], constraints) if "prefixes" in more else constraints,
    }
    with cast_kernels(model):
        start_decoding = functools.partial(model.start_decoding, inputs, options.hypotheses)
        if options.samples:
            return sample(
                model.decode_step,
                start_decoding(length),
                uniforms=tf.ensure_shape(more["uniforms"], (None, options.hypotheses, None)),
                temperature=options.sampling_temp,
                keep_top_k=options.sampling_keep_top_k,
                top_p=options.sampling_top_p,
                **how,
            )
        # XLA compiles static shapes only, and prefixes are those of the whole batch
        static = isinstance(length, int) or "prefixes" in more
        return beam_search(
            model.decode_step,
            start_decoding,
            beam_size=options.beam_size,
            length=length,
            n_best=n_best,
            resize_cache=None if static else model.resize_cache,
            **how,
        )


def log_probs(model: Seq2SeqModel, inputs: Tensor, targets: Tensor) -> Tensor:
    """The log-probability of each target, given its source: int32 [B, S] and [B, T], EOS included, to float32 [B]."""
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(targets, model(inputs, targets))  # [B, T]
    return -tf.reduce_sum(losses * tf.cast(targets != PAD, tf.float32), axis=1)


def cast_kernels(model: Seq2SeqModel) -> keras.StatelessScope:
    """A scope in which the model's matrices have the type that it computes in.

    So they are cast once a search rather than at each position, which makes bfloat16 a sixth faster on a CPU.
    """
    scope = keras.StatelessScope()
    if model.compute_dtype != "float32":
        for variable in model.trainable_variables:
            if len(variable.shape) == 2:
                scope.add_update((variable, tf.cast(variable.value, model.compute_dtype)))
    return scope


def _content(row: np.ndarray) -> list[int]:
    ends = np.flatnonzero(row == EOS)
    ids = row[: ends[0]] if len(ends) else row
    return [int(i) for i in ids if i != PAD]
