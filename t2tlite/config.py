"""Hyperparameters: flat, frozen, typed dataclasses, and the command line's way of changing them.

`HParams` says what a model is and how it is trained; `DecodeHParams` says how it is decoded. Field names are
tensor2tensor's wherever it has one. A named set is a function in `t2tlite/hparams` that returns an HParams.
"""

from __future__ import annotations

import dataclasses
import json
from typing import Any, TypeVar

from t2tlite.registry import did_you_mean

T2T_SCHEDULE = "constant*linear_warmup*rsqrt_decay*rsqrt_hidden_size"  # tensor2tensor's name of its schedule

H = TypeVar("H", bound="_Checked")


def _field(default: Any, low: float | None = None, high: float | None = None, choices: tuple[str, ...] = ()) -> Any:
    """A dataclass field whose value must be in [low, high], or be one of `choices`."""
    return dataclasses.field(default=default, metadata={"low": low, "high": high, "choices": choices})


class _Checked:
    """What HParams and DecodeHParams share: checked values, overrides, JSON."""

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):  # type: ignore[arg-type]
            _check_value(field, getattr(self, field.name))

    def override(self: H, text: str) -> H:
        """A copy changed as `text`, `field=value,field=value`, says.

        Blanks around names and values do not count, nor does a last comma. Booleans are true, false, 1 or 0, in either
        case; strings have no quotes. An unknown field, a field set twice, a value of the wrong type or out of range, or
        a part that is not `field=value` raises a ValueError.

        >>> HParams().override("batch_size=2048, relu_dropout=0.1").batch_size
        2048
        """
        fields = {field.name: field for field in dataclasses.fields(self)}  # type: ignore[arg-type]
        changes: dict[str, Any] = {}
        for part in [p for p in map(str.strip, text.split(",")) if p]:
            name, equals, value = (piece.strip() for piece in part.partition("="))
            if not equals or not name:
                raise ValueError(f"Each change must be field=value. Received: {part!r} in {text!r}.")
            if name not in fields:
                called = {"HParams": "hparams", "DecodeHParams": "decode_hparams"}[type(self).__name__]
                raise ValueError(f"{called} has no field {name!r}. {did_you_mean(name, fields)}")
            if name in changes:
                raise ValueError(f"A field can be set once. Received: {name!r} twice in {text!r}.")
            changes[name] = _parse(name, value, type(fields[name].default))
        return dataclasses.replace(self, **changes)  # type: ignore[type-var]

    def to_json(self) -> str:
        """Every field, as a JSON object."""
        return json.dumps(dataclasses.asdict(self), indent=2) + "\n"  # type: ignore[call-overload]

    @classmethod
    def from_json(cls: type[H], text: str) -> H:
        """What `to_json` wrote; a field that is not in it keeps its default.

        Text that is not a JSON object, an unknown field or a bad value raises a ValueError.
        """
        try:
            values = json.loads(text)
        except json.JSONDecodeError as error:
            raise ValueError(f"The hparams must be a JSON object. Received text that is none: {error}.") from error
        if not isinstance(values, dict):
            raise ValueError(f"The hparams must be a JSON object. Received: a {type(values).__name__}.")
        fields = {field.name for field in dataclasses.fields(cls)}  # type: ignore[arg-type]
        for name in values:
            if name not in fields:
                raise ValueError(f"{cls.__name__} has no field {name!r}. {did_you_mean(name, fields)}")
        return cls(**values)

    def diff(self: H, other: H) -> dict[str, tuple[Any, Any]]:
        """The fields in which two differ: name -> (value here, value in `other`)."""
        mine, theirs = dataclasses.asdict(self), dataclasses.asdict(other)  # type: ignore[call-overload]
        return {name: (mine[name], theirs[name]) for name in mine if mine[name] != theirs[name]}


@dataclasses.dataclass(frozen=True)
class HParams(_Checked):
    """A model and its training. The defaults are the paper's base model; "section" means a section of the paper."""

    # The model, section 3.
    hidden_size: int = _field(512, low=2)  # d_model, width of every layer's output
    filter_size: int = _field(2048, low=1)  # d_ff, inner width of the feed-forward layers (3.3)
    num_hidden_layers: int = _field(6, low=1)  # N, layers in the encoder and in the decoder
    num_encoder_layers: int = _field(0, low=0)  # layers in the encoder; 0 means num_hidden_layers
    num_decoder_layers: int = _field(0, low=0)  # layers in the decoder; 0 means num_hidden_layers
    num_heads: int = _field(8, low=1)  # h (3.2.2)
    attention_key_channels: int = _field(0, low=0)  # h * d_k, all heads together; 0 means hidden_size
    attention_value_channels: int = _field(0, low=0)  # h * d_v, all heads together; 0 means hidden_size
    self_attention_radius: int = _field(0, low=0)
    # ^ r of restricted self-attention (section 4): a position attends to those at a distance below r, in the decoder to
    #   the last r; 0: to all
    pos: str = _field("timing", choices=("timing", "timing_halves", "emb", "none"))
    # ^ positions: "timing" the sinusoids of 3.5; "timing_halves" tensor2tensor's, all sines then all cosines;
    #   "emb" a learned row for each of max_length positions (Table 3, row E); "none"
    layer_preprocess_sequence: str = _field("none", choices=("none", "n"))  # "n": normalise a sublayer's input
    layer_postprocess_sequence: str = _field("dan", choices=("dan", "da"))  # dropout, add, and "n": then normalise
    norm_epsilon: float = _field(1e-6, low=0.0)  # added to the variance in layer normalisation
    shared_embedding_and_softmax_weights: bool = True  # one matrix for source, target and softmax (3.4)
    use_target_space_embedding: bool = False  # tensor2tensor's: a learned row added to every source embedding

    # Regularisation, section 5.4.
    layer_prepostprocess_dropout: float = _field(0.1, low=0.0, high=0.99)  # P_drop: sublayer outputs and embeddings
    attention_dropout: float = _field(0.0, low=0.0, high=0.99)  # on attention weights; not in the paper
    relu_dropout: float = _field(0.0, low=0.0, high=0.99)  # inside the feed-forward layers; not in the paper
    label_smoothing: float = _field(0.1, low=0.0, high=0.99)  # epsilon_ls

    # Batches, section 5.1.
    batch_size: int = _field(4096, low=1)  # tokens, padding counted, of the longer side, per replica and micro-batch
    accumulate_steps: int = _field(1, low=1)  # micro-batches whose gradients are summed for one optimizer step
    max_length: int = _field(256, low=1)  # tokens; training pairs with a longer side are left out, and counted
    min_length_bucket: int = _field(8, low=1)  # tokens; the first bucket boundary
    length_bucket_step: float = _field(1.1, low=1.01, high=2.0)  # each boundary over the one before

    # The optimizer, section 5.3.
    learning_rate_schedule: str = _field("noam", choices=("noam", T2T_SCHEDULE))
    # ^ "noam" formula (3), whose first update is step 1; the other, tensor2tensor's, is formula (3) a step later: its
    #   first update has rate 0
    learning_rate_constant: float = _field(1.0, low=1e-9)  # factor on formula (3)
    learning_rate_warmup_steps: int = _field(4000, low=1)  # optimizer steps
    optimizer_adam_beta1: float = _field(0.9, low=0.0, high=0.999999)
    optimizer_adam_beta2: float = _field(0.98, low=0.0, high=0.999999)
    optimizer_adam_epsilon: float = _field(1e-9, low=0.0)
    train_steps: int = _field(100_000, low=1)  # optimizer steps in all, unless --train_steps says otherwise

    # Arithmetic.
    dtype_policy: str = _field("float32", choices=("float32", "mixed_bfloat16", "mixed_float16", "auto"))
    # ^ "auto": bfloat16 where the hardware has it, otherwise float32; a run records which
    jit_compile: bool = False
    # ^ compile the training step and the beam search with XLA, for GPUs; training batches have at most 24 shapes then

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.hidden_size % 2 and self.pos.startswith("timing"):
            raise ValueError(f"hidden_size must be even for sinusoid positions. Received: {self.hidden_size}.")
        for name, channels in (("key", self.key_channels), ("value", self.value_channels)):
            if channels % self.num_heads:
                raise ValueError(
                    f"The attention {name} channels must be a multiple of num_heads. Received: {channels} channels, "
                    f"num_heads={self.num_heads}. Set attention_{name}_channels (0 means hidden_size) or num_heads."
                )
        if (self.layer_preprocess_sequence == "n") == (self.layer_postprocess_sequence == "dan"):
            raise ValueError(
                "A sublayer normalises once: layer_preprocess_sequence=none with layer_postprocess_sequence=dan (the "
                "paper's), or n with da (pre-norm). Received: "
                f"{self.layer_preprocess_sequence} with {self.layer_postprocess_sequence}."
            )
        if self.batch_size < self.max_length:
            raise ValueError(
                f"batch_size must be at least max_length, so that the longest pair fits. Received: "
                f"batch_size={self.batch_size}, max_length={self.max_length}. Lower max_length or raise batch_size."
            )

    @property
    def encoder_layers(self) -> int:
        """Layers in the encoder."""
        return self.num_encoder_layers or self.num_hidden_layers

    @property
    def decoder_layers(self) -> int:
        """Layers in the decoder."""
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
    def attention_arguments(self) -> dict[str, Any]:
        """What each attention layer is made with."""
        return {
            "hidden_size": self.hidden_size,
            "num_heads": self.num_heads,
            "key_channels": self.key_channels,
            "value_channels": self.value_channels,
            "dropout": self.attention_dropout,
        }

    @property
    def feed_forward_arguments(self) -> dict[str, Any]:
        """What each feed-forward layer is made with."""
        return {"hidden_size": self.hidden_size, "filter_size": self.filter_size, "dropout": self.relu_dropout}

    @property
    def residual_arguments(self) -> dict[str, Any]:
        """What each residual connection is made with."""
        return {"dropout": self.layer_prepostprocess_dropout, "pre_norm": self.pre_norm, "epsilon": self.norm_epsilon}

    @property
    def max_positions(self) -> int | None:
        """Positions that the model has vectors for; None if there is no limit. Learned positions end at max_length."""
        return self.max_length if self.pos == "emb" else None

    def check_positions(self, longest: int, what: str) -> None:
        """Raises ValueError where the model has no positions for `longest` tokens; `what` says whose they are."""
        if self.max_positions is not None and longest > self.max_positions:
            raise ValueError(
                f"Learned positions (pos=emb) reach max_length tokens. Received: max_length={self.max_length}, but "
                f"{what} has {longest}. Raise max_length."
            )

    @property
    def pre_norm(self) -> bool:
        """Whether sublayers normalise their input (and each stack its output) rather than their sum."""
        return self.layer_preprocess_sequence == "n"


# A change of these makes another model: a run's checkpoints would not fit, or would silently mean something else.
MODEL_FIELDS = (
    "hidden_size", "filter_size", "num_hidden_layers", "num_encoder_layers", "num_decoder_layers", "num_heads",
    "attention_key_channels", "attention_value_channels", "self_attention_radius", "pos", "layer_preprocess_sequence",
    "layer_postprocess_sequence", "norm_epsilon", "shared_embedding_and_softmax_weights",
    "use_target_space_embedding",
)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class DecodeRules:
    """What our decoder and tensor2tensor's do differently, decision by decision."""

    batches_of_sentences: bool = False
    # ^ DecodeHParams.batch_size counts sentences, those with the most words first; otherwise source tokens, padding
    #   included, by length
    shared_length_limit: bool = False  # extra_length counts from the longest source of a batch, not from each source
    penalise_unfinished: bool = True  # the score of a hypothesis without an EOS has the length penalty
    penalise_greedy: bool = True  # the score of greedy search has the length penalty
    strip_sentences: bool = False  # white space at both ends of a sentence is removed
    leave_sequences: bool = False  # what a parser decodes stays a sequence of labels
    score_per_token: bool = False  # Translator.score is the mean negative log-probability of a token


OUR_RULES = DecodeRules()
T2T_RULES = DecodeRules(
    batches_of_sentences=True,
    shared_length_limit=True,
    penalise_unfinished=False,
    penalise_greedy=False,
    strip_sentences=True,
    leave_sequences=True,
    score_per_token=True,
)


@dataclasses.dataclass(frozen=True)
class DecodeHParams(_Checked):
    """How sentences are decoded; a problem's defaults are in its manifest."""

    beam_size: int = _field(4, low=1, high=1024)  # hypotheses kept for each sentence; 1 is greedy search
    alpha: float = _field(0.6, low=0.0, high=10.0)  # length penalty ((5 + length) / 6) ** alpha
    extra_length: int = _field(50, low=0)  # a translation has at most this many tokens more than its source
    batch_size: int = _field(0, low=0)  # size of a batch, see DecodeRules; 0: 1,024 tokens or fewer, 32 sentences
    return_beams: int = _field(1, low=1)  # n-best: this many translations of each sentence, with their scores
    t2t_rules: bool = False  # decode as tensor2tensor did (T2T_RULES)

    @property
    def rules(self) -> DecodeRules:
        """What `t2t_rules` stands for."""
        return T2T_RULES if self.t2t_rules else OUR_RULES

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.return_beams > self.beam_size:
            raise ValueError(
                f"return_beams must be at most beam_size. Received: return_beams={self.return_beams}, "
                f"beam_size={self.beam_size}. Raise beam_size."
            )


def _parse(name: str, value: str, kind: type) -> Any:
    if kind is bool:
        if value.lower() not in ("true", "false", "1", "0"):
            raise ValueError(f"{name} must be true or false. Received: {value!r}.")
        return value.lower() in ("true", "1")
    if kind is str:
        if not value or any(mark in value for mark in "\"'[]"):
            raise ValueError(f"{name} takes plain text, without quotes or brackets. Received: {value!r}.")
        return value
    try:
        return kind(value)
    except ValueError:
        what = {int: "a whole number", float: "a number"}[kind]
        raise ValueError(f"{name} must be {what}. Received: {value!r}.") from None


def _check_value(field: dataclasses.Field[Any], value: Any) -> None:
    kind = type(field.default)
    if kind is float and type(value) is int:
        value = float(value)
    if type(value) is not kind:
        raise ValueError(f"{field.name} must be of type {kind.__name__}. Received: {value!r}.")
    low, high, choices = (field.metadata.get(key) for key in ("low", "high", "choices"))
    if choices and value not in choices:
        raise ValueError(f"{field.name} must be one of {', '.join(choices)}. Received: {value!r}.")
    if (low is not None and not value >= low) or (high is not None and not value <= high):
        upper = "" if high is None else f" and at most {high}"
        raise ValueError(f"{field.name} must be at least {low}{upper}. Received: {value}.")
    if value in (float("inf"), float("-inf")) or value != value:
        raise ValueError(f"{field.name} must be a finite number. Received: {value}.")
