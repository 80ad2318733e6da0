"""The cost of the rows of Table 3: by formula, and from the time of a few steps of each
row.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Sequence

import tensorflow as tf

from t2tlite.config import HParams
from t2tlite.console import say
from t2tlite.data.batch_plan import training_plan
from t2tlite.data.dataset import Dataset
from t2tlite.data.input_pipeline import distribute
from t2tlite.models.transformer import build_transformer
from t2tlite.programs.table3.results import cost_of
from t2tlite.programs.table3.rows import Row
from t2tlite.programs.table3.sweep import check_rows, forget_models
from t2tlite.programs.table3.table import markdown_table
from t2tlite.training.optimizer import make_optimizer
from t2tlite.training.train_step import make_train_step

PROBE_STEPS = 3  # timed, after as many untimed steps


def cost_table(
    rows: Sequence[Row], base: HParams, dataset: Dataset, replicas: int
) -> str:
    """Sizes and costs of the rows by formula, a table in Markdown. Raises as
    `check_rows`.
    """
    check_rows(rows, base, dataset)
    columns = (
        "row",
        "params ×10^6",
        "paper",
        "FLOPs per step",
        "steps",
        "FLOPs in all",
        "memory, GB",
    )
    lines = []
    for row in rows:
        hparams = row.apply(base)
        cost = cost_of(hparams, dataset)
        line = (
            row.name,
            f"{cost.parameters / 1e6:.3g}",
            str(row.parameters or ""),
            f"{cost.flops_per_step:.2e}",
            f"{hparams.train_steps:,}",
            f"{cost.flops_per_step * hparams.train_steps:.2e}",
            f"{cost.memory_bytes / 1e9:.1f}",
        )
        lines.append(line)
    source, target = dataset.manifest.vocabulary_sizes
    pieces = f"{source:,}" if source == target else f"{source:,} and {target:,}"
    return (
        f"{markdown_table(columns, lines, labels=1)}\nBy formula, for each of"
        f" {replicas} replica(s) and each seed; TensorFlow needs some memory in"
        f" addition. Vocabulary: {pieces} pieces (paper: 37,000).\n"
    )


def timed_rows(
    rows: Sequence[Row],
    base: HParams,
    num_seeds: int,
    dataset: Dataset,
    strategy: tf.distribute.Strategy,
) -> Iterator[str]:
    """Times a few steps of each row. Yields a Markdown table piece by piece, each row
    when its time is known.
    """
    started = time.monotonic()
    flops = [cost_of(row.apply(base), dataset).flops_per_step for row in rows]
    hours = 0.0
    for number, row in enumerate(rows):
        left = ""
        if number:
            passed = time.monotonic() - started
            seconds_left = passed * sum(flops[number:]) / sum(flops[:number])
            left = f", {seconds_left:,.0f} s to go"
        say(
            f"Row {number + 1} of {len(rows)}: timing {2 * PROBE_STEPS} steps of"
            f" {row.name}{left}."
        )
        hparams = row.apply(base)
        steps = f"{hparams.train_steps:,}"
        try:
            seconds = seconds_per_step(hparams, dataset, strategy)
            hours_of_row = seconds * hparams.train_steps / 3600
            hours += hours_of_row
            line = (row.name, f"{seconds:.3g}", steps, f"{hours_of_row:.2f}")
        except tf.errors.ResourceExhaustedError:  # not enough memory
            line = (row.name, "too large", steps, "too large")
        forget_models()
        columns = ("row", "seconds per step", "steps", "hours")
        table = markdown_table(columns, [line], labels=1)
        yield table if number == 0 else table.splitlines(keepends=True)[-1]
    yield (
        f"\n{hours * num_seeds:.2f} hours of training in all with {num_seeds} seed(s),"
        " without evaluating and decoding.\n"
    )


def seconds_per_step(
    hparams: HParams, dataset: Dataset, strategy: tf.distribute.Strategy
) -> float:
    """Median time of a training step on real batches, without compilation: each batch
    is run once before.
    """
    corpora = dataset.manifest.corpora
    store = dataset.store(*corpora)
    plan = training_plan(
        hparams,
        store.source_lengths,
        store.target_lengths,
        strategy.num_replicas_in_sync,
        seed=1,
        corpus_pairs=[corpus.pairs for corpus in corpora.values()],
    )
    with strategy.scope():
        model = build_transformer(hparams, *dataset.manifest.vocabulary_sizes)
        optimizer = make_optimizer(model)
    train_step = make_train_step(strategy, model, optimizer)
    batches = distribute(
        strategy, store, plan, 0, PROBE_STEPS, hparams.accumulate_steps
    )
    times = []
    for iterator in (iter(batches), iter(batches)):
        for _ in range(PROBE_STEPS):
            started = time.monotonic()
            float(train_step(iterator).loss)  # waits for the device
            times.append(time.monotonic() - started)
    return statistics.median(times[PROBE_STEPS:])
