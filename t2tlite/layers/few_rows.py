"""Products of a few rows with large matrices: the steps of a search for one sentence.

Reading a matrix takes most of the time of such a product, so the matrix is arranged for
it, once for all steps.
"""

# N rows, D hidden size

import contextlib
import contextvars
from collections.abc import Callable, Iterator
from typing import Any

from keras import ops

from t2tlite.types import Tensor, Variable

# the most rows of such a product
FEW_ROWS = 16
# columns of a block of a float32 matrix: those that oneDNN reads together
BLOCK_COLUMNS = 64

_prepared: contextvars.ContextVar[Any] = contextvars.ContextVar(
    "prepared", default=(None, contextlib.nullcontext)
)


@contextlib.contextmanager
def prepared_once(
    kernels: dict[int, Tensor] | None,
    outside: Callable[[], contextlib.AbstractContextManager[None]],
) -> Iterator[None]:
    """A scope for searches with weights that do not change: `prepare_kernel` computes
    each kernel once, and keeps it in `kernels`; with None, once a search.

    `outside` is a scope outside the graph of a search.
    """
    token = _prepared.set((kernels, outside))
    try:
        yield
    finally:
        _prepared.reset(token)


def prepare_kernel(variable: Variable, compute: Callable[[], Tensor]) -> Tensor:
    """What `compute` makes of a variable (and others) for the steps of a search."""
    kernels, outside = _prepared.get()
    if kernels is None:
        return compute()
    key = id(variable)
    if key not in kernels:
        with outside():
            kernels[key] = compute()
    return kernels[key]


def few_rows_kernel(kernel: Tensor, dtype: str) -> Tensor:
    """A matrix [D, units] in the form and type that `product` multiplies few rows by at
    the speed of memory: of float32 [units / 64, D, 64], each block in one piece; of 16
    bits transposed, [units, D].
    """
    kernel = ops.cast(kernel, dtype)
    if dtype != "float32":
        return ops.transpose(kernel)
    size, units = kernel.shape
    kernel = ops.pad(kernel, ((0, 0), (0, -units % BLOCK_COLUMNS)))
    return ops.transpose(ops.reshape(kernel, (size, -1, BLOCK_COLUMNS)), (1, 0, 2))


def product(x: Tensor, kernel: Tensor) -> Tensor:
    """Rows x [N, D] times a transposed matrix, [units, D], or one in blocks: [N,
    units]. Blocks may add columns of zeros.

    Few rows of 16 bits are multiplied as columns: a CPU rearranges the right one of two
    such matrices, so that should be the small one.
    """
    rows = x.shape[0]
    if len(kernel.shape) == 3:
        return side_by_side(ops.matmul(x[None], kernel))
    if x.dtype != "float32" and rows is not None and rows <= FEW_ROWS:
        columns = ops.matmul(kernel, ops.transpose(x))  # [units, N]
        return ops.stack(ops.unstack(columns, axis=1))
    # TensorFlow fuses the transpose into the product
    return ops.matmul(x, ops.transpose(kernel))


def side_by_side(blocks: Tensor) -> Tensor:
    """[K, N, C] -> [N, K * C]. A transpose of so small a tensor takes ten times as long
    with oneDNN.
    """
    return ops.concatenate(ops.unstack(blocks), axis=1)
