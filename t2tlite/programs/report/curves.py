"""The curves in the report of a run: its metrics over steps, and a warning of
overfitting.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from statistics import mean

from t2tlite.decoding.source_text import evenly_spaced
from t2tlite.programs.report.document import Code, drawings, folded, paragraph, table
from t2tlite.programs.runs.checkpoint_choice import NAMES as METRIC_NAMES
from t2tlite.programs.runs.checkpoint_choice import shown_value
from t2tlite.run_records import DevEvaluation

CURVE_ROWS = 12  # of the table of values
RISE = 0.01  # of the dev loss, relative to its best, that is a sign of overfitting

Metrics = Mapping[str, Mapping[int, float]]  # name -> step -> value


@dataclasses.dataclass(frozen=True)
class MetricChart:
    """A chart of metrics over steps."""

    title: str
    unit: str
    lines: Mapping[str, str]  # legend -> metric
    log: bool = False  # whether the scale is logarithmic


LOSS_CHARTS = [
    MetricChart(
        "Loss",
        "nats per target token",
        {"training": "train/loss", "dev": "dev/loss"},
    ),
    MetricChart(
        "Perplexity on dev", "per token, log scale", {"dev": "dev/perplexity"}, log=True
    ),
    MetricChart("Accuracy on dev", "share of target tokens", {"dev": "dev/accuracy"}),
]
TRAINING_CHARTS = [
    MetricChart(
        "Learning rate", "step size of Adam", {"training": "train/learning_rate"}
    ),
    MetricChart(
        "Speed",
        "source and target tokens/s, evaluation left out",
        {"training": "train/tokens_per_second"},
    ),
]


def overfitting_blocks(metrics: Metrics) -> list[str]:
    """A warning if the dev loss rose by more than RISE from its best while the training
    loss fell.
    """
    dev = metrics.get("dev/loss", {})
    if not dev:
        return []
    best = min(dev, key=dev.__getitem__)
    last = max(dev)
    # training losses of the steps after the best, and of as many before it
    before = []
    after = []
    for step, loss in metrics.get("train/loss", {}).items():
        if 2 * best - last < step <= best:
            before.append(loss)
        elif best < step <= last:
            after.append(loss)
    rises = dev[last] > (1 + RISE) * dev[best]
    if not (rises and before and after) or mean(after) >= mean(before):
        return []
    rise = (
        f"The dev loss was best at step {best:,}, {dev[best]:.4g}, and rose to"
        f" {dev[last]:.4g} by step {last:,}"
    )
    fall = (
        f"while the training loss fell from {mean(before):.4g} to {mean(after):.4g}"
        " (means)"
    )
    advice = (
        "Stop there: use the best checkpoint (--checkpoint_path=best). More dropout,"
        " more data or a smaller model lets training continue to improve."
    )
    return [paragraph(f"Warning: overfitting. {rise}, {fall}. {advice}")]


def curve_blocks(metrics: Metrics) -> list[str]:
    """The charts of metrics, without matplotlib a note instead, and a table of their
    values at some steps.
    """
    charts = _charts(metrics)
    columns = []
    for chart in charts:
        columns += [metric for metric in chart.lines.values() if metric in metrics]
    if not columns:
        return [paragraph("The run has no TensorBoard events to draw.")]
    values = _value_table(metrics, columns)
    note = (
        "The training loss includes label smoothing and dropout, the dev loss neither."
    )
    evaluated = _only_evaluation(metrics)
    try:
        drawn = _draw(charts, metrics)
    except ImportError:
        advice = paragraph(
            "The curves are not drawn, because matplotlib is not installed. Install it"
            " with ",
            Code("pip install 't2tlite[plots]'"),
            f" and write the report again. {note}",
        )
        return [advice, *evaluated, values]
    blocks = [paragraph(note), *evaluated]
    if drawn:
        blocks.append(drawings(drawn))
    return [*blocks, folded("Values of the curves", values)]


def _charts(metrics: Metrics) -> list[MetricChart]:
    """The charts of a run, with one for each score of dev, such as BLEU or F1."""
    known: set[str] = set()
    for chart in (*LOSS_CHARTS, *TRAINING_CHARTS):
        known.update(chart.lines.values())
    charts = list(LOSS_CHARTS)
    for name in metrics:
        if name.startswith("dev/") and name not in known:
            title = f"{_shown(name)} on dev"
            charts.append(MetricChart(title, "percent", {"dev": name}))
    return charts + TRAINING_CHARTS


def _value_table(metrics: Metrics, columns: Sequence[str]) -> str:
    """The values of metrics at some steps, the last one included."""
    steps = sorted(metrics.get("dev/loss") or metrics[columns[0]])
    chosen = [steps[i] for i in evenly_spaced(len(steps) - 1, CURVE_ROWS - 1)]
    rows = []
    for step in [*chosen, steps[-1]]:
        values = [_at(metrics[name], step) for name in columns]
        rows.append([f"{step:,}", *values])
    return table(["step", *columns], rows)


def _with_other_sets(chart: MetricChart, metrics: Metrics) -> MetricChart:
    """The chart of a metric of dev with lines for the other dev sets."""
    of_dev = chart.lines.get("dev")
    if of_dev is None:
        return chart
    ending = of_dev.removeprefix("dev")
    lines = dict(chart.lines)
    for metric in metrics:
        name = metric.removesuffix(ending)
        if name not in (metric, "dev", "train"):
            lines[name] = metric
    return dataclasses.replace(chart, lines=lines)


def _draw(charts: Sequence[MetricChart], metrics: Metrics) -> list[str]:
    """The charts of metrics with more than one value. Raises ImportError if matplotlib
    is not installed.
    """
    from t2tlite.programs.report.line_chart import line_chart

    drawn = []
    for chart in charts:
        series = {}
        for name, metric in _with_other_sets(chart, metrics).lines.items():
            if len(metrics.get(metric, ())) > 1:
                series[name] = metrics[metric]
        svg = line_chart(chart.title, chart.unit, series, chart.log)
        if svg:
            drawn.append(svg)
    return drawn


def dev_set_blocks(
    evaluations: Sequence[DevEvaluation], best: DevEvaluation | None
) -> list[str]:
    """A table of the metrics on each dev set, at the last evaluation and at the best;
    empty if there is only one dev set.
    """
    sets: list[tuple[str, int, Mapping[str, float]]] = []  # name, step, metrics
    names: dict[str, None] = {}  # of all metrics, in their order
    for evaluation in evaluations:
        is_last = evaluation is evaluations[-1]
        is_best = best is not None and evaluation.step == best.step
        if not (is_last or is_best) or not evaluation.other_sets:
            continue
        by_name = {"dev": evaluation.metrics, **evaluation.other_sets}
        for name, its_metrics in by_name.items():
            sets.append((name, evaluation.step, its_metrics))
            names |= dict.fromkeys(its_metrics)
    if not sets:
        return []
    lines = []
    for name, step, metrics in sets:
        values = [shown_value(metric, metrics.get(metric)) for metric in names]
        lines.append([name, f"{step:,}", *values])
    header = ["dev set", "step", *(METRIC_NAMES.get(name, name) for name in names)]
    caption = "Dev sets, at the last evaluation and at the best"
    return [table(header, lines, caption)]


def _only_evaluation(metrics: Metrics) -> list[str]:
    """A table of the dev metrics if the run was evaluated only once, as charts would be
    single dots.
    """
    rows = []
    steps: set[int] = set()
    for name, values in metrics.items():
        if name.startswith("dev/"):
            steps.update(values)
            rows.append([_shown(name), _at(values, max(values))])
    if len(steps) != 1:
        return []
    caption = f"The only evaluation, at step {max(steps):,}"
    return [table(["on dev", "value"], rows, caption)]


def _at(values: Mapping[int, float], step: int) -> str:
    """The value at a step, or the last one before it: some metrics are recorded only
    every few seconds.
    """
    shown = ""
    for at, value in values.items():
        if at <= step:
            shown = f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return shown


def _shown(metric: str) -> str:
    """The name of a metric of dev as it is shown."""
    name = metric.removeprefix("dev/")
    return METRIC_NAMES.get(name, name)
