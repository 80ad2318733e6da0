"""Table 3 of the paper as a sweep: train the run of each row, decode dev with it, and
write the table so far.

O/ROW               the run of a row, as t2t-trainer makes it; O/ROW.seed2 with another
                    seed
O/table3.md, .json  the table, and table3.png its plot; written anew after each row
                    (table.py)
"""

from __future__ import annotations

import dataclasses
import gc
import shlex
import time
from collections.abc import Sequence
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

from t2tlite.config import HParams
from t2tlite.console import say
from t2tlite.data.dataset import Dataset
from t2tlite.data.splits import DEV
from t2tlite.decoding.text_decoder import TextDecoder
from t2tlite.files.own_files import own
from t2tlite.files.text_files import write_lines
from t2tlite.programs.bulk.decode_file import progress_bar
from t2tlite.programs.runs.dev_decoder import scored_text
from t2tlite.programs.runs.same_model import check_shared_embeddings
from t2tlite.programs.runs.train import TrainingOptions, train_run
from t2tlite.programs.table3.results import (
    RowResult,
    cost_of,
    dev_options,
    dev_record_name,
    read_result,
)
from t2tlite.programs.table3.rows import ROWS, Row
from t2tlite.programs.table3.table import Table, has_matplotlib
from t2tlite.run_folder import RunFolder
from t2tlite.run_records import DecodeRecord
from t2tlite.training.checkpoints import reason_of
from t2tlite.training.loop_config import LoopConfig

# what a row fails with, without ending the sweep
FAILURES = (FloatingPointError, MemoryError, tf.errors.ResourceExhaustedError)


@dataclasses.dataclass(frozen=True)
class Sweep:
    """The settings that all rows of a sweep share."""

    dataset: Dataset  # perplexity and BLEU are those of its dev split
    base: HParams  # changed by each row
    folder: Path  # of the runs and the table
    strategy: tf.distribute.Strategy  # the devices
    # of the training loop; each row has its own train_steps and random_seed
    config: LoopConfig
    command: Sequence[str]  # the command line, for the table and each run's flags.txt

    def run(self, rows: Sequence[Row], seeds: Sequence[int]) -> Path:
        """Trains and decodes each row that is not finished, seed by seed, and writes
        the table after each. Returns its path.

        The table shows all rows that fit the base, with all results so far. A row whose
        loss is not finite, or that runs out of memory, is left out and reported at the
        end (ValueError). Raises ValueError before anything is trained if a folder has a
        run of other hparams, data or seed.
        """
        check_rows(rows, self.base, self.dataset)
        todo = []
        for seed in seeds:
            for row in rows:
                self._check_run(row, seed)
                if self._result(row, seed) is None:
                    todo.append((row, seed))
        finished = len(seeds) * len(rows) - len(todo)
        end = f", {finished} are finished." if finished else "."
        say(f"{len(todo)} runs to do{end}")
        if not has_matplotlib():
            say(
                "table3.png needs matplotlib: pip install 't2tlite[plots]'. The table"
                " is written without it."
            )
        path = self.table().write(self.folder)
        failed = []
        for number, (row, seed) in enumerate(todo, start=1):
            left = self._time_left(todo[number - 1 :])
            say(f"\nRow {number} of {len(todo)}: {row.name}, seed {seed}{left}.")
            try:
                result = self._train_and_decode(row, seed)
            except FAILURES as error:
                reason = reason_of(error)
                say(f"Row {row.name}, seed {seed} failed: {reason}")
                failed.append(f"{row.name}, seed {seed} ({reason})")
            else:
                path = self.table().write(self.folder)
                say(
                    f"Row {row.name}: perplexity {result.perplexity:.3f},"
                    f" {result.metric} {result.bleu:.2f}. Table: {path}"
                )
            finally:
                forget_models()
        if failed:
            raise ValueError(
                f"Every row must train to its end. Received: {'; '.join(failed)}. If"
                " memory is not enough, lower batch_size and raise accumulate_steps by"
                " the same factor for all rows, in another --output_dir."
            )
        return path

    def table(self) -> Table:
        """The rows that fit the base, with all results for these hparams and data, in
        order of seeds.
        """
        results: dict[Row, list[RowResult]] = {}
        for row in ROWS:
            try:
                hparams = row.apply(self.base)
            except ValueError:  # it does not fit the base
                continue
            results[row] = self._results(row, hparams)
        command = shlex.join(self.command)
        return Table(self.dataset.name, self.base, results, command)

    def _results(self, row: Row, hparams: HParams) -> list[RowResult]:
        """The results of all seeds of a row, with these hparams and data."""
        results = []
        for path in (self.folder / row.name, *self.folder.glob(f"{row.name}.seed*")):
            result = read_result(RunFolder(path), row.name, self.dataset)
            if result is None or result.hparams != hparams:
                continue
            if result.data == self.dataset.manifest.data:
                results.append(result)
        results.sort(key=lambda result: result.seed)
        return results

    def _run_folder(self, row: Row, seed: int) -> RunFolder:
        """The run of a row: ROW for seed 1, ROW.seed2 for seed 2."""
        name = row.name if seed == 1 else f"{row.name}.seed{seed}"
        return RunFolder(own(self.folder / name))

    def _result(self, row: Row, seed: int) -> RowResult | None:
        return read_result(self._run_folder(row, seed), row.name, self.dataset)

    def _check_run(self, row: Row, seed: int) -> None:
        """Raises ValueError if the row's folder has a trained run of other hparams,
        data or seed, or a damaged one.
        """
        run = self._run_folder(row, seed)
        if not (run.checkpoints() or run.evaluations()):
            return  # nothing has been learned yet
        changes = row.apply(self.base).diff(run.hparams())
        if changes:
            listed = []
            for name, (new, old) in changes.items():
                listed.append(f"{name} {old} -> {new}")
            raise ValueError(
                f"{run} holds a row of other hparams: {', '.join(listed)}. Use another"
                f" --output_dir, or delete {run} to train it anew."
            )
        manifest = run.manifest()
        trained_with = run.trained_with()
        its_seed = trained_with.random_seed if trained_with else seed
        if (manifest.data, its_seed) != (self.dataset.manifest.data, seed):
            raise ValueError(
                f"{run} must hold a run on {self.dataset.name} with this vocabulary and"
                f" seed {seed}. Received: one on {manifest.name}, seed {its_seed}. Use"
                " another --output_dir."
            )

    def _train_and_decode(self, row: Row, seed: int) -> RowResult:
        """Trains a row, resuming its run if there is one, and decodes dev."""
        hparams = row.apply(self.base)
        run = self._run_folder(row, seed)
        config = dataclasses.replace(
            self.config, train_steps=hparams.train_steps, random_seed=seed
        )
        options = TrainingOptions(command=self.command)
        trained = train_run(self.dataset, hparams, run, config, self.strategy, options)
        decode_dev(run, hparams, trained.decoder, self.dataset)
        result = self._result(row, seed)
        if result is None:
            raise ValueError(
                f"{run} must have the records of its training. Received: a run without"
                f" some of them. Delete {run} to train the row anew."
            )
        return result

    def _time_left(self, todo: Sequence[tuple[Row, int]]) -> str:
        """`, about 3:20 h of training to go`, from the operations and times of finished
        rows.
        """
        seconds = 0.0
        done = 0.0
        for result in self.table().results():
            seconds += result.seconds
            done += self._flops(result.hparams)
        if not seconds:
            return ""
        left = 0.0
        for row, _ in todo:
            left += self._flops(row.apply(self.base))
        minutes = round(left * seconds / done / 60)
        return f", about {minutes // 60}:{minutes % 60:02d} h of training to go"

    def _flops(self, hparams: HParams) -> float:
        """Operations of complete training with these hparams, on one replica."""
        return cost_of(hparams, self.dataset).flops_per_step * hparams.train_steps


def check_rows(rows: Sequence[Row], base: HParams, dataset: Dataset) -> None:
    """Raises ValueError if a row's learned positions do not reach all pairs of dev that
    the other rows evaluate, or it would share embeddings of two vocabularies.
    """
    limit = base.max_evaluated_length
    longest = _longest_in_dev(dataset, limit)
    for row in rows:
        hparams = row.apply(base)
        check_shared_embeddings(hparams, dataset)
        if hparams.max_positions is not None and longest > hparams.max_positions:
            raise ValueError(
                "Learned positions (pos=emb) reach max_length tokens. Received:"
                f" max_length={hparams.max_length}, but dev's longest sentence (row"
                f" {row.name}; --rows can leave it out) has {longest}. Raise"
                " max_length."
            )


def _longest_in_dev(dataset: Dataset, limit: int) -> int:
    """Tokens of the longest side of a pair of dev that is evaluated, its EOS
    included.
    """
    dev = dataset.manifest.split(DEV)
    longest = max(dev.longest_source, dev.longest_target)
    if longest <= limit:
        return longest
    store = dataset.store(DEV)
    longer = np.maximum(store.source_lengths, store.target_lengths)
    return int(longer[longer <= limit].max(initial=0))


def forget_models() -> None:
    """Frees what Keras and TensorFlow keep of models that are no longer used."""
    keras.utils.clear_session()
    gc.collect()


def decode_dev(
    run: RunFolder, hparams: HParams, decoder: TextDecoder, dataset: Dataset
) -> None:
    """Decodes dev with the newest checkpoint, which `decoder` holds, and records its
    scores in the run.
    """
    sources, references = scored_text(hparams, dataset.store(DEV), decoder, DEV)
    options = dev_options(dataset.manifest)
    started = time.monotonic()
    with progress_bar(total=len(sources), desc="decoding dev", disable=None) as bar:
        decoded = decoder.decode_and_score(sources, references, options, bar.update)
    checkpoint = run.checkpoints()[-1]
    name = dev_record_name(run, dataset.manifest, hparams.train_steps)
    outputs = [best.text for best in decoded.best]
    write_lines(run.decoded_file(name), outputs)
    record = DecodeRecord(
        split=DEV,
        step=hparams.train_steps,
        checkpoint=checkpoint,
        sentences=len(outputs),
        scores=decoded.score.scores,
        signatures=decoded.score.signatures,
        decode_hparams=dataclasses.asdict(options),
        seconds=round(time.monotonic() - started, 2),
        name=name,
    )
    run.write_decode_record(record)
