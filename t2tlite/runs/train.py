"""Training makes a run directory, or resumes the run in one; `run_folder.py` says what is in it."""

from __future__ import annotations

import dataclasses
import os
import platform

import keras
import numpy as np
import tensorflow as tf

import t2tlite
from t2tlite.config import MODEL_FIELDS, HParams
from t2tlite.data.dataset import Dataset
from t2tlite.decoding.translator import Translator
from t2tlite.files.checkpoint_paths import find_checkpoint, step_of
from t2tlite.models.transformer import build_transformer
from t2tlite.runs.decode import spread
from t2tlite.runs.run_folder import Environment, RunFolder, run_of
from t2tlite.tasks.task import Score
from t2tlite.training.cost import training_flops
from t2tlite.training.evaluation import Evaluation
from t2tlite.training.loop import Hooks, Sample, TrainingJob, train
from t2tlite.training.loop_config import LoopConfig
from t2tlite.training.progress import report
from t2tlite.training.strategy import gpu_name, with_dtype_policy

SAMPLES = 6  # dev sentences whose translations TensorBoard shows


@dataclasses.dataclass(frozen=True)
class RunOptions:
    """What a run does in addition to training."""

    eval_bleu: bool = False  # decode dev at each evaluation, and choose the best checkpoint by BLEU (a parser's by F1)
    warm_start_from: str | None = None  # a run or a checkpoint whose weights a new run starts from; None: random ones
    command: str = ""  # the command line, recorded in flags.txt


def train_run(
    dataset: Dataset,
    hparams: HParams,
    folder: RunFolder,
    config: LoopConfig,
    strategy: tf.distribute.Strategy,
    options: RunOptions = RunOptions(),
) -> Evaluation:
    """Trains a model on a dataset, in a new run directory or resuming an old run; returns the last evaluation.

    Raises ValueError if the directory holds a run of another problem, vocabulary or model, and FileNotFoundError if
    there is no checkpoint to start from.
    """
    hparams = with_dtype_policy(hparams, strategy, folder.hparams() if folder.checkpoints() else None)
    warm_start = _warm_start(options.warm_start_from, dataset) if options.warm_start_from else None
    _prepare(folder, dataset, hparams)
    folder.write_flags(options.command)
    folder.write_environment(_environment(strategy))
    tf.keras.utils.set_random_seed(config.random_seed)
    sizes, lengths = dataset.manifest.vocabulary_sizes, dataset.manifest.split("train").mean_lengths
    flops_per_token = training_flops(hparams, sizes[1], *lengths) / sum(lengths)
    with strategy.scope():
        model = build_transformer(hparams, *sizes)
    train_store, dev_store = dataset.store("train"), dataset.store("dev")
    job = TrainingJob(strategy, model, hparams, train_store, dev_store, folder, flops_per_token, warm_start)
    scorer = Translator(model, dataset.encoders, dataset.manifest, hparams.jit_compile)
    sampler = Translator(model, dataset.encoders, dataset.manifest)  # compiling is too slow for six sentences
    return train(job, config, _hooks(scorer, sampler, dataset, options.eval_bleu))


def warm_start_hparams(path: str) -> HParams:
    """The hparams of the run to start from, with a learning rate that rises no higher than where that run stopped.

    A new run warms up from step 0; to the peak of the old schedule it would undo what the weights have learned. `path`
    is a run or one of its checkpoints; FileNotFoundError if there is no checkpoint, or no run that it belongs to.
    """
    hparams, step = run_of(path).hparams(), step_of(find_checkpoint(RunFolder(path).path, path))
    past_peak = step / hparams.learning_rate_warmup_steps
    if past_peak <= 1:
        return hparams
    constant = hparams.learning_rate_constant / past_peak**0.5  # as the rate has fallen since its peak
    return dataclasses.replace(hparams, learning_rate_constant=float(f"{constant:.4g}"))


def _prepare(folder: RunFolder, dataset: Dataset, hparams: HParams) -> None:
    """Makes a run directory, or checks that the run there can resume with these hparams and data."""
    if folder.checkpoints():  # otherwise nothing was learned, and all may change
        _check_hparams(folder, hparams)
        old, new = folder.manifest(), dataset.manifest
        if old.data != new.data:
            raise ValueError(
                f"{folder} holds a run of another problem or vocabulary: {old.name}. Received: {new.name}. Use another "
                "--output_dir."
            )
    vocabularies = [dataset.folder / entry.file for entry in dataset.manifest.vocabulary_entries()]
    folder.create(hparams, dataset.manifest, vocabularies)


def _check_hparams(folder: RunFolder, hparams: HParams) -> None:
    """Raises ValueError where a run cannot resume with these hparams, and reports those that differ."""
    if folder.manifest().imported_from is not None:
        raise ValueError(
            f"A run can be resumed only with the state of its optimizer. Received: {folder}, imported without one. Use "
            f"another --output_dir with --warm_start_from={folder}."
        )
    before = folder.hparams()
    changes = hparams.diff(before)
    if not changes:
        return
    listed = ", ".join(f"{name} {old} -> {new}" for name, (new, old) in changes.items())
    fixed = [name for name in MODEL_FIELDS if name in changes]
    if hparams.max_positions != before.max_positions and "pos" not in changes:
        fixed.append("max_length")
    if "mixed_float16" in changes.get("dtype_policy", ()):
        fixed.append("dtype_policy")  # the optimizer keeps a loss scale with float16 alone
    if fixed:
        raise ValueError(
            f"{folder} holds a run of another model: {listed}. A run's {', '.join(fixed)} cannot change. Use another "
            "--output_dir, or the hparams of before."
        )
    report(f"Changed hparams, from here on: {listed}.")


def _warm_start(path: str, dataset: Dataset) -> str:
    """The checkpoint to start from; reports where its run had another vocabulary."""
    run = run_of(path)
    if run.has_manifest() and run.manifest().vocabulary_sha256 != dataset.manifest.vocabulary_sha256:
        report(f"The run in {run} has another vocabulary than {dataset.name}: its embeddings will mislead.")
    return find_checkpoint(RunFolder(path).path, path)


def _hooks(scorer: Translator, sampler: Translator, dataset: Dataset, with_score: bool) -> Hooks:
    """What is done at an evaluation: decoding and scoring dev if asked, and decoding some sentences of it greedily."""
    store = dataset.store("dev")
    sources, references = store.source_text(), store.target_text()
    if with_score:
        scorer.check_lengths(sources)  # an error before training, not at its first evaluation
    fitting = np.flatnonzero(store.source_lengths <= sampler.max_source_tokens)
    chosen = [fitting[i] for i in spread(len(fitting), SAMPLES)]

    def score() -> Score:
        return scorer.decode_and_score(sources, references, scorer.options()).score

    def samples() -> list[Sample]:
        greedy = sampler.options(beam_size=1)
        found = sampler.decode([sources[i] for i in chosen], greedy)
        reference = sampler.task_under(greedy).reference
        return [
            (sources[i], outputs[0].text, reference(sources[i], references[i]))
            for i, outputs in zip(chosen, found, strict=True)
        ]

    return Hooks(score if with_score else None, samples)


def _environment(strategy: tf.distribute.Strategy) -> Environment:
    """What a run is trained with."""
    on_gpu = "GPU" in strategy.extended.worker_devices[0]
    return Environment(
        t2tlite=t2tlite.__version__,
        tensorflow=tf.__version__,
        keras=keras.__version__,
        numpy=np.__version__,
        python=platform.python_version(),
        device=gpu_name() if on_gpu else f"{platform.machine()} CPU, {os.cpu_count()} cores",
        replicas=strategy.num_replicas_in_sync,
    )
