"""The results of Table 3's rows, and the files with them: table3.md, table3.json,
table3.png.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import itertools
import platform
import statistics
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

import t2tlite
from t2tlite.config import HParams
from t2tlite.files.atomic_file import atomic_file, write_text
from t2tlite.files.records import Amount, Count, read_record, write_record
from t2tlite.programs.table3.rows import Row
from t2tlite.run_folder import RunFolder


@dataclasses.dataclass(frozen=True)
class Result:
    """The result of one run of a row; the content of result.json."""

    row: str
    problem: str
    vocabulary_sha256: str  # of both vocabularies (RunManifest.vocabulary_sha256)
    hparams: HParams
    seed: int
    steps: Count
    replicas: Count
    perplexity: Amount  # of dev, per token of the vocabulary, without label smoothing
    loss: Amount  # nats per token
    accuracy: Amount
    # of dev, beam 4: sacrebleu's, or of other problems than translation what `metric`
    # names
    bleu: Amount
    bleu_signature: str
    parameters: Count
    seconds: Amount  # in the training loop, over all interruptions, without evaluation
    # of all replicas: tokens trained on times the cost of a token by formula
    training_flops: Amount
    metric: str = "BLEU"

    @property
    def data(self) -> tuple[str, str]:
        """What identifies the data: the problem and its vocabularies."""
        return self.problem, self.vocabulary_sha256


def read_result(run: RunFolder) -> Result | None:
    """The result of a run, or None if there is none yet; raises ValueError if
    result.json is damaged.
    """
    try:
        return read_record(
            run.result_file, Result, "Delete it to measure this row again."
        )
    except FileNotFoundError:
        return None


def mean_and_spread(results: Sequence[Result], field: str) -> tuple[float, float]:
    """The mean of a field over seeds, and its sample standard deviation, which is 0 if
    there is one seed.
    """
    values = [getattr(result, field) for result in results]
    return statistics.fmean(values), (
        statistics.stdev(values) if len(values) > 1 else 0.0
    )


def has_matplotlib() -> bool:
    """Whether table3.png can be drawn."""
    return importlib.util.find_spec("matplotlib") is not None


def settings(hparams: HParams) -> dict[str, str]:
    """The columns of Table 3 that say what a row is."""
    n, m, heads = hparams.encoder_layers, hparams.decoder_layers, hparams.num_heads
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
    return "".join(f"| {' | '.join(cells)} |\n" for cells in (columns, rule, *lines))


def versions() -> dict[str, str]:
    """The versions of software that results may depend on."""
    packages = {"TensorFlow": version("tensorflow"), "Keras": version("keras")}
    return {
        "t2tlite": t2tlite.__version__,
        **packages,
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
    rows: Mapping[Row, Sequence[Result]]
    command: str  # the command line, recorded below the table

    def write(self, folder: Path) -> Path:
        """Writes table3.md, whose path is returned, table3.json and, with matplotlib,
        table3.png.
        """
        write_text(folder / "table3.md", self.markdown())
        write_record(folder / "table3.json", self.as_json())
        if has_matplotlib():
            self._plot(folder / "table3.png")
        return folder / "table3.md"

    @property
    def _metric(self) -> str:
        return next((result.metric for result in self.results()), "BLEU")

    def results(self) -> list[Result]:
        """The results of all rows."""
        return [result for results in self.rows.values() for result in results]

    def markdown(self) -> str:
        """The table and notes on it; a setting equal to base's is blank, as in the
        paper.
        """
        base = settings(self.base)
        group = ""
        lines = []
        for row, results in self.rows.items():
            label = row.label if row.group != group else ""
            group = row.group
            shown = []
            for name, value in settings(row.apply(self.base)).items():
                is_shown = row.name == "base" or value != base[name]
                shown.append(value if is_shown else "")
            size = f"{results[0].parameters / 1e6:.3g}" if results else ""
            line = [label, row.name, *shown]
            line += [size, _formatted(results, "perplexity")]
            line.append(_formatted(results, "bleu"))
            line += [str(row.parameters or ""), f"{row.perplexity:.2f}"]
            line.append(f"{row.bleu:.1f}")
            lines.append(line)
        ours = ("params ×10^6", "PPL (dev)", f"{self._metric} (dev)")
        columns = ("", "row", *base, *ours, "paper: params ×10^6", "PPL", "BLEU")
        notes = "".join(f"- {note}\n" for note in self._notes())
        return (
            "# Table 3 on"
            f" {self.problem}\n\n{markdown_table(columns, lines, labels=2)}\n{notes}"
        )

    def _notes(self) -> list[str]:
        results = self.results()
        signatures = " and ".join(sorted({result.bleu_signature for result in results}))
        whose = (
            "BLEU is sacrebleu's" if self._metric == "BLEU" else f"{self._metric} is"
        )
        notes = [
            (
                "Blank settings are those of base. pos_learned (E) learns its positions"
                " instead of taking sinusoids."
            ),
            (
                "Perplexity is per token of the vocabulary, without label smoothing,"
                f" on {self.problem}'s dev split; the paper's is on newstest2013."
            ),
            f"{whose} on dev, beam 4, newest checkpoint, none averaged"
            + (f": `{signatures}`." if signatures else "."),
        ]
        if any(len(seeds) > 1 for seeds in self.rows.values()):
            notes.append(
                "Several seeds: mean ± sample standard deviation (number of seeds)."
            )
        if results:
            hours = sum(result.seconds for result in results) / 3600
            replicas = ", ".join(
                map(str, sorted({result.replicas for result in results}))
            )
            notes.append(
                f"{len(results)} runs, {hours:.1f} hours of training in all, on"
                f" {replicas} replica(s)."
            )
        return [*notes, f"Command: `{self.command}`", f"Versions: {shown_versions()}."]

    def as_json(self) -> dict[str, Any]:
        """The table with the result of every seed, for table3.json."""
        rows = []
        for row, results in self.rows.items():
            paper = {
                "parameters_millions": row.parameters,
                "perplexity": row.perplexity,
                "bleu": row.bleu,
            }
            record: dict[str, Any] = {
                "group": row.group,
                "name": row.name,
                "settings": settings(row.apply(self.base)),
                "paper": paper,
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
        (base, base_results), *others = self.rows.items()
        rows = {row: results for row, results in others if results}
        if not base_results or not rows:
            return
        from matplotlib.figure import Figure

        figure, places = (
            Figure(figsize=(11, 1.8 + 0.32 * len(rows)), layout="constrained"),
            np.arange(len(rows)),
        )
        axes = figure.subplots(1, 2, sharey=True)
        for axis, field, title in zip(
            axes, ("perplexity", "bleu"), ("perplexity", self._metric), strict=True
        ):
            paper = np.array(
                [round(getattr(row, field) - getattr(base, field), 2) for row in rows]
            )
            means, spreads = np.array(
                [mean_and_spread(results, field) for results in rows.values()]
            ).T
            ours = means - mean_and_spread(base_results, field)[0]
            agrees = paper * ours > 0
            style = {
                "marker": "D",
                "facecolors": "white",
                "edgecolors": "black",
                "label": "paper, newstest2013",
            }
            axis.scatter(paper, places, zorder=2, **style)
            axis.hlines(places, paper, ours, color="lightgrey", zorder=1)
            for chosen, colour, label in (
                (agrees, "tab:blue", f"{self.problem}, in the paper's direction"),
                (
                    ~agrees & (paper != 0),
                    "tab:orange",
                    f"{self.problem}, in the other direction",
                ),
                (paper == 0, "grey", "the paper sees no difference"),
            ):
                errors = {
                    "xerr": spreads[chosen],
                    "fmt": "o",
                    "color": colour,
                    "label": label,
                }
                axis.errorbar(ours[chosen], places[chosen], **errors, zorder=3)
            axis.axvline(0.0, color="black", linewidth=0.8)
            axis.set_xlabel(
                f"difference to base, {title} of dev"
                f" ({'left' if axis is axes[0] else 'right'} is better)"
            )
            axis.grid(axis="x", alpha=0.3)
            for y, (above, below) in enumerate(itertools.pairwise(rows)):
                if above.group != below.group:
                    axis.axhline(y + 0.5, color="grey", linewidth=0.5, linestyle=":")
        axes[0].set_yticks(places, [f"{row.label} {row.name}".strip() for row in rows])
        axes[0].invert_yaxis()
        figure.legend(
            *axes[0].get_legend_handles_labels(),
            loc="outside upper center",
            ncols=4,
            fontsize="small",
        )
        with atomic_file(path) as file:
            figure.savefig(file, format="png", dpi=120)


def _formatted(results: Sequence[Result], field: str) -> str:
    """`12.69 ± 0.23 (2)` with two seeds, `12.69` with one; empty if there are no
    results.
    """
    if not results:
        return ""
    mean, spread = mean_and_spread(results, field)
    return (
        f"{mean:.2f} ± {spread:.2f} ({len(results)})"
        if len(results) > 1
        else f"{mean:.2f}"
    )
