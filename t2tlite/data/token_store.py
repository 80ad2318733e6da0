"""Token ids on disk: Arrow files, written once, then read through the file cache without copies.

A shard is an Arrow IPC file of one record batch. Its columns `inputs` and `targets` are lists of token ids, end mark
included; dev and test shards also have `inputs_text` and `targets_text`. pandas, Polars and DuckDB open it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow as pa

from t2tlite.files.atomic_file import atomic_file
from t2tlite.tokens import EOS, PAD

SIDES = ("inputs", "targets")

# N rows in the store, R rows asked for, W width they are padded to


def write_shard(
    path: str | Path,
    sources: Sequence[Sequence[int]],
    targets: Sequence[Sequence[int]],
    vocab_size: int,
    texts: tuple[Sequence[str], Sequence[str]] | None = None,
    notes: Mapping[str, str] | None = None,
) -> None:
    """Writes one shard, which appears whole or not at all. The same arguments give the same bytes.

    Args:
        path: the file to write.
        sources: token ids of each source, without the end mark, which is appended here.
        targets: token ids of each target, likewise, as many.
        vocab_size: ids are below this; up to 65,536 they take 2 bytes each, beyond 4.
        texts: the texts of sources and targets, to keep them as well.
        notes: anything to keep in the schema's metadata; `read_notes` returns it.

    Raises:
        ValueError: the numbers of rows differ, or an id is out of range.
        OSError: the file cannot be written.
    """
    columns: dict[str, pa.Array] = {}
    for side, rows in zip(SIDES, (sources, targets), strict=True):
        columns[side] = _list_array(rows, vocab_size, f"{side} of {path}")
    if texts is not None:
        for side, lines in zip(SIDES, texts, strict=True):
            columns[f"{side}_text"] = pa.array(lines, pa.string())
    rows_of = {name: len(column) for name, column in columns.items()}
    if len(set(rows_of.values())) != 1:
        raise ValueError(f"Every column of a shard must have as many rows. Received: {rows_of} for {path}.")
    schema = pa.schema(
        [pa.field(name, column.type, nullable=False) for name, column in columns.items()], metadata=dict(notes or {})
    )
    with atomic_file(path) as file, pa.ipc.new_file(file, schema) as writer:
        writer.write_batch(pa.record_batch(list(columns.values()), schema=schema))


def read_notes(path: str | Path) -> dict[str, str]:
    """The notes that `write_shard` was given.

    Raises:
        ValueError: the file is damaged.
        FileNotFoundError: there is no such file.
    """
    return _open_shard(Path(path)).notes


class TokenStore:
    """The token ids of one split, in the order in which the problem yields its pairs.

    Example, a store of the pairs `[5, 6] -> [7]` and `[8] -> [9, 5]`:

        store.source_lengths                   # [3, 2], the end mark 1 included
        store.sources(np.array([1, 0]), 4)     # [[8, 1, 0, 0], [5, 6, 1, 0]]

    Attributes:
        source_lengths: int32 [N], tokens in each source, end mark included.
        target_lengths: int32 [N], likewise.
    """

    def __init__(self, paths: Sequence[str | Path], reverse: bool = False):
        """Opens shards; nothing but lengths is read.

        Args:
            paths: the shards of the split, in order.
            reverse: swap sources and targets.

        Raises:
            ValueError: a shard is damaged.
            FileNotFoundError: a shard is missing.
        """
        self._shards = [_open_shard(Path(path)) for path in paths]
        counts = [shard.pairs for shard in self._shards]
        self._first_rows = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])  # [shards + 1]
        self._source_side, self._target_side = SIDES[::-1] if reverse else SIDES
        self.source_lengths: np.ndarray = self._lengths(self._source_side)
        self.target_lengths: np.ndarray = self._lengths(self._target_side)

    def __len__(self) -> int:
        return int(self._first_rows[-1])

    def sources(self, indices: np.ndarray, width: int) -> np.ndarray:
        """The sources at `indices`, padded with 0.

        Args:
            indices: integers [R], each at least 0 and less than N; any order, repeats allowed.
            width: W, tokens.

        Returns:
            int32 [R, W].

        Raises:
            ValueError: a source is longer than `width`, or `indices` are no integers.
            IndexError: an index is out of range.
        """
        return self._rows(self._source_side, self.source_lengths, indices, width)

    def targets(self, indices: np.ndarray, width: int) -> np.ndarray:
        """The targets at `indices`, as `sources`."""
        return self._rows(self._target_side, self.target_lengths, indices, width)

    def source_text(self) -> list[str]:
        """Every source as it was in the file; dev and test only.

        Raises:
            ValueError: the shards keep no text.
        """
        return self._text(self._source_side)

    def target_text(self) -> list[str]:
        """Every target as it was in the file; dev and test only.

        Raises:
            ValueError: the shards keep no text.
        """
        return self._text(self._target_side)

    def _lengths(self, side: str) -> np.ndarray:
        lengths = [np.diff(shard.offsets[side]) for shard in self._shards]
        return np.concatenate([*lengths, np.zeros(0, np.int32)]).astype(np.int32, copy=False)

    def _rows(self, side: str, all_lengths: np.ndarray, indices: np.ndarray, width: int) -> np.ndarray:
        indices = np.asarray(indices)
        if indices.size == 0:
            return np.zeros((0, width), np.int32)
        if indices.ndim != 1 or indices.dtype.kind not in "iu":
            raise ValueError(
                f"Indices must be a list of integers. Received: {indices.dtype} of shape {list(indices.shape)}."
            )
        if indices.min() < 0 or indices.max() >= len(self):
            raise IndexError(
                f"Indices must be at least 0 and less than {len(self)}. Received: {indices.min()} to {indices.max()}."
            )
        lengths = all_lengths[indices]  # [R]
        if lengths.max() > width:
            row = int(indices[lengths.argmax()])
            raise ValueError(
                f"The width must be that of the longest row at least. Received: {width}, but row {row} has "
                f"{lengths.max()} tokens. Leave the row out or ask for a greater width."
            )
        shard_of = np.searchsorted(self._first_rows, indices, side="right") - 1  # [R]
        order = np.argsort(shard_of, kind="stable")  # rows of one shard together, so that each is visited once
        indices, lengths, shard_of = indices[order], lengths[order], shard_of[order]
        token_ends = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])  # [R + 1]
        tokens: np.ndarray = np.empty(token_ends[-1], np.int32)
        numbers, firsts = np.unique(shard_of, return_index=True)
        for number, first, last in zip(numbers, firsts, [*firsts[1:], len(indices)], strict=True):
            shard = self._shards[number]
            begins = shard.offsets[side][indices[first:last] - self._first_rows[number]]
            # a token's position in the shard: where its row begins, plus its place in the row
            shift: np.ndarray = np.repeat(begins - token_ends[first:last], lengths[first:last])
            positions = np.arange(token_ends[first], token_ends[last]) + shift
            tokens[token_ends[first] : token_ends[last]] = shard.values[side][positions]
        in_order: np.ndarray = np.full((len(indices), width), PAD, np.int32)
        in_order[np.arange(width) < lengths[:, None]] = tokens
        rows = np.empty_like(in_order)
        rows[order] = in_order
        return rows

    def _text(self, side: str) -> list[str]:
        lines: list[str] = []
        for shard in self._shards:
            if f"{side}_text" not in shard.batch.schema.names:
                raise ValueError(
                    f"Only dev and test data keep their text. Received: {shard.path}, which has tokens alone."
                )
            lines += shard.batch.column(f"{side}_text").to_pylist()
        return lines


@dataclasses.dataclass(frozen=True, eq=False)
class _Shard:
    path: Path
    batch: pa.RecordBatch
    offsets: dict[str, np.ndarray]  # side -> int32 [rows + 1], where each row begins in values
    values: dict[str, np.ndarray]  # side -> uint16 or int32 [tokens]
    notes: dict[str, str]

    @property
    def pairs(self) -> int:
        return self.batch.num_rows


def _open_shard(path: Path) -> _Shard:
    if not path.is_file():
        raise FileNotFoundError(f"Token data must be in {path}, which does not exist. Run t2t-datagen again.")
    try:
        # the mapping outlives the closed file, so that thousands of shards need no open files
        with pa.memory_map(str(path)) as file:
            reader = pa.ipc.open_file(file)
            batch = reader.get_batch(0)
            notes = {key.decode(): value.decode() for key, value in (reader.schema.metadata or {}).items()}
        batch.validate()
        offsets = {side: batch.column(side).offsets.to_numpy() for side in SIDES}
        values = {side: batch.column(side).values.to_numpy(zero_copy_only=True) for side in SIDES}
        kinds = {str(array.dtype) for array in values.values()}
        if reader.num_record_batches != 1 or not kinds <= {"uint16", "int32"}:
            raise ValueError(f"{reader.num_record_batches} record batches of {' and '.join(sorted(kinds))}")
        for side in SIDES:
            if batch.num_rows and np.diff(offsets[side]).min() < 1:
                raise ValueError(f"a row of {side} without an end mark")
    except (pa.ArrowException, OSError, ValueError, KeyError, AttributeError) as error:
        raise ValueError(
            f"A token file must be an Arrow file as t2t-datagen writes it. Received: {path}, which is damaged or cut "
            f"short ({error}). Delete it and run t2t-datagen again."
        ) from error
    return _Shard(path, batch, offsets, values, notes)


def _list_array(rows: Sequence[Sequence[int]], vocab_size: int, what: str) -> pa.ListArray:
    """Rows of ids as one Arrow column, EOS appended to each."""
    lengths = np.fromiter(map(len, rows), np.int64, len(rows)) + 1
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    values = np.full(offsets[-1], EOS, np.int64)
    content: np.ndarray = np.ones(len(values), bool)
    content[offsets[1:] - 1] = False
    values[content] = np.fromiter(chain.from_iterable(rows), np.int64, len(values) - len(rows))
    if len(values) and not (values.min() >= 0 and values.max() < vocab_size):
        raise ValueError(
            f"Token ids must be at least 0 and less than vocab_size. Received: vocab_size={vocab_size} and ids from "
            f"{values.min()} to {values.max()} in the {what}."
        )
    if offsets[-1] > np.iinfo(np.int32).max:
        raise ValueError(f"A shard must hold less than 2^31 tokens. Received: {offsets[-1]} in the {what}.")
    kind = np.uint16 if vocab_size <= 65536 else np.int32
    return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), pa.array(values.astype(kind)))
