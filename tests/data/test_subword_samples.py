"""Several segmentations of the training text: how they are stored, and that each epoch
has the batches of the next one.
"""

import itertools
import os

import numpy as np
import pytest
from tiny_task import TinyTask, contents

from t2tlite.data.batch_plan import BatchPlan
from t2tlite.data.dataset import open_dataset
from t2tlite.data.generate import generate
from t2tlite.data.input_pipeline import load_part
from t2tlite.data.token_store import TokenStore, write_shard
from t2tlite.files import atomic_file

SAMPLES = 3
TASK = TinyTask(subword_samples=SAMPLES, subword_dropout=0.2)


@pytest.fixture(scope="module")
def sampled(tmp_path_factory):
    """The data of TASK, in shards of any size."""
    folder = tmp_path_factory.mktemp("sampled")
    generate(TASK, folder, num_processes=1)
    return folder


def texts(data, store, side):
    """The decoded rows of a side."""
    rows = np.arange(len(store))
    read = store.sources if side == 0 else store.targets
    lengths = store.source_lengths if side == 0 else store.target_lengths
    return [data.encoders[side].decode(row) for row in read(rows, int(lengths.max()))]


def test_every_sample_has_the_text_in_other_subwords(sampled):
    data = open_dataset(sampled)
    store = data.store("train")
    pairs = len(TASK.train)
    assert (store.samples, len(store)) == (SAMPLES, SAMPLES * pairs)
    for side in (0, 1):
        expected = [pair[side] for pair in TASK.train]
        assert texts(data, store, side) == expected * SAMPLES
    per_sample = store.source_lengths.reshape(SAMPLES, pairs)
    for first, second in itertools.combinations(per_sample, 2):
        assert 0.1 < (first != second).mean() < 0.95
    entry = data.manifest.splits["train"]
    assert entry.pairs == pairs
    assert entry.source_tokens == round(store.source_lengths.sum() / SAMPLES)
    assert entry.longest_source == store.source_lengths.max()


def test_dev_and_test_stay_deterministic(sampled, tiny_data):
    without = open_dataset(tiny_data, "tiny_task")
    data = open_dataset(sampled)
    for split in ("dev", "test"):
        assert data.store(split).samples == 1
        assert (
            data.manifest.splits[split].shards == without.manifest.splits[split].shards
        )
    assert data.manifest.vocabulary == without.manifest.vocabulary


def test_processes_and_interruptions_change_nothing(tmp_path, monkeypatch):
    generate(TASK, tmp_path / "one", num_processes=1)
    generate(TASK, tmp_path / "two", num_processes=2)
    counter = itertools.count()

    def replace(source, target):
        if next(counter) == 4:  # after the vocabulary, a record and two shards
            raise KeyboardInterrupt
        os.rename(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(atomic_file.os, "replace", replace)
        with pytest.raises(KeyboardInterrupt):
            generate(TASK, tmp_path / "killed", num_processes=1)
    assert len(list(tmp_path.glob("killed/*/*.arrow"))) == 2
    generate(TASK, tmp_path / "killed", num_processes=1)
    expected = contents(tmp_path / "one")
    assert contents(tmp_path / "two") == expected
    assert contents(tmp_path / "killed") == expected


def test_all_samples_have_the_pairs_within_the_limits(tmp_path, tiny_data):
    limit = 14
    lengths = open_dataset(tiny_data, "tiny_task").store("train")
    longer = np.maximum(lengths.source_lengths, lengths.target_lengths)
    task = TinyTask(
        subword_samples=2, max_length=limit, vocab_file=vocabulary(tiny_data)
    )
    data = generate(task, tmp_path, num_processes=1).dataset
    expected = [
        pair[0] for pair, n in zip(task.train, longer, strict=True) if n <= limit
    ]
    assert 0 < len(expected) < len(task.train)
    assert texts(data, data.store("train"), 0) == expected * 2


def vocabulary(data_dir):
    return (str(data_dir / "tiny_task" / "vocab.model"),)


def test_the_same_again_is_complete_and_another_rate_refused(sampled):
    assert generate(TASK, sampled, num_processes=1).already_there
    for changes in ({"subword_samples": 2}, {"subword_dropout": 0.3}):
        ((name, value),) = changes.items()
        fields = {"subword_samples": SAMPLES, "subword_dropout": 0.2, **changes}
        was = getattr(TASK, name)
        with pytest.raises(ValueError, match=f"{name} was {was}, now {value}"):
            generate(TinyTask(**fields), sampled)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"subword_dropout": 0.2}, r"samples=0, subword_dropout=0\.2\. Give both"),
        (
            {"subword_samples": 2, "subword_dropout": 0.0},
            r"a subword_dropout above 0 go together.*samples=2, subword_dropout=0\.0",
        ),
    ],
)
def test_options_that_sample_nothing(tmp_path, options, message):
    with pytest.raises(ValueError, match=message):
        generate(TinyTask(**options), tmp_path)
    assert not list(tmp_path.iterdir())


def test_summary(sampled):
    samples = "3 segmentations of the training text, BPE dropout 0.2"
    assert samples in str(generate(TASK, sampled))


def write_store(folder):
    """Two shards of 3 samples; the ids say the sample and the pair: 100 s + pair + 2,
    as often as the sample's length of the pair.
    """
    random = np.random.default_rng(5)
    paths = []
    for first, pairs in ((0, 60), (60, 37)):
        samples = []
        for sample in range(3):
            numbers = range(100 * sample + first + 2, 100 * sample + first + pairs + 2)
            sides = []
            for _ in range(2):
                lengths = random.integers(0, 12 + 6 * sample, pairs)
                sides.append([[i] * n for i, n in zip(numbers, lengths, strict=True)])
            samples.append(sides)
        paths.append(folder / f"{first}.arrow")
        write_shard(paths[-1], *samples[0], 1000, more=samples[1:])
    return TokenStore(paths)


@pytest.mark.parametrize("few_shapes", [False, True])
def test_each_epoch_has_the_batches_of_the_next_sample(tmp_path, few_shapes):
    store = write_store(tmp_path)
    pairs = 97
    repeats = np.arange(pairs) % 2 + 1
    lengths = store.source_lengths, store.target_lengths
    options = {"batch_tokens": 120, "max_length": 20, "seed": 3, "repeats": repeats}
    plan = BatchPlan(*lengths, **options, few_shapes=few_shapes, samples=3)
    fits = np.maximum(*lengths) <= 20
    assert plan.left_out == np.count_nonzero(~fits) > 0
    k = 0
    for epoch in range(7):
        sample = epoch % 3
        of_sample = slice(sample * pairs, (sample + 1) * pairs)
        expected = np.where(fits[of_sample], repeats, 0)
        alone = BatchPlan(*(side[of_sample] for side in lengths), **options)
        seen = np.zeros(pairs, int)
        position = 0
        while seen.sum() < expected.sum():
            batch = plan.batch(k)
            np.add.at(seen, batch.indices - sample * pairs, 1)
            if not few_shapes:
                # what a plan of this sample's lengths alone has in this epoch
                other = alone.batch(epoch * alone.num_batches + position)
                np.testing.assert_array_equal(
                    batch.indices, other.indices + sample * pairs
                )
                assert batch.source_width == other.source_width
            k += 1
            position += 1
        np.testing.assert_array_equal(seen, expected)
    assert k == 2 * plan.num_batches + len_of_first(plan, pairs)


def len_of_first(plan, pairs):
    """The batches of the first epoch."""
    for k in itertools.count():
        if plan.batch(k).indices.max() >= pairs:
            return k


def test_batches_of_any_replicas_have_tokens_of_their_sample(tmp_path):
    store = write_store(tmp_path)
    lengths = store.source_lengths, store.target_lengths
    plan = BatchPlan(*lengths, batch_tokens=120, max_length=30, samples=3)
    shapes = plan.largest_shapes()
    seen = set()
    for k in range(plan.num_batches):
        batch = plan.batch(k)
        (sample,) = set((batch.indices // 97).tolist())
        seen.add(sample)
        largest = [s for s in shapes if s[0] >= batch.rows]
        assert any(
            s >= batch.source_width and t >= batch.target_width for _, s, t in largest
        )
        rows = []
        for replicas in (1, 2):
            parts = [load_part(store, plan, k, r, replicas, 1) for r in range(replicas)]
            inputs = np.concatenate([part.inputs[0] for part in parts])
            rows.append(sorted(map(tuple, inputs[inputs[:, 0] > 0].tolist())))
        assert rows[0] == rows[1]
        for row in rows[0]:
            if row[0] > 1:
                assert (row[0] - 2) // 100 == sample
    assert seen == {0, 1, 2}


def test_shards_of_different_numbers_of_samples(tmp_path):
    write_shard(tmp_path / "a.arrow", [[2]], [[3]], 10)
    write_shard(tmp_path / "b.arrow", [[2]], [[3]], 10, more=[([[2]], [[3]])])
    with pytest.raises(ValueError, match=r"as many segmentations.*Received: \[1, 2\]"):
        TokenStore([tmp_path / "a.arrow", tmp_path / "b.arrow"])
