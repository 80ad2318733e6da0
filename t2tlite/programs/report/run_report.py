"""A report of a run, as Markdown and as one HTML page: its scores, samples, curves,
cost, settings and data.

    records of the RunFolder, TensorBoard's events -> report.md.jinja -> page.html

If parts of a run are missing or damaged, the report shows the rest and says what is
missing.

Two runs of one problem are compared on a page, by the template comparison.md.jinja: the
settings in which they differ, the curves and scores of both, and whether their outputs
differ by more than chance.
"""

import re
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tensorboard.backend.event_processing.event_accumulator import (
    TENSORS,
    EventAccumulator,
)
from tensorboard.util.tensor_util import make_ndarray

from t2tlite import registry
from t2tlite.config import DecodeHParams, HParams
from t2tlite.decoding.text_decoder import evenly_spaced
from t2tlite.files.atomic_file import write_text
from t2tlite.metrics import comparison, corpus_metrics
from t2tlite.programs.report.document import line_chart, render, to_html
from t2tlite.programs.runs.load import METRIC_NAMES, shown_value
from t2tlite.run_folder import RunFolder
from t2tlite.run_records import DecodeRecord, Environment
from t2tlite.tasks.task import Task, open_task, signature_lines
from t2tlite.training.cost import count_parameters

# in a signature, of the intervals of --confidence
RESAMPLING = re.compile(r"\|bs:\d+\|seed:\d+")


class Missing(list[str]):
    """A sentence about each thing that is missing or damaged."""

    def attempt(
        self, read: Callable[..., Any], *arguments: Any, consequence: str = ""
    ) -> Any:
        """Returns what `read` returns; if that fails, None, and adds a sentence."""
        try:
            return read(*arguments)
        except Exception as error:  # whatever a damaged file makes its reader raise
            self.append(f"{consequence}{error}")
            return None


def write_report(run: RunFolder) -> tuple[Path, Path]:
    """Writes the report of a run, RUN/report.html and RUN/report.md, and returns their
    paths. Raises OSError if the files cannot be written.
    """
    missing = Missing()
    attempt = missing.attempt
    manifest = attempt(run.manifest)
    hparams = attempt(run.hparams)
    set_name = run.flags().get("hparams_set", "")
    base = None
    if set_name in registry.list_hparams():
        base = attempt(registry.get_hparams, set_name)
    elif set_name:
        missing.append(
            f"The hparam set {set_name} is not known here, so hyperparameters are"
            " compared with the defaults. If it is your own, give --t2t_usr_dir."
        )
    decodes, damaged_records = run.decode_records()  # the newest first
    missing += damaged_records
    problem = manifest.name if manifest else "unknown problem"
    facts: dict[str, Any] = {
        "run": run,
        "title": f"{problem}, {set_name or 'hparam set not recorded'}",
        "missing": missing,
        "manifest": manifest,
        "hparams": hparams,
        "set_name": set_name,
        "base": base,
        "costs": attempt(run.costs),
        "best": attempt(run.best),
        "evaluations": attempt(run.evaluations) or [],
        "environment": attempt(run.read, Environment),
        "decodes": decodes,
        "charts": charts(read_metrics(run.path, missing)),
        "command": " \\\n    ".join(map(shlex.quote, run.command())),
        **FUNCTIONS,
    }
    if hparams:
        facts["changes"] = hparams.diff(base or HParams())
    if hparams and manifest:
        sizes = manifest.vocabulary_sizes
        facts["parameters"] = attempt(count_parameters, hparams, sizes)
    if decodes:
        unshown = f"The outputs of {decodes[0].name} cannot be shown. "
        source = run, decodes[0], missing
        facts["samples"] = attempt(_samples, *source, consequence=unshown)
    page, markdown = run.own("report.html"), run.own("report.md")
    drawn = render({**facts, "draws": True})
    write_text(page, to_html(facts["title"], drawn))
    write_text(markdown, render(facts))
    return page, markdown


def write_comparison(first: RunFolder, second: RunFolder) -> Path:
    """Writes the comparison of two runs, RUN1/report.RUN2.html, and returns its path.

    Raises ValueError if they are of different problems, or have nothing in common to
    compare; and OSError if the file cannot be written.
    """
    runs = first, second
    title = f"{first} and {second}"
    first.identity().require_same(
        second.identity(),
        ("problem", "languages"),
        "Two runs to compare must be of one problem.",
        f"{title}, which differ",
        "Name others.",
    )
    missing = Missing()
    curves: dict[str, dict[int, float]] = {}
    newest = []
    for run in runs:
        for evaluation in run.evaluations():
            for metric, value in evaluation.metrics.items():
                values = curves.setdefault(f"{run}/{metric}", {})
                values[evaluation.step] = value
        decodes, damaged = run.decode_records()
        missing += damaged
        alone = {}
        for record in reversed(decodes):
            if not record.other_checkpoints:
                alone[record.split] = record
        newest.append(alone)
    splits = []
    for split in sorted(newest[0].keys() & newest[1].keys()):
        pair = [records[split] for records in newest]
        unknown = f"The outputs for {split} cannot be compared. "
        pairs = missing.attempt(_same_pairs, runs, pair, consequence=unknown)
        test = None
        if pairs:
            test = missing.attempt(_test, runs, pair, pairs, consequence=unknown)
        splits.append((split, pair, pairs, test))
    if not (splits or (first.evaluations() and second.evaluations())):
        raise ValueError(
            "Two runs to compare need evaluations, or a split that both have decoded."
            f" Received: {title}. Decode with --split=test."
        )
    facts = {
        "title": title,
        "runs": runs,
        "missing": missing,
        "charts": charts(curves),
        "splits": splits,
        **FUNCTIONS,
    }
    path = first.own(f"report.{second.path.resolve().name}.html")
    write_text(path, to_html(title, render(facts, "comparison.md.jinja")))
    return path


def _same_pairs(
    runs: Sequence[RunFolder], records: Sequence[DecodeRecord]
) -> list[tuple[str, str]]:
    """The pairs that two runs decoded. Raises ValueError if they differ, and as
    `_pairs`.
    """
    first, second = map(_pairs, runs, records)
    if first != second:
        raise ValueError("Their sentences differ.")
    return first


def is_comparable(name: str, records: Sequence[DecodeRecord]) -> bool:
    """Whether two scores of the same pairs were computed in the same way."""
    signatures = set()
    for record in records:
        signatures.add(RESAMPLING.sub("", record.signatures.get(name, "")))
    return len(signatures) == 1


def _test(
    runs: Sequence[RunFolder],
    records: Sequence[DecodeRecord],
    pairs: Sequence[tuple[str, str]],
) -> dict[str, Any]:
    """Tests whether two runs' outputs for the same pairs differ, by the metrics of
    their task. Raises as `RunFolder.decoded_lines`.
    """
    task = _task(runs[0], records[0])
    sources, references = zip(*pairs, strict=True)
    bleu = records[0].signatures.get("BLEU", "")
    options = corpus_metrics.DEFAULTS
    for name in corpus_metrics.TOKENIZERS:
        if f"|tok:{name}" in bleu:
            options = corpus_metrics.MetricOptions(name, "|case:lc|" in bleu)
    metrics = task.all_metrics
    # BLEU is of whole texts
    metric = next((name for name in metrics if name != "bleu"), "chrf")
    lines = list(map(str, range(1, len(sources) + 1)))
    columns = sources, lines, *map(RunFolder.decoded_lines, runs, records)
    scored, all_references = task.scored_rows(columns, [references])
    more = all_references[1:]
    sides = scored[2], scored[3], all_references[0]
    return {
        "sources": scored[0],
        "lines": scored[1],
        "differences": comparison.paired_bootstrap(
            *sides, metrics, options, more_references=more
        ),
        "metric": metric,
        "changes": comparison.largest_changes(*sides, metric, options, more, 10),
    }


def read_metrics(folder: Path, missing: Missing) -> dict[str, dict[int, float]]:
    """Reads the scalars in TensorBoard's event files, each up to damage: name -> step
    -> value. What a resumed run repeated replaces the earlier values.
    """
    events = EventAccumulator(str(folder), {TENSORS: 0})
    damaged = "TensorBoard's events are damaged: "
    missing.attempt(events.Reload, consequence=damaged)
    metrics = {}
    for tag in events.Tags()[TENSORS]:
        values = missing.attempt(_scalars, events, tag, consequence=damaged)
        metrics[tag] = values or {}
    return metrics


def _scalars(events: EventAccumulator, tag: str) -> dict[int, float]:
    values = {}
    for event in events.Tensors(tag):
        array = make_ndarray(event.tensor_proto)
        if array.ndim == 0 and array.dtype.kind == "f":
            values[event.step] = float(array)
    return dict(sorted(values.items()))


def charts(metrics: dict[str, dict[int, float]]) -> list[str]:
    """A chart of the loss and of each metric that chooses checkpoints, with a line for
    training and each dev set.
    """
    drawn = []
    for metric, title in {"loss": "Loss", **METRIC_NAMES}.items():
        lines = {}
        for tag, values in metrics.items():
            if tag.endswith(f"/{metric}"):
                name = tag.removesuffix(f"/{metric}")
                lines["training" if name == "train" else name] = values
        unit = "nats per target token" if metric == "loss" else "percent"
        drawn.append(line_chart(title, unit, lines))
    return list(filter(None, drawn))


def _samples(
    run: RunFolder, record: DecodeRecord, missing: Missing
) -> list[dict[str, Any]]:
    """Some outputs of a decoding, evenly spread, each with its source and reference if
    they are known.
    """
    outputs = run.decoded_lines(record)
    lacking = "Samples lack sources and references. "
    pairs = missing.attempt(_pairs, run, record, consequence=lacking)
    samples = []
    for i in evenly_spaced(len(outputs), 8):
        sample: dict[str, Any] = {"number": i + 1}
        if pairs:
            sample["source"], sample["reference"] = pairs[i]
        samples.append({**sample, "output": outputs[i]})
    return samples


def _pairs(run: RunFolder, record: DecodeRecord) -> list[tuple[str, str]]:
    """The pairs that were decoded. Raises as `RunFolder.decoded_lines`."""
    sources = run.decoded_lines(record, "src")
    references = run.decoded_lines(record, _task(run, record).references_ending)
    return list(zip(sources, references, strict=True))


def _task(run: RunFolder, record: DecodeRecord) -> Task:
    """The task that made the outputs of a decoding."""
    manifest = run.manifest()
    task = open_task(manifest.task, manifest.options)
    return task.as_sequences() if record.decode_hparams.get("t2t_rules") else task


# what the template calls
FUNCTIONS = {
    "default_options": DecodeHParams(),
    "fields": vars,
    "is_comparable": is_comparable,
    "metric_names": METRIC_NAMES,
    "shown_value": shown_value,
    "signature_lines": signature_lines,
}
