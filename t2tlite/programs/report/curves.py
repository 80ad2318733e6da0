"""The curves in the report of a run: its metrics over steps, and a warning of
overfitting.
"""

from __future__ import annotations

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
# title, unit, legend -> metric, whether the scale is logarithmic
Chart = tuple[str, str, dict[str, str], bool]
CHARTS: list[Chart] = [
    (
        "Loss",
        "nats per target token",
        {"training": "train/loss", "dev": "dev/loss"},
        False,
    ),
    ("Perplexity on dev", "per token, log scale", {"dev": "dev/perplexity"}, True),
    ("Accuracy on dev", "share of target tokens", {"dev": "dev/accuracy"}, False),
    ("Learning rate", "step size of Adam", {"training": "train/learning_rate"}, False),
    (
        "Speed",
        "source and target tokens/s",
        {"training": "train/tokens_per_second"},
        False,
    ),
]


def overfitting_blocks(metrics: Metrics) -> list[str]:
    """A warning if the dev loss rose by more than RISE from its best while the training
    loss fell.
    """
    dev, training = metrics.get("dev/loss", {}), metrics.get("train/loss", {})
    if not dev:
        return []
    best, last = min(dev, key=dev.__getitem__), max(dev)
    # as many steps as after
    before = [loss for step, loss in training.items() if 2 * best - last < step <= best]
    after = [loss for step, loss in training.items() if best < step <= last]
    if (
        not (before and after)
        or dev[last] <= (1 + RISE) * dev[best]
        or mean(after) >= mean(before)
    ):
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
    known = {metric for _, _, lines, _ in CHARTS for metric in lines.values()}
    # BLEU or F1
    others = [name for name in metrics if name.startswith("dev/") and name not in known]
    scores: list[Chart] = [
        (f"{_shown(name)} on dev", "percent", {"dev": name}, False) for name in others
    ]
    charts = [*CHARTS[:3], *scores, *CHARTS[3:]]
    columns = []
    for _, _, lines, _ in charts:
        columns += [metric for metric in lines.values() if metric in metrics]
    if not columns:
        return [paragraph("The run has no TensorBoard events to draw.")]
    steps = sorted(metrics.get("dev/loss") or metrics[columns[0]])
    chosen = [steps[i] for i in evenly_spaced(len(steps) - 1, CURVE_ROWS - 1)]
    rows = []
    for step in [*chosen, steps[-1]]:
        values_at_step = [_at(metrics[name], step) for name in columns]
        rows.append([f"{step:,}", *values_at_step])
    values = table(["step", *columns], rows)
    note = (
        "The training loss includes label smoothing and dropout, the dev loss neither."
    )
    evaluated = _only_evaluation(metrics)
    try:
        drawn = _draw([_with_other_sets(chart, metrics) for chart in charts], metrics)
    except ImportError:
        reason = (
            "The curves are not drawn, because matplotlib is not installed. Install it"
            " with "
        )
        advice = paragraph(
            reason,
            Code("pip install 't2tlite[plots]'"),
            f" and write the report again. {note}",
        )
        return [advice, *evaluated, values]
    charts_drawn = [drawings(drawn)] if drawn else []
    return [
        paragraph(note),
        *evaluated,
        *charts_drawn,
        folded("Values of the curves", values),
    ]


def _with_other_sets(chart: Chart, metrics: Metrics) -> Chart:
    """The chart of a metric of dev with lines for the other dev sets."""
    title, unit, lines, log = chart
    of_dev = lines.get("dev")
    if of_dev is None:
        return chart
    ending = of_dev.removeprefix("dev")
    lines = dict(lines)
    for metric in metrics:
        name = metric.removesuffix(ending)
        if name not in (metric, "dev", "train"):
            lines[name] = metric
    return title, unit, lines, log


def _draw(charts: Sequence[Chart], metrics: Metrics) -> list[str]:
    """The charts of metrics with more than one value. Raises ImportError if matplotlib
    is not installed.
    """
    from t2tlite.programs.report.line_chart import line_chart

    drawn = []
    for title, unit, lines, log in charts:
        series = {
            name: metrics[metric]
            for name, metric in lines.items()
            if len(metrics.get(metric, ())) > 1
        }
        drawn.append(line_chart(title, unit, series, log))
    return list(filter(None, drawn))


def dev_set_blocks(
    evaluations: Sequence[DevEvaluation], best: DevEvaluation | None
) -> list[str]:
    """A table of the metrics on each dev set, at the last evaluation and at the best;
    empty if there is only one dev set.
    """
    last = evaluations[-1:]
    shown = [
        evaluation
        for evaluation in evaluations
        if evaluation in last or (best and evaluation.step == best.step)
    ]
    rows = []
    names: dict[str, None] = {}
    for evaluation in shown:
        sets = {"dev": evaluation.metrics, **(evaluation.other_sets or {})}
        if len(sets) == 1:
            continue
        for metrics in sets.values():
            names.update(dict.fromkeys(metrics))
        rows += [
            (name, f"{evaluation.step:,}", metrics) for name, metrics in sets.items()
        ]
    if not rows:
        return []
    lines = []
    for name, step, metrics in rows:
        values = [shown_value(metric, metrics.get(metric)) for metric in names]
        lines.append([name, step, *values])
    header = ["dev set", "step", *(METRIC_NAMES.get(name, name) for name in names)]
    caption = "Dev sets, at the last evaluation and at the best"
    return [table(header, lines, caption)]


def _only_evaluation(metrics: Metrics) -> list[str]:
    """A table of the dev metrics if the run was evaluated only once, as charts would be
    single dots.
    """
    on_dev = {
        name: values for name, values in metrics.items() if name.startswith("dev/")
    }
    steps = sorted({step for values in on_dev.values() for step in values})
    if len(steps) != 1:
        return []
    rows = [[_shown(name), _at(values, steps[0])] for name, values in on_dev.items()]
    return [
        table(["on dev", "value"], rows, f"The only evaluation, at step {steps[0]:,}")
    ]


def _at(values: Mapping[int, float], step: int) -> str:
    """The value at a step, or the last one before it: some metrics are recorded only
    every few seconds.
    """
    until_then = [value for at, value in values.items() if at <= step]
    if not until_then:
        return ""
    value = until_then[-1]
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _shown(metric: str) -> str:
    """The name of a metric of dev as it is shown."""
    name = metric.removeprefix("dev/")
    return METRIC_NAMES.get(name, name)
