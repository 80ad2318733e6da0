"""Decodes a split of a run's data, scores it and records the scores; a killed process can resume.

`partial_output.py` says what is written meanwhile, and `RunFolder` what is written at the end.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from t2tlite.config import DecodeHParams
from t2tlite.data.dataset import Dataset
from t2tlite.data.problem import SPLITS
from t2tlite.decoding.token_decoder import TENSORFLOW
from t2tlite.files.atomic_file import check_writable, remove_temporary_files, replaceable
from t2tlite.files.text_files import write_lines
from t2tlite.programs.bulk.decode import Pace, decode_lines, spread, summary
from t2tlite.programs.bulk.line_format import PLAIN, OutputRecords
from t2tlite.programs.bulk.partial_output import IntermediateOutput
from t2tlite.programs.bulk.window_loop import interrupt_at_sigterm, made_with, remaining, write_windows
from t2tlite.programs.runs.translator import Origin, Translator, decode_options
from t2tlite.run_folder import DecodeRecord, RunFolder
from t2tlite.tasks.task import Output, Score, Task, signature_lines

EXAMPLES = 5  # in the report
WINDOW = 512  # sentences, of which a kill loses those of one window; 5 to 7 % more padding than if all were sorted


def decode_split(
    model: Translator,
    folder: RunFolder,
    dataset: Dataset,
    split: str,
    options: DecodeHParams,
    target: str | Path | None = None,
    report: Callable[[str], object] = print,
) -> None:
    """Decodes and scores a split of the run's data, and records the scores in the run directory.

    The outputs are written to the file `target`, by default RUN/decodes/NAME.txt; sources and references, in the form
    of the outputs, to two files RUN/decodes/NAME.*. Before that, `report` is called with several lines: examples,
    scores, speed. Raises ValueError if there is no such split, it has no text or a sentence that is too long, or if
    another process writes the same outputs, and OSError, before anything is decoded, if a file cannot be written.
    """
    _check_split(dataset, split)
    store, task, name = dataset.store(split), model.task_under(options), _name(model, folder, split, options)
    sources, references = store.source_text(), store.target_text()
    target = Path(target or folder.decoded_text(name))
    source_file = folder.decoded_sources(name)
    reference_file = folder.decoded_references(name, task.references_ending)
    beside = source_file, reference_file, folder.decode_record_file(name)
    for path in (target, *beside):
        check_writable(path)
    origin, form, pace = Origin(f"the sources of {split}"), OutputRecords(), Pace(WINDOW)
    model.check_lengths(sources, origin)
    path = replaceable(target) or folder.decoded_text(name)
    output = IntermediateOutput(path, made_with("split", model, options, form))
    with interrupt_at_sigterm(), output:
        for path in beside:
            remove_temporary_files(path.parent, path.name)  # of a process that was killed
        lines = remaining(output, iter(sources), lambda: iter(sources))
        decode = functools.partial(decode_lines, model, lines, options, origin.after(lines.count), form=form, pace=pace)
        write_windows(output, lines, decode, len(sources))
        n_best = form.read(output.lines())
        score = model.score_outputs(sources, references, n_best, slow_metrics=True)
        gold = [task.reference(source, reference) for source, reference in zip(sources, references, strict=True)]
        shown = [
            *_examples(task, sources, n_best, gold),
            f"{score} on {split} ({len(sources):,} sentences)",
            *signature_lines(score.signatures),
            summary(model, output.progress.counts, options, output.progress.seconds),
            f"Run {folder}, checkpoint {model.checkpoint}, {task.outputs} {target}, references {reference_file}",
        ]
        report("\n".join(shown))  # first, so that it is not lost if the rest cannot be written
        write_lines(target, PLAIN.lines(model, sources, n_best, options))
        write_lines(source_file, sources)
        write_lines(reference_file, gold)
        record = _record(name, split, model, len(sources), score, options, output.progress.seconds)
        folder.write_decode_record(record)


def _name(model: Translator, folder: RunFolder, split: str, options: DecodeHParams) -> str:
    """The name of the record: split, checkpoint, and the options and engine that are not the default."""
    changes = {name: new for name, (new, _) in options.diff(decode_options(model.manifest)).items()}
    if model.engine.name != TENSORFLOW:
        changes |= {"engine": model.engine.name, "quantization": model.engine.quantization}
    return folder.decode_name(split, model.checkpoint, changes)


def _examples(
    task: Task, sources: Sequence[str], n_best: Sequence[Sequence[Output]], gold: Sequence[str]
) -> Iterator[str]:
    """Sources with their best outputs and references, each as three lines."""
    for i in spread(len(sources), EXAMPLES):
        texts = sources[i], n_best[i][0].text, gold[i]
        yield "".join(f"{label:<11}  {text}\n" for label, text in zip(task.labels, texts, strict=True))


def _record(
    name: str, split: str, model: Translator, sentences: int, score: Score, options: DecodeHParams, seconds: float
) -> DecodeRecord:
    return DecodeRecord(
        split=split,
        step=model.step,
        checkpoint=model.checkpoint,
        sentences=sentences,
        scores=score.scores,
        signatures=score.signatures,
        decode_hparams=dataclasses.asdict(options),
        seconds=round(seconds, 2),
        engine=model.engine.name,
        quantization=model.engine.quantization,
        name=name,
    )


def _check_split(dataset: Dataset, split: str) -> None:
    """Raises ValueError unless the data has the split with its text."""
    there = [name for name in dataset.manifest.splits if name != "train"]
    if split in there:
        return
    if split == "train":
        raise ValueError(
            f"A split to decode must be {' or '.join(there)}. Received: train, which is kept as tokens, without its "
            "text. Decode its text with --decode_from_file."
        )
    if split not in SPLITS:
        raise ValueError(f"A split to decode must be {' or '.join(there)}. Received: {split!r}.")
    raise ValueError(
        f"The data must have the split {split}. Received: that of {dataset.name} in {dataset.folder}, which has "
        f"{', '.join(dataset.manifest.splits)}. Run t2t-datagen again with its files (for parallel_text "
        f"--{split}_source and --{split}_target), or decode the source with --decode_from_file and score the output "
        "with t2t-bleu."
    )
