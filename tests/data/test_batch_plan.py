"""Which pairs make up batch k."""

import dataclasses
import json

import numpy as np
import pytest

import t2tlite.hparams  # noqa: F401  registers the sets
from t2tlite import registry
from t2tlite.config import HParams
from t2tlite.data import batch_plan
from t2tlite.data.batch_plan import (
    BatchPlan,
    bucket_boundaries,
    merge_buckets,
    padded_length,
    training_plan,
)


def corpus(pairs: int, seed: int, longest: int = 400) -> tuple[np.ndarray, np.ndarray]:
    """Lengths as those of real text: log-normal, about 25 tokens, target about as long
    as source.
    """
    random = np.random.default_rng(seed)
    sources = np.exp(random.normal(3.2, 0.6, pairs))
    targets = sources * np.exp(random.normal(0.0, 0.25, pairs))
    sources, targets = (
        np.clip(side, 1, longest).astype(np.int32) for side in (sources, targets)
    )
    return sources, targets


def epoch(plan: BatchPlan, number: int = 0) -> list[batch_plan.Batch]:
    """Every batch of an epoch."""
    return [plan.batch(number * plan.num_batches + k) for k in range(plan.num_batches)]


@pytest.mark.parametrize(
    ("key", "max_length"),
    [
        ("transformer_base/shards1", 256),
        ("transformer_parsing_base/shards8", 512),
        ("args_4096_100_8_1.1", 100),
    ],
)
def test_boundaries_are_tensor2tensors(fixtures, key, max_length):
    theirs = json.loads((fixtures / "tensor2tensor" / "batching.json").read_text())[
        key
    ]["boundaries"]
    ours = bucket_boundaries(max_length)
    # theirs lacks the last boundary: its last bucket has no upper end
    np.testing.assert_array_equal(ours, [*theirs, max_length])
    assert ours.dtype == np.int32


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((16,), [8, 9, 10, 11, 12, 13, 14, 15, 16]),
        ((8,), [8]),
        ((5,), [5]),
        ((1,), [1]),
        ((9,), [8, 9]),
        ((20, 4, 2.0), [4, 8, 16, 20]),
        ((16, 4, 2.0), [4, 8, 16]),
        ((100, 50, 1.5), [50, 75, 100]),
    ],
)
def test_boundaries(arguments, expected):
    assert bucket_boundaries(*arguments).tolist() == expected


def test_padded_length():
    boundaries = np.array([4, 8, 16])
    assert [padded_length(n, boundaries) for n in (1, 4, 5, 8, 9, 16, 17)] == [
        4,
        4,
        8,
        8,
        16,
        16,
        17,
    ]
    assert type(padded_length(3, boundaries)) is int


@pytest.mark.parametrize(
    ("at_most", "expected"),
    [
        (4, [8, 10, 12, 16]),
        # positions of padding that the removal of 8, 10 and 12 would add: 5 * 2, 1 * 2,
        # 4 * 4
        (3, [8, 12, 16]),
        (2, [12, 16]),  # of 8 and 12: 5 * 4, (4 + 1) * 4; the first of equals
        (1, [16]),
    ],
)
def test_buckets_are_merged_where_it_adds_the_least_padding(at_most, expected):
    boundaries, lengths = (
        np.array([8, 10, 12, 16]),
        np.array([3, 8, 8, 7, 5, 9, 11, 12, 11, 12, 13, 16]),
    )
    assert merge_buckets(boundaries, lengths, at_most).tolist() == expected


@pytest.mark.parametrize("seed", range(20))
def test_an_epoch_holds_each_pair_once_in_batches_that_fit(seed):
    random = np.random.default_rng(seed)
    pairs, longest = int(random.integers(1, 400)), int(random.integers(2, 120))
    sources, targets = random.integers(1, longest + 1, (2, pairs))
    max_length = int(random.integers(max(1, longest // 2), longest + 20))
    fits = np.flatnonzero(np.maximum(sources, targets) <= max_length)
    if not len(fits):
        pytest.skip("no pair fits")
    tokens = int(random.integers(1, 2000))
    smallest, step = int(random.integers(1, 20)), float(random.uniform(1.01, 2.0))
    plan = BatchPlan(sources, targets, tokens, max_length, smallest, step, seed=seed)
    assert (plan.num_pairs, plan.left_out) == (len(fits), pairs - len(fits))
    for number in (0, 3):
        batches = epoch(plan, number)
        np.testing.assert_array_equal(
            np.sort(np.concatenate([b.indices for b in batches])), fits
        )
        for batch in batches:
            rows = len(batch.indices)
            assert (
                rows == 1
                or rows * max(batch.source_width, batch.target_width) <= tokens
            )
            for width, lengths in (
                (batch.source_width, sources),
                (batch.target_width, targets),
            ):
                assert width == lengths[batch.indices].max()
            assert batch.tokens == targets[batch.indices].sum()


def test_any_order_of_asking_gives_the_same_batches():
    sources, targets = corpus(2000, seed=0)
    plan_in_any_order = BatchPlan(sources, targets, 2048, 256, seed=7)
    numbers = np.random.default_rng(0).permutation(3 * plan_in_any_order.num_batches)
    batches = {int(k): plan_in_any_order.batch(int(k)) for k in numbers}
    in_turn = BatchPlan(sources, targets, 2048, 256, seed=7)
    for k in range(3 * in_turn.num_batches):
        expected = in_turn.batch(k)
        np.testing.assert_array_equal(batches[k].indices, expected.indices)
        assert (
            batches[k].source_width,
            batches[k].target_width,
            batches[k].tokens,
        ) == (
            expected.source_width,
            expected.target_width,
            expected.tokens,
        )
    # without going through the epochs before
    resumed = BatchPlan(sources, targets, 2048, 256, seed=7)
    np.testing.assert_array_equal(
        resumed.batch(2 * resumed.num_batches + 5).indices,
        batches[2 * len(numbers) // 3 + 5].indices,
    )


def test_epochs_and_seeds_differ():
    sources, targets = corpus(2000, seed=0)

    def order(seed: int, number: int) -> np.ndarray:
        return np.concatenate(
            [
                b.indices
                for b in epoch(
                    BatchPlan(sources, targets, 2048, 256, seed=seed), number
                )
            ]
        )

    orders = [
        order(1, 0),
        order(1, 1),
        order(2, 0),
        order(2, 1),
        order(0, 0),
        order(0, 1),
    ]
    for i, first in enumerate(orders):
        for second in orders[i + 1 :]:
            assert (first == second).mean() < 0.05
    np.testing.assert_array_equal(order(1, 1), orders[1])


def test_batches_come_in_no_order_of_length():
    sources, targets = corpus(5000, seed=0)
    widths = np.array(
        [batch.source_width for batch in epoch(BatchPlan(sources, targets, 1024, 256))]
    )
    correlation = np.corrcoef(np.arange(len(widths)), widths)[0, 1]
    # four deviations of what a random order has
    assert abs(correlation) < 4 / np.sqrt(len(widths))


def test_batches_are_made_of_other_pairs_each_epoch():
    sources, targets = corpus(5000, seed=0)
    plan = BatchPlan(sources, targets, 1024, 256)
    first, second = (
        {frozenset(b.indices.tolist()) for b in epoch(plan, n) if len(b.indices) > 2}
        for n in (0, 1)
    )
    assert len(first & second) < 0.02 * len(first)


def padding(
    batches: list[batch_plan.Batch], sources: np.ndarray, targets: np.ndarray
) -> float:
    """The share of both sides' positions that holds no token."""
    positions = sum(b.rows * (b.source_width + b.target_width) for b in batches)
    return (
        1
        - sum(int(sources[b.indices].sum() + targets[b.indices].sum()) for b in batches)
        / positions
    )


# Batches of one bucket drawn at random, as tensor2tensor's, pad 12 to 13 percent; of
# random rows about 60.
@pytest.mark.parametrize(
    ("pairs", "batch_tokens", "expected"),
    [(20_000, 4096, 0.12), (200_000, 4096, 0.07), (200_000, 25_000, 0.11)],
)
def test_little_padding(pairs, batch_tokens, expected):
    sources, targets = corpus(pairs, seed=3)
    batches = epoch(BatchPlan(sources, targets, batch_tokens, 256))
    assert padding(batches, sources, targets) < expected
    filled = [
        len(b.indices) * max(b.source_width, b.target_width) / batch_tokens
        for b in batches
    ]
    assert np.mean(filled) > 0.9  # a batch's rows fit at its bucket's boundary
    np.testing.assert_allclose(
        [b.tokens for b in batches], [targets[b.indices].sum() for b in batches]
    )


def test_rows_fit_at_the_boundary_of_the_longest_pair():
    sources, targets = corpus(20_000, seed=4)
    batches = epoch(BatchPlan(sources, targets, 4096, 256))
    boundaries = bucket_boundaries(256)
    assert len(boundaries) == 42
    shapes = {
        (len(b.indices), padded_length(max(b.source_width, b.target_width), boundaries))
        for b in batches
    }
    assert all(rows * width <= 4096 for rows, width in shapes)
    # about one for each boundary, two where a batch goes over it
    assert len(shapes) < 2 * len(boundaries)


@pytest.mark.parametrize(
    ("pairs", "batch_tokens"), [(20_000, 1024), (20_000, 4096), (200_000, 25_000)]
)
def test_pairs_share_a_batch_with_others_in_the_next_epoch(pairs, batch_tokens):
    sources, targets = corpus(pairs, seed=8)
    plan = BatchPlan(sources, targets, batch_tokens, 64)
    # of the batch that a pair is in, in each epoch
    number: np.ndarray = np.zeros((2, len(sources)), np.int64)
    for n in (0, 1):
        for k, batch in enumerate(epoch(plan, n)):
            number[n, batch.indices] = k + 1
    both = np.unique(number[:, number[0] > 0], axis=1, return_counts=True)[1]
    sizes = np.array([len(batch.indices) for batch in epoch(plan)])
    # of the other pairs in a pair's batch, the share that are in its batch in the next
    # epoch, too
    assert (both * (both - 1)).sum() / (sizes * (sizes - 1)).sum() < 0.5


@pytest.mark.parametrize("replicas", [1, 8])
@pytest.mark.parametrize("name", ["transformer_base", "transformer_big"])
def test_xla_gets_at_most_24_shapes_of_wmt_lengths(name, replicas):
    """Of lengths as those of WMT En-De, mean 30 and 32 tokens: without jit_compile
    nearly each has its own.
    """
    sources, targets = corpus(200_000, seed=7)
    hparams = registry.get_hparams(name)
    for jit_compile in (False, True):
        hparams = dataclasses.replace(hparams, jit_compile=jit_compile)
        plan = training_plan(hparams, sources, targets, replicas, seed=1)
        batches = epoch(plan)
        seen = np.bincount(
            np.concatenate([b.indices for b in batches]), minlength=len(sources)
        )
        np.testing.assert_array_equal(seen, np.maximum(sources, targets) <= 256)
        shapes = {(b.rows, b.source_width, b.target_width) for b in batches}
        for b in batches:
            assert (
                len(b.indices)
                <= b.rows
                <= 4096 * replicas // max(b.source_width, b.target_width)
            )
            assert sources[b.indices].max() <= b.source_width
            assert targets[b.indices].max() <= b.target_width
        assert padding(batches, sources, targets) < (0.15 if jit_compile else 0.12)
    assert len(shapes) <= 24  # with jit_compile


def test_one_long_pair_does_not_split_the_short_ones():
    lengths = np.array([8] * 10 + [100])
    # 100 // 8 = 12 short rows fit
    plan = BatchPlan(lengths, lengths, batch_tokens=100, max_length=256)
    assert plan.num_batches == 2


def test_rows_of_each_boundary():
    lengths = np.repeat([8, 16, 64], 64)
    batches = epoch(
        BatchPlan(
            lengths, lengths, batch_tokens=128, max_length=64, smallest=8, step=2.0
        )
    )
    # 128 // 8 = 16, 128 // 16 = 8, 128 // 64 = 2
    assert {(b.source_width, len(b.indices)) for b in batches} == {
        (8, 16),
        (16, 8),
        (64, 2),
    }


def test_a_pair_longer_than_the_batch_has_one_of_its_own():
    lengths = np.array([50, 50, 60])
    batches = epoch(BatchPlan(lengths, lengths, batch_tokens=40, max_length=64))
    assert [len(b.indices) for b in batches] == [1, 1, 1]


def test_nothing_fits():
    with pytest.raises(
        ValueError,
        match=(
            r"No pair fits: each of 1,200 has a side longer than max_length=16 tokens\."
        ),
    ):
        BatchPlan(np.full(1200, 17), np.full(1200, 3), 128, 16)


def test_the_arguments_stay_as_they_are():
    sources, targets = np.array([3, 99, 4]), np.array([4, 9, 4])
    BatchPlan(sources, targets, 64, 16).batch(0)
    assert (sources.tolist(), targets.tolist()) == ([3, 99, 4], [4, 9, 4])


def test_a_million_pairs():
    sources, targets = corpus(1_000_000, seed=5)
    plan = BatchPlan(sources, targets, 25_000, 256)
    batches = epoch(plan, 1)
    seen = np.bincount(
        np.concatenate([b.indices for b in batches]), minlength=len(sources)
    )
    np.testing.assert_array_equal(seen, np.maximum(sources, targets) <= 256)
    padded = sum(len(b.indices) * max(b.source_width, b.target_width) for b in batches)
    # rows fit at their bucket's boundary
    assert padded / 25_000 <= plan.num_batches <= 1.08 * padded / 25_000


@pytest.mark.parametrize("few_shapes", [False, True])
def test_largest_shapes(few_shapes):
    sources, targets = corpus(3000, seed=6)
    plan = BatchPlan(sources, targets // 2 + 1, 600, 100, few_shapes=few_shapes)
    largest = plan.largest_shapes()
    shapes = {
        (b.rows, b.source_width, b.target_width)
        for number in range(8)
        for b in epoch(plan, number)
    }
    for shape in shapes:
        assert any(np.all(np.array(shape) <= large) for large in largest), shape
    if few_shapes:
        assert set(largest) == shapes
    for side in range(3):
        assert max(shape[side] for shape in largest) == max(
            shape[side] for shape in shapes
        )


def test_training_plan():
    sources, targets = corpus(3000, seed=6)
    hparams = HParams().override(
        "batch_size=300,accumulate_steps=2,max_length=100,min_length_bucket=10,length_bucket_step=1.5"
    )
    plan = training_plan(hparams, sources, targets, replicas=4, seed=3)
    same = BatchPlan(sources, targets, 300 * 2 * 4, 100, 10, 1.5, 3)
    assert plan.num_batches == same.num_batches
    for k in (0, 5, plan.num_batches + 2):
        np.testing.assert_array_equal(plan.batch(k).indices, same.batch(k).indices)
    # what matters is the product: two replicas that accumulate four micro-batches train
    # the same batches
    other = training_plan(
        hparams.override("accumulate_steps=4"), sources, targets, replicas=2, seed=3
    )
    np.testing.assert_array_equal(plan.batch(7).indices, other.batch(7).indices)


def by_weight(weights: str, replicas: int = 1, **changes: object) -> BatchPlan:
    """The plan of corpora of 500, 120 and 60 pairs, some of them longer than
    max_length.
    """
    hparams = HParams(batch_size=400, max_length=60, corpus_weights=weights, **changes)
    return training_plan(
        hparams, *corpus(680, seed=9), replicas, seed=3, corpus_pairs=[500, 120, 60]
    )


@pytest.mark.parametrize("jit_compile", [False, True])
def test_an_epoch_has_each_pair_as_often_as_its_corpus_weighs(jit_compile):
    sources, targets = corpus(680, seed=9)
    fits = np.maximum(sources, targets) <= 60
    plan = by_weight("2:1:5", jit_compile=jit_compile)
    expected = np.where(fits, np.array([2] * 500 + [1] * 120 + [5] * 60), 0)
    assert 0 < plan.left_out == np.count_nonzero(~fits)  # each counts once
    assert plan.num_pairs == expected.sum()
    for number in (0, 1, 4):
        seen = np.bincount(
            np.concatenate([b.indices for b in epoch(plan, number)]), minlength=680
        )
        np.testing.assert_array_equal(seen, expected)


def test_weights_give_the_batches_of_pairs_written_so_often():
    sources, targets = corpus(680, seed=9)
    copies = np.repeat(np.arange(680), [2] * 500 + [1] * 120 + [5] * 60)
    plan, written = (
        by_weight("2:1:5"),
        BatchPlan(sources[copies], targets[copies], 400, 60, seed=3),
    )
    assert plan.num_batches == written.num_batches
    for k in (0, 7, plan.num_batches, 3 * plan.num_batches + 2):
        np.testing.assert_array_equal(
            plan.batch(k).indices, copies[written.batch(k).indices]
        )


def test_weights_of_1_change_no_batch():
    plan, plain = by_weight("1:1:1"), BatchPlan(*corpus(680, seed=9), 400, 60, seed=3)
    none = by_weight("")
    for k in range(2 * plain.num_batches):
        for other in (plan, none):
            np.testing.assert_array_equal(
                other.batch(k).indices, plain.batch(k).indices
            )


def test_weighted_batches_when_resumed_and_on_replicas():
    plan = by_weight("1:3:2", accumulate_steps=4)
    batches = [plan.batch(k).indices for k in range(2 * plan.num_batches)]
    for k in (1, plan.num_batches - 1, plan.num_batches + 3):
        resumed = by_weight("1:3:2", accumulate_steps=4)  # without the batches before
        np.testing.assert_array_equal(resumed.batch(k).indices, batches[k])
        for replicas, steps in ((4, 1), (2, 2)):
            parallel = by_weight("1:3:2", replicas, accumulate_steps=steps)
            np.testing.assert_array_equal(parallel.batch(k).indices, batches[k])


@pytest.mark.parametrize(
    ("weights", "pairs"),
    [("1:4", [10]), ("4", [10]), ("1:4", [5, 3, 2]), ("1:4:2", [5, 5]), ("2:3", [])],
)
def test_one_weight_for_each_of_several_corpora(weights, pairs):
    message = (
        rf"one weight for each\. Received: corpus_weights={weights}; corpora in the"
        rf" data: {len(pairs)}\. "
    )
    with pytest.raises(ValueError, match=message):
        training_plan(
            HParams(corpus_weights=weights), np.full(10, 5), np.full(10, 5), 1, 1, pairs
        )
