"""The results of Table 3's rows, and what is made of them: table3.md, table3.json, table3.png."""

from __future__ import annotations

import dataclasses
import importlib.util
import itertools
import json
import platform
import statistics
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import t2tlite
from t2tlite.config import HParams
from t2tlite.data.dataset import Dataset
from t2tlite.files.atomic_file import atomic_file, write_text

RESULT = "result.json"


@dataclasses.dataclass(frozen=True)
class Experiment:
    """A row to run, and what the paper says of it (newstest2013)."""

    name: str
    group: str  # base, A to E, or big
    hparams: HParams
    paper_perplexity: float  # per token
    paper_bleu: float
    paper_parameters: int | None  # millions; None where the table has a blank


@dataclasses.dataclass(frozen=True)
class Result:
    """What came out of one run of a row; the content of result.json."""

    row: str
    problem: str
    vocabulary_sha256: str
    hparams: dict[str, Any]
    seed: int
    steps: int
    replicas: int
    perplexity: float  # of dev, per token of the vocabulary, without label smoothing
    loss: float  # nats per token
    accuracy: float
    bleu: float  # of dev, sacrebleu's, beam 4
    bleu_signature: str
    parameters: int
    seconds: float  # in the training loop, over all interruptions; evaluation left out
    training_flops: float  # of all replicas: tokens trained on times the cost of one by formula

    def write(self, path: Path) -> None:
        """Writes result.json."""
        write_text(path, json.dumps(dataclasses.asdict(self), indent=2) + "\n")


@dataclasses.dataclass(frozen=True)
class Line:
    """A row of the table with the results of all its seeds."""

    row: Experiment
    results: list[Result]

    def values(self, field: str) -> list[float]:
        """A figure, seed by seed."""
        return [getattr(result, field) for result in self.results]

    def mean(self, field: str) -> float | None:
        """Its mean; None without results."""
        return statistics.fmean(self.values(field)) if self.results else None

    def spread(self, field: str) -> float | None:
        """Its sample standard deviation; None with fewer than two seeds."""
        return statistics.stdev(self.values(field)) if len(self.results) > 1 else None


def run_folder(folder: Path, name: str, seed: int) -> Path:
    """Where the run of a row lies: ROW for seed 1, ROW.seed2 for seed 2."""
    return folder / (name if seed == 1 else f"{name}.seed{seed}")


def read_result(folder: Path) -> Result | None:
    """The result of a run; None where it has none yet.

    Raises:
        ValueError: result.json is damaged.
    """
    path = folder / RESULT
    try:
        result = Result(**json.loads(path.read_text(encoding="utf-8")))
        HParams(**result.hparams)
        return result
    except FileNotFoundError:
        return None
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path} is damaged: {error}. Delete it to measure this row again.") from error


def read_lines(folder: Path, rows: Sequence[Experiment], dataset: Dataset) -> list[Line]:
    """The rows with all results that were had with these very hparams and data, seeds in order."""
    lines = []
    for row in rows:
        results = [read_result(path) for path in (folder / row.name, *folder.glob(f"{row.name}.seed*"))]
        wanted = dataset.name, dataset.manifest["vocabulary"]["sha256"], row.hparams
        same = [r for r in results if r and (r.problem, r.vocabulary_sha256, HParams(**r.hparams)) == wanted]
        lines.append(Line(row, sorted(same, key=lambda result: result.seed)))
    return lines


def write_report(folder: Path, rows: Sequence[Experiment], dataset: Dataset, command: str) -> Path:
    """Writes table3.md, table3.json and, where matplotlib is installed, table3.png.

    Args:
        folder: of the sweep.
        rows: of the table, base first.
        dataset: what the rows learn.
        command: the command line, noted below the table.

    Returns:
        The path of table3.md.
    """
    lines = read_lines(folder, rows, dataset)
    path = folder / "table3.md"
    write_text(path, markdown(lines, dataset.name, command))
    write_text(folder / "table3.json", json.dumps(_as_json(lines, dataset.name, command), indent=2) + "\n")
    if has_matplotlib():
        _plot(lines, dataset.name, folder / "table3.png")
    return path


def has_matplotlib() -> bool:
    """Whether table3.png can be drawn."""
    return importlib.util.find_spec("matplotlib") is not None


SETTINGS = ("N", "d_model", "d_ff", "h", "d_k", "d_v", "P_drop", "eps_ls", "train steps")


def settings(hparams: HParams) -> dict[str, str]:
    """The columns of Table 3 that say what a row is."""
    n, m = hparams.encoder_layers, hparams.decoder_layers
    values = (
        str(n) if n == m else f"{n}+{m}",
        str(hparams.hidden_size),
        str(hparams.filter_size),
        str(hparams.num_heads),
        str(hparams.key_channels // hparams.num_heads),
        str(hparams.value_channels // hparams.num_heads),
        str(hparams.layer_prepostprocess_dropout),
        str(hparams.label_smoothing),
        f"{hparams.train_steps:,}",
    )
    return dict(zip(SETTINGS, values, strict=True))


def markdown(lines: Sequence[Line], problem: str, command: str) -> str:
    """The table, base first; a setting that is base's is blank, as in the paper."""
    ours = ("params ×10^6", "PPL (dev)", "BLEU (dev)")
    theirs = ("paper: params ×10^6", "PPL", "BLEU")
    columns = ("", "row", *SETTINGS, *ours, *theirs)
    text = [f"# Table 3 on {problem}", "", _cells(columns), _cells(["---"] * 2 + ["---:"] * (len(columns) - 2))]
    base = settings(lines[0].row.hparams)
    group = ""
    for line in lines:
        row = line.row
        own = settings(row.hparams)
        changed = [value if line is lines[0] or value != base[name] else "" for name, value in own.items()]
        label = _group(row) if row.group != group else ""
        group = row.group
        parameters = line.mean("parameters")
        figures = [
            "" if parameters is None else f"{parameters / 1e6:.3g}",
            _figure(line, "perplexity"),
            _figure(line, "bleu"),
            str(row.paper_parameters or ""),
            f"{row.paper_perplexity:.2f}",
            f"{row.paper_bleu:.1f}",
        ]
        text.append(_cells([label, row.name, *changed, *figures]))
    text += ["", *_notes(lines, problem, command)]
    return "\n".join(text) + "\n"


def _notes(lines: Sequence[Line], problem: str, command: str) -> list[str]:
    results = [result for line in lines for result in line.results]
    signatures = sorted({result.bleu_signature for result in results})
    notes = [
        "Blank settings are those of base. pos_learned (E) learns its positions instead of taking sinusoids.",
        f"Perplexity is per token of the vocabulary, without label smoothing, on {problem}'s dev split; the paper's "
        "is on newstest2013.",
        "BLEU is sacrebleu's on dev, beam 4, newest checkpoint, none averaged"
        + (f": `{' and '.join(signatures)}`." if signatures else "."),
    ]
    if any(len(line.results) > 1 for line in lines):
        notes.append("Several seeds: mean ± sample standard deviation (number of seeds).")
    if results:
        hours = sum(result.seconds for result in results) / 3600
        replicas = ", ".join(map(str, sorted({result.replicas for result in results})))
        notes.append(f"{len(results)} runs, {hours:.1f} hours of training in all, on {replicas} replica(s).")
    notes += [f"Command: `{command}`", f"Versions: {', '.join(f'{k} {v}' for k, v in versions().items())}."]
    return [f"- {note}" for note in notes]


def versions() -> dict[str, str]:
    """What the figures may depend on."""
    return {
        "t2tlite": t2tlite.__version__,
        "TensorFlow": version("tensorflow"),
        "Keras": version("keras"),
        "Python": platform.python_version(),
    }


def _group(row: Experiment) -> str:
    return f"({row.group})" if row.group != row.name else ""  # base and big are in none


def _figure(line: Line, field: str) -> str:
    mean, spread = line.mean(field), line.spread(field)
    if mean is None:
        return ""
    return f"{mean:.2f}" if spread is None else f"{mean:.2f} ± {spread:.2f} ({len(line.results)})"


def _cells(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _as_json(lines: Sequence[Line], problem: str, command: str) -> dict[str, Any]:
    return {
        "problem": problem,
        "command": command,
        "versions": versions(),
        "rows": [
            {
                "group": line.row.group,
                "name": line.row.name,
                "settings": settings(line.row.hparams),
                "paper": {
                    "parameters_millions": line.row.paper_parameters,
                    "perplexity": line.row.paper_perplexity,
                    "bleu": line.row.paper_bleu,
                },
                **{f"mean_{field}": line.mean(field) for field in ("parameters", "perplexity", "bleu")},
                "results": [dataclasses.asdict(result) for result in line.results],
            }
            for line in lines
        ],
    }


def _plot(lines: Sequence[Line], problem: str, path: Path) -> None:
    """Draws each row's difference to base, ours beside the paper's; nothing before base and another row are there."""
    base, *others = lines
    rows = [line for line in others if line.results]
    if not base.results or not rows:
        return
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 1.8 + 0.32 * len(rows)), layout="constrained")
    figures = (("perplexity", "perplexity of dev (left is better)"), ("bleu", "BLEU of dev (right is better)"))
    axes = figure.subplots(1, len(figures), sharey=True)
    for axis, (field, title) in zip(axes, figures, strict=True):
        paper_base = getattr(base.row, f"paper_{field}")
        theirs = [round(getattr(line.row, f"paper_{field}") - paper_base, 2) for line in rows]
        ours = [(line.mean(field) or 0.0) - (base.mean(field) or 0.0) for line in rows]
        for y, (line, their, our) in enumerate(zip(rows, theirs, ours, strict=True)):
            axis.plot([their, our], [y, y], color="lightgrey", zorder=1)
            axis.errorbar(our, y, xerr=line.spread(field) or 0.0, fmt="o", color=_colour(our, their), zorder=3)
        axis.scatter(theirs, range(len(rows)), marker="D", facecolors="white", edgecolors="black", zorder=2)
        axis.axvline(0.0, color="black", linewidth=0.8)
        axis.set_xlabel(f"difference to base, {title}")
        axis.grid(axis="x", alpha=0.3)
        for y, (above, below) in enumerate(itertools.pairwise(rows)):
            if above.row.group != below.row.group:
                axis.axhline(y + 0.5, color="grey", linewidth=0.5, linestyle=":")
    axes[0].set_yticks(range(len(rows)), [f"{_group(line.row)} {line.row.name}".strip() for line in rows])
    axes[0].invert_yaxis()
    for label, style in (
        ("paper, newstest2013", {"marker": "D", "color": "white", "markeredgecolor": "black"}),
        (f"{problem}, in the paper's direction", {"marker": "o", "color": AGREES}),
        (f"{problem}, in the other direction", {"marker": "o", "color": DIFFERS}),
        ("the paper sees no difference", {"marker": "o", "color": NEITHER}),
    ):
        axes[0].plot([], [], linestyle="", label=label, **style)
    figure.legend(loc="outside upper center", ncols=4, fontsize="small")
    with atomic_file(path) as file:
        figure.savefig(file, format="png", dpi=120)


AGREES, DIFFERS, NEITHER = "tab:blue", "tab:orange", "grey"


def _colour(our: float, their: float) -> str:
    """By direction; the paper's difference of zero has none."""
    if their == 0.0:
        return NEITHER
    return AGREES if our * their > 0 else DIFFERS
