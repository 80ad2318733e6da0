"""Hyperparameters: flat, frozen, typed dataclasses.

`HParams` describes a model and its training, `DecodeHParams` decoding. Field names are
tensor2tensor's wherever it has one. A named set is a function in `t2tlite/hparams` that
returns an HParams.
"""

import dataclasses
import math
import re
from typing import Any, Literal, Self, TypedDict

from t2tlite.checked_fields import AUTO, CheckedFields, T, checked_field, facts_of
from t2tlite.registry import check_model
from t2tlite.schedules import SCHEDULES

# The longest sentence in tokens to decode or to evaluate, EOS not counted, unless the
# model was trained on longer ones or cannot represent it.
MAX_SENTENCE_TOKENS = 2048
# the longest bucket of sources that are decoded together, and the longest hypothesis
LONGEST_BUCKET = 4096
MAX_SIZE = 2**31 - 1  # of a dimension in TensorFlow


def model_field(default: T, **facts: Any) -> T:
    """A field that is part of the model, see `Facts`."""
    return checked_field(default, model=True, **facts)


@dataclasses.dataclass(frozen=True)
class HParams(CheckedFields):
    """A model and its training. The defaults are the paper's base model, and sections
    are the paper's.

    Attributes:
        model: name of the registered model
        hidden_size: d_model, width of every layer's output
        filter_size: d_ff, inner width of the feed-forward layers (3.3)
        num_hidden_layers: N, layers in the encoder and in the decoder
        num_encoder_layers: layers in the encoder; 0 means num_hidden_layers
        num_decoder_layers: layers in the decoder; 0 means num_hidden_layers
        num_heads: h, attention heads of each layer (3.2.2)
        attention_key_channels: h * d_k, all heads together; 0 means hidden_size
        attention_value_channels: h * d_v, all heads together; 0 means hidden_size
        self_attention_radius: r of restricted self-attention (section 4): a position
            attends to those at a distance below r, in the decoder to the last r; 0: to
            all
        pos: positions: 'timing' the sinusoids of 3.5; 'timing_halves' tensor2tensor's,
            all sines then all cosines; 'emb' a learned row for each of max_length
            positions (Table 3, row E); 'none'
        layer_preprocess_sequence: before each sublayer; 'n': normalise (pre-norm)
        layer_postprocess_sequence: after each sublayer; 'd': dropout, 'a': add, 'n':
            normalise (post-norm)
        norm_epsilon: added to the variance in layer normalisation
        shared_embedding_and_softmax_weights: one matrix for source, target and softmax
            (3.4)
        use_target_space_embedding: tensor2tensor's: a learned row added to every source
            embedding
        layer_prepostprocess_dropout: P_drop: of sublayer outputs, embeddings
        attention_dropout: of attention weights; not in the paper
        relu_dropout: in feed-forward layers; not in the paper
        label_smoothing: epsilon_ls, probability of all other tokens
        batch_size: tokens, padding counted, of the longer side, per replica and
            micro-batch
        accumulate_steps: micro-batches whose gradients are summed for one optimizer
            step
        global_batch_tokens: tokens of all micro-batches of all replicas, from which
            accumulate_steps is derived; 0: batch_size x accumulate_steps x replicas
        corpus_weights: how many times an epoch has the pairs of each training corpus,
            in the order of --train_source, such as 1:4; empty: once
        max_length: tokens; training pairs with a longer side are left out, and counted
        min_length_bucket: tokens; the first bucket boundary
        length_bucket_step: ratio of a boundary to the one before
        learning_rate_schedule: 'noam' is formula (3), with the first update at step 1;
            tensor2tensor's is one step later: its first update has rate 0
        learning_rate_constant: factor of the learning rate, times formula (3)
        learning_rate_warmup_steps: optimizer steps in which the learning rate rises
        optimizer_adam_beta1: Adam's decay of the mean of the gradients
        optimizer_adam_beta2: Adam's decay of the mean of their squares
        optimizer_adam_epsilon: added to the divisor in Adam's update
        clip_grad_norm: gradients of a greater global norm are scaled down to it; 0:
            never; not in the paper
        weight_decay: c in the L2 term c/2 x the sum of squares of all weights except
            biases; not in the paper
        train_steps: optimizer steps in total, unless --train_steps is given
        dtype_policy: 'auto': bfloat16 if the hardware has it, otherwise float32; a run
            records which
        jit_compile: compile the training step with XLA; training batches then have at
            most 12 shapes; 'auto': in a long training on a GPU; a run records whether
    """

    largest = MAX_SIZE

    # The model, section 3.
    model: str = model_field("transformer", t2t=False)
    hidden_size: int = model_field(512, low=2)
    filter_size: int = model_field(2048, low=1)
    num_hidden_layers: int = model_field(6, low=1)
    num_encoder_layers: int = model_field(0, low=0)
    num_decoder_layers: int = model_field(0, low=0)
    num_heads: int = model_field(8, low=1)
    attention_key_channels: int = model_field(0, low=0)
    attention_value_channels: int = model_field(0, low=0)
    self_attention_radius: int = model_field(0, low=0, t2t=False)
    pos: str = model_field("timing", choices=("timing", "timing_halves", "emb", "none"))
    layer_preprocess_sequence: str = model_field("none", choices=("none", "n"))
    layer_postprocess_sequence: str = model_field("dan", choices=("dan", "da"))
    norm_epsilon: float = model_field(1e-6, low=0.0)
    shared_embedding_and_softmax_weights: bool = model_field(True)
    use_target_space_embedding: bool = model_field(False)

    # Regularisation, section 5.4.
    layer_prepostprocess_dropout: float = checked_field(0.1, low=0.0, high=0.99)
    attention_dropout: float = checked_field(0.0, low=0.0, high=0.99)
    relu_dropout: float = checked_field(0.0, low=0.0, high=0.99)
    label_smoothing: float = checked_field(0.1, low=0.0, high=0.99)

    # Batches, section 5.1.
    batch_size: int = checked_field(4096, low=1)
    accumulate_steps: int = checked_field(1, low=1, t2t=False)
    global_batch_tokens: int = checked_field(0, low=0, t2t=False)
    corpus_weights: str = checked_field("", t2t=False)
    max_length: int = checked_field(256, low=1)
    min_length_bucket: int = checked_field(8, low=1)
    length_bucket_step: float = checked_field(1.1, low=1.01, high=2.0)

    # The optimizer, section 5.3.
    learning_rate_schedule: str = checked_field("noam", choices=tuple(SCHEDULES))
    learning_rate_constant: float = checked_field(1.0, low=1e-9)
    learning_rate_warmup_steps: int = checked_field(4000, low=1)
    optimizer_adam_beta1: float = checked_field(0.9, low=0.0, high=0.999999)
    optimizer_adam_beta2: float = checked_field(0.98, low=0.0, high=0.999999)
    optimizer_adam_epsilon: float = checked_field(1e-9, low=0.0)
    clip_grad_norm: float = checked_field(0.0, low=0.0)
    weight_decay: float = checked_field(0.0, low=0.0)
    train_steps: int = checked_field(100_000, low=1)

    # Arithmetic.
    dtype_policy: str = checked_field(
        "float32",
        choices=("float32", "mixed_bfloat16", "mixed_float16", AUTO),
        t2t=False,
    )
    jit_compile: bool | Literal["auto"] = checked_field(
        AUTO, kind=bool, auto=True, t2t=False
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_model(self.model)
        for name in ("key", "value"):
            width = getattr(self, f"{name}_channels")
            if width % self.num_heads:
                raise ValueError(
                    f"attention_{name}_channels must be a multiple of num_heads."
                    f" Received: {width} and {self.num_heads}."
                )
        if self.hidden_size % 2 and self.pos.startswith("timing"):
            size = self.hidden_size
            raise ValueError(
                f"hidden_size must be even with this pos. Received: {size}."
            )
        if self.pre_norm != (self.layer_postprocess_sequence == "da"):
            raise ValueError(
                "layer_preprocess_sequence and layer_postprocess_sequence must be none"
                " and dan, or n and da."
            )
        batch = self.batch_size
        if min(batch, self.global_batch_tokens or batch) < self.max_length:
            raise ValueError(
                "batch_size and global_batch_tokens must be at least max_length."
                f" Received: {batch}, {self.global_batch_tokens}, {self.max_length}."
            )
        if not re.fullmatch(r"([1-9]\d{0,3}(:(?=\d)|$))*", self.corpus_weights):
            raise ValueError(
                "corpus_weights must be like 1:4, each from 1 to 9999. Received:"
                f" {self.corpus_weights!r}."
            )

    @property
    def weights(self) -> list[int]:
        """The weight of each training corpus; empty if they are not given."""
        return list(map(int, filter(None, self.corpus_weights.split(":"))))

    def for_replicas(self, replicas: int) -> Self:
        """The same hparams with the accumulate_steps that global_batch_tokens needs on
        so many replicas.

        >>> hparams = HParams(global_batch_tokens=25_000)
        >>> [hparams.for_replicas(n).accumulate_steps for n in (1, 2, 8)]
        [7, 4, 1]
        """
        if not self.global_batch_tokens:
            return self
        steps = math.ceil(self.global_batch_tokens / (self.batch_size * replicas))
        return dataclasses.replace(self, accumulate_steps=steps)

    def batch_tokens(self, replicas: int) -> int:
        """Tokens of an optimizer step's batch on so many replicas, padding counted, of
        the longer side.
        """
        given = self.global_batch_tokens
        return given or self.batch_size * self.accumulate_steps * replicas

    @property
    def uses_xla(self) -> bool:
        """Whether XLA compiles training; not while that is undecided."""
        return self.jit_compile is True

    @property
    def encoder_layers(self) -> int:
        return self.num_encoder_layers or self.num_hidden_layers

    @property
    def decoder_layers(self) -> int:
        return self.num_decoder_layers or self.num_hidden_layers

    @property
    def key_channels(self) -> int:
        """h * d_k."""
        return self.attention_key_channels or self.hidden_size

    @property
    def value_channels(self) -> int:
        """h * d_v."""
        return self.attention_value_channels or self.hidden_size

    @property
    def max_positions(self) -> int | None:
        """The number of positions that the model can represent: max_length if learned,
        otherwise None.
        """
        return self.max_length if self.pos == "emb" else None

    @property
    def max_evaluated_length(self) -> int:
        """Tokens of the longest side of a pair to evaluate, its EOS included.

        Attention needs memory for the square of a length, so that a whole document on
        one line fits nowhere.
        """
        return self.max_positions or max(self.max_length, MAX_SENTENCE_TOKENS + 1)

    @property
    def pre_norm(self) -> bool:
        """Whether sublayers normalise their input, and each stack its output, not the
        residual sum.
        """
        return self.layer_preprocess_sequence == "n"


MODEL_FIELDS = tuple(
    field.name for field in dataclasses.fields(HParams) if facts_of(field).model
)


@dataclasses.dataclass(frozen=True)
class DecodeHParams(CheckedFields):
    """How sentences are decoded; a problem's defaults are in its manifest.

    Attributes:
        beam_size: hypotheses kept for each sentence; 1 is greedy search
        alpha: exponent of the length penalty ((5 + length) / 6) ** alpha
        extra_length: a translation has at most this many tokens more than its source
        batch_size: source tokens of a batch, padding counted; 0: 4,096 or fewer; with
            t2t_rules sentences, 0: 32
        return_beams: n-best: this many translations of each sentence, with their scores
        t2t_rules: decode as tensor2tensor did
        tree_constraint: a parser's sequences are trees over the sentence's words
        min_length: a translation has at least this many tokens, EOS not counted
        no_repeat_ngram_size: no sequence of this many tokens occurs twice in a
            translation; 0: no limit
        sampling_method: random: draw instead of searching
        sampling_temp: temperature: logits are divided by it
        sampling_keep_top_k: draw from this many most probable tokens; 0: from all
        sampling_seed: random seed; the same seed draws the same translations
    """

    called = "decode_hparams"
    largest = MAX_SIZE

    beam_size: int = checked_field(4, low=1, high=1024)
    alpha: float = checked_field(0.6, low=0.0, high=10.0)
    extra_length: int = checked_field(50, low=0)
    batch_size: int = checked_field(0, low=0)
    return_beams: int = checked_field(1, low=1)
    # see decoding/engine.py
    t2t_rules: bool = checked_field(False)

    # Constraints; see decoding/constraints.py.
    tree_constraint: bool = checked_field(False)
    min_length: int = checked_field(0, low=0)
    no_repeat_ngram_size: int = checked_field(0, low=0)

    # Sampling; see decoding/sampling.py.
    sampling_method: str = checked_field("argmax", choices=("argmax", "random"))
    sampling_temp: float = checked_field(1.0, low=1e-3, high=1e3)
    sampling_keep_top_k: int = checked_field(0, low=0)
    sampling_seed: int = checked_field(0, low=0)

    @property
    def samples(self) -> bool:
        """Whether translations are drawn at random."""
        return self.sampling_method == "random"

    @property
    def hypotheses(self) -> int:
        """The number of hypotheses of a sentence that are decoded together."""
        return self.return_beams if self.samples else self.beam_size

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.samples:
            return
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if field.name.startswith("sampling_") and value != field.default:
                raise ValueError(
                    f"{field.name}={value} requires sampling_method=random."
                )
        if self.return_beams > self.beam_size:
            raise ValueError(
                "return_beams must be at most beam_size. Received:"
                f" {self.return_beams} and {self.beam_size}."
            )


# The keyword arguments of decoding and of training in Python, so that type checkers
# find a misspelt one. A test compares them with the fields.


class DecodeOptions(TypedDict, total=False):
    """The fields of DecodeHParams: how sentences are decoded."""

    beam_size: int
    alpha: float
    extra_length: int
    batch_size: int
    return_beams: int
    t2t_rules: bool
    tree_constraint: bool
    min_length: int
    no_repeat_ngram_size: int
    sampling_method: str
    sampling_temp: float
    sampling_keep_top_k: int
    sampling_seed: int


class LoopArguments(TypedDict, total=False):
    """The fields of LoopOptions, which are flags of t2t-trainer."""

    eval_steps: int
    local_eval_frequency: int
    early_stopping_evals: int
    save_checkpoints_secs: int
    keep_checkpoint_max: int
    random_seed: int
