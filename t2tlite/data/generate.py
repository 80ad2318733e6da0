"""From a problem's text to a data directory: what t2t-datagen does.

1. Read all text: check and count its pairs, look for those that would spoil a result,
   sample training text for the vocabulary, and copy the pairs to train on and to
   evaluate on to an unnamed file on the disk of the data.
2. Learn the vocabulary, or copy the given one.
3. Encode the pairs of the copy and write them as token shards, here or on the workers
   of a pipeline.
4. Write the manifest. Only now does the trainer accept the data.

A run that is interrupted between 2 and 4 leaves `unfinished.json` next to its shards;
the next run with the same text and options keeps these shards and resumes.
"""

import contextlib
import dataclasses
import pickle
import re
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import t2tlite
from t2tlite.checked_fields import checked
from t2tlite.console import counted, progress_bar
from t2tlite.data import encode_shards, finished_data
from t2tlite.data.beam_pipeline import Pipeline
from t2tlite.data.checked_pairs import ReadText
from t2tlite.data.dataset import Dataset, open_dataset
from t2tlite.data.encode_shards import ChunkTask
from t2tlite.data.language_codes import canonical
from t2tlite.data.learn_vocabulary import (
    TextSample,
    check_vocabulary_options,
    given_vocabularies,
    learn_vocabulary,
    vocabulary_names,
)
from t2tlite.data.manifest import (
    MANIFEST,
    FileEntry,
    Languages,
    Manifest,
    SplitEntry,
)
from t2tlite.data.misread_text import MisreadText
from t2tlite.data.pair_audit import PairAudit, check_reasons
from t2tlite.data.problem import Problem
from t2tlite.data.splits import check_splits, is_training
from t2tlite.files.atomic_file import (
    check_name,
    copy_file,
    full_disk_is_named,
    remove_temporary_files,
)
from t2tlite.files.own_files import only_process, own, remove, remove_files
from t2tlite.files.records import read_record, write_record
from t2tlite.files.same_file import check_not_overwritten
from t2tlite.machine import available_cores
from t2tlite.vocabularies.encoders import VocabularyEntry
from t2tlite.vocabularies.sentencepiece_encoder import PIECES

UNFINISHED = "unfinished.json"
SHARD = re.compile(r".+-\d{5}\.arrow")


@dataclasses.dataclass(frozen=True)
class Generated:
    """The result of `generate`; `str` gives a summary to print."""

    dataset: Dataset
    seconds: float
    already_there: bool  # the data was already complete, and nothing was done

    def __str__(self) -> str:
        manifest = self.dataset.manifest
        done = f"made in {self.seconds:,.1f} s"
        if self.already_there:
            done = "already complete, nothing to do"
        entries = manifest.vocabulary_entries()
        sizes = " and ".join(f"{entry.size:,}" for entry in entries)
        kind = manifest.options.get("vocab_type", PIECES)
        lines = [
            f"{manifest.name}: {done}. The data is in {self.dataset.folder}.",
            f"  vocabulary  {sizes} {'pieces' if kind == PIECES else kind}",
        ]
        for split in manifest.splits:
            lines += _split_lines(split, manifest.split(split))
        return "\n".join(lines)


def generate(
    problem: Problem,
    data_dir: str | Path,
    tmp_dir: str | Path | None = None,
    num_processes: int | None = None,
    pipeline: Pipeline | None = None,
) -> Generated:
    """Makes the data of `problem` in `data_dir`/NAME, resumes making it, or finds it
    complete.

    Shows progress bars, and reports training pairs that would spoil a result. Memory
    grows by about 10 bytes for each training pair, and the disk holds a copy of the
    text until the data is complete. The files are the same for any number of threads,
    interrupted or not, and for a problem and its reverse. Drops training pairs that
    exceed the problem's `max_length` or `max_length_ratio` or that its `drop` names,
    and counts them in the manifest.

    Raw files are in `tmp_dir`. Text is encoded on `num_processes` CPU cores, by default
    all that this process may use. With a `pipeline` its workers encode instead; they
    must see `data_dir`, but need not see the raw files.

    Raises:
        ValueError: the text or options are bad, or complete data made from something
            else is there. No file has been changed.
        FileNotFoundError: a raw file is missing.
        OSError: a file cannot be written, for example because the disk is full, or a
            worker of the pipeline has failed. The next run resumes.
    """
    started = time.monotonic()
    if num_processes is None:
        num_processes = available_cores()
    num_threads = checked("num_processes", int, num_processes, low=1)
    check_vocabulary_options(problem)
    check_reasons(problem.drop)
    check_splits(problem.splits())
    if pipeline is not None:
        pipeline.check()
    if tmp_dir is not None:
        tmp_dir = Path(tmp_dir).expanduser()
    folder = Path(data_dir) / problem.name()
    check_name(folder)
    already_there = finished_data.is_complete(problem, folder, tmp_dir)
    if not already_there:
        build = DataBuild(problem, folder, tmp_dir, num_threads, pipeline)
        build.check_outputs()
        with full_disk_is_named(folder):
            build.make()
    name = problem.name() + ("_rev" if problem.reverse else "")
    dataset = open_dataset(data_dir, name)
    return Generated(dataset, time.monotonic() - started, already_there)


@dataclasses.dataclass
class DataBuild:
    """Makes a problem's data in a folder, in the four steps of its methods."""

    problem: Problem
    folder: Path
    tmp_dir: Path | None
    num_threads: int
    pipeline: Pipeline | None

    def __post_init__(self) -> None:
        problem = self.problem
        self.vocabularies = [self.folder / name for name in vocabulary_names(problem)]
        # filled by `read_corpus`
        self.made_from: dict[Path, FileEntry] = {}
        self.shards: dict[str, list[Path]] = {}  # of each split
        self.text = ReadText(problem, self.tmp_dir)
        self.audit = PairAudit(problem.drop, problem.targets_are_text())

    def check_outputs(self) -> None:
        """Raises ValueError if a file that will be written is one that is read, or a
        link.
        """
        outputs = [*self.vocabularies, self.folder / MANIFEST, self.folder / UNFINISHED]
        outputs += own(self.folder).glob("*.arrow")
        inputs = [(str(path), path) for path in self._raw_files()]
        for path in given_vocabularies(self.problem):
            inputs.append((f"--vocab_file={path}", path))
        named = [(f"{path}, which holds the data", path) for path in outputs]
        check_not_overwritten(named, inputs)
        for path in outputs:
            own(path)

    def make(self) -> None:
        """Makes the data. The folder is created when all text has been read."""
        folders = (self.folder, *self.folder.absolute().parents)
        existing = next(folder for folder in folders if folder.is_dir())
        # without a name, so that a kill leaves nothing
        with tempfile.TemporaryFile(dir=existing) as spool:
            sample = self.read_corpus(spool)
            with only_process(self.folder, "make data"):
                # another process may have finished meanwhile
                if finished_data.is_complete(self.problem, self.folder, self.tmp_dir):
                    return
                manifest = self.make_vocabulary(sample)
                del sample  # encoding needs its memory
                splits = self.write_shards(spool)
                self.write_manifest(manifest, splits)

    def read_corpus(self, spool: BinaryIO) -> TextSample:
        """Step 1: checks and counts all pairs, copies them to `spool`, and reports
        those that would spoil a result; returns a sample of the training text.
        """
        problem = self.problem
        self._record_files()
        sample = TextSample()
        # dev and test first: training pairs are compared with them
        for split in sorted(self.text.pairs, key=is_training):
            paths = self.shards[split] = []
            usable = 0
            misread = MisreadText()
            for number, chunk in enumerate(self.text.chunks(split)):
                misread.add(chunk)
                paths.append(self.folder / f"{split}-{number:05d}.arrow")
                dropped: dict[str, int] = {}
                if is_training(split):
                    chunk, dropped = self.audit.audit(split, chunk)
                    usable += sample.add(chunk)
                else:
                    self.audit.add_evaluated(chunk)
                    usable += len(chunk)
                task = ChunkTask(
                    paths[-1],
                    chunk,
                    is_training(split),
                    problem.max_length,
                    problem.max_length_ratio,
                    dropped,
                )
                pickle.dump(task, spool)
            if not usable:
                self._refuse_empty(split)
            misread.report(f"{problem.name()}, {split}")
        self.audit.report()
        return sample

    def make_vocabulary(self, sample: TextSample) -> Manifest:
        """Step 2: learns or copies the vocabulary, unless an interrupted run made it
        from this text. Returns the manifest without what step 3 finds out.
        """
        # the manifest of data with a missing or changed file
        remove(self.folder / MANIFEST)
        remove_temporary_files(self.folder)
        unfinished = self.folder / UNFINISHED
        with contextlib.suppress(FileNotFoundError, ValueError):
            manifest = self._manifest()
            if read_record(unfinished, Manifest, "") == manifest:
                return manifest
        problem = self.problem
        given = given_vocabularies(problem)
        if given:
            for source, path in zip(given, self.vocabularies, strict=True):
                copy_file(source, path)
        else:
            symbols = [*problem.symbols(self.tmp_dir), *problem.user_symbols]
            pairs = sum(corpus.pairs for corpus in self.audit.corpora.values())
            path = self.vocabularies[0]
            learn_vocabulary(problem, sample.pairs(), pairs, symbols, path)
        remove(unfinished)
        remove_files(self.folder, SHARD.fullmatch)
        manifest = self._manifest()
        write_record(unfinished, manifest)
        return manifest

    def write_shards(self, spool: BinaryIO) -> dict[str, SplitEntry]:
        """Step 3: writes the shards of the pairs in `spool`; returns the manifest's
        entry for each split.
        """
        total = sum(map(len, self.shards.values()))
        tasks = progress_bar(
            _tasks(spool), desc="encoding", total=total, unit=" shards"
        )
        if self.pipeline is not None:
            encode_shards.encode_in(self.pipeline, tasks, self.vocabularies)
        else:
            encode_shards.encode_here(tasks, self.vocabularies, self.num_threads)
        splits = {}
        for split in self.text.pairs:
            splits[split] = encode_shards.split_entry(self.shards[split])
        return splits

    def write_manifest(self, manifest: Manifest, splits: dict[str, SplitEntry]) -> None:
        """Step 4: writes the manifest. Raises ValueError if a corpus has no training
        pairs.
        """
        for split, corpus in self.audit.corpora.items():
            if not splits[split].pairs:
                self._refuse_empty(split)
            findings = {name: count for name, count in corpus.counts.items() if count}
            splits[split] = dataclasses.replace(splits[split], findings=findings)
        self._record_files()  # those that were downloaded
        made_from = tuple(self.made_from[path] for path in self._raw_files())
        write_record(
            self.folder / MANIFEST,
            dataclasses.replace(manifest, splits=splits, made_from=made_from),
        )
        remove(self.folder / UNFINISHED)

    def _refuse_empty(self, split: str) -> None:
        """Raises ValueError: a split has no pairs, or none that are kept."""
        problem = self.problem
        kind = " with text on both sides" if is_training(split) else ""
        raise ValueError(
            f"{problem.name()} needs at least one pair{kind} in {split}. Received:"
            f" {self.text.pairs[split]:,}, max_length={problem.max_length},"
            f" max_length_ratio={problem.max_length_ratio},"
            f" drop={','.join(problem.drop)}. Check its files."
        )

    def _manifest(self) -> Manifest:
        """The manifest, with the vocabulary that is there, and without splits and raw
        files.
        """
        problem = self.problem
        source, *target = [VocabularyEntry.of(path) for path in self.vocabularies]
        languages = problem.source_language, problem.target_language
        return Manifest(
            problem=problem.name(),
            task=problem.task,
            t2tlite=t2tlite.__version__,
            options=finished_data.options(problem),
            languages=Languages(*map(canonical, languages)),
            decode_defaults=dict(problem.decode_defaults),
            vocabulary=source,
            target_vocabulary=target[0] if target else None,
            splits={},
            text_sha256=self.text.sha256(),
        )

    def _raw_files(self) -> list[Path]:
        """The raw files that are there, without pipes. Reading the pairs may download
        others.
        """
        paths = finished_data.raw_files(self.problem, self.tmp_dir)
        return [path for path in paths if path.is_file()]

    def _record_files(self) -> None:
        """Records the raw files that are not yet recorded: before they are read, so
        that one that changes meanwhile is found to have changed by the next run.
        """
        for path in self._raw_files():
            if path not in self.made_from:
                self.made_from[path] = FileEntry.of(path)


def _tasks(spool: BinaryIO) -> Iterator[ChunkTask]:
    """What `read_corpus` copied."""
    spool.seek(0)
    with contextlib.suppress(EOFError):
        while True:
            yield pickle.load(spool)


def _split_lines(name: str, split: SplitEntry) -> list[str]:
    """What a split contains, what would spoil a result, and what was dropped of it."""
    lines = [
        f"  {name:<10}  {counted(split.pairs, 'pair')}, {split.source_tokens:,} source"
        f" and {split.target_tokens:,} target tokens, at most {split.longest_source:,}"
        f" and {split.longest_target:,}"
    ]
    if split.source_unknown or split.target_unknown:
        source = split.source_unknown / max(split.source_tokens, 1)
        target = split.target_unknown / max(split.target_tokens, 1)
        lines.append(
            f"              unknown: {source:.1%} of source and {target:.1%} of target"
            " tokens, which the vocabulary lacks; learn it from text of both sides"
        )
    for what, counts in (("found", split.findings), ("dropped", split.dropped)):
        parts = []
        for reason, count in counts.items():
            if count:
                parts.append(f"{count:,} {reason.replace('_', ' ')}")
        if parts:
            lines.append(f"              {what}: {', '.join(parts)}")
    return lines
