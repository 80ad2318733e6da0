"""A report of a run: what was trained, on what, how it went and what came of it, in one HTML and one markdown file.

    run folder -> facts (events.py, samples.py, this file) -> sections of tables and drawings -> document.py

Whatever part of a run is missing or damaged, the report is made of the rest and says what is missing.
"""

from __future__ import annotations

import dataclasses
import json
import math
import shlex
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import tensorflow as tf

import t2tlite
from t2tlite.config import HParams
from t2tlite.data.dataset import Dataset
from t2tlite.files.atomic_file import write_text
from t2tlite.report.document import (
    Block,
    Code,
    Drawings,
    Folded,
    Listing,
    Paragraph,
    Section,
    Table,
    to_html,
    to_markdown,
)
from t2tlite.report.events import History, read_history
from t2tlite.report.line_chart import line_chart
from t2tlite.report.samples import Decodes, read_decodes, sample_blocks, spread
from t2tlite.tasks.outputs import is_parsing
from t2tlite.training.checkpoints import list_checkpoints, step_of

FLAGS, HPARAMS, MANIFEST, ENVIRONMENT = "flags.txt", "hparams.json", "manifest.json", "environment.json"
ENVIRONMENT_NAMES = {
    "t2tlite": "t2tlite",
    "tensorflow": "TensorFlow",
    "keras": "Keras",
    "numpy": "NumPy",
    "python": "Python",
    "device": "device",
    "replicas": "replicas",
}
CURVE_ROWS = 12  # of the table that stands for the curves in markdown

# chart title, unit, legend -> figure, logarithmic
CHARTS: list[tuple[str, str, dict[str, str], bool]] = [
    ("Loss", "nats per target token", {"training": "train/loss", "dev": "dev/loss"}, False),
    ("Perplexity on dev", "per token, log scale", {"dev": "dev/perplexity"}, True),
    ("Accuracy on dev", "share of target tokens", {"dev": "dev/accuracy"}, False),
    ("Learning rate", "Adam's", {"training": "train/learning_rate"}, False),
    ("Speed", "source and target tokens/s", {"training": "train/tokens_per_second"}, False),
]


def write_report(
    folder: Path, dataset: Dataset | None, base: HParams | None, notes: Sequence[str] = ()
) -> tuple[Path, Path]:
    """Writes the report of a run, RUN/report.html and RUN/report.md.

    Args:
        folder: the run's folder.
        dataset: the run's data, for sources and references of the samples; or None.
        base: the hparam set that `recorded_flags` names; or None where it is not known.
        notes: what else the report should say is missing, a sentence each.

    Returns:
        The paths of the HTML file and the markdown file.

    Raises:
        OSError: they cannot be written.
    """
    title, subtitle, sections = report_sections(folder, dataset, base, notes)
    footer = f"Written by t2t-report of t2tlite {t2tlite.__version__} on {_date(time.time())}."
    paths = folder / "report.html", folder / "report.md"
    write_text(paths[0], to_html(title, subtitle, sections, footer))
    write_text(paths[1], to_markdown(title, subtitle, sections, footer))
    return paths


def recorded_flags(folder: Path) -> dict[str, str]:
    """The flags of the command that trained a run last, such as {"hparams_set": "transformer_base"}."""
    try:
        lines = (folder / FLAGS).read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        return {}
    pairs = (line.removeprefix("--").partition("=") for line in lines if line.startswith("--"))
    return {name: value for name, _, value in pairs}


def report_sections(
    folder: Path, dataset: Dataset | None, base: HParams | None, notes: Sequence[str]
) -> tuple[str, str, list[Section]]:
    """Title, subtitle and content of the report; the arguments are those of `write_report`."""
    missing = list(notes)
    manifest = _read_json(folder / MANIFEST, missing)
    hparams = _read_hparams(folder, missing)
    history = read_history(folder)
    missing += history.complaints
    decodes, complaints = read_decodes(folder)
    missing += complaints
    samples: list[Block] = []
    if decodes:
        samples, complaints = sample_blocks(decodes[0], dataset, manifest)
        missing += complaints
    problem = _problem(manifest)
    hparams_set = recorded_flags(folder).get("hparams_set", "hparam set not recorded")
    middle = [
        Section("Scores", _scores(folder, decodes)),
        Section("Parse trees" if is_parsing(manifest) else "Samples", samples),
        Section("Curves", _curves(history)),
        Section("Checkpoints", _checkpoints(folder)),
        Section("Hyperparameters", _hparams(hparams, base, hparams_set)),
        Section("Data", _data(manifest)),
        Section("Software and command", _environment(folder)),
    ]
    summary = [Section("Summary", [_summary(folder, manifest, hparams_set, history, decodes)])]
    if missing:
        table = Table(["", ""], [[f"{number}.", text] for number, text in enumerate(missing, start=1)])
        summary.append(Section("What is missing here", [table]))
    return (
        f"{problem}, {hparams_set}",
        f"Report of a training run of t2tlite, folder {folder.resolve().name}",
        [*summary, *(s for s in middle if s.blocks)],
    )


def _summary(
    folder: Path, manifest: dict[str, Any], hparams_set: str, history: History, decodes: list[Decodes]
) -> Table:
    languages = manifest.get("languages") or {}
    pair = [languages.get(side) or "" for side in ("source", "target")][:: -1 if manifest.get("reverse") else 1]
    rows = [["problem", _problem(manifest) + (f" ({pair[0]} to {pair[1]})" if all(pair) else "")]]
    rows.append(["hparam set", hparams_set])
    checkpoints = list_checkpoints(folder)
    if checkpoints:
        rows.append(["trained", f"{step_of(checkpoints[-1]):,} steps"])
        parameters = _count_parameters(checkpoints[-1])
        rows += [["parameters", f"{parameters:,}"]] if parameters else []
    pairs = (manifest.get("splits") or {}).get("train", {}).get("pairs")
    rows += [["training pairs", f"{pairs:,}"]] if pairs else []
    if history.seconds:
        rows.append(["training time", f"{_duration(history.seconds)}, evaluations included"])
    flops = _read_json(folder / "cost.json", []).get("flops")
    rows += [["training cost", f"{flops:.2g} floating-point operations, by formula"]] if flops else []
    best = _read_json(folder / "best" / "best.json", [])
    if best:
        figures = ", ".join(f"{name} {value:.4g}" for name, value in best.items() if name != "step")
        rows.append(["best on dev", f"step {best.get('step', 0):,.0f}: {figures}"])
    for entry in decodes[:1]:
        figures = ", ".join(f"{name} {_figure(value)}" for name, value in entry.scores.items())
        rows.append([f"score on {entry.split}", f"{figures} (step {entry.step:,})"])
    return Table(["", ""], rows)


def _scores(folder: Path, decodes: list[Decodes]) -> list[Block]:
    if not decodes:
        command = Code(f"t2t-decoder --output_dir={folder} --split=test")
        return [Paragraph(["No split has been decoded yet. This does it, and the next report shows it: ", command])]
    names = list(dict.fromkeys(name for entry in decodes for name in entry.scores))
    scores, settings = [], []
    for entry in decodes:
        which = [entry.split, f"{entry.step:,}"]
        figures = [_figure(entry.scores[name]) if name in entry.scores else "" for name in names]
        scores.append([*which, Code(entry.checkpoint_name), f"{entry.sentences:,}", *figures])
        options = ", ".join(f"{name} {value:g}" for name, value in entry.options.items())
        settings.append([*which, options, f"{entry.seconds:,.1f} s", Code(entry.signature)])
    return [
        Table(["split", "step", "checkpoint", "sentences", *names], scores),
        Table(["split", "step", "decoding", "time", "signature"], settings, "How it was decoded and scored"),
    ]


def _figure(score: float) -> str:
    """A score with two digits, a count without."""
    return f"{score:,}" if isinstance(score, int) else f"{score:.2f}"


def _curves(history: History) -> list[Block]:
    drawn: dict[str, str] = {}  # figure -> column title
    charts = []
    known = {figure for _, _, lines, _ in CHARTS for figure in lines.values()}
    others = [name for name in history.figures if name.startswith("dev/") and name not in known]  # BLEU or F1
    scores = [(f"{_score(name)} on dev", "", {"dev": name}, False) for name in others]
    for title, unit, lines, log in [*CHARTS[:3], *scores, *CHARTS[3:]]:
        series = {name: history.figures[figure] for name, figure in lines.items() if figure in history.figures}
        series = {name: values for name, values in series.items() if any(map(math.isfinite, values.values()))}
        if series:
            charts.append(line_chart(title, unit, series, log))
            drawn.update({figure: figure for figure in lines.values() if figure in history.figures})
    if not charts:
        return [Paragraph(["The run has no TensorBoard events to draw."])]
    steps = sorted(history.figures.get("dev/loss") or history.figures[next(iter(drawn))])
    chosen = [steps[i] for i in spread(len(steps) - 1, CURVE_ROWS - 1)] + steps[-1:]
    rows = [[f"{step:,}", *(_at(history.figures[figure], step) for figure in drawn)] for step in chosen]
    told = "The training loss includes label smoothing and dropout, the dev loss neither."
    return [Paragraph([told]), Drawings(charts, Table(["step", *drawn.values()], rows))]


def _score(figure: str) -> str:
    """dev/bleu -> BLEU."""
    return figure.removeprefix("dev/").upper()


def _at(values: dict[int, float], step: int) -> str:
    """The figure at a step, or the last before it: some are noted only every few seconds."""
    before = [value for at, value in values.items() if at <= step]
    if not before:
        return ""
    return f"{before[-1]:,.0f}" if abs(before[-1]) >= 1000 else f"{before[-1]:.4g}"


def _checkpoints(folder: Path) -> list[Block]:
    rows = []
    for where, told in ((folder, ""), (folder / "best", "best on dev"), (folder / "averaged", "average of several")):
        for path in list_checkpoints(where):
            files = [file.stat() for file in where.glob(f"{Path(path).name}.*")]
            megabytes = f"{sum(file.st_size for file in files) / 1e6:,.1f} MB"
            date = _date(max((file.st_mtime for file in files), default=0.0))
            rows.append([Code(str(Path(path).relative_to(folder))), f"{step_of(path):,}", megabytes, date, told])
    if not rows:
        return [Paragraph(["The run has no checkpoint: it was stopped before the first one was saved."])]
    return [Table(["checkpoint", "step", "size", "written", ""], rows)]


def _hparams(hparams: HParams | None, base: HParams | None, name: str) -> list[Block]:
    if hparams is None:
        return []
    changes = hparams.diff(base or HParams())
    against = name if base else "the defaults, the paper's base model"
    blocks: list[Block] = [Paragraph([f"As in {against}."])]
    if changes:
        rows = [[Code(field), str(theirs), str(mine)] for field, (mine, theirs) in changes.items()]
        blocks = [Table(["field", name if base else "default", "this run"], rows, f"Differences from {against}")]
    values = [[Code(field), str(value)] for field, value in dataclasses.asdict(hparams).items()]
    return [*blocks, Folded("All hyperparameters", Table(["field", "value"], values))]


def _data(manifest: dict[str, Any]) -> list[Block]:
    blocks: list[Block] = []
    rows = []
    for name, split in (manifest.get("splits") or {}).items():
        sides = ("target", "source") if manifest.get("reverse") else ("source", "target")
        counts = [split.get(key, 0) for key in ("pairs", *(f"{side}_tokens" for side in sides))]
        longest = [split.get(f"longest_{side}", 0) for side in sides]
        dropped = sum((split.get("dropped") or {}).values())
        rows.append([name, *(f"{count:,}" for count in (*counts, *longest, dropped))])
    if rows:
        header = ["split", "pairs", "source tokens", "target tokens", "longest source", "longest target", "dropped"]
        blocks.append(Table(header, rows, "Splits; tokens are pieces of the vocabulary, end marks included"))
    splits = manifest.get("splits") or {}
    vocabularies = [manifest[name] for name in ("vocabulary", "target_vocabulary") if manifest.get(name)]
    if vocabularies:
        version = manifest.get("t2tlite", "of a version not recorded")
        sizes = " and ".join(f"{entry.get('size', 0):,}" for entry in vocabularies)
        blocks.append(Paragraph([f"Made by t2tlite {version}. The vocabulary has {sizes} pieces."]))
        files = [("vocabulary", entry) for entry in vocabularies]
        files += [("made from", entry) for entry in manifest.get("made_from") or ()]
        blocks.append(_files(files, "Vocabulary, and the raw files that the data was made from"))
    shards = [(name, entry) for name, split in splits.items() for entry in split.get("shards") or ()]
    if shards:
        blocks.append(Folded(f"All {len(shards):,} files of tokens", _files(shards)))
    options = [[Code(name), str(value)] for name, value in (manifest.get("options") or {}).items()]
    return [*blocks, *([Table(["option of the problem", "value"], options)] if options else [])]


def _files(entries: Sequence[tuple[str, dict[str, Any]]], caption: str = "") -> Table:
    rows = [
        [what, Code(entry.get("file", "")), f"{entry.get('bytes', 0):,}", Code(entry.get("sha256", ""))]
        for what, entry in entries
    ]
    return Table(["", "file", "bytes", "sha256"], rows, caption)


def _environment(folder: Path) -> list[Block]:
    found = _read_json(folder / ENVIRONMENT, [])
    blocks: list[Block] = [Paragraph(["The versions that trained the run are not recorded."])]
    if found:
        blocks = [Table(["trained with", ""], [[ENVIRONMENT_NAMES.get(k, k), str(v)] for k, v in found.items()])]
    if (folder / FLAGS).is_file():
        command = (folder / FLAGS).read_text(encoding="utf-8", errors="replace").splitlines()
        blocks.append(Listing(" \\\n    ".join(map(shlex.quote, command))))
    return blocks


def _read_json(path: Path, complaints: list[str]) -> dict[str, Any]:
    """A JSON object; empty, with a complaint, where there is none."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(found, dict):
            raise ValueError(f"it holds a {type(found).__name__}")
        return found
    except FileNotFoundError:
        complaints.append(f"{path.name} is missing: was the run copied whole?")
    except (OSError, ValueError) as error:
        complaints.append(f"{path.name} is damaged: {error}.")
    return {}


def _read_hparams(folder: Path, complaints: list[str]) -> HParams | None:
    try:
        return HParams.from_json((folder / HPARAMS).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        complaints.append(f"{HPARAMS} is damaged: {error}")
        return None


def _problem(manifest: dict[str, Any]) -> str:
    name = str(manifest.get("problem", "unknown problem"))
    return name + ("_rev" if manifest.get("reverse") else "")


def _count_parameters(checkpoint: str) -> int:
    """The number of weights in a checkpoint; 0 where it cannot be read."""
    try:
        shapes = [shape for name, shape in tf.train.list_variables(checkpoint) if name.startswith("model/")]
    except (tf.errors.OpError, ValueError, RuntimeError):
        return 0
    return sum(math.prod(shape) for shape in shapes)


def _duration(seconds: float) -> str:
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours:,} h {minutes:02} min" if hours else f"{minutes} min" if minutes else f"{seconds:.0f} s"


def _date(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(seconds))
