"""Decodes a split of a run's data, scores it and records the scores; a killed process
can resume.

`part.py` keeps what is done. `RunFolder` names what is written at the end.
"""

import dataclasses
from collections import Counter
from pathlib import Path

from t2tlite.data.dataset import Dataset
from t2tlite.data.splits import is_training
from t2tlite.decoding.engine import TENSORFLOW
from t2tlite.decoding.text_decoder import Origin, evenly_spaced
from t2tlite.files import atomic_file, same_file, text_files
from t2tlite.metrics.corpus_metrics import OF_TASK, Scoring
from t2tlite.programs.bulk.decode_file import decode_windows
from t2tlite.programs.bulk.jobs import DecodeJob
from t2tlite.programs.bulk.part import WindowOutput, cut, open_part
from t2tlite.run_folder import RunFolder
from t2tlite.run_records import DecodeRecord
from t2tlite.tasks.task import Output, signature_lines

REPORTED_EXAMPLES = 5
# sentences that a kill loses, about; 5 to 7 % more padding than if all were sorted
SPLIT_WINDOW = 512


def decode_split(
    job: DecodeJob,
    folder: RunFolder,
    dataset: Dataset,
    split: str,
    target: str | Path | None = None,
    scoring: Scoring = OF_TASK,
) -> None:
    """Decodes and scores a split of the run's data, and records the scores in the run
    directory. `scoring` chooses metrics and adds references.

    The outputs are written to `target`, by default RUN/decodes/NAME.txt, sources and
    references to RUN/decodes/NAME.*; examples, scores and speed are printed before.
    Raises OSError, before anything is decoded, if a file cannot be written. The split
    is as `check_split` requires.
    """
    model = job.model
    task = model.task_under(job.options).scored_by(scoring)
    store = dataset.store(split)
    sources = store.source_text()
    targets = store.target_text()
    name = _name(job, folder, split)
    outputs_file = Path(target or folder.decoded_file(name))
    sources_file = folder.decoded_file(name, "src")
    references_file = folder.decoded_file(name, task.references_ending)
    own_files = [sources_file, references_file, folder.decoded_file(name, "json")]
    inputs = []
    for entry in dataset.manifest.entries():
        path = dataset.folder / entry.file
        inputs.append((f"{path}, which is of the data", path))
    outputs = []
    for path in (outputs_file, *own_files):
        atomic_file.check_writable(path)
        outputs.append((str(path), path))
    same_file.check_not_overwritten(outputs, inputs)
    origin = Origin(f"the sources of {split}")
    model.check_lengths(sources, origin)
    windows = cut(sources, origin, job.window_size(SPLIT_WINDOW))
    # nothing can be beside a device
    path = atomic_file.replaceable(outputs_file) or folder.decoded_file(name)
    with open_part(path, job.key) as part:
        for file in own_files:
            atomic_file.remove_temporary_files(file.parent, file.name)
        decode_windows(job, windows, part)
        n_best: list[list[Output]] = []
        totals: Counter[str] = Counter()
        for output in part.outputs():
            n_best += output.n_best
            totals.update(output.counts)
        references = model.references(sources, targets, job.options)
        score = model.score_outputs(
            sources, references, n_best, job.options, slow_metrics=True, task=task
        )
        # first, so that it is not lost if the rest cannot be written
        for i in evenly_spaced(len(sources), REPORTED_EXAMPLES):
            print(f"source       {sources[i]}")
            print(f"output       {n_best[i][0].text}")
            print(f"reference    {references[i]}\n")
        print(f"{score} on {split} ({len(sources):,} sentences)")
        print("\n".join(signature_lines(score.signatures)))
        print(job.summary(totals))
        print(
            f"Run {folder}, checkpoint {', '.join((model.checkpoint, *model.others))},"
            f" {task.outputs} {outputs_file}, references {references_file}",
            flush=True,
        )
        output = WindowOutput(sources, n_best, totals)
        text_files.write_lines(outputs_file, job.lines(output))
        text_files.write_lines(sources_file, sources)
        text_files.write_lines(references_file, references)
        record = DecodeRecord(
            split=split,
            step=model.step,
            checkpoint=model.checkpoint,
            sentences=len(sources),
            scores=score.scores,
            intervals=score.intervals,
            signatures=score.signatures,
            decode_hparams=dataclasses.asdict(job.options),
            seconds=round(totals["milliseconds"] / 1000, 2),
            engine=model.engine.name,
            quantization=model.engine.quantization,
            other_checkpoints=model.others,
            name=name,
        )
        folder.write_decode_record(record)
        part.remove()


def _name(job: DecodeJob, folder: RunFolder, split: str) -> str:
    """The name of the record: split, checkpoint, and the options and engine that are
    not the default.
    """
    model = job.model
    changes = job.options.changes(model.options())
    if model.engine.name != TENSORFLOW:
        changes.append(f"engine={model.engine.name}")
        changes.append(f"quantization={model.engine.quantization}")
    return folder.decode_name(split, model.checkpoint, changes, model.others)


def check_split(dataset: Dataset, split: str) -> None:
    """Raises ValueError unless the data has the split with its text."""
    there = [name for name in dataset.manifest.splits if not is_training(name)]
    if split not in there:
        raise ValueError(
            f"A split to decode must be {' or '.join(there)}. Received: {split}."
            " Use --decode_from_file."
        )
