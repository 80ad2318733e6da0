"""The parts of a sublayer other than attention: feed-forward, residual connection with
normalisation, dropout.

In t2tlite's own training, the mask of dropout is a pure function of a seed that the
caller passes. Nothing is remembered between calls, so a training step is a function of
(weights, batch, step number), and a resumed run draws the masks of an uninterrupted
one.
"""

# B batch, T length, D hidden size, N rows

import contextlib
import contextvars
from collections.abc import Callable, Iterator

import keras
import numpy as np
from keras import ops

from t2tlite.layers.few_rows import (
    FEW_ROWS,
    few_rows_kernel,
    prepare_kernel,
    product,
)
from t2tlite.machine import cpu_ends_at_avx2
from t2tlite.types import Seed, Tensor

_forward_only = contextvars.ContextVar("forward_only", default=False)


@contextlib.contextmanager
def forward_only() -> Iterator[None]:
    """A scope for what needs no gradient: its layers have none written out.

    TensorFlow keeps a gradient that is written out, and the graph that it belongs to,
    until the process ends.
    """
    token = _forward_only.set(True)
    try:
        yield
    finally:
        _forward_only.reset(token)


@keras.saving.register_keras_serializable("t2tlite")
class Dense(keras.layers.Dense):
    """x W + b over the last axis, as one product of all rows. Keras computes several
    products if lengths are unknown.
    """

    def call(self, inputs: Tensor) -> Tensor:
        """[..., D] -> [..., units]."""
        if len(inputs.shape) == 2:
            return super().call(inputs)
        rows = super().call(ops.reshape(inputs, (-1, inputs.shape[-1])))
        return ops.reshape(rows, (*ops.shape(inputs)[:-1], self.units))

    def step_kernel(self, rows: int | None) -> tuple[Tensor, ...]:
        """The kernel for `step`, which a search computes once; none if `call`
        multiplies so many rows (None: any number) as fast.

        Without AVX-512, oneDNN multiplies about a hundred float32 rows faster by a
        transposed matrix: the product with W1 of the base model took 1.7 ms instead of
        3.3 with 128 rows.
        """
        if rows is not None and rows <= FEW_ROWS:
            dtype = self.compute_dtype
            kernel = prepare_kernel(
                self.kernel, lambda: few_rows_kernel(self.kernel, dtype)
            )
            return (kernel,)
        if self.compute_dtype == "float32" and cpu_ends_at_avx2():
            return (ops.transpose(self.kernel),)
        return ()

    def step(self, x: Tensor, kernel: tuple[Tensor, ...]) -> Tensor:
        """`call` for rows [N, D] in decoding."""
        if not kernel:
            return self(x)
        x = product(x, *kernel)[:, : self.units]
        if self.use_bias:
            x = x + ops.cast(self.bias, x.dtype)
        return self.activation(x)


@keras.saving.register_keras_serializable("t2tlite")
class Residual(keras.layers.Layer):
    """The residual connection around a sublayer: LayerNorm(x + Dropout(Sublayer(x))),
    sections 3.1 and 5.4. With pre-norm it is x + Dropout(Sublayer(LayerNorm(x))).

        y = residual.enter(x)
        y = sublayer(y)
        x = residual.leave(x, y)

    In a Keras model of your own, with post-norm: x = Residual()(x, sublayer(x)). It is
    `leave`.

    Args:
        dropout: rate on the sublayer's output.
        pre_norm: normalise the sublayer's input instead of the sum.
        epsilon: added to the variance.
    """

    def __init__(
        self,
        dropout: float = 0.0,
        pre_norm: bool = False,
        epsilon: float = 1e-6,
        **kwargs: object,
    ) -> None:
        super().__init__(**kwargs)
        self.supports_masking = True
        self.pre_norm = pre_norm
        self.norm = LayerNormalization(
            epsilon=epsilon, name="norm", dtype=self.dtype_policy
        )
        self.dropout = Dropout(dropout, name="dropout", dtype=self.dtype_policy)

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        self.norm.build(input_shape)

    def enter(self, x: Tensor) -> Tensor:
        """The sublayer's input: x [B, T, D], normalised if pre-norm."""
        return self.norm(x) if self.pre_norm else x

    def leave(self, x: Tensor, y: Tensor, seed: Seed = None) -> Tensor:
        """x plus the sublayer's output y [B, T, D] after dropout; normalised if
        post-norm.
        """
        x = x + self.dropout(y, seed=seed)
        return x if self.pre_norm else self.norm(x)

    call = leave


@keras.saving.register_keras_serializable("t2tlite")
class LayerNormalization(keras.layers.LayerNormalization):
    """gamma * (x - mean) / sqrt(variance + epsilon) + beta over the last axis (Ba et
    al. 2016), computed in float32.

    Its gradient is written out, and passes over the activations half as often as the
    gradient that automatic differentiation derives from Keras's layer.
    docs/performance.md has the gain. Keras's layer computes other axes, and what lacks
    gamma or beta.
    """

    def call(self, inputs: Tensor) -> Tensor:
        """[..., D] -> [..., D], in the compute dtype."""
        is_last = self.axis in ([-1], [len(inputs.shape) - 1])
        if not is_last or self.gamma is None or self.beta is None:
            return super().call(inputs)
        x = ops.cast(inputs, "float32")
        gamma = ops.cast(self.gamma, "float32")
        beta = ops.cast(self.beta, "float32")
        if _forward_only.get():
            normalised, _ = _normalised(x, self.epsilon)
            y = normalised * gamma + beta
        else:
            y = _normalise(self.epsilon)(x, gamma, beta)
        return ops.cast(y, self.compute_dtype)


def _normalised(x: Tensor, epsilon: float) -> tuple[Tensor, Tensor]:
    """x [..., D] with mean 0 and variance 1, and the inverse of its standard deviation,
    [..., 1].
    """
    centred = x - ops.mean(x, axis=-1, keepdims=True)  # [..., D]
    variance = ops.mean(ops.square(centred), axis=-1, keepdims=True)  # [..., 1]
    inverse = ops.rsqrt(variance + epsilon)
    return centred * inverse, inverse


def _normalise(epsilon: float) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    """Returns the normalisation as a function of x [..., D], gamma [D] and beta [D],
    all float32, to [..., D].
    """

    @ops.custom_gradient
    def normalise(
        x: Tensor,
        gamma: Tensor,
        beta: Tensor,
    ) -> tuple[Tensor, Callable[[Tensor], tuple[Tensor, ...]]]:
        size = x.shape[-1]
        normalised, inverse = _normalised(x, epsilon)

        def mean_with_gamma(rows: Tensor) -> Tensor:
            """[N, D] -> [..., 1], the mean of rows * gamma."""
            return ops.reshape(ops.matmul(rows, gamma) / size, ops.shape(inverse))

        def gradient(upstream: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            """The gradients of x, gamma and beta."""
            rows = ops.reshape(upstream, (-1, size))  # [N, D]
            products = ops.reshape(upstream * normalised, (-1, size))  # [N, D]
            along_x = normalised * mean_with_gamma(products)  # [..., D]
            of_x = inverse * (upstream * gamma - mean_with_gamma(rows) - along_x)
            return of_x, ops.sum(products, axis=0), ops.sum(rows, axis=0)

        return normalised * gamma + beta, gradient

    return normalise


@keras.saving.register_keras_serializable("t2tlite")
class FeedForward(keras.layers.Layer):
    """FFN(x) = max(0, x W1 + b1) W2 + b2, equation (2) in section 3.3.

    Args:
        hidden_size: D, width of input and output.
        filter_size: d_ff, width of the inner layer.
        dropout: rate on the inner activations; the paper has none.
    """

    def __init__(
        self,
        hidden_size: int,
        filter_size: int,
        dropout: float = 0.0,
        **kwargs: object,
    ) -> None:
        super().__init__(**kwargs)
        self.supports_masking = True
        self.inner = Dense(
            filter_size, activation="relu", name="inner", dtype=self.dtype_policy
        )
        self.inner_dropout = Dropout(
            dropout, name="inner_dropout", dtype=self.dtype_policy
        )
        self.outer = Dense(hidden_size, name="outer", dtype=self.dtype_policy)

    def build(self, input_shape: object = None) -> None:
        self.inner.build((None, self.outer.units))
        self.outer.build((None, self.inner.units))

    def call(self, x: Tensor, seed: Seed = None) -> Tensor:
        """[B, T, D] -> [B, T, D]."""
        return self.outer(self.inner_dropout(self.inner(x), seed=seed))

    def step_kernels(self, rows: int | None) -> tuple[tuple[Tensor, ...], ...]:
        """The kernels for `step` with so many rows (None: any number), which a search
        computes once.
        """
        return self.inner.step_kernel(rows), self.outer.step_kernel(rows)

    def step(self, x: Tensor, kernels: tuple[tuple[Tensor, ...], ...]) -> Tensor:
        """`call` for rows [N, D] in decoding."""
        inner, outer = kernels
        return self.outer.step(self.inner.step(x, inner), outer)


@keras.saving.register_keras_serializable("t2tlite")
class Dropout(keras.layers.Layer):
    """Zeroes a fraction `rate` of the elements and scales the rest by 1 / (1 - rate).

    Args:
        rate: fraction of the elements to zero, in [0, 1).

    Raises:
        ValueError: the rate is outside [0, 1).
    """

    def __init__(self, rate: float, **kwargs: object) -> None:
        super().__init__(**kwargs)
        if not 0 <= rate < 1:
            raise ValueError(
                f"rate must be at least 0 and less than 1. Received: {rate}."
            )
        self.supports_masking = True
        self.rate = rate
        if rate:
            # Initial weights are drawn from Python's generator: those of a model with
            # dropout are those of the model without.
            drawn = int(np.random.randint(2**31 - 1))
            self.generator = keras.random.SeedGenerator(drawn)

    def call(
        self,
        x: Tensor,
        seed: Seed = None,
        training: bool | None = None,
    ) -> Tensor:
        """Applies dropout to a tensor of any shape.

        Args:
            x: the tensor.
            seed: int32 [2], of which the mask is a function. None draws another mask in
                each call if training, and otherwise returns x unchanged.
            training: as Keras sets it; with False, x is returned unchanged.
        """
        if not self.rate or training is False or (seed is None and not training):
            return x
        generator = self.generator if seed is None else _GivenSeed(seed)
        bits = ops.reshape(_random_bits(ops.size(x), generator), ops.shape(x))
        is_kept = bits >= min(round(self.rate * 2**16), 2**16 - 1) - 2**15
        scaled = x * (1.0 / (1.0 - self.rate))
        return ops.where(is_kept, scaled, ops.zeros((), x.dtype))


def _random_bits(
    count: Tensor,
    generator: keras.random.SeedGenerator,
) -> Tensor:
    """int16 [count], all 65,536 values equally likely. A mask needs no more bits, and
    drawing float32 numbers takes twice as long.
    """
    # TensorFlow reshapes int32 on the CPU even if a GPU computes; JAX has no int64
    dtype, bits = ("int32", 32) if keras.config.backend() == "jax" else ("int64", 64)
    end = 2 ** (bits - 1)
    each = bits // 16
    drawn = keras.random.randint(
        shape=((count + each - 1) // each, 1),
        minval=-end,
        maxval=end - 1,
        dtype=dtype,
        seed=generator,
    )
    return ops.reshape(ops.view(drawn, "int16"), (-1,))[:count]


def fold(seed: Seed, number: int) -> Seed:
    """Derives a seed for each number, so that each use of dropout draws a mask of its
    own. Without a seed, returns None.
    """
    if seed is None:
        return None
    return seed + ops.convert_to_tensor([number, 0], dtype="int32")


class _GivenSeed(keras.random.SeedGenerator):
    """Passes a tensor to keras.random, which accepts only an int or a SeedGenerator."""

    # no state, so the base class is not initialised
    def __init__(self, seed: Tensor) -> None:
        self.seed = seed

    def next(self, ordered: bool = True) -> Tensor:
        # JAX requires uint32, for which a negative number wraps around.
        if keras.config.backend() == "jax":
            return ops.cast(self.seed, "uint32")
        return self.seed
