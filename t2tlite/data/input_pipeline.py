"""From the batch plan to tensors on each replica, through tf.data."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from t2tlite.data.batch_plan import BatchPlan
from t2tlite.data.token_store import TokenStore

# A micro-batches whose gradients are accumulated, R rows, S source length, T target
# length


class Part(NamedTuple):
    """One replica's part of a global batch, in micro-batches. Rows of padding make all
    parts equally large.
    """

    inputs: np.ndarray | tf.Tensor  # int32 [A, R, S]
    targets: np.ndarray | tf.Tensor  # int32 [A, R, T]
    # float32 [], target tokens of the whole global batch, by which the loss is divided
    tokens: np.float32 | tf.Tensor
    # int32 [A, 2], dropout seeds, different for each step and part
    seeds: np.ndarray | tf.Tensor


def load_part(
    store: TokenStore,
    plan: BatchPlan,
    step: int,
    replica: int,
    replicas: int,
    micro_batches: int,
) -> Part:
    """A replica's part of global batch `step`, as NumPy arrays.

    Part p of P = replicas * micro_batches has rows p, p + P, p + 2 P, ... of the batch.
    With 5 rows and 2 parts, part 0 has rows 0, 2, 4 and part 1 rows 1, 3 and a row of
    padding, which adds nothing to any sum.

    Args:
        store: the corpus.
        plan: its batches.
        step: the number of the global batch, from 0.
        replica: the number of the replica, from 0, over all workers.
        replicas: how many there are.
        micro_batches: A.
    """
    batch = plan.batch(step)
    parts = replicas * micro_batches
    rows = -(-batch.rows // parts)  # R
    first = replica * micro_batches
    inputs: np.ndarray = np.zeros((micro_batches, rows, batch.source_width), np.int32)
    targets: np.ndarray = np.zeros((micro_batches, rows, batch.target_width), np.int32)
    seeds: np.ndarray = np.zeros((micro_batches, 2), np.int64)
    for i in range(micro_batches):
        indices = batch.indices[first + i :: parts]
        inputs[i, : len(indices)] = store.sources(indices, batch.source_width)
        targets[i, : len(indices)] = store.targets(indices, batch.target_width)
        seeds[i] = plan.seed * 1_000_003, step * parts + first + i
    return Part(
        inputs=inputs,
        targets=targets,
        tokens=np.float32(batch.tokens),
        seeds=(seeds % 2**31).astype(np.int32),
    )


def distribute(
    strategy: tf.distribute.Strategy,
    store: TokenStore,
    plan: BatchPlan,
    start: int,
    stop: int,
    micro_batches: int = 1,
) -> tf.distribute.DistributedDataset:
    """A distributed dataset of each replica's `Part`s of the global batches start, ...,
    stop - 1.
    """
    replicas = strategy.num_replicas_in_sync

    def load(step: int, replica: int) -> Part:
        return load_part(store, plan, start + step, replica, replicas, micro_batches)

    return _distribute(strategy, load, stop - start, micro_batches)


def distribute_shape(
    strategy: tf.distribute.Strategy, shape: tuple[int, int, int], micro_batches: int
) -> tf.distribute.DistributedDataset:
    """A distributed dataset that repeats one `Part` for each replica, of this shape (R,
    S, T) and without padding.

    It is endless, since the workers of a cluster ask each other at every batch of a
    finite one whether there is one more. So a worker can use it alone.
    """
    rows, source_width, target_width = shape
    inputs: np.ndarray = np.ones((micro_batches, rows, source_width), np.int32)
    targets: np.ndarray = np.ones((micro_batches, rows, target_width), np.int32)
    seeds: np.ndarray = np.ones((micro_batches, 2), np.int32)
    part = Part(inputs, targets, np.float32(targets.size), seeds)
    return _distribute(strategy, lambda step, replica: part, None, micro_batches)


def _distribute(
    strategy: tf.distribute.Strategy,
    load: Callable[[int, int], Part],
    steps: int | None,
    micro_batches: int,
) -> tf.distribute.DistributedDataset:
    """A distributed dataset of the `Part`s that `load` returns for each step from 0 and
    each replica; with steps=None of step 0 again and again.

    tf.data autotuning is off: there is nothing to tune here, and its threads delay the
    end of an iterator on a busy machine by as long as the iterator lasted, up to a
    minute. TensorFlow's tuning thread (model.cc) may check for shutdown just before the
    flag is set, and then sleeps once more. The iterator that copies to devices has such
    a thread whatever the options say; a dataset for each replica does not need that
    iterator. Only a cluster does.
    """
    rows = (micro_batches, None, None)
    shapes = Part(rows, rows, (), (micro_batches, 2))
    options = tf.data.Options()
    options.autotune.enabled = False

    def parts_of_worker(context: tf.distribute.InputContext) -> tf.data.Dataset:
        # replicas of this worker
        here = strategy.num_replicas_in_sync // context.num_input_pipelines
        first = here * context.input_pipeline_id

        def load_item(i: np.int64) -> Part:
            step, replica = divmod(int(i), here)
            return load(step, first + replica)

        def tensors(i: tf.Tensor) -> Part:
            types = (tf.int32, tf.int32, tf.float32, tf.int32)
            part = tf.numpy_function(load_item, [i], types)
            for tensor, shape in zip(part, shapes, strict=True):
                tensor.set_shape(shape)
            return Part(*part)

        items = tf.data.Dataset.range((steps or 1) * here)
        if steps is None:
            items = items.repeat()
        return items.map(tensors).prefetch(2 * here).with_options(options)

    input_options = None
    if isinstance(strategy, tf.distribute.MirroredStrategy):
        per_replica = tf.distribute.InputReplicationMode.PER_REPLICA
        input_options = tf.distribute.InputOptions(
            experimental_fetch_to_device=False,
            experimental_replication_mode=per_replica,
        )
    return strategy.distribute_datasets_from_function(parts_of_worker, input_options)
