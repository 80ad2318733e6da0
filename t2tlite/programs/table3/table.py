"""The table of the rows' results, read from the folders of their runs.

O/ROW               the run of a row, as t2t-trainer makes it; O/ROW.seed2 with another
                    seed
O/table3.md, .json  the table
"""

import dataclasses
import itertools
import math
import platform
import statistics
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import t2tlite
from t2tlite.config import HParams
from t2tlite.console import markdown_table
from t2tlite.data.manifest import RunManifest
from t2tlite.data.splits import DEV
from t2tlite.files.atomic_file import write_text
from t2tlite.files.own_files import own
from t2tlite.files.records import write_record
from t2tlite.programs.table3.rows import ROWS, Row
from t2tlite.programs.templates import fill_in
from t2tlite.run_folder import RunFolder
from t2tlite.run_records import NO_COST
from t2tlite.training.cost import count_parameters, flops_per_step

BEAM_SIZE = 4


@dataclasses.dataclass(frozen=True)
class RowResult:
    """What a run of a row was measured to be."""

    hparams: HParams
    seed: int
    replicas: int
    parameters: int
    perplexity: float  # of dev, per token of the vocabulary, without label smoothing
    bleu: float  # of dev; of other problems than translation what `metric` names
    metric: str
    bleu_signature: str
    seconds: float  # of training
    training_flops: float  # by formula


RowResults = Mapping[Row, Sequence[RowResult]]  # the rows that have results


def read_result(run: RunFolder) -> RowResult | None:
    """The result of a run; None if it is not trained to its end, or dev is not decoded
    with a beam of 4. Raises ValueError if a record is damaged.
    """
    if not run.exists():
        return None
    hparams = run.hparams()
    steps = hparams.train_steps
    trained_with = run.trained_with()
    evaluations = run.evaluations()
    decoded = None
    for name in (f"{DEV}.{steps}", f"{DEV}.{steps}.beam_size={BEAM_SIZE}"):
        record = run.decode_record(name)
        if record and record.decode_hparams.get("beam_size") == BEAM_SIZE:
            decoded = record
    if not (evaluations and trained_with and decoded):
        return None
    if evaluations[-1].step != steps or not decoded.signatures:
        return None
    metric, signature = next(iter(decoded.signatures.items()))  # the main one is first
    *_, cost = [NO_COST, *run.costs()]
    return RowResult(
        hparams=hparams,
        seed=trained_with.random_seed,
        replicas=trained_with.replicas,
        parameters=count_parameters(hparams, run.manifest().vocabulary_sizes),
        perplexity=evaluations[-1].metrics.get("perplexity", math.inf),
        bleu=decoded.scores.get(metric, 0.0),
        metric=metric,
        bleu_signature=signature,
        seconds=cost.seconds,
        training_flops=cost.flops,
    )


def read_results(folder: Path) -> RowResults:
    """The results of the runs in a folder, base first, each row in order of seeds."""
    results = {}
    for row in ROWS:
        of_row = []
        for path in (folder / row.name, *folder.glob(f"{row.name}.seed*")):
            result = read_result(RunFolder(path))
            if result:
                of_row.append(result)
        if of_row:
            results[row] = sorted(of_row, key=lambda result: result.seed)
    return results


def write_table(folder: Path, problem: str, command: str) -> Path:
    """Writes the table of the runs in a folder, and returns the path of table3.md.
    `command` is recorded below it.
    """
    results = read_results(folder)
    path = folder / "table3.md"
    write_text(own(path), markdown(results, problem, command))
    record = {"problem": problem, "command": command, "versions": versions()}
    write_record(folder / "table3.json", {**record, "rows": _as_json(results)})
    return path


def markdown(results: RowResults, problem: str, command: str) -> str:
    """The table, and notes on it; a setting equal to base's is blank, as in the
    paper.
    """
    runs = list(itertools.chain.from_iterable(results.values()))
    metric = runs[0].metric if runs else "BLEU"
    base: dict[str, str] = {}
    group = ""
    lines = []
    for row, of_row in results.items():
        line = {"": "" if row.group == group else row.label, "row": row.name}
        group = row.group
        settings = row_settings(of_row[0].hparams)
        for name, value in settings.items():
            line[name] = "" if value == base.get(name) else value
        if row is ROWS[0]:
            base = settings
        line |= {
            "params ×10^6": f"{of_row[0].parameters / 1e6:.3g}",
            "PPL (dev)": _measured(of_row, "perplexity"),
            f"{metric} (dev)": _measured(of_row, "bleu"),
            "paper: params ×10^6": str(row.parameters or ""),
            "PPL": f"{row.perplexity:.2f}",
            "BLEU": f"{row.bleu:.1f}",
        }
        lines.append(line)
    facts = {
        "problem": problem,
        "command": command,
        "table": _table(lines, labels=2),
        "metric": metric,
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
        line = {
            "row": row.name,
            "params ×10^6": f"{count_parameters(hparams, sizes) / 1e6:.3g}",
            "paper": str(row.parameters or ""),
            "FLOPs per step": f"{flops:.2e}",
            "steps": f"{hparams.train_steps:,}",
            "FLOPs in all": f"{flops * hparams.train_steps:.2e}",
        }
        lines.append(line)
    pieces = " and ".join(f"{size:,}" for size in dict.fromkeys(sizes))
    return (
        f"{_table(lines, labels=1)}\nBy formula, for one replica and each seed."
        f" Vocabulary: {pieces} pieces (paper: 37,000)."
    )


def row_settings(hparams: HParams) -> dict[str, str]:
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


def _table(lines: Sequence[Mapping[str, str]], labels: int) -> str:
    """Lines of cells by column as a table; empty if there are none."""
    rows = [list(line.values()) for line in lines]
    return markdown_table(list(lines[0]), rows, labels) if lines else ""


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


def _measured(results: Sequence[RowResult], field: str) -> str:
    """The mean of a field over seeds, with the sample standard deviation and the number
    of several: `12.69 ± 0.23 (2)`.
    """
    values = [getattr(result, field) for result in results]
    mean = f"{statistics.fmean(values):.2f}"
    if len(values) == 1:
        return mean
    return f"{mean} ± {statistics.stdev(values):.2f} ({len(values)})"


def _as_json(results: RowResults) -> list[dict[str, Any]]:
    """The rows, each with the result of every seed, for table3.json."""
    rows = []
    for row, of_row in results.items():
        paper = {
            "parameters_millions": row.parameters,
            "perplexity": row.perplexity,
            "bleu": row.bleu,
        }
        seeds = [dataclasses.asdict(result) for result in of_row]
        names = {"group": row.group, "name": row.name}
        rows.append({**names, "paper": paper, "results": seeds})
    return rows
