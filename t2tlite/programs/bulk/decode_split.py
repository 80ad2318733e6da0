"""Decodes a split of a run's data, scores it and records the scores; a killed process
can resume.

`outputs.py` says what is written meanwhile, and `RunFolder` what is written at the end.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from t2tlite.data.dataset import Dataset
from t2tlite.data.manifest import is_training
from t2tlite.data.problem import SPLITS
from t2tlite.decoding.engine import TENSORFLOW
from t2tlite.decoding.source_text import Origin, evenly_spaced
from t2tlite.files.atomic_file import (
    check_writable,
    remove_temporary_files,
    replaceable,
)
from t2tlite.files.same_file import check_not_overwritten
from t2tlite.files.text_files import read_lines, write_lines
from t2tlite.programs.bulk.decode_file import write_windows
from t2tlite.programs.bulk.jobs import DecodeJob, Input, NBest
from t2tlite.programs.bulk.outputs import resumable_output
from t2tlite.programs.runs.translator import decode_options
from t2tlite.registry import did_you_mean
from t2tlite.run_folder import RunFolder
from t2tlite.run_records import DecodeRecord
from t2tlite.tasks.task import Output, Task, signature_lines

EXAMPLES = 5  # in the report
# sentences that a kill loses at most; 5 to 7 % more padding than if all were sorted
SPLIT_WINDOW = 512


class RecordedOutput(NamedTuple):
    """An `Output` as a split records it until all outputs are scored."""

    text: str
    score: float
    log_prob: float
    sequence: str
    ids: tuple[int, ...]


def record_lines(n_best: Sequence[Sequence[Output]]) -> list[str]:
    """The outputs of each sentence as a JSON array, from which `read_records` reads
    them as they were.
    """
    lines = []
    for outputs in n_best:
        records = [(o.text, o.score, o.log_prob, o.sequence, o.ids) for o in outputs]
        lines.append(json.dumps(records))
    return lines


def read_records(lines: Iterable[str]) -> list[list[Output]]:
    """The outputs of each sentence, best first."""
    n_best: list[list[Output]] = []
    for line in lines:
        outputs: list[Output] = []
        for *fields, ids in json.loads(line):
            outputs.append(RecordedOutput._make((*fields, tuple(ids))))
        n_best.append(outputs)
    return n_best


class SplitJob(DecodeJob):
    """Sentences of a split are decoded, and written with what their scores need."""

    name = "split"

    def lines(
        self, sources: list[str], n_best: NBest, first_number: int = 0
    ) -> list[str]:
        return record_lines(n_best)


def decode_split(
    job: DecodeJob,
    folder: RunFolder,
    dataset: Dataset,
    split: str,
    target: str | Path | None = None,
) -> None:
    """Decodes and scores a split of the run's data, and records the scores in the run
    directory.

    The outputs are written to `target`, by default RUN/decodes/NAME.txt, sources and
    references to RUN/decodes/NAME.*; examples, scores and speed are printed before.
    Raises ValueError if there is no such split, and OSError, before anything is
    decoded, if a file cannot be written.
    """
    check_split(dataset, split)
    model, task, store = (
        job.model,
        job.model.task_under(job.options),
        dataset.store(split),
    )
    sources, references = store.source_text(), store.target_text()
    name = _name(job, folder, split)
    target = Path(target or folder.decoded_file(name))
    source_file, record_file = (
        folder.decoded_file(name, "src"),
        folder.decoded_file(name, "json"),
    )
    reference_file = folder.decoded_file(name, task.references_ending)
    results = source_file, reference_file, record_file
    for path in (target, *results):
        check_writable(path)
    outputs = [(str(path), path) for path in (target, *results)]
    data = [dataset.folder / entry.file for entry in dataset.manifest.entries()]
    inputs = [(f"{path}, which is of the data", path) for path in data]
    check_not_overwritten(outputs, inputs)
    text = Input(Origin(f"the sources of {split}"), lambda: iter(sources))
    text.check(job)
    split_job = SplitJob(model, job.options)
    path = replaceable(target) or folder.decoded_file(name)
    with resumable_output(path, split_job.provenance()) as output:
        for path in results:
            # of a process that was killed
            remove_temporary_files(path.parent, path.name)
        windows = split_job.cut(*output.skip_done(text), SPLIT_WINDOW)
        write_windows(windows, split_job.run, output, len(sources))
        n_best = read_records(read_lines(output.part))
        score = model.score_outputs(sources, references, n_best, slow_metrics=True)
        gold = [
            task.reference(source, reference)
            for source, reference in zip(sources, references, strict=True)
        ]
        report = [
            *_examples(task, sources, n_best, gold),
            f"{score} on {split} ({len(sources):,} sentences)",
            *signature_lines(score.signatures),
            job.summary(output.record.counts, output.record.seconds),
            (
                f"Run {folder}, checkpoint {model.checkpoint}, {task.outputs} {target},"
                f" references {reference_file}"
            ),
        ]
        # first, so that it is not lost if the rest cannot be written
        print("\n".join(report), flush=True)
        write_lines(target, job.lines(sources, n_best))
        write_lines(source_file, sources)
        write_lines(reference_file, gold)
        record = DecodeRecord(
            split=split,
            step=model.step,
            checkpoint=model.checkpoint,
            sentences=output.record.lines,
            scores=score.scores,
            signatures=score.signatures,
            decode_hparams=dataclasses.asdict(job.options),
            seconds=round(output.record.seconds, 2),
            engine=model.engine.name,
            quantization=model.engine.quantization,
            name=name,
        )
        folder.write_decode_record(record)
        output.discard()


def _name(job: DecodeJob, folder: RunFolder, split: str) -> str:
    """The name of the record: split, checkpoint, and the options and engine that are
    not the default.
    """
    model = job.model
    changes = {
        name: new
        for name, (new, _) in job.options.diff(decode_options(model.manifest)).items()
    }
    if model.engine.name != TENSORFLOW:
        changes |= {
            "engine": model.engine.name,
            "quantization": model.engine.quantization,
        }
    return folder.decode_name(split, model.checkpoint, changes)


def _examples(
    task: Task,
    sources: Sequence[str],
    n_best: Sequence[Sequence[Output]],
    gold: Sequence[str],
) -> Iterator[str]:
    """Sources with their best outputs and references, each as three lines."""
    for i in evenly_spaced(len(sources), EXAMPLES):
        texts = sources[i], n_best[i][0].text, gold[i]
        yield "".join(
            f"{label:<11}  {text}\n"
            for label, text in zip(task.labels, texts, strict=True)
        )


def check_split(dataset: Dataset, split: str) -> None:
    """Raises ValueError unless the data has the split with its text."""
    there = [name for name in dataset.manifest.splits if not is_training(name)]
    if split in there:
        return
    if split in SPLITS and not is_training(split):
        raise ValueError(
            f"The data must have the split {split}. Received: that of {dataset.name} in"
            f" {dataset.folder}, which has {', '.join(dataset.manifest.splits)}. Run"
            f" t2t-datagen again with its files (for parallel_text --{split}_source and"
            f" --{split}_target), or decode the source with --decode_from_file and"
            " score the output with t2t-bleu."
        )
    received = f"{split!r}. {did_you_mean(split, there)}"
    if split in dataset.manifest.corpora:
        received = (
            f"{split}, which is kept as tokens, without its text. Decode its text with"
            " --decode_from_file."
        )
    raise ValueError(
        f"A split to decode must be {' or '.join(there)}. Received: {received}"
    )
