"""What a model and its training cost, by formula: parameters and FLOPs."""

# D hidden size, F filter size, K and U channels of keys and of values (all heads
# together), H heads, V vocabulary, S source length, T target length, in tokens

import math
from collections.abc import Sequence
from typing import NamedTuple

from t2tlite.config import HParams


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


class _Attention(NamedTuple):
    """The sizes of attention in so many layers, for a pair."""

    layers: int
    queries: float
    keys: float
    keys_of_a_query: float  # that it has scores for, padding included


def _attentions(hparams: HParams, lengths: tuple[float, float]) -> list[_Attention]:
    """Self-attention of both stacks, and cross-attention."""
    s, t = lengths
    return [
        _self_attention(hparams, hparams.encoder_layers, s, 3),
        _self_attention(hparams, hparams.decoder_layers, t, 2),
        _Attention(hparams.decoder_layers, t, s, s),
    ]


def _self_attention(
    hparams: HParams, layers: int, length: float, blocks: int
) -> _Attention:
    """With a radius, a query has scores for so many `blocks` of keys."""
    if not hparams.self_attention_radius:
        return _Attention(layers, length, length, length)
    size = min(hparams.self_attention_radius, length)
    queries = math.ceil(length / size) * size
    return _Attention(layers, queries, length, blocks * size)


COSTS = {"transformer": TransformerCost()}  # by HParams.model


def _formulas(hparams: HParams) -> ModelCost:
    return COSTS.get(hparams.model) or ModelCost()


def count_parameters(hparams: HParams, vocabulary_sizes: Sequence[int]) -> int:
    """The number of weights of a model, equal to the built model's `count_params()`; 0
    if it has no formulas.

    >>> count_parameters(HParams(), (37_000, 37_000))
    63045632
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


def flops_per_step(
    hparams: HParams, target_vocab_size: int, lengths: tuple[float, float]
) -> float:
    """Floating-point operations of an optimizer step on one replica, forward and
    backward, with full batches of pairs of the mean lengths (S, T), EOS included.

    A full batch has as many pairs as fit in batch_size tokens of the longer side,
    accumulate_steps times. Attention's share grows with the square of the length
    (restricted, with the length times the radius), so real lengths, which vary, cost a
    little more.
    """
    pairs = hparams.accumulate_steps * hparams.batch_size / max(lengths)
    return pairs * training_flops(hparams, target_vocab_size, *lengths)


def largest_batch(
    hparams: HParams,
    target_vocab_size: int,
    shapes: Sequence[tuple[int, int, int]],
    replicas: int,
) -> tuple[int, int, int]:
    """The shape (R, S, T) of the micro-batch that needs the most memory, R its rows.

    `shapes` are those of the largest global batches, `BatchPlan.largest_shapes`.
    """
    parts = replicas * hparams.accumulate_steps
    micro_batches = [(math.ceil(rows / parts), s, t) for rows, s, t in shapes]

    def kept(shape: tuple[int, int, int]) -> float:
        """About as many numbers as the backward pass needs of the forward pass."""
        rows, s, t = shape
        encoder = hparams.encoder_layers
        decoder = hparams.decoder_layers
        weights = encoder * s * s + decoder * (t * t + t * s)
        activations = encoder * s + 2 * decoder * t
        width = hparams.filter_size + 8 * hparams.hidden_size
        logits = 3 * t * target_vocab_size
        return rows * (2 * hparams.num_heads * weights + activations * width + logits)

    return max(micro_batches, key=kept)
