"""From a problem's text to a data directory: what t2t-datagen does.

1. Read all text once: check and count its pairs, and sample training text for the vocabulary. Nothing is written yet.
2. Learn the vocabulary, or copy the given one.
3. Read the text again, encode it and write it as token shards, on several processes, or the workers of a pipeline.
4. Write the manifest. Only now does the trainer accept the data.

A run that is interrupted between 2 and 4 leaves `unfinished.json` next to its shards; the next run with the same text
and options keeps these shards and resumes.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import hashlib
import os
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from tqdm import tqdm

import t2tlite
from t2tlite.data import encode_shards, finished_data
from t2tlite.data.dataset import Dataset, open_dataset
from t2tlite.data.encode_shards import DROPPED, ChunkTask
from t2tlite.data.learn_vocabulary import TextSample, check_vocabulary_options, vocabulary_names
from t2tlite.data.manifest import MANIFEST, FileEntry, Languages, Manifest, SplitEntry
from t2tlite.data.pipeline import Pipeline
from t2tlite.data.problem import Problem
from t2tlite.files.atomic_file import copy_file, file_sha256, remove_temporary_files
from t2tlite.files.lock import only_process
from t2tlite.files.records import read_record, write_record
from t2tlite.vocabularies.encoders import VocabularyEntry
from t2tlite.vocabularies.text_encoder import check_unicode

UNFINISHED = "unfinished.json"
SHARDS = "*-[0-9][0-9][0-9][0-9][0-9].arrow"


@dataclasses.dataclass(frozen=True)
class Generated:
    """The result of `generate`; `str` gives a summary to print."""

    dataset: Dataset
    seconds: float
    already_there: bool  # the data was already complete, and nothing was done

    def __str__(self) -> str:
        manifest = self.dataset.manifest
        sizes = manifest.vocabulary_sizes[: len(manifest.vocabulary_entries())]
        wanted = manifest.options["vocab_size"]
        fewer = manifest.vocabulary.type == "sentencepiece" and not manifest.options["vocab_file"] and sizes[0] < wanted
        note = f", the most that this text allows: it is too small for the default, {wanted:,}" if fewer else ""
        done = "already complete, nothing to do" if self.already_there else f"made in {self.seconds:,.1f} s"
        lines = [
            f"{self.dataset.name}: {done}. The data is in {self.dataset.folder}.",
            f"  vocabulary  {' and '.join(f'{size:,}' for size in sizes)} pieces{note}",
        ]
        for name in manifest.splits:
            split = manifest.split(name)
            lines.append(
                f"  {name:<10}  {split.pairs:,} pairs, {split.source_tokens:,} source and {split.target_tokens:,} "
                f"target tokens, at most {split.longest_source:,} and {split.longest_target:,}"
            )
            dropped = [f"{count:,} {reason.replace('_', ' ')}" for reason, count in split.dropped.items() if count]
            if dropped:
                lines.append(f"              dropped: {', '.join(dropped)}")
        return "\n".join(lines)


def generate(
    problem: Problem,
    data_dir: str | Path,
    tmp_dir: str | Path | None = None,
    num_processes: int | None = None,
    pipeline: Pipeline | None = None,
) -> Generated:
    """Makes the data of `problem` in `data_dir`/NAME, resumes making it, or finds it complete.

    Shows progress bars and prints nothing else. Memory is bounded however much text there is. The files are the same
    for any number of processes, interrupted or not. Training pairs that exceed the problem's `max_length` or
    `max_length_ratio` are dropped, and counted in the manifest.

    A reversed problem has the same files. Raw files are in `tmp_dir`. By default, one process encodes for each CPU core
    that this process may use. With a `pipeline` its workers encode instead; they must see `data_dir`, but need not see
    the raw files.

    Raises:
        ValueError: bad text or options, or there is complete data made from something else. No file has been changed.
        FileNotFoundError: a raw file is missing.
        OSError: a file cannot be written, for example because the disk is full, or an encoding process or worker has
            failed. The next run resumes.
    """
    started = time.monotonic()
    tmp_dir = None if tmp_dir is None else Path(tmp_dir)
    if num_processes is None:
        num_processes = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    _check_options(problem, num_processes)
    folder = Path(data_dir) / problem.name()
    if pipeline is not None:
        pipeline.check()
    already_there = finished_data.is_complete(problem, folder, tmp_dir)
    if not already_there:
        text = _read_text(problem, tmp_dir)
        try:
            with only_process(folder, "make data"):
                # another process may have finished while this one was reading
                if not finished_data.is_complete(problem, folder, tmp_dir):
                    _make(problem, folder, tmp_dir, text, num_processes, pipeline)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            raise OSError(
                f"The disk of {folder} is full. Free some space and run the same command again; it resumes."
            ) from error
    dataset = open_dataset(data_dir, problem.name() + ("_rev" if problem.reverse else ""))
    return Generated(dataset, time.monotonic() - started, already_there)


@dataclasses.dataclass
class _Text:
    """The result of step 1."""

    pairs: dict[str, int]  # pairs of each split, including those to be dropped
    sha256: str  # of all text
    sample: TextSample


def _check_options(problem: Problem, num_processes: int) -> None:
    if num_processes < 1:
        raise ValueError(f"num_processes must be at least 1. Received: {num_processes}.")
    check_vocabulary_options(problem)
    if problem.max_length < 0:
        raise ValueError(f"max_length must be at least 1, or 0 to keep all. Received: {problem.max_length}.")
    if problem.max_length_ratio != 0 and not problem.max_length_ratio >= 1:
        raise ValueError(
            f"max_length_ratio must be at least 1, or 0 to keep all. Received: {problem.max_length_ratio}."
        )
    if not {"train", "dev"} <= set(problem.splits()):
        raise ValueError(f"A problem must have the splits train and dev. Received: {', '.join(problem.splits())}.")


def _read_text(problem: Problem, tmp_dir: Path | None) -> _Text:
    """Step 1."""
    counts = dict.fromkeys(problem.splits(), 0)
    digest = hashlib.sha256()
    sample = TextSample()
    for split in counts:
        digest.update(f"{split}\n".encode())
        for source, target in _bar(f"reading {split}", problem.pairs(split, tmp_dir)):
            counts[split] += 1
            try:
                _check_pair(source, target)
            except ValueError as error:
                raise ValueError(f"{problem.name()}, {split} pair {counts[split]}: {error}") from error
            digest.update(f"{source}\n{target}\n".encode())
            if split == "train" and source.strip() and target.strip():
                sample.add(source, target)
        if counts[split] == 0 or (split == "train" and len(sample) == 0):
            kind = "pair with text on both sides" if split == "train" else "pair"
            raise ValueError(
                f"{problem.name()} needs at least one {kind} in {split}. Received: {counts[split]} pairs. "
                "Check its files."
            )
    return _Text(counts, digest.hexdigest(), sample)


def _check_pair(source: str, target: str) -> None:
    if not (isinstance(source, str) and isinstance(target, str)):
        raise ValueError(f"Source and target must be text. Received: {source!r} and {target!r}.")
    if "\n" in source or "\n" in target:
        raise ValueError(f"A text must not contain a line break. Received: {source!r} and {target!r}.")
    check_unicode(source)
    check_unicode(target)


def _make(
    problem: Problem, folder: Path, tmp_dir: Path | None, text: _Text, num_processes: int, pipeline: Pipeline | None
) -> None:
    """Steps 2 to 4, in a folder without complete data."""
    (folder / MANIFEST).unlink(missing_ok=True)  # of data with a missing or changed file
    remove_temporary_files(folder)
    vocabularies = [folder / name for name in vocabulary_names(problem)]
    begun: dict[str, Any] | None = None
    with contextlib.suppress(FileNotFoundError, ValueError):
        begun = read_record(folder / UNFINISHED, dict[str, Any], f"Delete {folder}.")
    if begun != _unfinished(problem, text, vocabularies):
        if problem.vocab_file:
            for given, path in zip(problem.vocab_file, vocabularies, strict=True):
                copy_file(Path(given).expanduser(), path)
        else:
            with tqdm(bar_format="{desc} [{elapsed}]", desc=f"learning {problem.vocab_size:,} pieces") as bar:
                shrink = problem.has_default("vocab_size")
                text.sample.learn_vocabulary(problem.vocab_size, vocabularies[0], problem.symbols(tmp_dir), shrink)
                bar.refresh()
        (folder / UNFINISHED).unlink(missing_ok=True)
        for path in folder.glob(SHARDS):
            path.unlink()
        write_record(folder / UNFINISHED, _unfinished(problem, text, vocabularies))
    text.sample = TextSample()  # frees its memory for the encoding
    tasks = _tasks(problem, folder, tmp_dir, text.pairs)
    if pipeline is not None:
        tasks = iter(encode_shards.encode_in(pipeline, tasks, vocabularies))
    splits = _write_shards(tasks, text.pairs, vocabularies, num_processes)
    if splits["train"].pairs == 0:
        raise ValueError(
            f"{problem.name()} needs training pairs. Received: {text.pairs['train']}, of which max_length="
            f"{problem.max_length} and max_length_ratio={problem.max_length_ratio} drop all. Raise these options."
        )
    entries = [VocabularyEntry.of(path) for path in vocabularies]
    manifest = Manifest(
        problem=problem.name(),
        task=problem.task,
        t2tlite=t2tlite.__version__,
        options=finished_data.options(problem),
        languages=Languages(problem.source_language, problem.target_language),
        decode_defaults=dict(problem.decode_defaults),
        vocabulary=entries[0],
        target_vocabulary=entries[1] if len(entries) == 2 else None,
        splits=splits,
        made_from=tuple(
            FileEntry(path.name, path.stat().st_size, file_sha256(path)) for path in problem.files(tmp_dir)
        ),
    )
    write_record(folder / MANIFEST, manifest)
    (folder / UNFINISHED).unlink(missing_ok=True)


def _write_shards(
    tasks: Iterator[ChunkTask], pairs: dict[str, int], vocabularies: list[Path], num_processes: int
) -> dict[str, SplitEntry]:
    """Step 3. Returns the manifest's entry for each split."""
    splits = {split: SplitEntry(0, 0, 0, 0, 0, dict.fromkeys(DROPPED, 0), ()) for split in pairs}
    useful = -(-sum(pairs.values()) // encode_shards.CHUNK_PAIRS)  # no more processes than chunks
    entries = encode_shards.encode_all(tasks, vocabularies, min(num_processes, useful))
    with contextlib.closing(entries), _bar("encoding", total=sum(pairs.values())) as bar:
        for split, entry in entries:
            splits[split] += entry
            bar.update(entry.pairs + sum(entry.dropped.values()))
    return splits


def _tasks(problem: Problem, folder: Path, tmp_dir: Path | None, expected: dict[str, int]) -> Iterator[ChunkTask]:
    for split, count in expected.items():
        seen = 0
        for number, chunk in enumerate(encode_shards.chunks(problem.pairs(split, tmp_dir))):
            seen += len(chunk)
            path = folder / f"{split}-{number:05d}.arrow"
            yield ChunkTask(split, path, chunk, problem.max_length, problem.max_length_ratio)
        if seen != count:
            raise ValueError(
                f"{problem.name()} must yield the same pairs each time. Received: {count} pairs of {split} at first, "
                f"then {seen}. Make sure that nothing writes its files, and run t2t-datagen again."
            )


def _unfinished(problem: Problem, text: _Text, vocabularies: list[Path]) -> dict[str, Any]:
    """What the incomplete data is made from: the content of `unfinished.json`."""
    options = finished_data.options(problem)
    decisive = ("vocab_size", "vocab_type", "vocab_file", "max_length", "max_length_ratio")
    return {
        "problem": problem.name(),
        "options": {name: options[name] for name in decisive},
        "text_sha256": text.sha256,
        "chunk": [encode_shards.CHUNK_PAIRS, encode_shards.CHUNK_CHARACTERS],
        "vocabulary_sha256": [file_sha256(path) for path in vocabularies if path.exists()],
    }


def _bar(what: str, pairs: Iterable[tuple[str, str]] | None = None, total: int | None = None) -> tqdm:
    """A progress bar that counts pairs, with few updates if the output is a file."""
    interval = 0.5 if sys.stderr.isatty() else 30
    return tqdm(pairs, desc=what, total=total, unit=" pairs", unit_scale=True, mininterval=interval)
