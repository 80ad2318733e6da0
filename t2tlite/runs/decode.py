"""Decodes with a run: any text, or a split of its data, which is scored and recorded."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence
from pathlib import Path

from tqdm import tqdm

from t2tlite.config import DecodeHParams
from t2tlite.data.dataset import Dataset
from t2tlite.decoding.translator import Translator
from t2tlite.files.text_files import write_lines
from t2tlite.runs.run_folder import DecodeRecord, RunFolder
from t2tlite.tasks.task import Output

EXAMPLES = 5  # of a split, in its report


def decode_text(model: Translator, sentences: Sequence[str], options: DecodeHParams) -> tuple[list[str], str]:
    """Decodes sentences, with a progress bar: the lines to write, and how fast it was and what was done to make them.

    For a sentence over the limit, a ValueError names its line.
    """
    started = time.monotonic()
    with _progress(sentences) as bar:
        n_best = model.decode(sentences, options, bar.update)
    return _lines(n_best, options), _summary(model, n_best, options, time.monotonic() - started)


def decode_split(
    model: Translator,
    folder: RunFolder,
    dataset: Dataset,
    split: str,
    options: DecodeHParams,
    target: str | Path | None = None,
) -> str:
    """Decodes and scores a split of the run's data, writes the outputs, and records both in the run directory.

    The outputs go to the file `target`, by default RUN/decodes/SPLIT.STEP.txt. Returns a report of several lines:
    examples, scores, speed, and where the outputs are. Raises ValueError if there is no such split or it has no text,
    and OSError if a file cannot be written.
    """
    store, task = dataset.store(split), model.task_under(options)
    sources, references = store.source_text(), store.target_text()
    with _progress(sources) as bar:
        decoded = model.decode_and_score(sources, references, options, bar.update)
    score, target = decoded.score, target or folder.decoded_text(split, model.step)
    write_lines(target, _lines(decoded.n_best, options))
    record = DecodeRecord(
        split=split,
        step=model.step,
        checkpoint=model.checkpoint,
        sentences=len(sources),
        scores=score.scores,
        signature=score.signature,
        decode_hparams=dataclasses.asdict(options),
        seconds=round(decoded.seconds, 2),
    )
    folder.write_decode_record(record)
    report = []
    for i in spread(len(sources), EXAMPLES):
        texts = sources[i], decoded.best[i].text, task.reference(sources[i], references[i])
        report.append("".join(f"{label:<11}  {text}\n" for label, text in zip(task.labels, texts, strict=True)))
    report += [
        f"{score} on {split} ({len(sources):,} sentences)",
        score.signature,
        _summary(model, decoded.n_best, options, decoded.seconds),
        f"Run {folder}, checkpoint {model.checkpoint}, {task.outputs} {target}",
    ]
    return "\n".join(report)


def score_pairs(model: Translator, pairs: Sequence[tuple[str, str]], options: DecodeHParams) -> list[float]:
    """The log-probability of each pair's target given its source, with a progress bar.

    A source or a target that is longer than the limit raises a ValueError.
    """
    sources, targets = [source for source, _ in pairs], [target for _, target in pairs]
    with tqdm(total=len(pairs), **_BAR) as bar:
        return model.score(sources, targets, options, bar.update)


_BAR = {"unit": "sentence", "desc": "decoding", "dynamic_ncols": True, "leave": False}


def _progress(sentences: Sequence[str]) -> tqdm:
    """A bar that counts the sentences that are not blank."""
    return tqdm(total=sum(bool(sentence.strip()) for sentence in sentences), **_BAR)


def _lines(n_best: Sequence[Sequence[Output]], options: DecodeHParams) -> list[str]:
    """One output per sentence, or an n-best list in Moses's format: NUMBER ||| OUTPUT ||| SCORE."""
    if options.return_beams == 1:
        return [outputs[0].text for outputs in n_best]
    return [f"{i} ||| {one.text} ||| {one.score:.6f}" for i, outputs in enumerate(n_best) for one in outputs]


def _summary(model: Translator, n_best: Sequence[Sequence[Output]], options: DecodeHParams, seconds: float) -> str:
    """Sentences and tokens per second, and what the task had to do to make the outputs."""
    best, seconds = [outputs[0] for outputs in n_best], max(seconds, 1e-9)
    tokens = sum(len(ids) + 1 for ids in model.target_encoder.encode_batch([output.sequence for output in best]))
    rates = f"{len(best) / seconds:,.1f} sentences/s, {tokens / seconds:,.0f} target tokens/s"
    lines = [f"{len(best):,} sentences in {seconds:.1f} s, {rates}", model.task_under(options).summary(best)]
    return "\n".join(filter(None, lines))


def spread(count: int, wanted: int) -> list[int]:
    """`wanted` indices below `count`, evenly spaced; all if there are no more."""
    return [i * count // wanted for i in range(wanted)] if count > wanted else list(range(count))
