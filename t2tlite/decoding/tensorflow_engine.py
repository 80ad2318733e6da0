"""The TensorFlow engine: beam search or sampling with a Keras model, and the scores of
given targets.
"""

# B batch, S source length, T target length, M beam size, L maximum length

import dataclasses
import functools
import itertools
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from t2tlite.config import DecodeHParams
from t2tlite.decoding.beam_search import beam_search
from t2tlite.decoding.constraints import bracket_constraint, conjunction
from t2tlite.decoding.engine import (
    EVERYTHING,
    TENSORFLOW,
    Engine,
    OutOfMemoryError,
    Rows,
    Sentence,
    TokenHypothesis,
    TokenNBest,
)
from t2tlite.decoding.rules import rules_of
from t2tlite.decoding.sampling import sample
from t2tlite.decoding.slots import BeamResult, is_filled
from t2tlite.decoding.terms import term_choice
from t2tlite.layers.few_rows import prepared_once
from t2tlite.layers.sublayer import forward_only
from t2tlite.tasks.bracketing import ABSENT, Bracketing
from t2tlite.types import EOS, PAD, AttentionWeights, DecodingModel, Tensor, Variable

# compiled searches that an engine keeps
MAX_SEARCHES = 32


class TensorFlowEngine(Engine):
    """Computes with a Keras model. With `jit_compile`, XLA compiles a search once for
    each padded shape. With `frozen`, weights that change after the first search may
    not be used: they are cast and arranged once for all searches.

    Building a search takes seconds, so options share those that they can: alpha and, of
    a beam, the number of hypotheses that are returned are inputs of a search. The
    `MAX_SEARCHES` used last are kept.
    """

    name = TENSORFLOW
    supported = EVERYTHING

    def __init__(
        self, model: DecodingModel, jit_compile: bool = False, frozen: bool = False
    ) -> None:
        super().__init__("", model.max_positions, model.count_params())
        self.model = model
        self.jit_compile = jit_compile
        self.frozen = frozen
        self._values: list[tuple[Variable, Tensor]] = []
        self._kernels: dict[int, Tensor] | None = {} if frozen else None
        self._log_probs = _as_graph(functools.partial(log_probs, model))
        self._weights = _as_graph(model.attention)
        self._mean_weights = _as_graph(functools.partial(mean_cross_attention, model))
        # so that threads do not build the same search
        self._building = threading.Lock()
        self._search_with = functools.lru_cache(MAX_SEARCHES)(self._build_search)

    def attention(self, inputs: Tensor, targets: Tensor) -> AttentionWeights:
        return self._weights(inputs, targets)

    def _decode_batch(
        self, sentences: list[Sentence], limits: np.ndarray, options: DecodeHParams
    ) -> TokenNBest:
        length = self._padded(int(limits.max()))
        extra_inputs: dict[str, Any] = {}
        sources, prefixes, constraints, terms = zip(*sentences, strict=True)
        if any(prefixes):
            extra_inputs["prefixes"] = _block(prefixes, length)
        if any(constraints):
            extra_inputs["brackets"] = _brackets(constraints)
        if any(terms):
            extra_inputs["terms"] = _terms(terms)
        if options.samples:
            extra_inputs["uniforms"] = _uniforms(sources, length, options)
        with self._building:
            search_batch = self._search_with(_built_for(options))
        try:
            result = search_batch(
                self._pad(sources),
                limits.astype(np.int32),
                length if self.jit_compile else np.int32(length),
                np.float32(options.alpha),
                np.int32(options.return_beams),
                extra_inputs,
            )
        except tf.errors.ResourceExhaustedError as error:
            raise OutOfMemoryError from error
        return _hypotheses(result, options.return_beams)

    def _score_batch(self, sources: Rows, targets: Rows) -> Iterable[float]:
        return self._log_probs(self._pad(sources), self._pad(targets)).numpy()

    def _attend_batch(self, sources: Rows, targets: Rows) -> Iterable[np.ndarray]:
        return self._mean_weights(self._pad(sources), self._pad(targets)).numpy()

    def _build_search(self, options: DecodeHParams) -> Callable[..., BeamResult]:
        """The function `search` below with the model and these options."""
        if self.frozen and not self._values:
            self._values = cast_values(self.model)

        def search_batch(*arguments: Any) -> BeamResult:
            kernels = prepared_once(self._kernels, tf.init_scope)
            with scope_of(self._values), kernels:
                return search(self.model, options, *arguments)

        return _as_graph(search_batch, self.jit_compile)

    def _pad(self, rows: Rows) -> np.ndarray:
        """Rows with their EOS, padded to a bucket boundary: int32 [B, S].

        A decoded sequence may fill all positions that the model knows. It then has no
        position for its EOS.
        """
        width = self._padded(max(map(len, rows)) + 1)
        return _block([[*row, EOS][:width] for row in rows], width)


def _as_graph(
    function: Callable[..., Any], jit_compile: bool = False
) -> Callable[..., Any]:
    """A function of nested NumPy arrays as graphs: one for each shape if XLA compiles
    it, otherwise one for a single sentence and one for any other batch.

    TensorFlow warns of many calls of a tf.function that trace, but counts no calls of
    its concrete functions.
    """
    compiled = tf.function(function, autograph=False, jit_compile=jit_compile)

    def run(*arguments: Any) -> Any:
        if tf.config.functions_run_eagerly():
            return function(*arguments)
        specs = arguments
        if not jit_compile:
            specs = tf.nest.map_structure(_spec, arguments)
        with forward_only():
            graph = compiled.get_concrete_function(*specs)
        return graph(*arguments)

    return run


def _spec(array: np.ndarray) -> tf.TensorSpec:
    """Arrays of any shape; of one sentence, if the first axis has one row."""
    shape: list[int | None] = [None] * array.ndim
    if array.shape[:1] == (1,):
        shape[0] = 1
    return tf.TensorSpec(shape, array.dtype)


def _built_for(options: DecodeHParams) -> DecodeHParams:
    """The options that a search is built for, those that are its inputs left out."""
    return dataclasses.replace(
        options,
        alpha=0.0,
        batch_size=0,
        extra_length=0,
        sampling_seed=0,
        return_beams=options.return_beams if options.samples else 1,
    )


def _brackets(constraints: Sequence[Bracketing]) -> tuple[np.ndarray, ...]:
    """The first arguments of `bracket_constraint`, for sentences of one vocabulary."""
    all_classes, tokens, choices = zip(*constraints, strict=True)
    width = max(map(len, tokens))
    return all_classes[0], _block(tokens, width), _block(choices, width, ABSENT)


def _terms(terms: Sequence[Rows]) -> np.ndarray:
    """The terms of each sentence: int32 [B, K, P]. K and P are powers of 2, so that XLA
    compiles few shapes.
    """
    most = 1 << max(map(len, terms)).bit_length()
    longest = 1 << max(map(len, itertools.chain(*terms))).bit_length()
    block: np.ndarray = np.full((len(terms), most, longest), PAD, np.int32)
    for at, rows in enumerate(terms):
        block[at, : len(rows)] = _block(rows, longest)
    return block


def _uniforms(sources: Rows, length: int, options: DecodeHParams) -> np.ndarray:
    """Random numbers float32 [B, M, L]; those of a sentence depend only on it and the
    seed.
    """
    uniforms = []
    for ids in sources:
        for number in range(options.hypotheses):
            random = np.random.default_rng([options.sampling_seed, number, *ids])
            uniforms.append(random.random(length, dtype=np.float32))
    return np.reshape(uniforms, (len(sources), options.hypotheses, length))


def _block(rows: Rows, width: int, padding: int = PAD) -> np.ndarray:
    """Rows padded to a width: int32 [B, width]."""
    block: np.ndarray = np.full((len(rows), width), padding, np.int32)
    for at, row in enumerate(rows):
        block[at, : len(row)] = row
    return block


def _hypotheses(result: BeamResult, n_best: int) -> TokenNBest:
    """The hypotheses of each sentence in the first `n_best` slots, empty ones left
    out.
    """
    columns = [values.numpy()[:, :n_best].tolist() for values in result]
    n_best_lists = []
    for slots in zip(*columns, strict=True):
        hypotheses = []
        for row, score, log_prob in zip(*slots, strict=True):
            if EOS in row:
                row = row[: row.index(EOS)]
            if is_filled(score):
                ids = [i for i in row if i != PAD]
                hypotheses.append(TokenHypothesis(ids, score, log_prob))
        n_best_lists.append(hypotheses)
    return n_best_lists


def search(
    model: DecodingModel,
    options: DecodeHParams,
    inputs: Tensor,
    max_lengths: Tensor,
    length: Tensor,
    alpha: Tensor,
    n_best: Tensor,
    extra_inputs: Mapping[str, Tensor],
) -> BeamResult:
    """Beam search or sampling for sources int32 [B, S], each with its EOS, in a graph.

    `alpha` and `n_best`, scalars, count instead of the options' alpha and return_beams.
    `length` is an int if XLA compiles the search.

    Args:
        extra_inputs: "prefixes", int32 [B, L]; "uniforms", float32 [B, M, L], which
            sampling requires; "brackets", the first arguments of `bracket_constraint`;
            "terms", int32 [B, K, P], see `term_choice`.
    """
    rules = rules_of(options)
    brackets = None
    if "brackets" in extra_inputs:
        classes, tokens, choices = extra_inputs["brackets"]
        brackets = bracket_constraint(classes, tokens, choices, max_lengths)
    prefixes = extra_inputs.get("prefixes")
    common = {
        "max_lengths": max_lengths,
        "alpha": alpha if rules.penalises(options) else 0.0,
        "penalise_unfinished": rules.penalises_unfinished,
        "constrain": conjunction(
            options.min_length,
            options.no_repeat_ngram_size,
            prefixes,
            brackets,
        ),
    }
    slots = options.hypotheses
    with cast_kernels(model):
        start_decoding = functools.partial(model.start_decoding, inputs, slots)
        if options.samples:
            uniforms = extra_inputs["uniforms"]
            return sample(
                model.decode_step,
                start_decoding(length),
                uniforms=tf.ensure_shape(uniforms, (None, slots, None)),
                temperature=options.sampling_temp,
                keep_top_k=options.sampling_keep_top_k,
                **common,
            )
        return beam_search(
            model.decode_step,
            start_decoding,
            beam_size=slots,
            length=length,
            n_best=n_best,
            choose=term_choice(extra_inputs.get("terms"), slots, prefixes),
            # for XLA, shapes are static
            resize_cache=None if isinstance(length, int) else model.resize_cache,
            **common,
        )


def log_probs(model: DecodingModel, inputs: Tensor, targets: Tensor) -> Tensor:
    """The log-probability of each target, EOS included: int32 [B, S] and [B, T] to
    float32 [B].
    """
    logits = model(inputs, targets)
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(targets, logits)  # [B, T]
    return -tf.reduce_sum(losses * tf.cast(targets != PAD, tf.float32), axis=1)


def mean_cross_attention(
    model: DecodingModel, inputs: Tensor, targets: Tensor
) -> Tensor:
    """The cross-attention weights of each pair, averaged over heads and layers: float32
    [B, T, S].
    """
    layers = model.attention(inputs, targets).cross
    return tf.reduce_mean(tf.concat(layers, axis=1), axis=1)


def cast_kernels(model: DecodingModel) -> keras.StatelessScope:
    """A scope in which the model's matrices have the type that it computes in.

    So they are read and cast once a search rather than at each position, which makes
    bfloat16 a sixth faster on a CPU.
    """
    return scope_of(cast_values(model))


def scope_of(values: Iterable[tuple[Variable, Tensor]]) -> keras.StatelessScope:
    """A scope in which variables have these values."""
    scope = keras.StatelessScope()
    for update in values:
        scope.add_update(update)
    return scope


def cast_values(model: DecodingModel) -> list[tuple[Variable, Tensor]]:
    """The model's variables with their values, of matrices in the compute dtype."""
    values = []
    for variable in model.trainable_variables:
        value = variable.value
        # a value of the scope stays outside the graph
        if isinstance(value, tf.Variable):
            value = tf.convert_to_tensor(value)
        if len(variable.shape) == 2:
            value = tf.cast(value, model.compute_dtype)
        values.append((variable, value))
    return values
