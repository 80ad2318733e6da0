"""Token ids on disk: Arrow files, written once, then memory-mapped.

A shard is an Arrow IPC file of one record batch. Its columns `inputs` and `targets` are
lists of token ids that end with EOS; dev and test shards also have `inputs_text` and
`targets_text`. pandas, Polars and DuckDB can read it.
"""

from array import array
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from t2tlite.files.atomic_file import atomic_file
from t2tlite.types import EOS, PAD

COLUMNS = ("inputs", "targets")

Rows = Sequence[Sequence[int]]  # of token ids

# N rows in the store, R rows read, W width they are padded to


def write_shard(
    path: str | Path,
    sources: Rows,
    targets: Rows,
    vocab_size: int,
    texts: tuple[Sequence[str], Sequence[str]] | None = None,
    notes: Mapping[str, str] | None = None,
) -> None:
    """Writes one shard atomically.

    Sources and targets are token ids without EOS, which is appended here. They are less
    than `vocab_size`, and take 2 bytes each, or 4 if `vocab_size` exceeds 65,536.
    `texts` are the texts of sources and targets, if the shard keeps them; `read_notes`
    returns `notes`. The same arguments give the same bytes.
    """
    columns = {
        "inputs": _id_column(sources, vocab_size),
        "targets": _id_column(targets, vocab_size),
    }
    if texts is not None:
        columns["inputs_text"] = pa.array(texts[0], pa.string())
        columns["targets_text"] = pa.array(texts[1], pa.string())
    fields = []
    for name, column in columns.items():
        fields.append(pa.field(name, column.type, nullable=False))
    schema = pa.schema(fields, metadata=dict(notes or {}))
    with atomic_file(path) as file, pa.ipc.new_file(file, schema) as writer:
        writer.write_batch(pa.record_batch(columns, schema=schema))


def read_notes(path: Path) -> dict[str, str]:
    """The notes that `write_shard` recorded."""
    notes = {}
    for name, note in (_open_shard(path).schema.metadata or {}).items():
        notes[name.decode()] = note.decode()
    return notes


class TokenStore:
    """The token ids of one split, in the order in which the problem yields its pairs.

    Example, a store of the pairs `[5, 6] -> [7]` and `[8] -> [9, 5]`:

        store.source_lengths                   # [3, 2], EOS (id 1) included
        store.sources(np.array([1, 0]), 4)     # [[8, 1, 0, 0], [5, 6, 1, 0]]
    """

    def __init__(self, paths: Sequence[Path], reverse: bool = False):
        """Opens the shards of the split, in order, and swaps sources and targets if
        `reverse`.
        """
        self._paths = paths
        self._shards = list(map(_open_shard, paths))
        self._source, self._target = COLUMNS[::-1] if reverse else COLUMNS
        self._sources = _Side(self._shards, self._source)
        self._targets = _Side(self._shards, self._target)
        # int32 [N], tokens, EOS included
        self.source_lengths = self._sources.lengths
        self.target_lengths = self._targets.lengths

    def __len__(self) -> int:
        return len(self.source_lengths)

    def sources(self, indices: np.ndarray, width: int) -> np.ndarray:
        """The sources at `indices`, integers [R] in any order, padded to `width` W
        tokens: int32 [R, W].

        Raises ValueError if a source is longer than `width`.
        """
        return self._sources.rows(indices, width)

    def targets(self, indices: np.ndarray, width: int) -> np.ndarray:
        """The targets at `indices`, padded; see `sources`."""
        return self._targets.rows(indices, width)

    def source_text(self) -> list[str]:
        """The text of every source as the problem yielded it. Raises ValueError for
        training shards.
        """
        return self._text(self._source)

    def target_text(self) -> list[str]:
        """The text of every target; see `source_text`."""
        return self._text(self._target)

    def _text(self, side: str) -> list[str]:
        lines: list[str] = []
        for path, shard in zip(self._paths, self._shards, strict=True):
            if f"{side}_text" not in shard.schema.names:
                raise ValueError(
                    f"Only dev and test data keep their text. Received: {path}."
                )
            lines += shard[f"{side}_text"].to_pylist()
        return lines


class _Side:
    """The ids of one side of a split, from a column of each shard."""

    def __init__(self, shards: Sequence[pa.RecordBatch], name: str) -> None:
        self._ids = []  # uint16 or int32, of all rows of a shard
        self._offsets = []  # int32 [rows + 1], where each row begins
        lengths: list[np.ndarray] = [np.zeros(0, np.int32)]
        first_rows = [0]
        for shard in shards:
            column = shard[name]
            offsets = column.offsets.to_numpy()
            self._ids.append(column.values.to_numpy())
            self._offsets.append(offsets)
            lengths.append(np.diff(offsets))
            first_rows.append(first_rows[-1] + len(column))
        self.lengths: np.ndarray = np.concatenate(lengths)  # int32 [N]
        self._first_rows = np.array(first_rows)  # int64 [shards + 1]

    def rows(self, indices: np.ndarray, width: int) -> np.ndarray:
        lengths = self.lengths[indices]  # [R]
        shards_before = np.searchsorted(self._first_rows, indices, side="right")
        shard_of = np.asarray(shards_before) - 1  # [R]
        row_of = indices - self._first_rows[shard_of]  # [R], in the shard
        rows: np.ndarray = np.full((len(indices), width), PAD, np.int32)
        for i, (shard, row) in enumerate(zip(shard_of, row_of, strict=True)):
            offsets = self._offsets[shard]
            ids = self._ids[shard][offsets[row] : offsets[row + 1]]
            rows[i, : lengths[i]] = ids
        return rows


def _open_shard(path: Path) -> pa.RecordBatch:
    # the memory map outlives the closed file, so that thousands of shards need no open
    # files
    with pa.memory_map(str(path)) as file:
        shard = pa.ipc.open_file(file).get_batch(0)
    if "inputs_2" in shard.schema.names:
        raise ValueError(
            f"{path} is of --subword_samples, which is gone. Delete it, and run"
            " t2t-datagen again."
        )
    return shard


def _id_column(rows: Rows, vocab_size: int) -> pa.ListArray:
    """Rows of ids as an Arrow column, EOS appended to each."""
    flat = array("H" if vocab_size <= 65536 else "i")
    offsets = [0]
    for row in rows:
        flat.extend(row)
        flat.append(EOS)
        offsets.append(len(flat))
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), np.array(flat))
