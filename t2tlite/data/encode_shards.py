"""Text chunks to token shards, on several processes.

One process reads text and cuts it into chunks; each of the others encodes a chunk and writes it as one shard. Which
pairs a shard holds depends on the text alone, so any number of processes writes the same files.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import json
import multiprocessing
import os
import signal
import threading
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

from t2tlite.data.manifest import ShardEntry, SplitEntry
from t2tlite.data.token_store import TokenStore, read_notes, write_shard
from t2tlite.files.atomic_file import file_sha256
from t2tlite.vocabularies.encoders import TextEncoder, open_encoder

CHUNK_PAIRS = 50_000  # pairs in a shard, at most
CHUNK_CHARACTERS = 16_000_000  # a shard ends with the pair that reaches this, so that long texts do not fill memory

DROPPED = ("empty", "too_long", "length_ratio")  # why a training pair is left out, in the order of the checks


@dataclasses.dataclass(frozen=True)
class ChunkTask:
    """What a process needs in order to write one shard.

    Attributes:
        split: the split's name.
        path: the shard to write.
        sources: source texts; empty where the shard exists already and is only to be reported.
        targets: their translations.
        finished: whether the shard exists already.
        max_length: see `Problem`.
        max_length_ratio: see `Problem`.
    """

    split: str
    path: Path
    sources: list[str]
    targets: list[str]
    finished: bool
    max_length: int
    max_length_ratio: float


def chunks(
    pairs: Iterable[tuple[str, str]], chunk_pairs: int, chunk_characters: int
) -> Iterator[tuple[list[str], list[str]]]:
    """Cuts pairs into chunks of at most `chunk_pairs` pairs; a chunk also ends when it has `chunk_characters`."""
    sources: list[str] = []
    targets: list[str] = []
    characters = 0
    for source, target in pairs:
        sources.append(source)
        targets.append(target)
        characters += len(source) + len(target)
        if len(sources) == chunk_pairs or characters >= chunk_characters:
            yield sources, targets
            sources, targets, characters = [], [], 0
    if sources:
        yield sources, targets


def encode_all(
    tasks: Iterable[ChunkTask], vocabularies: list[Path], num_processes: int
) -> Generator[tuple[str, SplitEntry]]:
    """Writes every shard and yields the split and the entry of each, in order.

    `vocabularies` is one file, or the source's and the target's.
    At most twice `num_processes` chunks are in memory at a time. With one process no other is started. Processes are
    started by `spawn`, so a script that calls this needs `if __name__ == "__main__":`.

    Raises:
        ChildProcessError: a process died.
        OSError: a shard cannot be written.
    """
    if num_processes == 1:
        encoders = [open_encoder(path) for path in vocabularies]
        for task in tasks:
            yield _encode_chunk(task, encoders)
        return
    executor = ProcessPoolExecutor(
        num_processes, multiprocessing.get_context("spawn"), initializer=_start_worker, initargs=(vocabularies,)
    )
    pending: collections.deque[Future[tuple[str, SplitEntry]]] = collections.deque()
    try:
        for task in tasks:
            if len(pending) == 2 * num_processes:
                yield pending.popleft().result()
            with _interrupts_held():
                pending.append(executor.submit(_work, task))
        while pending:
            yield pending.popleft().result()
    except BrokenProcessPool as error:
        raise ChildProcessError(
            "An encoding process ended unexpectedly, perhaps for lack of memory. Run the same command again, which "
            "keeps finished shards, with fewer --num_processes. (From a script of your own, call this only under "
            '`if __name__ == "__main__":`.)'
        ) from error
    finally:
        executor.shutdown(wait=True, cancel_futures=True)


def shard_entry(path: Path) -> SplitEntry:
    """What the manifest records of a shard: a split that has this shard alone.

    Raises:
        ValueError: the shard is damaged.
    """
    store = TokenStore([path])
    try:
        dropped = json.loads(read_notes(path)["dropped"])
    except (KeyError, json.JSONDecodeError) as error:
        raise ValueError(
            f"{path} is not a shard that t2t-datagen wrote. Delete it and run t2t-datagen again."
        ) from error
    return SplitEntry(
        pairs=len(store),
        source_tokens=int(store.source_lengths.sum()),
        target_tokens=int(store.target_lengths.sum()),
        longest_source=int(store.source_lengths.max(initial=0)),
        longest_target=int(store.target_lengths.max(initial=0)),
        dropped=dropped,
        shards=(ShardEntry(path.name, len(store), path.stat().st_size, file_sha256(path)),),
    )


@contextlib.contextmanager
def _interrupts_held() -> Iterator[None]:
    """Holds Ctrl-C back, also from processes started meanwhile, for good: the parent lets them finish their shards."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


_encoders: list[TextEncoder] = []  # the vocabularies of an encoding process


def _start_worker(vocabularies: list[Path]) -> None:
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _encoders[:] = [open_encoder(path) for path in vocabularies]


def _end_with_parent() -> None:
    """Ends this process when its parent is gone, even killed: it would wait for chunks forever."""
    if (parent := multiprocessing.parent_process()) is not None:
        parent.join()
        os._exit(1)


def _work(task: ChunkTask) -> tuple[str, SplitEntry]:
    if not _encoders:
        raise RuntimeError("An encoding process must be started by _start_worker.")
    return _encode_chunk(task, _encoders)


def _encode_chunk(task: ChunkTask, encoders: list[TextEncoder]) -> tuple[str, SplitEntry]:
    if task.finished:
        return task.split, shard_entry(task.path)
    source_encoder, target_encoder = encoders[0], encoders[-1]
    sources, targets = task.sources, task.targets
    dropped = dict.fromkeys(DROPPED, 0)
    if task.split == "train":
        filled = [i for i in range(len(sources)) if sources[i].strip() and targets[i].strip()]
        dropped["empty"] = len(sources) - len(filled)
        sources, targets = [sources[i] for i in filled], [targets[i] for i in filled]
        rows = list(zip(source_encoder.encode_batch(sources), target_encoder.encode_batch(targets), strict=True))
        if task.max_length:
            dropped["too_long"] = len(rows)
            rows = [row for row in rows if max(map(len, row)) + 1 <= task.max_length]  # + 1 for the end mark
            dropped["too_long"] -= len(rows)
        if task.max_length_ratio:
            dropped["length_ratio"] = len(rows)
            rows = [row for row in rows if max(map(len, row)) <= task.max_length_ratio * min(map(len, row))]
            dropped["length_ratio"] -= len(rows)
        texts = None
    else:
        rows = list(zip(source_encoder.encode_batch(sources), target_encoder.encode_batch(targets), strict=True))
        texts = sources, targets
    notes = {"dropped": json.dumps(dropped)}
    size = max(encoder.vocab_size for encoder in encoders)
    write_shard(task.path, [row[0] for row in rows], [row[1] for row in rows], size, texts, notes)
    return task.split, shard_entry(task.path)
