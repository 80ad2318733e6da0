"""Encodes chunks of text into token shards, here or, with a pipeline, on several
machines.

Which pairs a shard contains depends on the text alone, so the files are the same
however many threads or machines encode.
"""

import functools
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from t2tlite.data.beam_pipeline import MakeFile, Pipeline
from t2tlite.data.manifest import ShardEntry, SplitEntry
from t2tlite.data.token_store import TokenStore, read_notes, write_shard
from t2tlite.files.atomic_file import file_sha256
from t2tlite.vocabularies.encoders import open_encoder
from t2tlite.vocabularies.text_encoder import TextEncoder

CHUNK_PAIRS = 50_000  # the most pairs in a shard
# a shard ends with the pair that reaches this: long texts must not fill memory
CHUNK_CHARACTERS = 16_000_000


class Chunk(NamedTuple):
    """The pairs of a shard."""

    pairs: list[tuple[str, str]]
    dropped: dict[str, int] = {}  # noqa: RUF012 - reason -> pairs already left out
    is_training: bool = False  # pairs of other splits are never left out
    max_length: int = 0  # see `Problem`
    max_length_ratio: float = 0.0


Shards = Iterable[tuple[Path, Chunk]]  # files to write, and their pairs


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


def encode_here(shards: Shards, vocabularies: list[Path], num_threads: int) -> None:
    """Writes the shards that do not exist; a chunk is encoded on `num_threads` threads.

    `vocabularies` are one file, or the source's and the target's. Raises OSError if a
    shard cannot be written.
    """
    encoders = list(map(open_encoder, vocabularies))
    for path, chunk in shards:
        _encode_chunk(encoders, path, chunk, num_threads)


def encode_in(pipeline: Pipeline, shards: Shards, vocabularies: list[Path]) -> None:
    """Writes the shards that do not exist on the workers of a pipeline. This needs as
    much disk as the text. Raises as `Pipeline.make_files`.
    """
    # workers have other current folders
    absolute = list(map(Path.absolute, vocabularies))
    missing = (shard for shard in shards if not shard[0].exists())
    pipeline.make_files(functools.partial(_start_encoding, absolute), missing)


def _start_encoding(vocabularies: list[Path]) -> MakeFile:
    return functools.partial(_encode_chunk, list(map(open_encoder, vocabularies)))


def _encode_chunk(
    encoders: list[TextEncoder],
    path: Path,
    chunk: Chunk,
    num_threads: int = 1,
) -> None:
    """Writes a shard, unless it exists."""
    if path.exists():
        return
    source_encoder, target_encoder = encoders[0], encoders[-1]
    dropped = {"empty": 0, "too_long": 0, "length_ratio": 0} | chunk.dropped
    source_texts = [source for source, _ in chunk.pairs]
    target_texts = [target for _, target in chunk.pairs]
    sources = source_encoder.encode_batch(source_texts, num_threads)
    targets = target_encoder.encode_batch(target_texts, num_threads)
    texts: tuple[list[str], list[str]] | None = (source_texts, target_texts)
    if chunk.is_training:
        texts = None
        rows = zip(sources, targets, strict=True)
        sources, targets = [], []
        for source, target in rows:
            shorter, longer = sorted((len(source), len(target)))  # without EOS
            if chunk.max_length and longer + 1 > chunk.max_length:
                dropped["too_long"] += 1
            elif chunk.max_length_ratio and longer > chunk.max_length_ratio * shorter:
                dropped["length_ratio"] += 1
            else:
                sources.append(source)
                targets.append(target)
    unknown = [_unknown(source_encoder, sources), _unknown(target_encoder, targets)]
    notes = {"dropped": json.dumps(dropped)}
    if any(unknown):
        notes["unknown"] = json.dumps(unknown)
    vocab_size = max(source_encoder.vocab_size, target_encoder.vocab_size)
    write_shard(path, sources, targets, vocab_size, texts, notes)


def _unknown(encoder: TextEncoder, rows: list[list[int]]) -> int:
    """How many tokens stand for text that the vocabulary lacks."""
    count = 0
    if encoder.unknown is not None:
        for ids in rows:
            count += ids.count(encoder.unknown)
    return count


def split_entry(paths: list[Path]) -> SplitEntry:
    """The manifest's entry for a split of these shards."""
    store = TokenStore(paths)
    shards = []
    dropped: Counter[str] = Counter()
    unknown: np.ndarray = np.zeros(2, int)  # of sources and targets
    for path in paths:
        notes = read_notes(path)
        size = path.stat().st_size
        pairs = len(TokenStore([path]))
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
