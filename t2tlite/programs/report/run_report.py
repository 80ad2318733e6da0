"""A report of a run, as Markdown and as one HTML page: the model, its data, training
and scores.

    records of the RunFolder, TensorBoard's events -> report.md.jinja -> page.html

If parts of a run are missing or damaged, the report shows the rest and says what is
missing.
"""

import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from tensorboard.backend.event_processing import event_accumulator
from tensorboard.util.tensor_util import make_ndarray

import t2tlite
from t2tlite.config import DecodeHParams, HParams
from t2tlite.data.manifest import RunManifest
from t2tlite.decoding.source_text import evenly_spaced
from t2tlite.files.atomic_file import write_text
from t2tlite.files.checkpoint_paths import AVERAGED, BEST, list_checkpoints
from t2tlite.programs.report.chart import line_chart
from t2tlite.programs.report.document import render, to_html
from t2tlite.programs.runs.load import METRIC_NAMES, run_dataset, shown_value
from t2tlite.run_folder import RunFolder
from t2tlite.run_records import DecodeRecord, Environment
from t2tlite.tasks.parsing import ParsingTask
from t2tlite.tasks.task import Task, open_task, signature_lines
from t2tlite.training.cost import count_parameters
from t2tlite.trees.tree import Tree, format_tree, parse_tree
from t2tlite.trees.tree_drawing import tree_svg

T = TypeVar("T")
Scalars = Mapping[str, Mapping[int, float]]  # name -> step -> value

SENTENCES, TREES = 8, 4  # shown
CURVES = (  # title, unit, metric
    ("Loss", "nats per target token", "loss"),
    ("Accuracy", "share of target tokens", "accuracy"),
    *((name, "percent", metric) for metric, name in METRIC_NAMES.items()),
    ("Learning rate", "step size of Adam", "learning_rate"),
    ("Speed", "source and target tokens/s", "tokens_per_second"),
)


class Missing(list[str]):
    """A sentence about each thing that is missing or damaged."""

    def attempt(
        self, read: Callable[..., T], *arguments: Any, consequence: str = ""
    ) -> T | None:
        """Returns what `read` returns; if that fails, None, and adds a sentence."""
        try:
            return read(*arguments)
        except Exception as error:  # whatever a damaged file makes its reader raise
            self.append(f"{consequence}{error}")
            return None


def write_report(
    run: RunFolder, data_dir: Path | None, base: HParams | None
) -> tuple[Path, Path]:
    """Writes the report of a run, RUN/report.html and RUN/report.md, and returns their
    paths.

    The run's data is in `data_dir`, by default where it was during training; `base` is
    the run's hparam set, or None if it is not known. Raises OSError if the files cannot
    be written.
    """
    missing = Missing()
    attempt = missing.attempt
    manifest = attempt(run.manifest, consequence="Problem and data are not known. ")
    hparams = attempt(run.hparams)
    metrics = read_metrics(run.path, missing)
    decodes, damaged_records = run.decode_records()  # the newest first
    missing += damaged_records
    name = run.flags().get("hparams_set")
    problem = manifest.name if manifest else "unknown problem"
    title = f"{problem}, {name or 'hparam set not recorded'}"
    parameters = None
    changes = {}
    if hparams:
        changes = hparams.diff(base or HParams())
    if hparams and manifest:
        sizes = manifest.vocabulary_sizes
        parameters = attempt(count_parameters, hparams, sizes)
    facts = {
        "run": run,
        "title": title,
        "missing": missing,
        "manifest": manifest,
        "hparams": hparams,
        "parameters": parameters,
        "set_name": name,
        "base": base,
        "changes": changes,
        "costs": attempt(run.costs),
        "best": attempt(run.best),
        "evaluations": attempt(run.evaluations) or [],
        "environment": attempt(run.read, Environment),
        "decodes": decodes,
        "default_options": vars(DecodeHParams()),
        "samples": _samples(run, data_dir, manifest, decodes, missing),
        "charts": _charts(metrics),
        "checkpoints": _checkpoints(run),
        "findings": _findings(manifest),
        "command": " \\\n    ".join(map(shlex.quote, run.command())),
        "names": METRIC_NAMES,
        "version": t2tlite.__version__,
        "now": _date(time.time()),
    }
    filters: dict[str, Callable[..., Any]] = {
        "brackets": format_tree,
        "checkpoint": _checkpoint,
        "fields": vars,
        "shown": shown_value,
        "lines": signature_lines,
    }
    page, markdown = run.report_files
    write_text(page, to_html(title, render({**facts, "draws": True}, filters)))
    write_text(markdown, render({**facts, "draws": False}, filters))
    return page, markdown


def read_metrics(folder: Path, missing: Missing) -> Scalars:
    """Reads the scalars in TensorBoard's event files, each up to damage. What a resumed
    run repeated replaces the earlier values.
    """
    every = {event_accumulator.TENSORS: 0}
    events = event_accumulator.EventAccumulator(str(folder), every)
    damaged = "TensorBoard's events are damaged: "
    missing.attempt(events.Reload, consequence=damaged)
    metrics = {}
    for tag in events.Tags()[event_accumulator.TENSORS]:
        values = missing.attempt(_scalars, events, tag, consequence=damaged)
        metrics[tag] = values or {}
    return metrics


def _scalars(events: event_accumulator.EventAccumulator, tag: str) -> dict[int, float]:
    values = {}
    for event in events.Tensors(tag):
        array = make_ndarray(event.tensor_proto)
        if array.ndim == 0 and array.dtype.kind == "f":
            values[event.step] = float(array)
    return dict(sorted(values.items()))


def _charts(metrics: Scalars) -> list[str]:
    """A chart for each metric of CURVES, with a line for training and each dev set."""
    charts = []
    for title, unit, metric in CURVES:
        series = {}
        for name, values in metrics.items():
            line, _, ending = name.rpartition("/")
            if ending == metric:
                series["training" if line == "train" else line] = values
        charts.append(line_chart(title, unit, series))
    return [chart for chart in charts if chart]


def _samples(
    run: RunFolder,
    data_dir: Path | None,
    manifest: RunManifest | None,
    decodes: Sequence[DecodeRecord],
    missing: Missing,
) -> list[dict[str, Any]]:
    """Some outputs of the newest decoding, evenly spread, each with its source and
    reference if they are known; of a parser with drawn trees.
    """
    if manifest is None or not decodes:
        return []
    record = decodes[0]
    attempt = missing.attempt
    unshown = f"The outputs of {record.name} cannot be shown. "
    options = manifest.options
    task = attempt(open_task, manifest.task, options, consequence=unshown)
    outputs = attempt(run.outputs, record, consequence=unshown)
    if task is None or outputs is None:
        return []
    lacking = "Samples lack sources and references. "
    pairs = attempt(_pairs, run, data_dir, record, consequence=lacking)
    sources, references = pairs or ([], [])
    is_parser = isinstance(task, ParsingTask)
    samples = []
    for i in evenly_spaced(len(outputs), TREES if is_parser else SENTENCES):
        sample: dict[str, Any] = {"number": i + 1, "output": outputs[i]}
        if sources:
            sample |= {"source": sources[i], "reference": references[i]}
        samples.append(sample | _trees(task, sample) if is_parser else sample)
    return samples


def _pairs(
    run: RunFolder, data_dir: Path | None, record: DecodeRecord
) -> tuple[list[str], list[str]]:
    """The sources and references of a decoded split."""
    store = run_dataset(run, data_dir).store(record.split)
    if len(store) != record.sentences:
        raise ValueError(
            f"{record.split} has {len(store):,} pairs now, and had"
            f" {record.sentences:,}."
        )
    return store.source_text(), store.target_text()


def _trees(task: Task, sample: Mapping[str, str]) -> dict[str, Any]:
    """The trees of a sample and their drawings, by caption."""
    trees: dict[str, Tree] = {}
    if "source" in sample:
        gold = task.reference(sample["source"], sample["reference"])
        trees["gold"] = parse_tree(gold)
    mistake = ""
    try:
        trees["predicted"] = parse_tree(sample["output"])
    except ValueError as error:
        mistake = str(error)
    drawings = {}
    for name, tree in trees.items():
        drawings[name] = tree_svg(tree).replace("\n", " ")
    return {"trees": trees, "drawings": drawings, "mistake": mistake}


def _checkpoints(run: RunFolder) -> list[tuple[Path, str]]:
    """The checkpoints, newest, best and averaged, and when each was written."""
    rows = []
    for folder in (run.path, run.best_folder, run.averaged_folder):
        for checkpoint in list_checkpoints(folder):
            written = Path(f"{checkpoint}.index").stat().st_mtime
            rows.append((Path(checkpoint).relative_to(run.path), _date(written)))
    return rows


def _findings(manifest: RunManifest | None) -> list[str]:
    """What t2t-datagen found in the training corpora that would spoil a result."""
    present: dict[str, None] = {}
    for corpus in manifest.corpora.values() if manifest else ():
        present |= dict.fromkeys(corpus.findings)
    return list(present)


def _checkpoint(record: DecodeRecord) -> str:
    """The checkpoint's name, with its folder if it is not one of the run's newest, and
    the number of runs if several decoded together.
    """
    path = Path(record.checkpoint)
    name = path.name
    if path.parent.name in (BEST, AVERAGED):
        name = f"{path.parent.name}/{name}"
    runs = len(record.other_checkpoints) + 1
    return name if runs == 1 else f"{name} in an ensemble of {runs} runs"


def _date(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(seconds))
