"""Table 3 of the paper as a sweep: train each row, measure it, keep the table so far.

O/ROW               the run of a row; O/ROW.seed2 that of another seed
O/ROW/result.json   what came out, written when the row is finished
O/table3.md, .json  the table, and table3.png its plot; written anew after each row (t2tlite/table3_report.py)
"""

from __future__ import annotations

import dataclasses
import gc
import math
import statistics
import time
from collections.abc import Sequence
from pathlib import Path

import keras
import tensorflow as tf
from tqdm import tqdm

from t2tlite import runs
from t2tlite.config import HParams
from t2tlite.data.batch_plan import training_plan
from t2tlite.data.dataset import Dataset
from t2tlite.data.input_pipeline import distribute
from t2tlite.files.text_files import write_lines
from t2tlite.metrics.bleu import BleuScore, corpus_bleu
from t2tlite.models.transformer import build_transformer
from t2tlite.runs import train_run as training_run
from t2tlite.table3.table import (
    RESULT,
    Experiment,
    Result,
    has_matplotlib,
    read_lines,
    read_result,
    run_folder,
    write_report,
)
from t2tlite.training.checkpoints import list_checkpoints
from t2tlite.training.cost import Cost, estimate
from t2tlite.training.loop import Schedule
from t2tlite.training.progress import report
from t2tlite.training.run_cost import RunCost, read_cost
from t2tlite.training.train_step import make_optimizer, make_train_step

BEAM_SIZE = 4
PROBE_STEPS = 3  # timed in a dry run, after as many that are not


@dataclasses.dataclass(frozen=True)
class Sweep:
    """What all rows of a sweep have in common.

    Attributes:
        dataset: what to learn; BLEU and perplexity are those of its dev split.
        folder: where runs and the table go.
        strategy: where to train.
        schedule: what happens when; each row has steps and a seed of its own.
        command: the command line, for the table and each run's flags.txt.
    """

    dataset: Dataset
    folder: Path
    strategy: tf.distribute.Strategy
    schedule: Schedule
    command: str

    def run(self, experiments: Sequence[Experiment], seeds: Sequence[int], table: Sequence[Experiment]) -> Path:
        """Trains and measures each row that is not finished, seed by seed, and writes the table after each.

        A row whose loss becomes no number, or that needs more memory than there is, is left out and reported at the
        end, so that the others get their turn.

        Args:
            experiments: the rows to run, in this order.
            seeds: each row is run once for each.
            table: the rows of the table, which shows all that have results; those to run among them.

        Returns:
            The table's file.

        Raises:
            ValueError: a folder holds a row of other hparams (before anything is trained), or rows failed (at the end).
            Interrupted: SIGINT or SIGTERM came; a checkpoint is saved.
        """
        check_positions(experiments, self.dataset)
        todo = [(row, seed) for seed in seeds for row in experiments if not self._is_finished(row, seed)]
        finished = len(seeds) * len(experiments) - len(todo)
        report(f"{len(todo)} runs to do" + (f", {finished} are finished." if finished else "."))
        if not has_matplotlib():
            report("table3.png needs matplotlib: pip install 't2tlite[plots]'. The table is written without it.")
        path = write_report(self.folder, table, self.dataset, self.command)
        failed = []
        for number, (row, seed) in enumerate(todo, start=1):
            left = self._time_left([row for row, _ in todo[number - 1 :]], table)
            report(f"\nRow {number} of {len(todo)}: {row.name}, seed {seed}{left}.")
            try:
                result = self._run_row(row, seed)
            except (FloatingPointError, tf.errors.ResourceExhaustedError) as error:
                reason = str(error).strip().split("\n")[0]
                report(f"Row {row.name}, seed {seed} failed: {reason}")
                failed.append(f"{row.name}, seed {seed} ({reason})")
                continue
            finally:
                forget_models()
            path = write_report(self.folder, table, self.dataset, self.command)
            report(f"Row {row.name}: perplexity {result.perplexity:.3f}, BLEU {result.bleu:.2f}. Table: {path}")
        if failed:
            raise ValueError(
                f"Every row must train to its end. Received: {'; '.join(failed)}. Where memory does not suffice, "
                "lower batch_size and raise accumulate_steps by the same factor for all rows, in another --output_dir."
            )
        return path

    def _run_row(self, row: Experiment, seed: int) -> Result:
        """Trains, evaluates and decodes; writes result.json."""
        folder = run_folder(self.folder, row.name, seed)
        schedule = dataclasses.replace(self.schedule, train_steps=row.hparams.train_steps, random_seed=seed)
        evaluation = training_run.train_run(
            self.dataset, row.hparams, folder, schedule, self.strategy, command=self.command + "\n"
        )
        forget_models()
        cost = read_cost(folder) or RunCost()
        score, parameters = _dev_bleu(folder, self.dataset)
        result = Result(
            row=row.name,
            problem=self.dataset.name,
            vocabulary_sha256=self.dataset.manifest["vocabulary"]["sha256"],
            hparams=dataclasses.asdict(row.hparams),
            seed=seed,
            steps=row.hparams.train_steps,
            replicas=self.strategy.num_replicas_in_sync,
            perplexity=evaluation.perplexity,
            loss=evaluation.loss,
            accuracy=evaluation.accuracy,
            bleu=score.score,
            bleu_signature=score.signature,
            parameters=parameters,
            seconds=cost.seconds,
            training_flops=cost.flops,
        )
        result.write(folder / RESULT)
        return result

    def _is_finished(self, row: Experiment, seed: int) -> bool:
        """Whether a row has its result.

        Raises:
            ValueError: there is a result, or a checkpoint, of something else.
        """
        folder = run_folder(self.folder, row.name, seed)
        result = read_result(folder)
        if result is None:
            if list_checkpoints(folder):
                _check_same(folder, row.hparams, runs.read_hparams(folder))
            return False
        _check_same(folder, row.hparams, HParams(**result.hparams))
        same = (result.problem, result.vocabulary_sha256, result.seed)
        wanted = (self.dataset.name, self.dataset.manifest["vocabulary"]["sha256"], seed)
        if same != wanted:
            raise ValueError(
                f"{folder} must hold a result of {wanted[0]} with this vocabulary and seed {seed}. Received: one of "
                f"{same[0]}, seed {same[2]}. Use another --output_dir."
            )
        return True

    def _time_left(self, todo: Sequence[Experiment], table: Sequence[Experiment]) -> str:
        """`, about 3:20 h of training to go`, by the operations and times of the rows that are finished."""
        done = [result for line in read_lines(self.folder, table, self.dataset) for result in line.results]
        seconds = sum(result.seconds for result in done)
        if not seconds:
            return ""
        speed = sum(self._work(HParams(**result.hparams)) for result in done) / seconds
        minutes = round(sum(self._work(row.hparams) for row in todo) / speed / 60)
        return f", about {minutes // 60}:{minutes % 60:02d} h of training to go"

    def _work(self, hparams: HParams) -> float:
        """Floating-point operations of a whole training, on one replica."""
        return cost_of(hparams, self.dataset).flops_per_step * hparams.train_steps


def dry_run(
    experiments: Sequence[Experiment], num_seeds: int, dataset: Dataset, strategy: tf.distribute.Strategy
) -> str:
    """What the rows would cost: a table of sizes and costs by formula, and of hours by a few timed steps.

    Args:
        experiments: the rows.
        num_seeds: how often each would be run.
        dataset: what they would learn.
        strategy: where.

    Raises:
        ValueError: learned positions do not reach dev's longest pair.
    """
    check_positions(experiments, dataset)
    columns = ("row", "params ×10^6", "paper", "FLOPs per step", "memory, GB", "seconds per step", "steps", "hours")
    lines = [columns, ("---", *["---:"] * (len(columns) - 1))]
    total = 0.0
    for number, row in enumerate(experiments, start=1):
        report(f"Row {number} of {len(experiments)}: timing a few steps of {row.name}.")
        cost = cost_of(row.hparams, dataset)
        try:
            seconds = seconds_per_step(row.hparams, dataset, strategy)
        except tf.errors.ResourceExhaustedError:
            seconds = math.nan  # more memory than there is
        forget_models()
        hours = seconds * row.hparams.train_steps / 3600
        total += 0.0 if math.isnan(hours) else hours
        size = f"{cost.parameters / 1e6:.3g}", str(row.paper_parameters or "")
        figures = f"{cost.flops_per_step:.2e}", f"{cost.memory_bytes / 1e9:.1f}"
        times = (f"{seconds:.3g}", f"{row.hparams.train_steps:,}", f"{hours:.2f}")
        if math.isnan(seconds):
            times = ("too large", times[1], "too large")
        lines.append((row.name, *size, *figures, *times))
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return (
        f"{table}\n\n{total * num_seeds:.2f} hours of training in all with {num_seeds} seed(s), without evaluating and "
        f"decoding. FLOPs and memory are by formula, for each of {strategy.num_replicas_in_sync} replica(s); "
        "TensorFlow needs some memory besides. "
        f"Vocabulary: {dataset.target_encoder.vocab_size:,} pieces (paper: 37,000).\n"
    )


def seconds_per_step(hparams: HParams, dataset: Dataset, strategy: tf.distribute.Strategy) -> float:
    """Median time of a training step on real batches, compilation left out: each batch is seen once before."""
    store, vocabulary = dataset.store("train"), dataset.target_encoder.vocab_size
    plan = training_plan(hparams, store.source_lengths, store.target_lengths, strategy.num_replicas_in_sync, seed=1)
    with strategy.scope():
        model = build_transformer(hparams, vocabulary, vocabulary)
        optimizer = make_optimizer(hparams)
        optimizer.build(model.trainable_variables)
    train_step = make_train_step(strategy, model, optimizer, hparams)
    batches = distribute(strategy, store, plan, 0, PROBE_STEPS, hparams.accumulate_steps)
    times: list[float] = []
    for iterator in (iter(batches), iter(batches)):
        times = []
        for _ in range(PROBE_STEPS):
            started = time.monotonic()
            float(train_step(iterator).loss)  # waits for the device
            times.append(time.monotonic() - started)
    return statistics.median(times)


def check_positions(experiments: Sequence[Experiment], dataset: Dataset) -> None:
    """Raises ValueError where learned positions do not reach dev's longest pair: known before hours of work."""
    dev = dataset.manifest["splits"]["dev"]
    longest = max(dev["longest_source"], dev["longest_target"])
    for row in experiments:
        if row.hparams.pos == "emb" and row.hparams.max_length < longest:
            raise ValueError(
                f"Row {row.name} has learned positions, so max_length must be at least {longest} tokens, dev's longest "
                f"sentence. Received: max_length={row.hparams.max_length}. Raise it for all rows, "
                f"--hparams=max_length={longest}, or leave this row out of --rows."
            )


def cost_of(hparams: HParams, dataset: Dataset) -> Cost:
    """What one step of these hparams costs on this data, by formula."""
    train = dataset.manifest["splits"]["train"]
    lengths = [train[f"{side}_tokens"] / train["pairs"] for side in ("source", "target")]
    source, target = reversed(lengths) if dataset.reverse else lengths
    return estimate(hparams, dataset.target_encoder.vocab_size, source, target)


def forget_models() -> None:
    """Frees what Keras and TensorFlow keep of models that nobody uses any more."""
    keras.utils.clear_session()
    gc.collect()


def _check_same(folder: Path, wanted: HParams, found: HParams) -> None:
    changes = [f"{name} {old} -> {new}" for name, (new, old) in wanted.diff(found).items()]
    if changes:
        raise ValueError(
            f"{folder} holds a row of other hparams: {', '.join(changes)}. Use another --output_dir, or delete "
            f"{folder} to train it anew."
        )


def _dev_bleu(folder: Path, dataset: Dataset) -> tuple[BleuScore, int]:
    """BLEU of dev with beam 4 and the newest checkpoint, and the model's number of parameters."""
    model = runs.load(folder)
    store = dataset.store("dev")
    sources = store.source_text()
    with tqdm(total=len(sources), unit="sentence", desc="decoding dev", dynamic_ncols=True, leave=False) as bar:
        found = model.translate_n_best(sources, model.options(beam_size=BEAM_SIZE), bar.update)
    translations = [best[0].text for best in found]
    write_lines(folder / "decodes" / f"dev.{model.step}.txt", translations)
    return corpus_bleu(translations, store.target_text()), model.model.count_params()
