"""What holds for the batches of any corpus, batch size, seed and epoch."""

from __future__ import annotations

import copy
import dataclasses
from collections import Counter

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from t2tlite.config import HParams
from t2tlite.data.batch_plan import (
    MAX_SHAPES,
    Batch,
    BatchPlan,
    bucket_boundaries,
    padded_length,
    training_plan,
)

ALWAYS_THE_SAME = settings(
    max_examples=150, derandomize=True, database=None, deadline=None
)
EPOCHS = st.integers(0, 50)


@dataclasses.dataclass(frozen=True)
class Case:
    """The arguments of a plan that has at least one pair."""

    sources: np.ndarray
    targets: np.ndarray
    batch_tokens: int
    max_length: int
    smallest: int
    step: float
    seed: int
    few_shapes: bool
    repeats: np.ndarray | None
    batch_squares: int | None

    def plan(self) -> BatchPlan:
        arguments = dict(vars(self))
        sources = arguments.pop("sources")
        targets = arguments.pop("targets")
        return BatchPlan(sources, targets, **arguments)

    def longer(self) -> np.ndarray:
        """Tokens of the longer side of each pair."""
        return np.maximum(self.sources, self.targets)

    def expected_counts(self) -> np.ndarray:
        """How often each pair is in an epoch."""
        repeats = 1 if self.repeats is None else self.repeats
        return np.where(self.longer() <= self.max_length, repeats, 0)

    def rows_at(self, width: int) -> int:
        """The rows that fit if the longest pair is padded to `width`: at least one."""
        rows = self.batch_tokens // width
        if self.batch_squares is not None:
            rows = min(rows, self.batch_squares // width**2)
        return max(rows, 1)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    count = draw(st.integers(1, 150))
    longest = draw(st.integers(1, 90))
    # drawn by NumPy from one seed: hundreds of lengths drawn one by one take seconds
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    sources, targets = random.integers(1, longest + 1, (2, count))
    repeats = random.integers(1, 5, count)
    shortest = int(np.maximum(sources, targets).min())
    return Case(
        sources=sources,
        targets=targets,
        batch_tokens=draw(st.integers(1, 3000)),
        max_length=draw(st.integers(shortest, longest + 20)),
        smallest=draw(st.integers(1, 20)),
        step=draw(st.floats(1.01, 2.0)),
        seed=draw(st.integers(0, 2**32 - 1)),
        few_shapes=draw(st.booleans()),
        repeats=draw(st.sampled_from([None, repeats])),
        batch_squares=draw(st.none() | st.integers(1, 20_000)),
    )


def epoch(plan: BatchPlan, number: int) -> list[Batch]:
    start = number * plan.num_batches
    return [plan.batch(start + k) for k in range(plan.num_batches)]


def same(batch: Batch, other: Batch) -> bool:
    """Whether two batches have the same pairs in the same order, and the same shape."""
    (indices, *shape), (others, *other_shape) = map(dataclasses.astuple, (batch, other))
    return np.array_equal(indices, others) and shape == other_shape


@ALWAYS_THE_SAME
@given(case=cases(), number=EPOCHS)
def test_an_epoch_has_each_pair_that_fits_as_often_as_it_repeats(case, number):
    plan = case.plan()
    expected = case.expected_counts()
    indices = np.concatenate([batch.indices for batch in epoch(plan, number)])
    np.testing.assert_array_equal(
        np.bincount(indices, minlength=len(expected)), expected
    )
    assert plan.num_pairs == expected.sum()
    assert plan.left_out == np.count_nonzero(expected == 0)


@ALWAYS_THE_SAME
@given(case=cases(), number=EPOCHS)
def test_batches_keep_the_limits_and_hold_their_pairs(case, number):
    shapes = set()
    for batch in epoch(case.plan(), number):
        sources = case.sources[batch.indices]
        targets = case.targets[batch.indices]
        width = max(batch.source_width, batch.target_width)
        assert len(sources) <= batch.rows <= case.rows_at(width)
        assert batch.tokens == targets.sum()
        if case.few_shapes:
            assert max(sources.max(), targets.max()) <= width == batch.source_width
            assert batch.target_width == width
        else:
            assert batch.rows == len(sources)
            widths = (batch.source_width, batch.target_width)
            assert widths == (sources.max(), targets.max())
        shapes.add((batch.rows, batch.source_width, batch.target_width))
    if case.few_shapes:
        assert len(shapes) <= MAX_SHAPES


@ALWAYS_THE_SAME
@given(case=cases(), number=EPOCHS)
def test_at_most_one_batch_of_each_bucket_is_not_full(case, number):
    """So padding is bounded: of all rows to their bucket's boundary, and of few more
    batches than the corpus fills.
    """
    case = dataclasses.replace(case, few_shapes=False)
    boundaries = bucket_boundaries(case.max_length, case.smallest, case.step)
    not_full = Counter()
    for batch in epoch(case.plan(), number):
        longest = int(case.longer()[batch.indices].max())
        boundary = padded_length(longest, boundaries)
        not_full[boundary] += len(batch.indices) < case.rows_at(boundary)
    assert max(not_full.values()) <= 1


@ALWAYS_THE_SAME
@given(case=cases(), steps=st.lists(st.integers(0, 10_000), min_size=1, max_size=9))
def test_a_batch_is_a_function_of_its_step_alone(case, steps):
    """Whatever was asked for before: training resumes at any step."""
    before = copy.deepcopy(case)
    plan = case.plan()
    for step in steps:
        assert same(plan.batch(step), before.plan().batch(step))
    for name in ("sources", "targets", "repeats"):
        np.testing.assert_array_equal(getattr(case, name), getattr(before, name))


@ALWAYS_THE_SAME
@given(case=cases(), numbers=st.sets(EPOCHS, min_size=1, max_size=4))
def test_largest_shapes_bound_the_batches_of_every_epoch(case, numbers):
    plan = case.plan()
    largest = np.array(plan.largest_shapes())
    shapes = []
    for number in numbers:
        for batch in epoch(plan, number):
            shape = (batch.rows, batch.source_width, batch.target_width)
            assert np.any(np.all(shape <= largest, axis=1)), shape
            shapes.append(shape)
    np.testing.assert_array_equal(largest.max(axis=0), np.max(shapes, axis=0))
    if case.few_shapes:
        assert set(shapes) == set(map(tuple, largest.tolist()))


@ALWAYS_THE_SAME
@given(case=cases(), step=st.integers(0, 10_000))
def test_repeated_pairs_are_pairs_written_so_often(case, step):
    assume(case.repeats is not None)
    copies = np.repeat(np.arange(len(case.sources)), case.repeats)
    written = dataclasses.replace(
        case, sources=case.sources[copies], targets=case.targets[copies], repeats=None
    )
    batch = written.plan().batch(step)
    assert same(
        case.plan().batch(step),
        dataclasses.replace(batch, indices=copies[batch.indices]),
    )


@ALWAYS_THE_SAME
@given(
    case=cases(),
    step=st.integers(0, 10_000),
    parts=st.sampled_from([(1, 12), (2, 6), (3, 4), (12, 1)]),
    weights=st.sampled_from(["", "1:1", "1:3", "4:2"]),
)
def test_batches_do_not_depend_on_the_replicas(case, step, parts, weights):
    """Only on their product with the micro-batches that each accumulates. Weights that
    are all 1 change nothing.
    """
    replicas, accumulate_steps = parts
    corpora = [len(case.sources) // 3, len(case.sources) - len(case.sources) // 3]
    batch_size = case.max_length + case.batch_tokens  # a pair must fit
    hparams = HParams(
        batch_size=batch_size,
        max_length=case.max_length,
        min_length_bucket=case.smallest,
        length_bucket_step=case.step,
        jit_compile=case.few_shapes,
        accumulate_steps=accumulate_steps,
        corpus_weights=weights,
    )
    plan = training_plan(
        hparams, case.sources, case.targets, replicas, case.seed, corpora
    )
    repeats = None
    if weights:
        repeats = np.repeat([int(weight) for weight in weights.split(":")], corpora)
    changes = {"batch_tokens": 12 * batch_size, "batch_squares": None}
    alone = dataclasses.replace(case, repeats=repeats, **changes)
    assert same(plan.batch(step), alone.plan().batch(step))
