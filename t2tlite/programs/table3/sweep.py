"""Table 3 of the paper as a sweep: train each row, measure it, and write the table so
far.

O/ROW               the run of a row; O/ROW.seed2 with another seed
O/ROW/result.json   its result, written when the row is finished
O/table3.md, .json  the table, and table3.png its plot; written anew after each row
                    (table.py)
"""

from __future__ import annotations

import dataclasses
import gc
import shlex
from collections.abc import Sequence
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

from t2tlite.config import HParams
from t2tlite.console import say
from t2tlite.data.dataset import Dataset
from t2tlite.decoding.text_decoder import TextDecoder
from t2tlite.files.records import write_record
from t2tlite.files.text_files import write_lines
from t2tlite.programs.bulk.decode_file import progress_bar
from t2tlite.programs.runs.dev_decoder import scored_text
from t2tlite.programs.runs.same_model import check_shared_embeddings
from t2tlite.programs.runs.train import TrainingOptions, train_run
from t2tlite.programs.table3.rows import ROWS, Row
from t2tlite.programs.table3.table import Result, Table, has_matplotlib, read_result
from t2tlite.run_folder import RunFolder
from t2tlite.run_records import NO_COST
from t2tlite.tasks.task import Score
from t2tlite.training.checkpoints import reason_of
from t2tlite.training.cost import Cost, estimate
from t2tlite.training.loop_config import LoopConfig

BEAM_SIZE = 4


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
        """Trains and measures each row that is not finished, seed by seed, and writes
        the table after each.

        A row whose loss is not finite, or that runs out of memory, is left out and
        reported at the end (ValueError). The table, whose path is returned, shows all
        rows that fit the base, with all results so far. Raises ValueError before
        anything is trained if a folder has a row of other hparams.
        """
        check_rows(rows, self.base, self.dataset)
        todo = [
            (row, seed)
            for seed in seeds
            for row in rows
            if not self._is_finished(row, seed)
        ]
        finished = len(seeds) * len(rows) - len(todo)
        say(
            f"{len(todo)} runs to do"
            + (f", {finished} are finished." if finished else ".")
        )
        if not has_matplotlib():
            say(
                "table3.png needs matplotlib: pip install 't2tlite[plots]'. The table"
                " is written without it."
            )
        path = self.table().write(self.folder)
        failed = []
        for number, (row, seed) in enumerate(todo, start=1):
            say(
                f"\nRow {number} of {len(todo)}: {row.name}, seed"
                f" {seed}{self._time_left(todo[number - 1 :])}."
            )
            try:
                result = self._run_row(row, seed)
            except (
                FloatingPointError,
                MemoryError,
                tf.errors.ResourceExhaustedError,
            ) as error:
                reason = reason_of(error)
                say(f"Row {row.name}, seed {seed} failed: {reason}")
                failed.append(f"{row.name}, seed {seed} ({reason})")
            else:
                path = self.table().write(self.folder)
                scores = (
                    f"perplexity {result.perplexity:.3f}, {result.metric}"
                    f" {result.bleu:.2f}"
                )
                say(f"Row {row.name}: {scores}. Table: {path}")
            finally:
                forget_models()
        if failed:
            raise ValueError(
                f"Every row must train to its end. Received: {'; '.join(failed)}. If"
                " memory is not enough, lower batch_size and raise accumulate_steps by"
                " the same factor for all rows, in another --output_dir."
            )
        return path

    def _run_row(self, row: Row, seed: int) -> Result:
        """Trains, evaluates and decodes; writes result.json."""
        hparams, run = row.apply(self.base), self._run_folder(row, seed)
        config = dataclasses.replace(
            self.config, train_steps=hparams.train_steps, random_seed=seed
        )
        options = TrainingOptions(command=self.command)
        evaluation, decoder = train_run(
            self.dataset, hparams, run, config, self.strategy, options
        )
        cost = (run.costs() or [NO_COST])[-1]
        score = _score_dev(run, hparams, decoder, self.dataset)
        result = Result(
            row=row.name,
            problem=self.dataset.name,
            vocabulary_sha256=self.dataset.manifest.vocabulary_sha256,
            hparams=hparams,
            seed=seed,
            steps=hparams.train_steps,
            replicas=self.strategy.num_replicas_in_sync,
            perplexity=evaluation.perplexity,
            loss=evaluation.loss,
            accuracy=evaluation.accuracy,
            bleu=score.value,
            bleu_signature=score.signature,
            parameters=cost_of(hparams, self.dataset).parameters,
            seconds=cost.seconds,
            training_flops=cost.flops,
            metric=score.name,
        )
        write_record(run.result_file, result)
        return result

    def _run_folder(self, row: Row, seed: int) -> RunFolder:
        """The run of a row: ROW for seed 1, ROW.seed2 for seed 2."""
        return RunFolder(
            self.folder / (row.name if seed == 1 else f"{row.name}.seed{seed}")
        )

    def _is_finished(self, row: Row, seed: int) -> bool:
        """Whether a row has its result; ValueError for one, or a checkpoint, of other
        hparams, data or seed.
        """
        run, hparams = self._run_folder(row, seed), row.apply(self.base)
        result = read_result(run)
        recorded = hparams
        if result:
            recorded = result.hparams
        elif run.checkpoints():
            recorded = run.hparams()
        changes = hparams.diff(recorded)
        if changes:
            listed = ", ".join(
                f"{name} {old} -> {new}" for name, (new, old) in changes.items()
            )
            raise ValueError(
                f"{run} holds a row of other hparams: {listed}. Use another"
                f" --output_dir, or delete {run} to train it anew."
            )
        if result and (result.data, result.seed) != (self.dataset.manifest.data, seed):
            raise ValueError(
                f"{run} must hold a result of {self.dataset.name} with this vocabulary"
                f" and seed {seed}. Received: one of {result.problem}, seed"
                f" {result.seed}. Use another --output_dir."
            )
        return result is not None

    def table(self) -> Table:
        """The rows that fit the base, with all results for these hparams and data, in
        order of seeds.
        """
        table: dict[Row, list[Result]] = {}
        for row in ROWS:
            try:
                wanted = self.dataset.manifest.data, row.apply(self.base)
            except ValueError:  # it does not fit the base
                continue
            runs = [self.folder / row.name, *self.folder.glob(f"{row.name}.seed*")]
            results = filter(None, (read_result(RunFolder(run)) for run in runs))
            same = [
                result for result in results if (result.data, result.hparams) == wanted
            ]
            table[row] = sorted(same, key=lambda result: result.seed)
        return Table(self.dataset.name, self.base, table, shlex.join(self.command))

    def _time_left(self, todo: Sequence[tuple[Row, int]]) -> str:
        """`, about 3:20 h of training to go`, from the operations and times of finished
        rows.
        """
        done = self.table().results()
        seconds = sum(result.seconds for result in done)
        if not seconds:
            return ""
        speed = sum(self._flops(result.hparams) for result in done) / seconds
        minutes = round(
            sum(self._flops(row.apply(self.base)) for row, _ in todo) / speed / 60
        )
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
    dev = dataset.manifest.split("dev")
    longest = max(dev.longest_source, dev.longest_target)
    if longest <= limit:
        return longest
    store = dataset.store("dev")
    longer = np.maximum(store.source_lengths, store.target_lengths)
    return int(longer[longer <= limit].max(initial=0))


def cost_of(hparams: HParams, dataset: Dataset) -> Cost:
    """The cost of one step with these hparams on this data, by formula."""
    return estimate(
        hparams,
        dataset.manifest.vocabulary_sizes,
        dataset.manifest.training.mean_lengths,
    )


def forget_models() -> None:
    """Frees what Keras and TensorFlow keep of models that are no longer used."""
    keras.utils.clear_session()
    gc.collect()


def _score_dev(
    run: RunFolder, hparams: HParams, decoder: TextDecoder, dataset: Dataset
) -> Score:
    """BLEU (a parser's F1) of dev with the newest checkpoint, the decoder's, and a beam
    of 4.
    """
    store, options = dataset.store("dev"), decoder.options(beam_size=BEAM_SIZE)
    sources, references = scored_text(hparams, store, decoder, "dev")
    with progress_bar(total=len(sources), desc="decoding dev", disable=None) as bar:
        decoded = decoder.decode_and_score(sources, references, options, bar.update)
    write_lines(
        run.decoded_file(run.decode_name("dev", run.checkpoints()[-1])),
        [best.text for best in decoded.best],
    )
    return decoded.score
