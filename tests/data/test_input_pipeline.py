"""From the batch plan to each replica's tensors."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.data.ops import iterator_ops

from t2tlite.data.batch_plan import Batch, BatchPlan
from t2tlite.data.input_pipeline import Part, distribute, distribute_shape, load_part
from t2tlite.data.token_store import TokenStore, write_shard

PAIRS = 203


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> TokenStore:
    """Pairs whose tokens are all different from one pair to the next: ids 2 + the
    pair's number.
    """
    folder = tmp_path_factory.mktemp("store")
    random = np.random.default_rng(0)
    sources = [[i + 2] * n for i, n in enumerate(random.integers(0, 30, PAIRS))]
    targets = [[i + 2] * n for i, n in enumerate(random.integers(0, 30, PAIRS))]
    paths = [folder / "0.arrow", folder / "1.arrow"]
    write_shard(paths[0], sources[:150], targets[:150], 1000)
    write_shard(paths[1], sources[150:], targets[150:], 1000)
    return TokenStore(paths)


@pytest.fixture
def plan(store) -> BatchPlan:
    return BatchPlan(store.source_lengths, store.target_lengths, 200, 30, seed=4)


def parts_of(
    store: TokenStore, plan: BatchPlan, step: int, replicas: int, micro_batches: int
) -> list[Part]:
    """Every replica's part of a batch."""
    parts = []
    for replica in range(replicas):
        parts.append(load_part(store, plan, step, replica, replicas, micro_batches))
    return parts


def rows_of(parts: list[Part]) -> list[tuple[list[int], list[int]]]:
    """The pairs in all parts, padding rows left out, sorted."""
    rows = []
    for part in parts:
        sides = np.vstack(part.inputs), np.vstack(part.targets)
        for inputs, targets in zip(*sides, strict=True):
            # a row is padding on both sides or on neither
            assert inputs.any() == targets.any()
            if inputs.any():
                rows.append(
                    (inputs[inputs > 0].tolist(), targets[targets > 0].tolist())
                )
    return sorted(rows)


def one_batch(indices: np.ndarray, tokens: int) -> Any:
    """A plan whose every batch holds the given rows, 40 wide."""
    batch = Batch(indices, len(indices), 40, 40, tokens)
    return SimpleNamespace(batch=lambda k: batch, seed=1)


@pytest.mark.parametrize("replicas", [1, 2, 4])
@pytest.mark.parametrize("micro_batches", [1, 2, 3])
def test_the_same_rows_whatever_the_replicas(store, plan, replicas, micro_batches):
    for step in range(plan.num_batches + 2):  # into the second epoch
        batch = plan.batch(step)
        parts = parts_of(store, plan, step, replicas, micro_batches)
        inputs = store.sources(batch.indices, batch.source_width)
        targets = store.targets(batch.indices, batch.target_width)
        expected = rows_of([Part(inputs[None], targets[None], tokens=None, seeds=None)])
        assert rows_of(parts) == expected
        rows = -(-len(batch.indices) // (replicas * micro_batches))
        for part in parts:
            assert part.inputs.shape == (micro_batches, rows, batch.source_width)
            assert part.targets.shape == (micro_batches, rows, batch.target_width)
            assert part.inputs.dtype == part.targets.dtype == np.int32
            assert part.tokens.dtype == np.float32
            # of the global batch, in every part
            assert part.tokens == sum(len(target) for _, target in expected)


def test_how_rows_are_dealt(store):
    five = np.arange(PAIRS)[store.source_lengths > 1][:5]
    first, second = parts_of(store, one_batch(five, tokens=77), 0, 2, 1)
    assert first.inputs[0, :, 0].tolist() == [five[0] + 2, five[2] + 2, five[4] + 2]
    assert second.inputs[0, :, 0].tolist() == [five[1] + 2, five[3] + 2, 0]
    assert not second.inputs[0, 2].any()
    assert not second.targets[0, 2].any()
    assert first.tokens == second.tokens == 77


def test_dropout_seeds_differ_between_steps_and_parts(store, plan):
    seeds = []
    for step in range(30):
        for part in parts_of(store, plan, step, replicas=2, micro_batches=3):
            seeds += map(tuple, part.seeds.tolist())
    assert len(set(seeds)) == len(seeds) == 30 * 2 * 3
    other = BatchPlan(store.source_lengths, store.target_lengths, 200, 30, seed=5)
    others = load_part(store, other, 0, 0, 2, 3).seeds
    assert set(seeds).isdisjoint(map(tuple, others.tolist()))
    again = load_part(store, plan, 29, 1, 2, 3).seeds
    assert again.dtype == np.int32
    assert list(map(tuple, again.tolist())) == seeds[-3:]


def test_seeds_of_a_late_step_fit_in_32_bits(store, plan):
    seeds = load_part(store, plan, 2**31, 0, 1, 1).seeds
    assert seeds.shape == (1, 2)
    assert (seeds >= 0).all()


@pytest.mark.parametrize("replicas", [1, 2])
def test_distribute(store, plan, cpu_devices, replicas):
    strategy = tf.distribute.MirroredStrategy(cpu_devices[:replicas])
    start, stop = 3, 9
    steps = 0
    dataset = distribute(strategy, store, plan, start, stop, micro_batches=2)
    for step, parts in enumerate(dataset, start):
        for replica in range(replicas):
            expected = load_part(store, plan, step, replica, replicas, 2)
            for value, wanted in zip(parts, expected, strict=True):
                got = strategy.experimental_local_results(value)[replica].numpy()
                np.testing.assert_array_equal(got, wanted)
                assert got.dtype == wanted.dtype
        steps += 1
    assert steps == stop - start


class Workers:
    """Two workers of two replicas each, in one process."""

    num_replicas_in_sync = 4

    def distribute_datasets_from_function(self, function, options):
        # such a strategy takes none of those that one process has
        assert options is None
        return [function(tf.distribute.InputContext(2, i, 4)) for i in range(2)]


def test_a_worker_can_use_a_shape_alone():
    """TensorFlow lets the workers ask each other at each batch of a dataset that ends
    whether there is one more.
    """
    for dataset in distribute_shape(Workers(), (3, 8, 10), 2):
        assert dataset.cardinality() == tf.data.INFINITE_CARDINALITY
        parts = list(dataset.take(5).as_numpy_iterator())
        assert len(parts) == 5
        assert {part[0].shape for part in parts} == {(2, 3, 8)}
        assert {part[1].shape for part in parts} == {(2, 3, 10)}


def test_each_worker_loads_its_own_parts(store, plan):
    replicas = 4
    datasets = distribute(Workers(), store, plan, 2, 5)
    for worker, dataset in enumerate(datasets):
        parts = list(dataset.as_numpy_iterator())
        assert len(parts) == 3 * 2  # steps times replicas of this worker
        for i, part in enumerate(parts):
            replica = 2 * worker + i % 2
            expected = load_part(store, plan, 2 + i // 2, replica, replicas, 1)
            for got, wanted in zip(part, expected, strict=True):
                np.testing.assert_array_equal(got, wanted)
        shapes = [spec.shape.as_list() for spec in dataset.element_spec]
        assert shapes == [[1, None, None], [1, None, None], [], [1, 2]]
        assert not dataset.options().autotune.enabled


@pytest.mark.parametrize("replicas", [1, 2])
def test_no_thread_tunes_the_pipeline(store, plan, cpu_devices, monkeypatch, replicas):
    """The end of an iterator may wait for it up to a minute, on a machine with other
    work.
    """
    tuned, create = [], iterator_ops.OwnedIterator._create_iterator

    def note(iterator, dataset):
        tuned.append(dataset.options().autotune.enabled)
        create(iterator, dataset)

    monkeypatch.setattr(iterator_ops.OwnedIterator, "_create_iterator", note)
    strategy = tf.distribute.MirroredStrategy(cpu_devices[:replicas])
    next(iter(distribute(strategy, store, plan, 0, 5)))
    assert tuned == [False] * replicas
