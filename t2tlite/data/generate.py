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
from pathlib import Path
from typing import BinaryIO

import t2tlite
from t2tlite.checked_fields import checked
from t2tlite.console import counted, progress_bar
from t2tlite.data import checked_pairs, encode_shards, learn_vocabulary
from t2tlite.data.beam_pipeline import Pipeline
from t2tlite.data.dataset import (
    Dataset,
    is_complete,
    open_dataset,
    options,
    raw_files,
)
from t2tlite.data.language_codes import canonical
from t2tlite.data.manifest import (
    MANIFEST,
    FileEntry,
    Languages,
    Manifest,
    SplitEntry,
)
from t2tlite.data.problem import Problem
from t2tlite.data.splits import is_training
from t2tlite.files import atomic_file, own_files, records, same_file
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
        sizes = [f"{entry.size:,}" for entry in manifest.vocabulary_entries()]
        kind = manifest.options.get("vocab_type", PIECES)
        if kind == PIECES or manifest.options.get("vocab_file"):
            kind = "pieces"
        lines = [
            f"{manifest.name}: {done}. The data is in {self.dataset.folder}.",
            f"  vocabulary  {' and '.join(sizes)} {kind}",
        ]
        advice = ""
        if manifest.options.get("vocab_file"):
            advice = "; learn it from text of both sides"
        for split in manifest.splits:
            lines += _split_lines(split, manifest.split(split), advice)
        return "\n".join(lines)


def _split_lines(name: str, split: SplitEntry, advice: str) -> list[str]:
    """What a split contains, which of its pairs would spoil a result, and how many were
    dropped. `advice` is on unknown tokens.
    """
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
            f" tokens, which the vocabulary lacks (neighbours are one token){advice}"
        )
    remaining = []
    dropped = []
    for reason, count in (split.findings | split.dropped).items():
        part = f"{count:,} {reason.replace('_', ' ')}"
        if split.dropped.get(reason):
            dropped.append(part)
        elif count:
            remaining.append(part)
    if remaining:
        parts = ", ".join(remaining)
        lines.append(f"              found: {parts}; --drop leaves them out")
    if dropped:
        lines.append(f"              dropped: {', '.join(dropped)}")
    return lines


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
    if pipeline is not None:
        pipeline.check()
    if tmp_dir is not None:
        tmp_dir = Path(tmp_dir).expanduser()
    atomic_file.check_name(data_dir)
    folder = Path(data_dir).expanduser() / problem.name()
    build = DataBuild(problem, folder, tmp_dir, num_threads, pipeline)
    already_there = is_complete(problem, folder, tmp_dir)
    if not already_there:
        build.check_outputs()
        with atomic_file.full_disk_is_named(folder):
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
        self.given = learn_vocabulary.given_vocabularies(problem)
        names = learn_vocabulary.vocabulary_names(self.given)
        self.vocabularies = [self.folder / name for name in names]
        self.text = checked_pairs.ReadText(problem, self.tmp_dir)
        self.audit = checked_pairs.PairAudit(problem.drop, problem.targets_are_text())
        # filled by `read_corpus`
        self.made_from: dict[Path, FileEntry] = {}
        self.shards: dict[str, list[Path]] = {}  # of each split

    def check_outputs(self) -> None:
        """Raises ValueError if a file that will be written is one that is read, or a
        link.
        """
        paths = [*self.vocabularies, self.folder / MANIFEST, self.folder / UNFINISHED]
        paths += own_files.own(self.folder).glob("*.arrow")
        inputs = [(str(path), path) for path in self._raw_files()]
        for path in self.given:
            inputs.append((f"--vocab_file={path}", path))
        outputs = [(f"{path}, which holds the data", path) for path in paths]
        same_file.check_not_overwritten(outputs, inputs)
        for path in paths:
            own_files.own(path)

    def make(self) -> None:
        """Makes the data. The folder is created when all text has been read."""
        folders = (self.folder, *self.folder.absolute().parents)
        existing = next(filter(Path.exists, folders))  # a file is an error
        # without a name, so that a kill leaves nothing
        with tempfile.TemporaryFile(dir=existing) as spool:
            sample = self.read_corpus(spool)
            with own_files.only_process(self.folder, "make data"):
                # another process may have finished meanwhile
                if is_complete(self.problem, self.folder, self.tmp_dir):
                    return
                manifest = self.make_vocabulary(sample)
                del sample  # encoding needs its memory
                self.write_manifest(manifest, self.write_shards(spool))

    def read_corpus(self, spool: BinaryIO) -> learn_vocabulary.TextSample:
        """Step 1: checks and counts all pairs, copies them to `spool`, and reports
        those that would spoil a result; returns a sample of the training text.
        """
        problem = self.problem
        limits = problem.max_length, problem.max_length_ratio
        # before they are read, so that the next run finds one that changes meanwhile
        self.made_from = {path: FileEntry.of(path) for path in self._raw_files()}
        sample = learn_vocabulary.TextSample()
        # dev and test first: training pairs are compared with them
        for split in sorted(self.text.splits, key=is_training):
            paths = self.shards[split] = []
            kept = 0
            for pairs in self.text.chunks(split):
                if is_training(split):
                    pairs, dropped = self.audit.audit(split, pairs)
                    sample.add(pairs)
                    chunk = encode_shards.Chunk(pairs, dropped, True, *limits)
                else:
                    self.audit.add_evaluated(pairs)
                    chunk = encode_shards.Chunk(pairs)
                kept += len(pairs)
                paths.append(self.folder / f"{split}-{len(paths):05d}.arrow")
                pickle.dump((paths[-1], chunk), spool)
            self._check_pairs(split, kept)
            self.text.splits[split].report(f"{problem.name()}, {split}")
        return sample

    def make_vocabulary(self, sample: learn_vocabulary.TextSample) -> Manifest:
        """Step 2: learns or copies the vocabulary, unless an interrupted run made it
        from this text. Returns the manifest without what step 3 finds out.
        """
        problem = self.problem
        # the manifest of data with a missing or changed file
        own_files.remove(self.folder / MANIFEST)
        atomic_file.remove_temporary_files(self.folder)
        unfinished = self.folder / UNFINISHED
        with contextlib.suppress(FileNotFoundError, ValueError):
            manifest = self._manifest()
            if records.read_record(unfinished, Manifest, "") == manifest:
                return manifest
        own_files.remove(unfinished)
        own_files.remove_files(self.folder, SHARD.fullmatch)
        for source, path in zip(self.given, self.vocabularies, strict=False):
            atomic_file.copy_file(source, path)
        if not self.given:
            symbols = [*problem.symbols(self.tmp_dir), *problem.user_symbols]
            corpora = self.audit.counts
            pairs = sum(self.text.splits[corpus].pairs for corpus in corpora)
            learn_vocabulary.learn_vocabulary(
                problem, sample.pairs, pairs, symbols, self.vocabularies[0]
            )
        manifest = self._manifest()
        records.write_record(unfinished, manifest)
        return manifest

    def write_shards(self, spool: BinaryIO) -> dict[str, SplitEntry]:
        """Step 3: writes the shards of the pairs in `spool`; returns the manifest's
        entry for each split.
        """
        total = sum(map(len, self.shards.values()))
        tasks = atomic_file.unpickled(spool)
        bar = progress_bar(tasks, desc="encoding", total=total, unit=" shards")
        if self.pipeline is not None:
            encode_shards.encode_in(self.pipeline, bar, self.vocabularies)
        else:
            encode_shards.encode_here(bar, self.vocabularies, self.num_threads)
        splits = {}
        for split in self.text.splits:
            splits[split] = encode_shards.split_entry(self.shards[split])
        return splits

    def write_manifest(self, manifest: Manifest, splits: dict[str, SplitEntry]) -> None:
        """Step 4: writes the manifest. Raises ValueError if a corpus has no training
        pairs.
        """
        for split, counts in self.audit.counts.items():
            self._check_pairs(split, splits[split].pairs)
            splits[split] = dataclasses.replace(splits[split], findings=dict(+counts))
        made_from = []
        for path in self._raw_files():  # also those that were downloaded
            made_from.append(self.made_from.get(path) or FileEntry.of(path))
        manifest = dataclasses.replace(
            manifest, splits=splits, made_from=tuple(made_from)
        )
        records.write_record(self.folder / MANIFEST, manifest)
        own_files.remove(self.folder / UNFINISHED)

    def _check_pairs(self, split: str, count: int) -> None:
        """Raises ValueError if a split has no pairs, or none that are kept."""
        if not count:
            received = self.text.splits[split].pairs
            raise ValueError(
                f"{self.problem.name()} must have a pair to keep in {split}. Received:"
                f" {received:,}. Check files, max_length, max_length_ratio and drop."
            )

    def _manifest(self) -> Manifest:
        """The manifest, with the vocabulary that is there, and without splits and raw
        files.
        """
        problem = self.problem
        source, *target = [VocabularyEntry.of(path) for path in self.vocabularies]
        return Manifest(
            problem=problem.name(),
            task=problem.task,
            t2tlite=t2tlite.__version__,
            options=options(problem),
            languages=Languages(
                canonical(problem.source_language), canonical(problem.target_language)
            ),
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
        paths = raw_files(self.problem, self.tmp_dir)
        return [path for path in paths if path.is_file()]
