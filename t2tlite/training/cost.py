"""What a model and its training cost, by formula: parameters, FLOPs and memory, without
building anything.
"""

# D hidden size, F filter size, K and U channels of keys and of values (all heads
# together), H heads, V vocabulary S source length, T target length, in tokens

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

from t2tlite.config import HParams

FLOAT32_BYTES = 4


class ModelCost:
    """The formulas of a model's cost. This one knows none: its costs are 0."""

    def parameter_counts(
        self, hparams: HParams, source_vocab_size: int, target_vocab_size: int
    ) -> dict[str, int]:
        """The number of weights of each part of the model."""
        return {}

    def forward_flops(
        self,
        hparams: HParams,
        target_vocab_size: int,
        source_length: float,
        target_length: float,
    ) -> dict[str, float]:
        """Floating-point operations of one pair, forward, by part of the model."""
        return {}

    def activations(
        self, hparams: HParams, source_length: float, target_length: float
    ) -> float:
        """Numbers that one pair keeps for the backward pass, without those over the
        vocabulary.
        """
        return 0.0


class TransformerCost(ModelCost):
    """The formulas of `transformer`."""

    def parameter_counts(
        self, hparams: HParams, source_vocab_size: int, target_vocab_size: int
    ) -> dict[str, int]:
        d = hparams.hidden_size
        f = hparams.filter_size
        k = hparams.key_channels
        u = hparams.value_channels
        encoder = hparams.encoder_layers
        decoder = hparams.decoder_layers
        # the matrices of source, target and softmax
        rows = source_vocab_size + 2 * target_vocab_size
        if hparams.shared_embedding_and_softmax_weights:
            rows = target_vocab_size
        attention = d * k + d * k + d * u + u * d  # W^Q, W^K, W^V, W^O; no biases
        feed_forward = d * f + f + f * d + d  # W1, b1, W2, b2
        # one a sublayer, and after each stack
        norms = 2 * encoder + 3 * decoder + (2 if hparams.pre_norm else 0)
        return {
            "embedding": rows * d,
            # learned: of source and target
            "positions": 2 * (hparams.max_positions or 0) * d,
            "target space": d if hparams.use_target_space_embedding else 0,
            "attention": (encoder + 2 * decoder) * attention,
            "feed-forward": (encoder + decoder) * feed_forward,
            "norms": norms * 2 * d,  # scale and shift
        }

    def forward_flops(
        self,
        hparams: HParams,
        target_vocab_size: int,
        source_length: float,
        target_length: float,
    ) -> dict[str, float]:
        """Only matrix products count, a multiplication and an addition each.

        Element-wise operations (biases, normalisation, softmax, residual sums) are left
        out: 0.2% more for the base model, by TensorFlow's profiler. Masked scores
        count, since they are computed: the decoder attends from all T positions to all
        T. Restricted self-attention has scores for 3 r keys of each query in the
        encoder, for 2 r in the decoder.
        """
        d = hparams.hidden_size
        f = hparams.filter_size
        k = hparams.key_channels
        u = hparams.value_channels
        s = source_length
        t = target_length

        def projections(queries: float, keys: float) -> float:
            return 2 * (queries * (d * k + u * d) + keys * (d * k + d * u))

        def scores(queries: float, keys: float) -> float:
            return 2 * queries * keys * (k + u)  # Q K^T, and the weighted sum of values

        encoder = hparams.encoder_layers
        decoder = hparams.decoder_layers
        source_queries, source_keys = _blocks(hparams, s, 3)
        target_queries, target_keys = _blocks(hparams, t, 2)
        of_encoder = projections(source_queries, s)
        of_decoder = projections(target_queries, t) + projections(t, s)
        encoder_scores = scores(source_queries, source_keys)
        decoder_scores = scores(target_queries, target_keys) + scores(t, s)
        return {
            "attention projections": encoder * of_encoder + decoder * of_decoder,
            "attention": encoder * encoder_scores + decoder * decoder_scores,
            "feed-forward": 2 * (encoder * s + decoder * t) * (d * f + f * d),
            "softmax": 2 * t * d * target_vocab_size,
        }

    def activations(
        self, hparams: HParams, source_length: float, target_length: float
    ) -> float:
        d = hparams.hidden_size
        f = hparams.filter_size
        k = hparams.key_channels
        u = hparams.value_channels
        h = hparams.num_heads
        s = source_length
        t = target_length
        mask = 0.25  # of dropout: a byte

        def dropped(rate: float) -> float:
            return 1 + mask if rate > 0 else 0  # the result of dropout and its mask

        # Around a sublayer: the norm's input, its factor, its result; dropout's mask.
        residual = (3 + (mask if hparams.layer_prepostprocess_dropout > 0 else 0)) * d

        def attention(queries: float, keys: float, keys_of_a_query: float) -> float:
            weights = (
                queries * keys_of_a_query * h * (1 + dropped(hparams.attention_dropout))
            )
            # queries, heads, keys, values, weights
            return queries * (k + u + residual) + keys * (k + u) + weights

        def self_attention(length: float, blocks: int) -> float:
            queries, keys_of_a_query = _blocks(hparams, length, blocks)
            # of a key: for each block of queries
            copies = blocks if hparams.self_attention_radius else 1
            return attention(queries, copies * queries, keys_of_a_query)

        feed_forward = f * (1 + dropped(hparams.relu_dropout)) + residual
        # s * d: embedded
        encoder = s * d + hparams.encoder_layers * (
            self_attention(s, 3) + s * feed_forward
        )
        decoder = t * d + hparams.decoder_layers * (
            self_attention(t, 2) + attention(t, s, s) + t * feed_forward
        )
        return encoder + decoder


def _blocks(hparams: HParams, length: float, blocks: int) -> tuple[float, float]:
    """The number of queries of a sentence in self-attention, and of keys that each has
    a score for, padding included.

    With a radius, a query has scores for so many `blocks` of keys.
    """
    if not hparams.self_attention_radius:
        return length, length
    size = min(hparams.self_attention_radius, length)
    return math.ceil(length / size) * size, blocks * size


COSTS = {"transformer": TransformerCost()}  # by HParams.model


def _formulas(hparams: HParams) -> ModelCost:
    return COSTS.get(hparams.model) or ModelCost()


@dataclasses.dataclass(frozen=True)
class Cost:
    """The size of a model, and of one optimizer step on one replica."""

    parameters: int  # weights
    # floating-point operations of a full batch, forward and backward
    flops_per_step: float
    memory_bytes: int  # of training, estimated


def estimate(
    hparams: HParams, vocabulary_sizes: tuple[int, int], lengths: tuple[float, float]
) -> Cost:
    """The cost of a model and of its training on pairs of a given length.

    A full batch has as many pairs as fit in batch_size tokens of the longer side,
    accumulate_steps times, all of the mean length. Attention's share grows with the
    square of the length (restricted, with the length times the radius), so real
    lengths, which vary, cost a little more.

    Vocabulary sizes count all ids of source and target; lengths are the mean tokens of
    a training pair's source and target, EOS included. Raises ValueError if one of them
    is not above zero.

    >>> estimate(HParams(), (37_000, 37_000), (30, 30)).parameters
    63045632
    """
    names = (
        "source vocabulary size",
        "target vocabulary size",
        "source length",
        "target length",
    )
    for name, size in zip(names, (*vocabulary_sizes, *lengths), strict=True):
        if not size > 0:
            raise ValueError(f"The {name} must be above zero. Received: {size}.")
    pairs = hparams.batch_size / max(lengths)  # in a micro-batch
    flops = training_flops(hparams, vocabulary_sizes[1], *lengths)
    memory = memory_parts(hparams, vocabulary_sizes, lengths, pairs)
    return Cost(
        parameters=count_parameters(hparams, vocabulary_sizes),
        flops_per_step=flops * pairs * hparams.accumulate_steps,
        memory_bytes=round(sum(memory.values())),
    )


def count_parameters(hparams: HParams, vocabulary_sizes: Sequence[int]) -> int:
    """The number of weights of a model, equal to the built model's `count_params()`; 0
    if it has no formulas.
    """
    counts = _formulas(hparams).parameter_counts(hparams, *vocabulary_sizes)
    return sum(counts.values())


def training_flops(
    hparams: HParams, target_vocab_size: int, source_length: float, target_length: float
) -> float:
    """Floating-point operations to train on one pair: two products backward for each
    product forward.

    The optimizer's own work, about ten operations a weight and step, is left out.
    """
    parts = _formulas(hparams).forward_flops(
        hparams, target_vocab_size, source_length, target_length
    )
    return 3.0 * sum(parts.values())


def memory_parts(
    hparams: HParams,
    vocabulary_sizes: tuple[int, int],
    lengths: tuple[float, float],
    pairs: float,
) -> dict[str, float]:
    """Estimates the bytes that training holds at its peak, by part.

    It counts weights, gradients (twice with several micro-batches) and Adam's two
    moments, all float32; with mixed precision a copy of the weights in 16 bits; and
    what a micro-batch of so many `pairs` keeps for the backward pass. It does not count
    TensorFlow itself (0.8 GB on a CPU) and its graph (0.2 GB), working space inside
    operations, and what the allocator wastes.

    On a CPU, a model of 3 layers of 128 with a vocabulary of 8,000 took 0.46 GB more
    than TensorFlow for 32 pairs of 64 + 64 tokens, and 1.04 GB for 96; the estimates
    were 0.37 and 1.03. With four micro-batches of 32 pairs it took 0.56 GB, the
    estimate being 0.38. Models of 3 layers, 256 and 512 wide, took 0.98 to 1.24 times
    the estimate.
    """
    parameters = count_parameters(hparams, vocabulary_sizes)
    weights = parameters * FLOAT32_BYTES
    gradients = 2 * weights if hparams.accumulate_steps > 1 else weights
    cast_weights = 0.0
    activations = (
        pairs * _formulas(hparams).activations(hparams, *lengths) * FLOAT32_BYTES
    )
    if hparams.dtype_policy != "float32":
        cast_weights = weights / 2
        activations /= 2
    return {
        "weights": weights,
        "cast weights": cast_weights,
        "gradients": gradients,
        "Adam's moments": 2 * weights,
        "activations": activations,
        # float32 for every policy: logits, softmax minus the target, and its gradient
        "logits": 3 * pairs * lengths[1] * vocabulary_sizes[1] * FLOAT32_BYTES,
    }
