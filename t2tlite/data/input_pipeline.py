"""From the batch plan to tensors on each replica, through tf.data.

One element is one replica's part of one global batch, cut again into the micro-batches whose gradients are summed:

    inputs   int32 [A, R, S]   A micro-batches of R rows; rows of padding alone fill up the last parts
    targets  int32 [A, R, T]
    tokens   float32           target tokens of the whole global batch: what the loss is divided by
    seeds    int32 [A, 2]      dropout seeds, different for each step and part
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from t2tlite.data.batch_plan import BatchPlan
from t2tlite.data.token_store import TokenStore


class Part(NamedTuple):
    """One replica's part of a global batch; see the head of this file."""

    inputs: Any
    targets: Any
    tokens: Any
    seeds: Any


def load_part(store: TokenStore, plan: BatchPlan, step: int, replica: int, replicas: int, micro_batches: int) -> Part:
    """A replica's part of batch `step`, as NumPy arrays.

    The batch's rows are dealt out in turn: part p of P holds rows p, p + P, p + 2 P, ... With 5 rows and 2 parts,
    part 0 holds rows 0, 2, 4 and part 1 rows 1, 3 and a row of padding, which adds nothing to any sum.

    Args:
        store: the corpus.
        plan: its batches.
        step: which global batch, counted from 0.
        replica: which replica, counted from 0 over all workers.
        replicas: how many there are.
        micro_batches: A.
    """
    batch = plan.batch(step)
    parts = replicas * micro_batches
    rows = -(-len(batch.indices) // parts)  # R

    def load(read: Any, width: int) -> np.ndarray:
        block: np.ndarray = np.zeros((micro_batches, rows, width), np.int32)
        for i in range(micro_batches):
            indices = batch.indices[replica * micro_batches + i :: parts]
            block[i, : len(indices)] = read(indices, width)
        return block

    firsts: np.ndarray = step * parts + replica * micro_batches + np.arange(micro_batches)
    seeds = np.stack([np.full(micro_batches, plan.seed * 1_000_003), firsts], axis=1)
    return Part(
        inputs=load(store.sources, batch.source_width),
        targets=load(store.targets, batch.target_width),
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
) -> Any:
    """The parts of batches start, ..., stop - 1, one on each replica at each step.

    Returns:
        A distributed dataset of `Part`s.
    """
    replicas = strategy.num_replicas_in_sync

    def parts_of_worker(context: tf.distribute.InputContext) -> tf.data.Dataset:
        here = replicas // context.num_input_pipelines  # replicas of this worker
        first = here * context.input_pipeline_id

        def load(i: np.int64) -> Part:
            step, replica = divmod(int(i), here)
            return load_part(store, plan, start + step, first + replica, replicas, micro_batches)

        def tensors(i: tf.Tensor) -> Part:
            part = Part(*tf.numpy_function(load, [i], (tf.int32, tf.int32, tf.float32, tf.int32)))
            part.inputs.set_shape((micro_batches, None, None))
            part.targets.set_shape((micro_batches, None, None))
            part.tokens.set_shape(())
            part.seeds.set_shape((micro_batches, 2))
            return part

        count = (stop - start) * here
        return tf.data.Dataset.range(count).map(tensors).prefetch(2 * here)

    return strategy.distribute_datasets_from_function(parts_of_worker)
