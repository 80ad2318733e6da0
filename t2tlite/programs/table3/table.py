"""The table of the rows' results, read from the folders of their runs.

O/ROW        the run of a row, as t2t-trainer makes it; O/ROW.seed2 with another seed
O/table3.md  the table
"""

import dataclasses
import math
import platform
import statistics
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path

import t2tlite
from t2tlite.config import HParams
from t2tlite.console import markdown_table
from t2tlite.data.manifest import RunManifest
from t2tlite.data.splits import DEV
from t2tlite.files import atomic_file, own_files
from t2tlite.programs.table3.rows import ROWS, Row
from t2tlite.programs.templates import fill_in
from t2tlite.run_folder import RunFolder
from t2tlite.training.cost import count_parameters, flops_per_step

BEAM_SIZE = 4


@dataclasses.dataclass(frozen=True)
class RowResult:
    """What a run of a row was measured to be."""

    hparams: HParams
    parameters: int
    perplexity: float  # of dev, per token of the vocabulary, without label smoothing
    score: float  # of dev
    metric: str  # of the score: BLEU, or the main metric of another task
    signature: str  # of the score
    seconds: float  # of training


RowResults = Mapping[Row, Sequence[RowResult]]  # the rows that have results


def read_result(run: RunFolder) -> RowResult | None:
    """The result of a run; None if it is not trained to its end, or dev is not decoded
    with a beam of 4. Raises ValueError if a record is damaged.
    """
    if not run.exists():
        return None
    hparams = run.hparams()
    steps = hparams.train_steps
    evaluations = run.evaluations()
    decoded = None
    for name in (f"{DEV}.{steps}", f"{DEV}.{steps}.beam_size={BEAM_SIZE}"):
        record = run.decode_record(name)
        if record and record.decode_hparams.get("beam_size") == BEAM_SIZE:
            decoded = record
    if not (evaluations and decoded and decoded.signatures):
        return None
    if evaluations[-1].step != steps:
        return None
    metric, signature = next(iter(decoded.signatures.items()))  # the main one is first
    costs = run.costs()
    return RowResult(
        hparams=hparams,
        parameters=count_parameters(hparams, run.manifest().vocabulary_sizes),
        perplexity=evaluations[-1].metrics.get("perplexity", math.inf),
        score=decoded.scores.get(metric, 0.0),
        metric=metric,
        signature=signature,
        seconds=costs[-1].seconds if costs else 0.0,
    )


def read_results(folder: Path) -> RowResults:
    """The results of the runs in a folder, base first."""
    results = {}
    for row in ROWS:
        of_row = []
        for path in (folder / row.name, *sorted(folder.glob(f"{row.name}.seed*"))):
            result = read_result(RunFolder(path))
            if result:
                of_row.append(result)
        if of_row:
            results[row] = of_row
    return results


def write_table(folder: Path, problem: str, command: str) -> Path:
    """Writes the table of the runs in a folder, and returns the path of table3.md.
    `command` is recorded below it.
    """
    path = folder / "table3.md"
    text = markdown(read_results(folder), problem, command)
    atomic_file.write_text(own_files.own(path), text)
    return path


def markdown(results: RowResults, problem: str, command: str) -> str:
    """The table, and notes on it. Each row is shown as what differs from the base, and
    the base as what differs from the paper's.
    """
    runs: list[RowResult] = []
    group = ""
    lines = []
    base = HParams()
    for row, of_row in results.items():
        runs += of_row
        hparams = of_row[0].hparams
        line = {
            "": "" if row.group == group else row.label,
            "row": row.name,
            "changes": ", ".join(hparams.changes(base)),
            "params ×10^6": f"{of_row[0].parameters / 1e6:.3g}",
            "PPL (dev)": _measured(of_row, "perplexity"),
            f"{runs[0].metric} (dev)": _measured(of_row, "score"),
            "paper: params ×10^6": str(row.parameters or ""),
            "PPL": f"{row.perplexity:.2f}",
            "BLEU": f"{row.bleu:.1f}",
        }
        if row is ROWS[0]:
            base = hparams
        group = row.group
        lines.append(line)
    facts = {
        "problem": problem,
        "command": command,
        "table": _table(lines, labels=3),
        "beam_size": BEAM_SIZE,
        "runs": runs,
        "versions": shown_versions(),
    }
    return fill_in("programs/table3/table3.md.jinja", facts)


def cost_table(rows: Sequence[Row], base: HParams, manifest: RunManifest) -> str:
    """Sizes and costs of the rows by formula, a table in Markdown."""
    sizes = manifest.vocabulary_sizes
    lines = []
    for row in rows:
        hparams = row.apply(base).for_replicas(1)
        flops = flops_per_step(hparams, sizes[1], manifest.training.mean_lengths)
        lines.append(
            {
                "row": row.name,
                "params ×10^6": f"{count_parameters(hparams, sizes) / 1e6:.3g}",
                "paper": str(row.parameters or ""),
                "FLOPs per step": f"{flops:.2e}",
                "steps": f"{hparams.train_steps:,}",
                "FLOPs in all": f"{flops * hparams.train_steps:.2e}",
            }
        )
    return (
        f"{_table(lines, labels=1)}\nBy formula, for one replica and each seed."
        f" Vocabulary: {sizes[1]:,} pieces (paper: 37,000)."
    )


def _table(lines: Sequence[Mapping[str, str]], labels: int) -> str:
    """Lines of cells by column as a table; empty if there are none."""
    rows = [list(line.values()) for line in lines]
    return markdown_table(list(lines[0]), rows, labels) if lines else ""


def shown_versions() -> str:
    """The software that results may depend on, in a line."""
    return (
        f"t2tlite {t2tlite.__version__}, TensorFlow {version('tensorflow')},"
        f" Keras {version('keras')}, Python {platform.python_version()}"
    )


def _measured(results: Sequence[RowResult], field: str) -> str:
    """The mean of a field over seeds, with the sample standard deviation and the number
    of several: `12.69 ± 0.23 (2)`.
    """
    values = [getattr(result, field) for result in results]
    mean = f"{statistics.fmean(values):.2f}"
    if len(values) == 1:
        return mean
    return f"{mean} ± {statistics.stdev(values):.2f} ({len(values)})"
