"""Decodes with a run: any number of sentences, or a split of its data, which is scored and recorded."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

from tqdm import tqdm

from t2tlite.config import DecodeHParams
from t2tlite.data.dataset import Dataset
from t2tlite.data.problem import SPLITS
from t2tlite.decoding.token_decoder import TENSORFLOW
from t2tlite.decoding.translator import NO_FILE, Done, Origin, Translator, decode_options
from t2tlite.files.atomic_file import check_writable
from t2tlite.files.text_files import write_lines
from t2tlite.runs.line_format import PLAIN, LineFormat
from t2tlite.runs.run_folder import DecodeRecord, RunFolder
from t2tlite.tasks.task import Output, signature_lines

T = TypeVar("T")

# Sentences that are sorted by length together, or as many as batch_size if that is more: 2 % more padding than if all
# are (lengths as in WMT), while batches of 8,192 tokens would have 20 % more.
WINDOW = 2048
PROMPT_WINDOW = 256  # as many where somebody may wait for the output
EXAMPLES = 5  # of a split, in its report
BAR = {"unit": "sentence", "desc": "decoding", "dynamic_ncols": True, "leave": False}


class Pace(NamedTuple):
    """How windows are cut: these may be smaller than is best for speed, so that output comes sooner."""

    most: int = WINDOW  # sentences in a window
    ready: Callable[[], bool] = lambda: True  # whether another sentence is there without waiting
    alone: bool = False  # each sentence by itself where otherwise all sentences would be one window


FULL = Pace()


def decode_lines(
    model: Translator,
    sentences: Iterable[str],
    options: DecodeHParams,
    origin: Origin = NO_FILE,
    done: Done = lambda count: None,
    counts: Counter[str] | None = None,
    form: LineFormat = PLAIN,
    pace: Pace = FULL,
) -> Iterator[list[str]]:
    """Decodes any number of lines of the given format in windows, and yields the lines to write for each, in order.

    Windows are independent of each other, so any of them can be decoded by itself, elsewhere or later: `origin.before`
    is the number of sentences before. Under tensor2tensor's rules a translation depends on what is decoded together, so
    all sentences are one window. `counts` is increased by what `summary` needs. A sentence over the limit raises a
    ValueError that names its line.
    """
    for window, start in windows(sentences, options, origin, pace):
        sources, prefix = form.split(window, start)
        n_best = model.decode(sources, options, done, start, prefix)
        if counts is not None:
            counts.update(_counts(model, n_best, options))
        yield form.lines(model, sources, n_best, options, start.before)


def windows(
    sentences: Iterable[T], options: DecodeHParams, origin: Origin, pace: Pace = FULL
) -> Iterator[tuple[list[T], Origin]]:
    """The windows in which `decode_lines` decodes sentences, each with its origin."""
    if options.rules.batches_of_sentences or options.rules.shared_length_limit:
        size = 1 if pace.alone else None
        pace = FULL  # what is decoded together must not depend on what has arrived
    else:
        size = max(min(WINDOW, pace.most), options.batch_size)
    return _windows(sentences, size, origin, pace.ready)


def score_lines(
    model: Translator,
    pairs: Iterable[tuple[str, str]],
    options: DecodeHParams,
    origin: Origin = NO_FILE,
    done: Done = lambda count: None,
    counts: Counter[str] | None = None,
    form: LineFormat = PLAIN,
    pace: Pace = FULL,
) -> Iterator[list[str]]:
    """Scores any number of pairs as `decode_lines` decodes sentences: a line has log_prob and score."""
    for window, start in _windows(pairs, max(min(WINDOW, pace.most), options.batch_size), origin, pace.ready):
        sources, targets = zip(*window, strict=True)
        scores = model.score(sources, targets, options, done, start)
        if counts is not None:
            counts.update(sentences=len(window), tokens=_tokens(model, targets))
        yield list(form.score_lines(model, sources, targets, options, scores))


def summary(model: Translator, counts: Counter[str], options: DecodeHParams, seconds: float) -> str:
    """Sentences and tokens per second, and what the task had to do to make the outputs."""
    sentences, tokens, seconds = counts["sentences"], counts["tokens"], max(seconds, 1e-9)
    rates = f"{sentences / seconds:,.1f} sentences/s, {tokens / seconds:,.0f} target tokens/s"
    return "\n".join(
        filter(
            None, [f"{sentences:,} sentences in {seconds:.1f} s, {rates}", model.task_under(options).summary(counts)]
        )
    )


class DecodedSplit(NamedTuple):
    """A split decoded and scored, but not written yet."""

    report: str  # several lines: examples, scores, speed
    record: DecodeRecord
    files: dict[Path, list[str]]  # the lines of outputs, sources and references

    def write(self, folder: RunFolder) -> None:
        """Writes the files, and records the scores in the run directory. Raises OSError if that fails."""
        for path, lines in self.files.items():
            write_lines(path, lines)
        folder.write_decode_record(self.record)


def decode_split(
    model: Translator,
    folder: RunFolder,
    dataset: Dataset,
    split: str,
    options: DecodeHParams,
    target: str | Path | None = None,
) -> DecodedSplit:
    """Decodes and scores a split of the run's data.

    The outputs are for the file `target`, by default RUN/decodes/NAME.txt; sources and references, in the form of the
    outputs, for two files beside that. Raises ValueError if there is no such split or it has no text, and OSError,
    before anything is decoded, if a file cannot be written.
    """
    _check_split(dataset, split)
    store, task = dataset.store(split), model.task_under(options)
    sources, references = store.source_text(), store.target_text()
    changes = {name: new for name, (new, _) in options.diff(decode_options(model.manifest)).items()}
    engine = model.engine
    if engine.name != TENSORFLOW:
        changes |= {"engine": engine.name, "quantization": engine.quantization}
    name = folder.decode_name(split, model.checkpoint, changes)
    target = Path(target or folder.decoded_text(name))
    source_file = folder.decoded_sources(name)
    reference_file = folder.decoded_references(name, task.references_ending)
    for path in (target, source_file, reference_file, folder.decode_record_file(name)):
        check_writable(path)
    with tqdm(total=sum(bool(source.strip()) for source in sources), **BAR) as bar:
        decoded = model.decode_and_score(sources, references, options, bar.update, slow_metrics=True)
    record = DecodeRecord(
        split=split,
        step=model.step,
        checkpoint=model.checkpoint,
        sentences=len(sources),
        scores=decoded.score.scores,
        signature=decoded.score.signature,
        signatures=decoded.score.signatures,
        decode_hparams=dataclasses.asdict(options),
        seconds=round(decoded.seconds, 2),
        engine=engine.name,
        quantization=engine.quantization,
        name=name,
    )
    gold = [task.reference(source, reference) for source, reference in zip(sources, references, strict=True)]
    report = []
    for i in spread(len(sources), EXAMPLES):
        texts = sources[i], decoded.best[i].text, gold[i]
        report.append("".join(f"{label:<11}  {text}\n" for label, text in zip(task.labels, texts, strict=True)))
    report += [
        f"{decoded.score} on {split} ({len(sources):,} sentences)",
        *signature_lines(decoded.score.signatures),
        summary(model, _counts(model, decoded.n_best, options), options, decoded.seconds),
        f"Run {folder}, checkpoint {model.checkpoint}, {task.outputs} {target}, references {reference_file}",
    ]
    lines = PLAIN.lines(model, sources, decoded.n_best, options)
    return DecodedSplit("\n".join(report), record, {target: lines, source_file: sources, reference_file: gold})


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


def spread(count: int, wanted: int) -> list[int]:
    """`wanted` indices below `count`, evenly spaced; all if there are no more."""
    return [i * count // wanted for i in range(wanted)] if count > wanted else list(range(count))


def _windows(
    items: Iterable[T], size: int | None, origin: Origin, ready: Callable[[], bool]
) -> Iterator[tuple[list[T], Origin]]:
    """Lists of `size` items, or of all if that is None; fewer where no more are ready; and the origin of each."""
    window: list[T] = []
    for item in items:
        window.append(item)
        if len(window) == size or not ready():
            yield window, origin
            origin, window = origin.after(len(window)), []
    if window:
        yield window, origin


def _counts(model: Translator, n_best: Sequence[Sequence[Output]], options: DecodeHParams) -> Counter[str]:
    """The sentences, the target tokens, and the task's tally of the best outputs."""
    best = [outputs[0] for outputs in n_best]
    tokens = _tokens(model, [output.sequence for output in best])
    return Counter(sentences=len(best), tokens=tokens) + model.task_under(options).tally(best)


def _tokens(model: Translator, targets: Sequence[str]) -> int:
    """Target tokens, EOS included."""
    return sum(len(ids) + 1 for ids in model.target_encoder.encode_batch(targets))
