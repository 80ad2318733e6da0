"""What a model and its training cost, by formula: parameters, FLOPs and memory, without
building anything.
"""

# D hidden size, F filter size, K and U channels of keys and of values (all heads
# together), H heads, V vocabulary, S source length, T target length, in tokens

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import NamedTuple

from t2tlite.config import HParams

FLOAT32_BYTES = 4
MASK = 0.25  # of dropout, in float32 numbers: a byte


class ModelCost:
    """The formulas of a model's cost. This one knows none: its costs are 0."""

    def parameters(self, hparams: HParams, sizes: Sequence[int]) -> int:
        """The number of weights, for these sizes of source and target vocabulary."""
        return 0

    def forward_flops(
        self, hparams: HParams, target_vocab_size: int, lengths: tuple[float, float]
    ) -> float:
        """Floating-point operations of one pair (S, T), forward."""
        return 0.0

    def activations(self, hparams: HParams, lengths: tuple[float, float]) -> float:
        """Numbers that one pair (S, T) keeps for the backward pass, without those over
        the vocabulary.
        """
        return 0.0


class TransformerCost(ModelCost):
    """The formulas of `transformer`."""

    def parameters(self, hparams: HParams, sizes: Sequence[int]) -> int:
        d = hparams.hidden_size
        f = hparams.filter_size
        encoder = hparams.encoder_layers
        decoder = hparams.decoder_layers
        source_vocab_size, target_vocab_size = sizes
        rows = target_vocab_size  # of the matrices of source, target and softmax
        if not hparams.shared_embedding_and_softmax_weights:
            rows += source_vocab_size + target_vocab_size
        rows += 2 * (hparams.max_positions or 0)  # learned: of source and target
        if hparams.use_target_space_embedding:
            rows += 1
        # W^Q, W^K, W^V, W^O; no biases
        attention = 2 * d * (hparams.key_channels + hparams.value_channels)
        feed_forward = d * f + f + f * d + d  # W1, b1, W2, b2
        # one a sublayer, and after each stack
        norms = 2 * encoder + 3 * decoder + (2 if hparams.pre_norm else 0)
        return (
            rows * d
            + (encoder + 2 * decoder) * attention
            + (encoder + decoder) * feed_forward
            + norms * 2 * d  # scale and shift
        )

    def forward_flops(
        self, hparams: HParams, target_vocab_size: int, lengths: tuple[float, float]
    ) -> float:
        """Only matrix products count, a multiplication and an addition each.

        Element-wise operations (biases, normalisation, softmax, residual sums) are left
        out: 0.2% more for the base model, by TensorFlow's profiler. Masked scores
        count, since they are computed: the decoder attends from all T positions to all
        T. Restricted self-attention has scores for 3 r keys of each query in the
        encoder, for 2 r in the decoder.
        """
        d = hparams.hidden_size
        channels = hparams.key_channels + hparams.value_channels
        s, t = lengths
        positions = hparams.encoder_layers * s + hparams.decoder_layers * t
        products = positions * 2 * d * hparams.filter_size  # feed-forward
        products += t * d * target_vocab_size  # logits
        for attention in _attentions(hparams, lengths):
            projected = (attention.queries + attention.keys) * d * channels
            # Q K^T, and the weighted sum of values
            scores = attention.queries * attention.keys_of_a_query * channels
            products += attention.layers * (projected + scores)
        return 2 * products

    def activations(self, hparams: HParams, lengths: tuple[float, float]) -> float:
        d = hparams.hidden_size
        channels = hparams.key_channels + hparams.value_channels
        s, t = lengths

        def kept(rate: float) -> float:
            """Of a number: itself, the result of dropout, and its mask."""
            return 2 + MASK if rate else 1

        # Around a sublayer: the norm's input, its factor, its result; dropout's mask.
        residual = (3 + MASK * (hparams.layer_prepostprocess_dropout > 0)) * d
        feed_forward = hparams.filter_size * kept(hparams.relu_dropout) + residual
        weight = hparams.num_heads * kept(hparams.attention_dropout)
        numbers = (s + t) * d  # embedded
        numbers += hparams.encoder_layers * s * feed_forward
        numbers += hparams.decoder_layers * t * feed_forward
        for attention in _attentions(hparams, lengths):
            # queries and heads; keys and values; weights
            of_a_query = channels + residual + attention.keys_of_a_query * weight
            of_queries = attention.queries * of_a_query
            numbers += attention.layers * (of_queries + attention.copies * channels)
        return numbers


class _Attention(NamedTuple):
    """The sizes of attention in so many layers, for a pair."""

    layers: int
    queries: float
    keys: float
    keys_of_a_query: float  # that it has scores for, padding included
    copies: float  # of the keys, in all blocks


def _attentions(
    hparams: HParams, lengths: tuple[float, float]
) -> tuple[_Attention, _Attention, _Attention]:
    """Self-attention of both stacks, and cross-attention."""
    s, t = lengths
    return (
        _self_attention(hparams, hparams.encoder_layers, s, 3),
        _self_attention(hparams, hparams.decoder_layers, t, 2),
        _Attention(hparams.decoder_layers, t, s, s, s),
    )


def _self_attention(
    hparams: HParams, layers: int, length: float, blocks: int
) -> _Attention:
    """With a radius, a query has scores for so many `blocks` of keys."""
    if not hparams.self_attention_radius:
        return _Attention(layers, length, length, length, length)
    size = min(hparams.self_attention_radius, length)
    queries = math.ceil(length / size) * size
    return _Attention(layers, queries, length, blocks * size, blocks * queries)


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
    a training pair's source and target, EOS included.

    >>> estimate(HParams(), (37_000, 37_000), (30, 30)).parameters
    63045632
    """
    pairs = hparams.batch_size / max(lengths)  # in a micro-batch
    flops = training_flops(hparams, vocabulary_sizes[1], *lengths)
    memory = training_memory(hparams, vocabulary_sizes, lengths, pairs)
    return Cost(
        parameters=count_parameters(hparams, vocabulary_sizes),
        flops_per_step=flops * pairs * hparams.accumulate_steps,
        memory_bytes=round(memory),
    )


def count_parameters(hparams: HParams, vocabulary_sizes: Sequence[int]) -> int:
    """The number of weights of a model, equal to the built model's `count_params()`; 0
    if it has no formulas.
    """
    return _formulas(hparams).parameters(hparams, vocabulary_sizes)


def training_flops(
    hparams: HParams, target_vocab_size: int, source_length: float, target_length: float
) -> float:
    """Floating-point operations to train on one pair: two products backward for each
    product forward.

    The optimizer's own work, about ten operations a weight and step, is left out.
    """
    lengths = source_length, target_length
    return 3.0 * _formulas(hparams).forward_flops(hparams, target_vocab_size, lengths)


def training_memory(
    hparams: HParams,
    vocabulary_sizes: Sequence[int],
    lengths: tuple[float, float],
    pairs: float,
) -> float:
    """Estimates the bytes that training holds at its peak.

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
    is_mixed = hparams.dtype_policy != "float32"
    # weights, gradients, moments
    copies = 1 + min(hparams.accumulate_steps, 2) + 2
    weights = (copies + 0.5 * is_mixed) * count_parameters(hparams, vocabulary_sizes)
    activations = _formulas(hparams).activations(hparams, lengths)
    if is_mixed:
        activations /= 2
    # float32 for every policy: logits, softmax minus the target, and its gradient
    logits = 3 * lengths[1] * vocabulary_sizes[1]
    return FLOAT32_BYTES * (weights + pairs * (activations + logits))


def largest_batch(
    hparams: HParams,
    vocabulary_sizes: Sequence[int],
    shapes: Sequence[tuple[int, int, int]],
    replicas: int,
) -> tuple[int, int, int]:
    """The shape (R, S, T) of the micro-batch that needs the most memory, R its rows.

    `shapes` are those of the largest global batches, `BatchPlan.largest_shapes`.
    """

    def memory(shape: tuple[int, int, int]) -> float:
        rows, source, target = shape
        return training_memory(hparams, vocabulary_sizes, (source, target), rows)

    parts = replicas * hparams.accumulate_steps
    return max([(-(-rows // parts), s, t) for rows, s, t in shapes], key=memory)
