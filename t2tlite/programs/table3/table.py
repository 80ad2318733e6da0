"""The table of the rows' results: table3.md, table3.json, table3.png."""

from __future__ import annotations

import dataclasses
import importlib.util
import itertools
import platform
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import t2tlite
from t2tlite.config import HParams
from t2tlite.files.atomic_file import atomic_file, write_text
from t2tlite.files.own_files import own
from t2tlite.files.records import write_record
from t2tlite.programs.table3.results import RowResult, mean_and_spread
from t2tlite.programs.table3.rows import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def has_matplotlib() -> bool:
    """Whether table3.png can be drawn."""
    return importlib.util.find_spec("matplotlib") is not None


def settings(hparams: HParams) -> dict[str, str]:
    """The columns of Table 3 that say what a row is."""
    n = hparams.encoder_layers
    m = hparams.decoder_layers
    heads = hparams.num_heads
    return {
        "N": str(n) if n == m else f"{n}+{m}",
        "d_model": str(hparams.hidden_size),
        "d_ff": str(hparams.filter_size),
        "h": str(heads),
        "d_k": str(hparams.key_channels // heads),
        "d_v": str(hparams.value_channels // heads),
        "P_drop": str(hparams.layer_prepostprocess_dropout),
        "eps_ls": str(hparams.label_smoothing),
        "train steps": f"{hparams.train_steps:,}",
    }


def markdown_table(
    columns: Sequence[str], lines: Iterable[Sequence[str]], labels: int
) -> str:
    """A table in Markdown whose first `labels` columns are text, and the others
    numbers.
    """
    rule = ["---"] * labels + ["---:"] * (len(columns) - labels)
    rows = []
    for cells in (columns, rule, *lines):
        rows.append(f"| {' | '.join(cells)} |\n")
    return "".join(rows)


def versions() -> dict[str, str]:
    """The versions of software that results may depend on."""
    return {
        "t2tlite": t2tlite.__version__,
        "TensorFlow": version("tensorflow"),
        "Keras": version("keras"),
        "Python": platform.python_version(),
    }


def shown_versions() -> str:
    """The same in a line: `t2tlite 0.1.0, TensorFlow 2.21.0, ...`."""
    return ", ".join(f"{name} {number}" for name, number in versions().items())


@dataclasses.dataclass(frozen=True)
class Table:
    """The rows with their results."""

    problem: str  # on which the rows were trained
    base: HParams  # changed by each row
    # with their results by seed, possibly none; base first
    rows: Mapping[Row, Sequence[RowResult]]
    command: str  # the command line, recorded below the table

    def write(self, folder: Path) -> Path:
        """Writes table3.md, whose path is returned, table3.json and, with matplotlib,
        table3.png.
        """
        write_text(own(folder / "table3.md"), self.markdown())
        write_record(folder / "table3.json", self.as_json())
        if has_matplotlib():
            self._plot(own(folder / "table3.png"))
        return folder / "table3.md"

    @property
    def _metric(self) -> str:
        results = self.results()
        return results[0].metric if results else "BLEU"

    def results(self) -> list[RowResult]:
        """The results of all rows."""
        return list(itertools.chain.from_iterable(self.rows.values()))

    def markdown(self) -> str:
        """The table and notes on it; a setting equal to base's is blank, as in the
        paper.
        """
        base = settings(self.base)
        columns = ["", "row", *base]
        columns += ["params ×10^6", "PPL (dev)", f"{self._metric} (dev)"]
        columns += ["paper: params ×10^6", "PPL", "BLEU"]
        group = ""
        lines = []
        for row, results in self.rows.items():
            label = row.label if row.group != group else ""
            group = row.group
            lines.append([label, *self._line(row, results, base)])
        table = markdown_table(columns, lines, labels=2)
        notes = "\n".join(f"- {note}" for note in self._notes())
        return f"# Table 3 on {self.problem}\n\n{table}\n{notes}\n"

    def _line(
        self, row: Row, results: Sequence[RowResult], base: Mapping[str, str]
    ) -> list[str]:
        """The cells of a row from its name on."""
        cells = [row.name]
        for name, value in settings(row.apply(self.base)).items():
            is_shown = row.name == "base" or value != base[name]
            cells.append(value if is_shown else "")
        cells.append(f"{results[0].parameters / 1e6:.3g}" if results else "")
        cells += [_formatted(results, "perplexity"), _formatted(results, "bleu")]
        cells.append(str(row.parameters or ""))
        return [*cells, f"{row.perplexity:.2f}", f"{row.bleu:.1f}"]

    def _notes(self) -> list[str]:
        results = self.results()
        signatures = sorted({result.bleu_signature for result in results})
        signed = f": `{' and '.join(signatures)}`." if signatures else "."
        is_bleu = self._metric == "BLEU"
        whose = "BLEU is sacrebleu's" if is_bleu else f"{self._metric} is"
        notes = [
            (
                "Blank settings are those of base. pos_learned (E) learns its positions"
                " instead of taking sinusoids."
            ),
            (
                "Perplexity is per token of the vocabulary, without label smoothing,"
                f" on {self.problem}'s dev split; the paper's is on newstest2013."
            ),
            f"{whose} on dev, beam 4, newest checkpoint, none averaged{signed}",
        ]
        if any(len(seeds) > 1 for seeds in self.rows.values()):
            notes.append(
                "Several seeds: mean ± sample standard deviation (number of seeds)."
            )
        if results:
            hours = sum(result.seconds for result in results) / 3600
            replicas = sorted({result.replicas for result in results})
            shown = ", ".join(str(number) for number in replicas)
            notes.append(
                f"{len(results)} runs, {hours:.1f} hours of training in all, on"
                f" {shown} replica(s)."
            )
        return [*notes, f"Command: `{self.command}`", f"Versions: {shown_versions()}."]

    def as_json(self) -> dict[str, Any]:
        """The table with the result of every seed, for table3.json."""
        rows = []
        for row, results in self.rows.items():
            record: dict[str, Any] = {
                "group": row.group,
                "name": row.name,
                "settings": settings(row.apply(self.base)),
                "paper": {
                    "parameters_millions": row.parameters,
                    "perplexity": row.perplexity,
                    "bleu": row.bleu,
                },
            }
            for name in ("parameters", "perplexity", "bleu"):
                mean = mean_and_spread(results, name)[0] if results else None
                record[f"mean_{name}"] = mean
            record["results"] = [dataclasses.asdict(result) for result in results]
            rows.append(record)
        return {
            "problem": self.problem,
            "command": self.command,
            "versions": versions(),
            "rows": rows,
        }

    def _plot(self, path: Path) -> None:
        """Draws the differences to base, ours beside the paper's, if base and another
        row have results.
        """
        base, *others = self.rows
        rows = [row for row in others if self.rows[row]]
        if not self.rows[base] or not rows:
            return
        from matplotlib.figure import Figure

        figure = Figure(figsize=(11, 1.8 + 0.32 * len(rows)), layout="constrained")
        left, right = figure.subplots(1, 2, sharey=True)
        for axes, field, title, side in (
            (left, "perplexity", "perplexity", "left"),
            (right, "bleu", self._metric, "right"),
        ):
            self._draw_differences(axes, base, rows, field)
            axes.set_xlabel(f"difference to base, {title} of dev ({side} is better)")
        left.set_yticks(
            range(len(rows)), [f"{row.label} {row.name}".strip() for row in rows]
        )
        left.invert_yaxis()
        figure.legend(
            *left.get_legend_handles_labels(),
            loc="outside upper center",
            ncols=4,
            fontsize="small",
        )
        with atomic_file(path) as file:
            figure.savefig(file, format="png", dpi=120)

    def _draw_differences(
        self, axes: Axes, base: Row, rows: Sequence[Row], field: str
    ) -> None:
        """Draws the difference of each row to base, and a thin line between groups."""
        base_mean, _ = mean_and_spread(self.rows[base], field)
        differences = []
        for row in rows:
            paper = round(getattr(row, field) - getattr(base, field), 2)
            mean, spread = mean_and_spread(self.rows[row], field)
            differences.append((paper, mean - base_mean, spread))
        paper, ours, spread = np.array(differences).T
        places = np.arange(len(rows))
        axes.scatter(
            paper,
            places,
            marker="D",
            facecolors="white",
            edgecolors="black",
            label="paper, newstest2013",
            zorder=2,
        )
        axes.hlines(places, paper, ours, color="lightgrey", zorder=1)
        same = paper * ours > 0
        for chosen, colour, label in (
            (same, "tab:blue", f"{self.problem}, in the paper's direction"),
            (
                ~same & (paper != 0),
                "tab:orange",
                f"{self.problem}, in the other direction",
            ),
            (paper == 0, "grey", "the paper sees no difference"),
        ):
            axes.errorbar(
                ours[chosen],
                places[chosen],
                xerr=spread[chosen],
                fmt="o",
                color=colour,
                label=label,
                zorder=3,
            )
        axes.axvline(0.0, color="black", linewidth=0.8)
        axes.grid(axis="x", alpha=0.3)
        for y, (above, below) in enumerate(itertools.pairwise(rows)):
            if above.group != below.group:
                axes.axhline(y + 0.5, color="grey", linewidth=0.5, linestyle=":")


def _formatted(results: Sequence[RowResult], field: str) -> str:
    """`12.69 ± 0.23 (2)` with two seeds, `12.69` with one; empty if there are no
    results.
    """
    if not results:
        return ""
    mean, spread = mean_and_spread(results, field)
    if len(results) == 1:
        return f"{mean:.2f}"
    return f"{mean:.2f} ± {spread:.2f} ({len(results)})"
