"""Types that cross modules: tensors, what a model is, and the structures it returns;
and the token ids that all vocabularies share.

Shapes are not part of a type. They are written as comments and in docstrings, `[B, T,
D]`, with letters that are explained at the top of each file.
"""

# B batch, S source length, T target length, H heads, V vocabulary
# M hypotheses of a sentence (beam size)

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeAlias

from t2tlite.config import HParams

PAD = 0  # id of the padding token
EOS = 1  # id of the end-of-sentence token

# A tensor of the Keras backend, or a NumPy array. Neither Keras nor TensorFlow ships
# types that mypy can use, so it is an alias of Any that documents what is a tensor.
Tensor: TypeAlias = Any

# A Keras variable.
Variable: TypeAlias = Any

# The seed of a call's dropout masks, int32 [2], or None to run without dropout.
Seed: TypeAlias = Tensor | None

# The state of decoding between positions: a nest of tensors whose structure the model
# knows, and whose shapes only `resize_cache` changes.
DecodingCache: TypeAlias = Any

# The constructor arguments of a layer or a model, as `get_config` returns them:
# JSON-serialisable.
Config: TypeAlias = dict[str, Any]


class AttentionWeights(NamedTuple):
    """The attention weights of each layer, float32; each row (last axis) sums to
    one.
    """

    encoder: list[Tensor]  # [B, H, S, S], self-attention of each encoder layer
    decoder: list[Tensor]  # [B, H, T, T], self-attention of each decoder layer
    # [B, H, T, S], attention of each decoder layer to the encoder's output
    cross: list[Tensor]


class DecodingModel(Protocol):
    """An encoder-decoder model, or several as one, as decoding uses it.

    `t2tlite.models.transformer.Transformer` documents the arguments of the methods.
    """

    @property
    def max_positions(self) -> int | None:
        """The number of positions that it can represent, or None if there is no
        limit.
        """

    @property
    def trainable_variables(self) -> Sequence[Variable]:
        """The weights; they exist once the model is built."""

    @property
    def compute_dtype(self) -> str:
        """The dtype of its computations: "float32", or a 16-bit type with mixed
        precision.
        """

    def count_params(self) -> int:
        """The number of weights."""

    def __call__(self, inputs: Tensor, targets: Tensor) -> Tensor:
        """int32 [B, S] and [B, T] -> logits float32 [B, T, V] of each target token,
        given those before it.
        """

    def attention(self, inputs: Tensor, targets: Tensor) -> AttentionWeights:
        """The attention weights of `__call__`."""

    def start_decoding(
        self, inputs: Tensor, beam_size: int, length: int | Tensor
    ) -> DecodingCache:
        """Encodes the source, and makes a cache for `length` positions of `beam_size`
        hypotheses.
        """

    def decode_step(
        self,
        tokens: Tensor,
        step: int | Tensor,
        ancestors: Tensor,
        cache: DecodingCache,
    ) -> tuple[Tensor, DecodingCache]:
        """Logits float32 [B, M, V] of each next token, and the cache with this position
        filled.
        """

    def resize_cache(
        self, cache: DecodingCache, sentences: Tensor, length: Tensor
    ) -> DecodingCache:
        """The cache of only some sentences of the batch, int32 [N], for `length`
        positions.
        """


class Seq2SeqModel(DecodingModel, Protocol):
    """An encoder-decoder model, as training, decoding and checkpoints use it, such as
    `Transformer`.
    """

    @property
    def hparams(self) -> HParams:
        """Those that it was built with."""

    def save(self, filepath: str | Path) -> None:
        """Writes a `.keras` file, which `keras.saving.load_model` reads."""

    def __call__(self, inputs: Tensor, targets: Tensor, seed: Seed = None) -> Tensor:
        """As `DecodingModel`, with dropout if there is a `seed`."""
