"""Encodes chunks of text into token shards, here or, with a pipeline, on several
machines.

Which pairs a shard contains depends on the text alone, so the files are the same
however many threads or machines encode.
"""

import dataclasses
import functools
import json
import pickle
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from operator import methodcaller
from pathlib import Path

import numpy as np

from t2tlite.data.beam_pipeline import Pipeline
from t2tlite.data.manifest import ShardEntry, SplitEntry
from t2tlite.data.token_store import TokenStore, read_notes, write_shard
from t2tlite.files.atomic_file import (
    file_sha256,
    remove_temporary_files,
    temporary_path,
)
from t2tlite.vocabularies.encoders import open_encoder
from t2tlite.vocabularies.normalisation import is_blank
from t2tlite.vocabularies.text_encoder import TextEncoder

CHUNK_PAIRS = 50_000  # the most pairs in a shard
# a shard ends with the pair that reaches this: long texts must not fill memory
CHUNK_CHARACTERS = 16_000_000

# why training pairs are left out, in the order of the checks
DROPPED = ("empty", "too_long", "length_ratio")


@dataclasses.dataclass(frozen=True)
class ChunkTask:
    """What is needed to write one shard."""

    path: Path  # the shard; one that exists is kept
    pairs: list[tuple[str, str]]
    is_training: bool = False  # pairs of other splits are never left out
    max_length: int = 0  # see `Problem`
    max_length_ratio: float = 0.0
    # reason -> pairs already left out of `pairs`
    dropped: dict[str, int] = dataclasses.field(default_factory=dict)

    def reason_to_drop(self, pair: tuple[str, str], *lengths: int) -> str | None:
        """Why a training pair of these lengths (EOS not counted) is left out: one of
        DROPPED, or None if it is kept.
        """
        if is_blank(pair[0]) or is_blank(pair[1]):
            return "empty"
        shorter, longer = sorted(lengths)
        if self.max_length and longer + 1 > self.max_length:
            return "too_long"
        if self.max_length_ratio and longer > self.max_length_ratio * shorter:
            return "length_ratio"
        return None


def chunks(pairs: Iterable[tuple[str, str]]) -> Iterator[list[tuple[str, str]]]:
    """Splits pairs into chunks of CHUNK_PAIRS pairs, or of fewer that have
    CHUNK_CHARACTERS characters.
    """
    chunk: list[tuple[str, str]] = []
    characters = 0
    for pair in pairs:
        chunk.append(pair)
        characters += len(pair[0]) + len(pair[1])
        if len(chunk) == CHUNK_PAIRS or characters >= CHUNK_CHARACTERS:
            yield chunk
            chunk, characters = [], 0
    if chunk:
        yield chunk


def encode_here(
    tasks: Iterable[ChunkTask], vocabularies: list[Path], num_threads: int
) -> None:
    """Writes every shard; a chunk is encoded on `num_threads` threads.

    `vocabularies` are one file, or the source's and the target's. Raises OSError if a
    shard cannot be written.
    """
    encoders = list(map(open_encoder, vocabularies))
    for task in tasks:
        _encode_chunk(encoders, task, num_threads)


def encode_in(
    pipeline: Pipeline, tasks: Iterable[ChunkTask], vocabularies: list[Path]
) -> None:
    """Writes the shards that do not exist on the workers of a pipeline.

    Each chunk waits in a file beside its shard, so this needs as much disk as the text.
    Raises as `Pipeline.run`, and ChildProcessError if this machine does not see the
    shards that the workers wrote.
    """
    chunks_of: dict[Path, Path] = {}
    try:
        for task in tasks:
            # workers have other current folders
            task = dataclasses.replace(task, path=task.path.absolute())
            if not task.path.exists():
                chunks_of[task.path] = temporary_path(task.path)
                chunks_of[task.path].write_bytes(pickle.dumps(task))
        if chunks_of:
            absolute = [path.absolute() for path in vocabularies]
            start = functools.partial(_start_encoding, absolute)
            pipeline.run(start, list(chunks_of.values()))
    finally:
        for folder in {path.parent for path in chunks_of}:
            # the chunks, and the files of workers that were killed while writing
            remove_temporary_files(folder)
    for path in chunks_of:
        if not path.exists():
            raise ChildProcessError(
                "The workers of a pipeline must see --data_dir under the same path as"
                f" this machine. Received: no {path}. Use a file system that all share."
            )


def split_entry(paths: list[Path]) -> SplitEntry:
    """The manifest's entry for a split of these shards."""
    store = TokenStore(paths)
    shards = []
    dropped: Counter[str] = Counter()
    unknown: np.ndarray = np.zeros(2, int)  # of sources and targets
    for path in paths:
        notes = read_notes(path)
        pairs = len(TokenStore([path]))
        size = path.stat().st_size
        shards.append(ShardEntry(path.name, pairs, size, file_sha256(path)))
        dropped.update(json.loads(notes["dropped"]))
        unknown += json.loads(notes.get("unknown", "[0, 0]"))
    return SplitEntry(
        pairs=len(store),
        source_tokens=int(store.source_lengths.sum()),
        target_tokens=int(store.target_lengths.sum()),
        longest_source=int(store.source_lengths.max(initial=0)),
        longest_target=int(store.target_lengths.max(initial=0)),
        dropped=dict(dropped),
        shards=tuple(shards),
        source_unknown=int(unknown[0]),
        target_unknown=int(unknown[1]),
    )


def _start_encoding(vocabularies: list[Path]) -> Callable[[Path], None]:
    """The work of a pipeline: encoding the chunk in a file."""
    return functools.partial(_encode_file, list(map(open_encoder, vocabularies)))


def _encode_file(encoders: list[TextEncoder], chunk: Path) -> None:
    _encode_chunk(encoders, pickle.loads(chunk.read_bytes()))


def _encode_chunk(
    encoders: list[TextEncoder], task: ChunkTask, num_threads: int = 1
) -> None:
    """Writes a shard, unless it exists."""
    if task.path.exists():
        return
    dropped = dict.fromkeys(DROPPED, 0) | task.dropped
    source_texts = [source for source, _ in task.pairs]
    target_texts = [target for _, target in task.pairs]
    texts: tuple[list[str], list[str]] | None = (source_texts, target_texts)
    sources = encoders[0].encode_batch(source_texts, num_threads)
    targets = encoders[-1].encode_batch(target_texts, num_threads)
    if task.is_training:
        rows = zip(task.pairs, sources, targets, strict=True)
        texts = None
        sources, targets = [], []
        for pair, source, target in rows:
            reason = task.reason_to_drop(pair, len(source), len(target))
            if reason is None:
                sources.append(source)
                targets.append(target)
            else:
                dropped[reason] += 1
    notes = {"dropped": json.dumps(dropped)}
    unknown = []
    for encoder, side in ((encoders[0], sources), (encoders[-1], targets)):
        unknown.append(sum(map(methodcaller("count", encoder.unknown), side)))
    if any(unknown):
        notes["unknown"] = json.dumps(unknown)
    write_shard(
        task.path,
        sources,
        targets,
        vocab_size=max(encoder.vocab_size for encoder in encoders),
        texts=texts,
        notes=notes,
    )
