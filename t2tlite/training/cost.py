"""What a model and its training cost: parameters and FLOPs by formula, and the cost of
a run, as in Table 2.
"""

# D hidden size, F filter size, K and U channels of keys and of values (all heads
# together), H heads, V vocabulary, S source length, T target length, in tokens

import contextlib
import dataclasses
import math
import time
from collections.abc import Iterator, Sequence

from t2tlite.config import HParams
from t2tlite.files.checkpoint_paths import step_of
from t2tlite.run_folder import RunFolder
from t2tlite.run_records import NO_COST, CostFile, RunCost
from t2tlite.types import Tensor

TRANSFORMER = "transformer"  # the hparam `model` of which the formulas are


def count_parameters(hparams: HParams, vocabulary_sizes: Sequence[int]) -> int:
    """The number of weights of a Transformer, for these sizes of source and target
    vocabulary, equal to the built model's `count_params()`; 0 of another model.

    >>> count_parameters(HParams(), (37_000, 37_000))
    63045632
    """
    if hparams.model != TRANSFORMER:
        return 0
    d = hparams.hidden_size
    f = hparams.filter_size
    encoder = hparams.encoder_layers
    decoder = hparams.decoder_layers
    source_size, target_size = vocabulary_sizes
    rows = target_size  # of the matrices of source, target and softmax
    if not hparams.shared_embedding_and_softmax_weights:
        rows += source_size + target_size
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


def training_flops(
    hparams: HParams,
    target_vocab_size: int,
    source_length: float,
    target_length: float,
) -> float:
    """Floating-point operations to train a Transformer on one pair: two products
    backward for each product forward. 0 of another model.

    Only matrix products count, a multiplication and an addition each. Element-wise
    operations (biases, normalisation, softmax, residual sums) are left out: 0.2% more
    for the base model, by TensorFlow's profiler; so is the optimizer's own work, about
    ten operations a weight and step. Masked scores count, since they are computed: the
    decoder attends from all T positions to all T.
    """
    if hparams.model != TRANSFORMER:
        return 0.0
    d = hparams.hidden_size
    encoder = hparams.encoder_layers
    decoder = hparams.decoder_layers
    radius = hparams.self_attention_radius
    channels = hparams.key_channels + hparams.value_channels
    s, t = source_length, target_length
    positions = encoder * s + decoder * t
    products = positions * 2 * d * hparams.filter_size  # feed-forward
    products += t * d * target_vocab_size  # logits
    for layers, queries, keys, keys_of_a_query in (
        (encoder, *_self_attention(radius, s, 3)),
        (decoder, *_self_attention(radius, t, 2)),
        (decoder, t, s, s),  # cross-attention
    ):
        projected = (queries + keys) * d * channels
        # Q K^T, and the weighted sum of values
        scores = queries * keys_of_a_query * channels
        products += layers * (projected + scores)
    return 3.0 * (2 * products)


def _self_attention(
    radius: int,
    length: float,
    blocks: int,
) -> tuple[float, float, float]:
    """The numbers of queries, of keys, and of keys that a query has scores for. With a
    radius, these are so many `blocks` of keys, padding included.
    """
    if not radius:
        return length, length, length
    size = min(radius, length)
    return math.ceil(length / size) * size, length, blocks * size


def flops_per_step(
    hparams: HParams,
    target_vocab_size: int,
    lengths: tuple[float, float],
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
    encoder = hparams.encoder_layers
    decoder = hparams.decoder_layers
    width = hparams.filter_size + 8 * hparams.hidden_size

    def kept(shape: tuple[int, int, int]) -> float:
        """About as many numbers as the backward pass needs of the forward pass."""
        rows, s, t = shape
        weights = encoder * s * s + decoder * (t * t + t * s)
        activations = encoder * s + 2 * decoder * t
        logits = 3 * t * target_vocab_size
        return rows * (2 * hparams.num_heads * weights + activations * width + logits)

    parts = replicas * hparams.accumulate_steps
    micro_batches = [(math.ceil(rows / parts), s, t) for rows, s, t in shapes]
    return max(micro_batches, key=kept)


@dataclasses.dataclass
class CostMeter:
    """Measures the cost of training on so many `devices` from the checkpoint of `step`
    on; 0 at the start. `RunCost` explains the fields.

    A resumed run adds to the cost of its checkpoint. So no work is counted twice, and
    work that was lost, by a kill or with deleted checkpoints, is not counted.
    `flops_per_token` is the floating-point operations for one token, forward and
    backward. A damaged cost.json raises a ValueError.
    """

    run: RunFolder
    step: dataclasses.InitVar[int]
    devices: int
    flops_per_token: float

    def __post_init__(self, step: int) -> None:
        self._records = [record for record in self.run.costs() if record.step <= step]
        # of each step since the last record; still on the device
        self._tokens: list[Tensor] = []
        self._since = time.monotonic()

    def count(self, tokens: Tensor) -> None:
        """Counts a step with this number of tokens, a float32 scalar that may still be
        computed.
        """
        self._tokens.append(tokens)

    def save(self, step: int) -> None:
        """Writes the cost so far. Call it before a checkpoint is saved, so that each
        checkpoint has a record.
        """
        now = time.monotonic()
        seconds = now - self._since
        tokens = sum(map(int, self._tokens))
        before = self._records[-1] if self._records else NO_COST
        cost = RunCost(
            step=step,
            steps=before.steps + len(self._tokens),
            seconds=before.seconds + seconds,
            device_seconds=before.device_seconds + seconds * self.devices,
            tokens=before.tokens + tokens,
            flops=before.flops + tokens * self.flops_per_token,
        )
        self._tokens = []
        self._since = now
        kept = {step_of(path) for path in self.run.checkpoints()} - {step}
        self._records = [record for record in self._records if record.step in kept]
        self._records.append(cost)
        self.run.write(CostFile(tuple(self._records)))

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Leaves out the time of the block, which evaluates."""
        paused_at = time.monotonic()
        yield
        self._since += time.monotonic() - paused_at


def cost_line(cost: RunCost) -> str:
    """The counted cost in a line."""
    minutes = f"{cost.device_seconds / 60:,.1f} device minutes"
    return f"Training cost: {cost.flops:.2e} FLOPs counted, in {minutes}."
