"""Decodes token ids with TensorFlow, by beam search or sampling, and scores given
targets.
"""

# B batch, S source length, T target length, M beam size, L maximum length

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from t2tlite.config import DecodeHParams
from t2tlite.data.batch_plan import padded_length
from t2tlite.decoding.beam_search import BeamResult, beam_search, is_filled
from t2tlite.decoding.constraints import (
    Constraint,
    all_of,
    forced_prefix,
    min_length,
    no_repeat_ngram,
)
from t2tlite.decoding.engine import EVERYTHING, TENSORFLOW
from t2tlite.decoding.rules import rules_of
from t2tlite.decoding.sampling import sample
from t2tlite.decoding.token_decoder import (
    OutOfMemoryError,
    Sentence,
    TokenDecoder,
    TokenHypothesis,
)
from t2tlite.decoding.tree_constraint import tree_constraint
from t2tlite.decoding.tree_guide import ABSENT
from t2tlite.tokens import EOS, PAD
from t2tlite.types import Seq2SeqModel, Tensor

MAX_SEARCHES = 32  # that an engine keeps, for other options each

IDS = tf.TensorSpec((None, None), tf.int32)
SEARCH_SPECS = (
    IDS,  # inputs
    tf.TensorSpec((None,), tf.int32),  # max_lengths
    tf.TensorSpec((), tf.int32),  # length
    tf.TensorSpec((), tf.float32),  # alpha
    tf.TensorSpec((), tf.int32),  # n_best
)
GUIDE_INPUTS = "token_classes", "tree_tokens", "tree_choices"
EXTRA_SPECS = {
    "prefixes": IDS,
    "uniforms": tf.TensorSpec((None, None, None), tf.float32),
    **dict.fromkeys(GUIDE_INPUTS, IDS),
}


class TensorFlowEngine:
    """Computes with a Keras model. With `jit_compile`, XLA compiles the search once for
    each padded shape.

    Building a search takes seconds, so decoders share those that they can: alpha and,
    of a beam, the number of hypotheses that are returned are inputs of a search. The
    `MAX_SEARCHES` used last are kept.
    """

    name, quantization, supported = TENSORFLOW, "", EVERYTHING

    def __init__(self, model: Seq2SeqModel, jit_compile: bool = False) -> None:
        self.model, self.jit_compile = model, jit_compile
        self.log_probs = _of_pairs(functools.partial(log_probs, model))
        self.cross_attention = _of_pairs(functools.partial(mean_cross_attention, model))
        self.attention = _of_pairs(model.attention)
        self.compiled_search = functools.lru_cache(MAX_SEARCHES)(self._compile_search)

    @property
    def max_positions(self) -> int | None:
        return self.model.hparams.max_positions

    @property
    def parameters(self) -> int:
        return self.model.count_params()

    def decoder(self, options: DecodeHParams) -> TokenDecoder:
        return Decoder(self, options)

    def _compile_search(
        self, options: DecodeHParams, *extra_inputs: str
    ) -> Callable[..., BeamResult]:
        """The function `search` below with the model and these options, which takes
        these extra inputs.
        """
        model_search = functools.partial(search, self.model, options)
        if self.jit_compile:  # static shapes: one program for each
            return tf.function(model_search, autograph=False, jit_compile=True)
        extra_specs = {name: EXTRA_SPECS[name] for name in extra_inputs}
        return tf.function(
            model_search, autograph=False, input_signature=(*SEARCH_SPECS, extra_specs)
        )


def _of_pairs(
    function: Callable[[Tensor, Tensor], Any],
) -> Callable[[Tensor, Tensor], Any]:
    """A function of sources int32 [B, S] and targets [B, T] as a graph."""
    return tf.function(function, autograph=False, input_signature=(IDS, IDS))


class Decoder(TokenDecoder):
    """Decodes and scores token ids with a trained model."""

    def __init__(self, engine: TensorFlowEngine, options: DecodeHParams) -> None:
        super().__init__(options, engine.max_positions)
        self._engine = engine
        # the options that a search is built for
        self._cache_key = dataclasses.replace(
            options, alpha=0.0, batch_size=0, extra_length=0, sampling_seed=0,
            return_beams=options.return_beams if options.samples else 1,
        )  # fmt: skip

    def _decode_batch(self, sentences: list[Sentence]) -> list[list[TokenHypothesis]]:
        max_lengths: np.ndarray = np.array(
            [sentence.max_length for sentence in sentences], np.int32
        )
        length = min(
            padded_length(int(max_lengths.max()), self._boundaries), self._longest
        )
        extra_inputs = {}
        if any(sentence.prefix for sentence in sentences):
            extra_inputs["prefixes"] = _block(
                [sentence.prefix for sentence in sentences], length
            )
        guides = [
            sentence.guide for sentence in sentences if sentence.guide is not None
        ]
        if guides:
            width = max(len(guide.tokens) for guide in guides)
            extra_inputs["token_classes"] = guides[0].classes
            extra_inputs["tree_tokens"] = _block(
                [guide.tokens for guide in guides], width
            )
            extra_inputs["tree_choices"] = _block(
                [guide.choices for guide in guides], width, ABSENT
            )
        if self.options.samples:
            extra_inputs["uniforms"] = self._uniforms(sentences, length)
        compiled = self._engine.compiled_search(self._cache_key, *extra_inputs)
        n_best = self.options.return_beams
        try:
            result = compiled(
                self._pad([sentence.ids for sentence in sentences]),
                max_lengths,
                length if self._engine.jit_compile else np.int32(length),
                np.float32(self.options.alpha),
                np.int32(n_best),
                extra_inputs,
            )
        except tf.errors.ResourceExhaustedError as error:
            raise OutOfMemoryError from error
        ids, scores, log_probs = [x.numpy()[:, :n_best] for x in result]
        n_best_lists = []
        for hypotheses in zip(ids, scores, log_probs, strict=True):
            n_best_list = []
            for row, score, log_prob in zip(*hypotheses, strict=True):
                if is_filled(score):
                    n_best_list.append(
                        TokenHypothesis(_content(row), float(score), float(log_prob))
                    )
            n_best_lists.append(n_best_list)
        return n_best_lists

    def _uniforms(self, sentences: list[Sentence], length: int) -> np.ndarray:
        """Random numbers float32 [B, M, L]; those of a sentence depend on it and the
        seed alone.
        """
        uniforms: np.ndarray = np.zeros(
            (len(sentences), self.options.hypotheses, length), np.float32
        )
        for rows, sentence in zip(uniforms, sentences, strict=True):
            for number, row in enumerate(rows):
                random = np.random.default_rng(
                    [self.options.sampling_seed, number, *sentence.ids]
                )
                row[: sentence.max_length] = random.random(
                    sentence.max_length, dtype=np.float32
                )
        return uniforms

    def _score_batch(
        self, sources: list[Sequence[int]], targets: list[Sequence[int]]
    ) -> Iterable[float]:
        return self._engine.log_probs(self._pad(sources), self._pad(targets)).numpy()

    def _pad(self, rows: Sequence[Sequence[int]]) -> np.ndarray:
        """Rows with their EOS, padded to a bucket boundary: int32 [B, S].

        A decoded sequence may fill all positions that the model knows. It then has no
        position for its EOS.
        """
        width = min(
            padded_length(max(map(len, rows)) + 1, self._boundaries), self._longest
        )
        return _block([[*row, EOS][:width] for row in rows], width)

    def _attend_batch(
        self, sources: list[Sequence[int]], targets: list[Sequence[int]]
    ) -> Iterable[np.ndarray]:
        return self._engine.cross_attention(
            self._pad(sources), self._pad(targets)
        ).numpy()


def _block(rows: Sequence[Sequence[int]], width: int, padding: int = PAD) -> np.ndarray:
    """Rows padded to a width: int32 [B, width]."""
    block: np.ndarray = np.full((len(rows), width), padding, np.int32)
    for at, row in enumerate(rows):
        block[at, : len(row)] = row
    return block


def constraint_of(
    options: DecodeHParams, max_lengths: Tensor, extra_inputs: Mapping[str, Tensor]
) -> Constraint | None:
    """What the options and the extra inputs forbid; None if nothing."""
    constraints: list[Constraint] = []
    if "tree_tokens" in extra_inputs:
        classes, tokens, choices = (extra_inputs[name] for name in GUIDE_INPUTS)
        constraints.append(tree_constraint(classes, tokens, choices, max_lengths))
    if options.no_repeat_ngram_size:
        constraints.append(
            functools.partial(no_repeat_ngram, options.no_repeat_ngram_size)
        )
    if options.min_length:
        constraints.append(functools.partial(min_length, options.min_length))
    together = functools.partial(all_of, constraints)
    if "prefixes" in extra_inputs:
        return functools.partial(forced_prefix, extra_inputs["prefixes"], together)
    return together if constraints else None


def search(
    model: Seq2SeqModel,
    options: DecodeHParams,
    inputs: Tensor,
    max_lengths: Tensor,
    length: int | Tensor,
    alpha: float | Tensor,
    n_best: int | Tensor,
    extra_inputs: Mapping[str, Tensor],
) -> BeamResult:
    """Beam search or sampling for sources int32 [B, S], each with its EOS, in a graph.

    `alpha` and `n_best` count instead of the options' alpha and return_beams.
    `extra_inputs` may have prefixes, int32 [B, L] padded with PAD, and the arguments of
    `tree_constraint`, and must have uniforms, float32 [B, M, L], for sampling.
    """
    penalties = rules_of(options).penalties(options)
    common = {
        "max_lengths": max_lengths,
        "alpha": alpha if penalties.any else 0.0,
        "penalise_unfinished": penalties.unfinished,
        "constrain": constraint_of(options, max_lengths, extra_inputs),
    }
    with cast_kernels(model):
        start_decoding = functools.partial(
            model.start_decoding, inputs, options.hypotheses
        )
        if options.samples:
            return sample(
                model.decode_step,
                start_decoding(length),
                uniforms=tf.ensure_shape(
                    extra_inputs["uniforms"], (None, options.hypotheses, None)
                ),
                temperature=options.sampling_temp,
                keep_top_k=options.sampling_keep_top_k,
                top_p=options.sampling_top_p,
                **common,
            )
        static = isinstance(length, int)  # for XLA
        return beam_search(
            model.decode_step,
            start_decoding,
            beam_size=options.beam_size,
            length=length,
            n_best=n_best,
            resize_cache=None if static else model.resize_cache,
            **common,
        )


def log_probs(model: Seq2SeqModel, inputs: Tensor, targets: Tensor) -> Tensor:
    """The log-probability of each target, EOS included: int32 [B, S] and [B, T] to
    float32 [B].
    """
    # [B, T]
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
        targets, model(inputs, targets)
    )
    return -tf.reduce_sum(losses * tf.cast(targets != PAD, tf.float32), axis=1)


def mean_cross_attention(
    model: Seq2SeqModel, inputs: Tensor, targets: Tensor
) -> Tensor:
    """The cross-attention weights of each pair, averaged over heads and layers: float32
    [B, T, S].
    """
    layers = [
        tf.reduce_mean(weights, axis=1)
        for weights in model.attention(inputs, targets).cross
    ]
    return tf.add_n(layers) / len(layers)


def cast_kernels(model: Seq2SeqModel) -> keras.StatelessScope:
    """A scope in which the model's matrices have the type that it computes in.

    So they are cast once a search rather than at each position, which makes bfloat16 a
    sixth faster on a CPU.
    """
    scope = keras.StatelessScope()
    if model.compute_dtype != "float32":
        for variable in model.trainable_variables:
            if len(variable.shape) == 2:
                scope.add_update(
                    (variable, tf.cast(variable.value, model.compute_dtype))
                )
    return scope


def _content(row: np.ndarray) -> list[int]:
    ends = np.flatnonzero(row == EOS)
    ids = row[: ends[0]] if len(ends) else row
    return [int(i) for i in ids if i != PAD]
