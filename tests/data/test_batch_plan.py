"""Which pairs make up batch k: bucket boundaries, padding, and how pairs are mixed. What
holds for every corpus is in test_batch_plan_properties.py.
"""

import dataclasses
import itertools
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
    training_plan,
)


def corpus(pairs: int, seed: int, longest: int = 400) -> tuple[np.ndarray, np.ndarray]:
    """Lengths as those of real text: log-normal, about 25 tokens, target about as long
    as source.
    """
    random = np.random.default_rng(seed)
    sources = np.exp(random.normal(3.2, 0.6, pairs))
    targets = sources * np.exp(random.normal(0.0, 0.25, pairs))
    lengths = np.clip([sources, targets], 1, longest).astype(np.int32)
    return lengths[0], lengths[1]


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
    recorded = json.loads((fixtures / "tensor2tensor" / "batching.json").read_text())
    ours = bucket_boundaries(max_length)
    # theirs lacks the last boundary: its last bucket has no upper end
    np.testing.assert_array_equal(ours, [*recorded[key]["boundaries"], max_length])
    assert ours.dtype == np.int32


def test_epochs_and_seeds_differ():
    sources, targets = corpus(2000, seed=0)
    orders = []
    for seed in (0, 1, 2):
        plan = BatchPlan(sources, targets, 2048, 256, seed=seed)
        for number in (0, 1):
            batches = epoch(plan, number)
            orders.append(np.concatenate([batch.indices for batch in batches]))
    for first, second in itertools.combinations(orders, 2):
        assert (first == second).mean() < 0.05


def padding(
    batches: list[batch_plan.Batch], sources: np.ndarray, targets: np.ndarray
) -> float:
    """The share of both sides' positions that holds no token."""
    positions = sum(b.rows * (b.source_width + b.target_width) for b in batches)
    tokens = 0
    for batch in batches:
        tokens += sources[batch.indices].sum() + targets[batch.indices].sum()
    return 1 - tokens / positions


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
    filled = [len(b.indices) * max(b.source_width, b.target_width) for b in batches]
    # a batch's rows fit at its bucket's boundary
    assert np.mean(filled) > 0.9 * batch_tokens


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
def test_xla_gets_at_most_12_shapes_of_wmt_lengths(replicas):
    """Of lengths as those of WMT En-De, mean 30 and 32 tokens: without jit_compile
    nearly each has its own.
    """
    sources, targets = corpus(200_000, seed=7)
    hparams = registry.get_hparams("transformer_base")
    for jit_compile in (False, True):
        hparams = dataclasses.replace(hparams, jit_compile=jit_compile)
        plan = training_plan(hparams, sources, targets, replicas, seed=1)
        batches = epoch(plan)
        shapes = {(b.rows, b.source_width, b.target_width) for b in batches}
        assert padding(batches, sources, targets) < (0.21 if jit_compile else 0.12)
    assert len(shapes) <= 12  # with jit_compile


def test_nothing_fits():
    message = r"^Data needs pairs of at most 16 tokens a side.* Received: 1,200 longer"
    with pytest.raises(ValueError, match=message):
        BatchPlan(np.full(1200, 17), np.full(1200, 3), 128, 16)


@pytest.mark.parametrize(
    ("weights", "pairs"),
    [("1:4", [10]), ("4", [10]), ("1:4", [5, 3, 2]), ("1:4:2", [5, 5])],
)
def test_one_weight_for_each_of_several_corpora(weights, pairs):
    lengths = np.full(10, 5)
    message = rf"a weight for each corpus, .* Received: {weights} for {len(pairs)}\.$"
    with pytest.raises(ValueError, match=message):
        training_plan(HParams(corpus_weights=weights), lengths, lengths, 1, 1, pairs)
