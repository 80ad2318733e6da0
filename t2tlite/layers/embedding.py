"""One matrix that turns tokens into vectors and vectors into logits (section 3.4), and
positions (section 3.5).
"""

# B batch, T length, D hidden size, V vocabulary

import math

import keras
import numpy as np
from keras import ops

from t2tlite.layers.few_rows import FEW_ROWS, few_rows_kernel, prepare_kernel, product
from t2tlite.types import PAD, Tensor


@keras.saving.register_keras_serializable("t2tlite")
class Embedding(keras.layers.Layer):
    """A matrix [V, D] whose rows, times sqrt(D), embed tokens, and whose transpose
    computes logits (section 3.4).

    The padding token embeds to zero. The initial weights are normal with standard
    deviation D^-0.5, as in tensor2tensor.

    Args:
        vocab_size: V.
        hidden_size: D.
        mask_zero: whether to set Keras's mask, which is False at padding.
    """

    def __init__(
        self,
        vocab_size: int,
        hidden_size: int,
        mask_zero: bool = False,
        **kwargs: object,
    ) -> None:
        super().__init__(**kwargs)
        self.autocast = False  # ids that are float32 stay exact
        self.mask_zero = mask_zero
        self.vocab_size = vocab_size
        self.hidden_size = hidden_size
        self.weight = self.add_weight(
            name="weight",
            shape=(vocab_size, hidden_size),
            initializer=keras.initializers.RandomNormal(stddev=hidden_size**-0.5),
            # `call` casts after the lookup, so that the gradient of a frequent token
            # is summed in float32
            autocast=False,
        )

    def call(self, ids: Tensor) -> Tensor:
        """int32 [B, T] -> [B, T, D]."""
        ids = ops.cast(ids, "int32")  # Keras may build a model with float32
        vectors = ops.take(self.weight, ids, axis=0)  # [B, T, D]
        vectors = ops.cast(vectors, self.compute_dtype)
        is_token = ops.cast(ops.not_equal(ids, PAD), self.compute_dtype)  # [B, T]
        scale = is_token * self.hidden_size**0.5
        return vectors * scale[..., None]

    def compute_mask(self, ids: Tensor, previous_mask: Tensor = None) -> Tensor | None:
        """bool [B, T], or None without `mask_zero`."""
        return ops.not_equal(ids, PAD) if self.mask_zero else None

    def step_kernel(self, rows: int | None) -> tuple[Tensor, ...]:
        """The kernel for `logits` of so many rows (None: any number), which a search
        computes once; none if the matrix itself is as fast.
        """
        is_few = rows is not None and rows <= FEW_ROWS
        if not is_few or self.compute_dtype != "float32":
            return ()

        def transposed() -> Tensor:
            return few_rows_kernel(ops.transpose(self.weight), "float32")

        return (prepare_kernel(self.weight, transposed),)

    def logits(self, x: Tensor, kernel: tuple[Tensor, ...] = ()) -> Tensor:
        """[..., D] -> float32 [..., V]. `kernel` is the one for few rows, if any.

        Raises ValueError for a symbolic tensor of a functional model, which would
        contain the matrix as a constant.
        """
        if isinstance(x, keras.KerasTensor):
            raise ValueError(
                f"Embedding.logits must be called in a layer's `call`. Received: {x}."
            )
        (weight,) = kernel or (ops.cast(self.weight, self.compute_dtype),)
        rows = product(ops.reshape(x, (-1, self.hidden_size)), weight)
        if kernel:  # a slice would cost a pass over the gradient
            rows = rows[:, : self.vocab_size]
        logits = ops.reshape(rows, (*ops.shape(x)[:-1], self.vocab_size))
        return ops.cast(logits, "float32")


@keras.saving.register_keras_serializable("t2tlite")
class Positions(keras.layers.Layer):
    """Adds to each vector the vector of its position: the paper's sinusoids (section
    3.5) or learned vectors (Table 3, row E).

    Args:
        kind: HParams.pos: "timing" (the paper's sinusoids), "timing_halves"
            (tensor2tensor's), "emb" (learned) or "none".
        hidden_size: D.
        max_positions: rows of the table of "emb"; the other kinds have no limit.

    Raises:
        ValueError: the kind is unknown, or sinusoids have an odd hidden_size.
    """

    def __init__(
        self,
        kind: str,
        hidden_size: int,
        max_positions: int | None = None,
        **kwargs: object,
    ) -> None:
        super().__init__(**kwargs)
        if kind not in KINDS or (kind in SINUSOIDS and hidden_size % 2):
            raise ValueError(
                f"kind must be {', '.join(KINDS)}, and hidden_size even for sinusoids."
                f" Received: {kind!r}, {hidden_size}."
            )
        self.supports_masking = True
        self.input_spec = keras.layers.InputSpec(axes={-1: hidden_size})
        self.kind = kind
        self.hidden_size = hidden_size
        self.max_positions = max_positions
        if kind == "emb":
            self.table = self.add_weight(
                name="table",
                shape=(max_positions, hidden_size),
                initializer=keras.initializers.RandomNormal(stddev=hidden_size**-0.5),
            )

    def call(self, x: Tensor, start: int | Tensor = 0) -> Tensor:
        """Adds to `x` [B, T, D] the vectors of positions start, start + 1, ..., counted
        from 0.
        """
        if self.kind == "none":
            return x
        positions = ops.arange(ops.shape(x)[1], dtype="int32") + start  # [T]
        if self.kind == "emb":
            vectors = ops.take(self.table, positions, axis=0)  # [T, D]
        else:
            vectors = SINUSOIDS[self.kind](positions, self.hidden_size)
        return x + ops.cast(vectors, x.dtype)[None]  # [B, T, D]


def sinusoids(positions: Tensor, hidden_size: int) -> Tensor:
    """The paper's positions: PE(pos, 2i) = sin(pos / 10000^(2i/d)), PE(pos, 2i+1) =
    cos(pos / 10000^(2i/d)) (section 3.5).

    Args:
        positions: [T], counted from 0.
        hidden_size: d, even; the result is float32 [T, d].
    """
    rates = 10000.0 ** (-np.arange(0, hidden_size, 2) / hidden_size)
    angles = _angles(positions, rates)  # [T, d/2]
    both = ops.stack([ops.sin(angles), ops.cos(angles)], axis=-1)  # [T, d/2, 2]
    return ops.reshape(both, (-1, hidden_size))


def sinusoid_halves(positions: Tensor, hidden_size: int) -> Tensor:
    """tensor2tensor's positions (get_timing_signal_1d): all sines, then all cosines, at
    the rates 10000^(-i/(d/2-1)).

    Args:
        positions: [T], counted from 0.
        hidden_size: d, even; the result is float32 [T, d].
    """
    half = hidden_size // 2
    rates = np.exp(-np.arange(half) * math.log(10000.0) / max(half - 1, 1))
    angles = _angles(positions, rates)  # [T, d/2]
    return ops.concatenate([ops.sin(angles), ops.cos(angles)], axis=-1)


def _angles(positions: Tensor, rates: np.ndarray) -> Tensor:
    """[T] and [d/2] -> float32 [T, d/2]."""
    rates = ops.convert_to_tensor(rates, dtype="float32")
    return ops.cast(positions, "float32")[:, None] * rates[None, :]


SINUSOIDS = {"timing": sinusoids, "timing_halves": sinusoid_halves}
KINDS = (*SINUSOIDS, "emb", "none")
