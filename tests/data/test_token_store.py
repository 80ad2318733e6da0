"""Token shards: what is written comes back, padded and in any order; damage is noticed
and named.
"""

import os

import numpy as np
import pyarrow as pa
import pytest

from t2tlite.data.token_store import TokenStore, write_shard

SOURCES = [[5, 6], [8], [], [7, 7, 7, 7]]
TARGETS = [[7], [9, 5], [3], []]


@pytest.fixture
def shards(tmp_path):
    """The four pairs in three shards, the second of them empty."""
    paths = [tmp_path / f"dev-{i:05d}.arrow" for i in range(3)]
    write_shard(
        paths[0], SOURCES[:3], TARGETS[:3], 10, (["a", "b", ""], ["d", "e\t", "f"])
    )
    write_shard(paths[1], [], [], 10, ([], []))
    write_shard(paths[2], SOURCES[3:], TARGETS[3:], 10, (["c"], [" "]))
    return paths


def test_lengths_count_the_end_mark(shards):
    store = TokenStore(shards)
    assert len(store) == 4
    assert store.source_lengths.tolist() == [3, 2, 1, 5]
    assert store.target_lengths.tolist() == [2, 3, 2, 1]
    assert store.source_lengths.dtype == store.target_lengths.dtype == np.int32


def test_reverse_swaps_ids_lengths_and_text(shards):
    store = TokenStore(shards, reverse=True)
    assert store.source_lengths.tolist() == [2, 3, 2, 1]
    assert store.sources(np.array([1]), 3).tolist() == [[9, 5, 1]]
    assert store.targets(np.array([1]), 3).tolist() == [[8, 1, 0]]
    assert store.source_text() == ["d", "e\t", "f", " "]
    assert store.target_text() == ["a", "b", "", "c"]


def test_many_random_rows_equal_a_python_loop(tmp_path):
    random = np.random.default_rng(0)
    rows = [
        random.integers(2, 60000, random.integers(0, 30)).tolist() for _ in range(1000)
    ]
    bounds = [0, 10, 500, 501, 1000]
    paths = [tmp_path / f"train-{i:05d}.arrow" for i in range(4)]
    for path, first, last in zip(paths, bounds, bounds[1:], strict=False):
        write_shard(path, rows[first:last], rows[first:last][::-1], 60000)
    store = TokenStore(paths)
    indices = random.integers(0, 1000, 3000)
    sources = store.sources(indices, 31)
    for index, row in zip(indices, sources.tolist(), strict=True):
        assert row == [*rows[index], 1] + [0] * (30 - len(rows[index]))
    assert sources.dtype == np.int32
    assert store.sources(np.array([], np.int64), 7).shape == (0, 7)
    assert len(TokenStore([])) == len(TokenStore([]).source_lengths) == 0


@pytest.mark.parametrize(
    ("vocab_size", "kind"),
    [(10, "uint16"), (65536, "uint16"), (65537, "int32"), (250_000, "int32")],
)
def test_ids_take_two_bytes_where_they_fit(tmp_path, vocab_size, kind):
    write_shard(tmp_path / "s.arrow", [[vocab_size - 1]], [[2]], vocab_size)
    with pa.memory_map(str(tmp_path / "s.arrow")) as file:
        schema = pa.ipc.open_file(file).schema
    assert str(schema.field("inputs").type) == f"list<item: {kind}>"
    assert TokenStore([tmp_path / "s.arrow"]).sources(np.array([0]), 2).tolist() == [
        [vocab_size - 1, 1]
    ]


def test_standard_tools_read_it(shards):
    with pa.memory_map(str(shards[0])) as file:
        table = pa.ipc.open_file(file).read_all()
    assert table.to_pydict() == {
        "inputs": [[5, 6, 1], [8, 1], [1]],
        "targets": [[7, 1], [9, 5, 1], [3, 1]],
        "inputs_text": ["a", "b", ""],
        "targets_text": ["d", "e\t", "f"],
    }


def test_ids_are_not_copied(tmp_path):
    write_shard(tmp_path / "s.arrow", SOURCES, TARGETS, 10)
    before = len(os.listdir("/dev/fd"))
    allocated = pa.total_allocated_bytes()
    stores = [TokenStore([tmp_path / "s.arrow"]) for _ in range(50)]
    assert pa.total_allocated_bytes() - allocated < 50 * 64
    # shards stay mapped, but no file stays open
    assert len(os.listdir("/dev/fd")) == before
    assert stores[49].sources(np.array([3]), 5).tolist() == [[7, 7, 7, 7, 1]]


def test_segmentations_of_an_earlier_version_are_refused(tmp_path):
    rows = pa.array([[5, 1]], pa.list_(pa.uint16()))
    batch = pa.record_batch([rows] * 4, ["inputs", "targets", "inputs_2", "targets_2"])
    with pa.ipc.new_file(tmp_path / "sampled.arrow", batch.schema) as writer:
        writer.write_batch(batch)
    with pytest.raises(ValueError, match=r"--subword_samples, which is gone\. Delete"):
        TokenStore([tmp_path / "sampled.arrow"])
