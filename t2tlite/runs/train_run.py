"""Training makes a run directory, or goes on in one; `runs.py` says what lies in it."""

from __future__ import annotations

import dataclasses
import json
import os
import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

import t2tlite
from t2tlite.config import MODEL_FIELDS, HParams
from t2tlite.data.dataset import MANIFEST, Dataset
from t2tlite.data.encode_shards import file_sha256
from t2tlite.decoding.decoder import Decoder
from t2tlite.decoding.translator import decode_options, make_decoder
from t2tlite.files.atomic_file import atomic_file, write_text
from t2tlite.models.transformer import Transformer, build_transformer
from t2tlite.runs import ENVIRONMENT, HPARAMS, read_hparams, read_manifest, run_of
from t2tlite.tasks.outputs import OutputScore, is_parsing, rank_parses, score_outputs
from t2tlite.training.checkpoints import find_checkpoint, list_checkpoints, step_of
from t2tlite.training.cost import training_flops
from t2tlite.training.evaluation import Evaluation
from t2tlite.training.loop import Schedule, report, train
from t2tlite.vocabularies.encoders import same_vocabularies, vocabulary_entries

SAMPLES = 6  # dev sentences whose translations TensorBoard shows


def train_run(
    dataset: Dataset,
    hparams: HParams,
    folder: Path,
    schedule: Schedule,
    strategy: tf.distribute.Strategy,
    eval_bleu: bool = False,
    command: str = "",
) -> Evaluation:
    """Trains a model on a dataset, in a new run directory or going on in an old one.

    Args:
        dataset: what to learn.
        hparams: of the model and its training.
        folder: the run directory.
        schedule: what happens when; `warm_start_from` may be a run or a folder of checkpoints.
        strategy: where to train.
        eval_bleu: decode dev at each evaluation, and keep the best checkpoint by BLEU (F1 of a parser) instead of loss.
        command: the command line, noted in flags.txt.

    Returns:
        The last evaluation.

    Raises:
        ValueError: the directory holds a run of another problem, vocabulary or model.
        FileNotFoundError: there is no checkpoint to start from.
    """
    if schedule.warm_start_from:
        schedule = dataclasses.replace(schedule, warm_start_from=_warm_start(schedule.warm_start_from, dataset))
    _prepare(folder, dataset, hparams)
    write_text(folder / "flags.txt", command)
    write_text(folder / ENVIRONMENT, json.dumps(_environment(strategy), indent=2) + "\n")
    tf.keras.utils.set_random_seed(schedule.random_seed)
    sizes = [encoder.vocab_size for encoder in dataset.encoders]
    score = _dev_score(dataset, hparams) if eval_bleu else None
    train_store = dataset.store("train")
    lengths = [float(side.mean()) for side in (train_store.source_lengths, train_store.target_lengths)]
    return train(
        strategy,
        lambda: build_transformer(hparams, *sizes),
        hparams,
        train_store,
        dataset.store("dev"),
        folder,
        schedule,
        score,
        _dev_samples(dataset, hparams),
        training_flops(hparams, sizes[1], *lengths) / sum(lengths),
    )


def _prepare(folder: Path, dataset: Dataset, hparams: HParams) -> None:
    """Makes a run directory, or checks that the one there can go on with these hparams and data."""
    manifest = _run_manifest(dataset)
    if list_checkpoints(folder):  # otherwise nothing was learned, and all may change
        old, before = read_manifest(folder), read_hparams(folder)
        if "imported_from" in old:
            raise ValueError(
                f"A run must have its optimizer's state to be gone on with. Received: {folder}, imported without one. "
                f"Use another --output_dir with --warm_start_from={folder}."
            )
        changes = hparams.diff(before)
        if changes:
            told = ", ".join(f"{name} {old} -> {new}" for name, (new, old) in changes.items())
            fixed = [name for name in MODEL_FIELDS if name in changes]
            if hparams.pos == "emb" and "max_length" in changes:
                fixed.append("max_length")
            if "mixed_float16" in changes.get("dtype_policy", ()):
                fixed.append("dtype_policy")  # the optimizer keeps a loss scale with float16 alone
            if fixed:
                raise ValueError(
                    f"{folder} holds a run of another model: {told}. A run's {', '.join(fixed)} cannot change. Use "
                    "another --output_dir, or the hparams of before."
                )
            report(f"Changed hparams, from here on: {told}.")
        same = old["problem"] == manifest["problem"] and old["reverse"] == manifest["reverse"]
        if not same or not same_vocabularies(old, manifest):
            raise ValueError(
                f"{folder} holds a run of another problem or vocabulary: {old['problem']}"
                f"{'_rev' if old['reverse'] else ''}. Received: {dataset.name}. Use another --output_dir."
            )
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"--output_dir must be a folder. Received: {folder}, which is a file.")
    folder.mkdir(parents=True, exist_ok=True)
    for entry in vocabulary_entries(manifest):
        vocabulary = folder / entry["file"]
        if not vocabulary.exists() or file_sha256(vocabulary) != entry["sha256"]:
            with atomic_file(vocabulary) as file:
                file.write((dataset.folder / entry["file"]).read_bytes())
    write_text(folder / MANIFEST, json.dumps(manifest, indent=2) + "\n")
    write_text(folder / HPARAMS, hparams.to_json())


def _warm_start(path: str, dataset: Dataset) -> str:
    """The checkpoint to start from; says so where its run had another vocabulary."""
    run = run_of(path)
    if (run / MANIFEST).is_file():
        manifest = read_manifest(run)
        if not same_vocabularies(manifest, dataset.manifest, reverse=manifest["reverse"] != dataset.reverse):
            report(f"The run in {run} has another vocabulary than {dataset.name}: its embeddings will mislead.")
    return find_checkpoint(Path(path).expanduser(), path)


def warm_start_hparams(path: str | Path) -> HParams:
    """The hparams of the run to start from, with a learning rate that rises no higher than where that run stopped.

    A new run warms up from step 0; to the peak of the old schedule it would undo what the weights have learned.

    Args:
        path: a run or one of its checkpoints.

    Raises:
        FileNotFoundError: there is no checkpoint, or it belongs to no run.
    """
    hparams, step = read_hparams(run_of(path)), step_of(find_checkpoint(Path(path).expanduser(), path))
    past_peak = step / hparams.learning_rate_warmup_steps
    if past_peak <= 1:
        return hparams
    constant = hparams.learning_rate_constant / past_peak**0.5  # as the rate has fallen since its peak
    return dataclasses.replace(hparams, learning_rate_constant=float(f"{constant:.4g}"))


def _dev_score(dataset: Dataset, hparams: HParams) -> Callable[[Any, int], OutputScore]:
    """A function that decodes dev and scores it: sacrebleu's BLEU, or F1 of trees."""
    store = dataset.store("dev")
    decoders: list[Decoder] = []  # made at the first evaluation, compiled once
    sources, references = store.source_text(), store.target_text()
    manifest = _run_manifest(dataset)
    options = decode_options(dataset.decode_defaults)
    if is_parsing(manifest):
        options = dataclasses.replace(options, return_beams=options.beam_size)

    def score(model: Transformer, step: int) -> OutputScore:
        if not decoders:
            decoders.append(make_decoder(model, options, hparams))
        found = decoders[0].decode(dataset.source_encoder.encode_batch(sources))
        texts = [[dataset.target_encoder.decode(one.ids) for one in n_best] for n_best in found]
        if is_parsing(manifest):
            best = [rank_parses(manifest, n, s.split())[0][0] for n, s in zip(texts, sources, strict=True)]
        else:
            best = [0] * len(texts)
        return score_outputs(manifest, sources, references, [n[i] for n, i in zip(texts, best, strict=True)])

    return score


def _run_manifest(dataset: Dataset) -> dict[str, Any]:
    """What the run notes of its data."""
    manifest = {**dataset.manifest, "reverse": dataset.reverse, "data_dir": str(dataset.folder.parent.resolve())}
    if dataset.reverse:
        manifest["task"] = "translation"  # of bracketed sequences to sentences, where the problem is parsing
    return manifest


def _dev_samples(dataset: Dataset, hparams: HParams) -> Callable[[Any], list[tuple[str, str, str]]]:
    """A function that decodes some sentences of dev greedily and gives (source, output, reference) of each."""
    store = dataset.store("dev")
    chosen = [i * len(store) // SAMPLES for i in range(SAMPLES)] if len(store) > SAMPLES else range(len(store))
    decoders: list[Decoder] = []
    options = decode_options(dataset.decode_defaults, "beam_size=1")

    def samples(model: Transformer) -> list[tuple[str, str, str]]:
        if not decoders:
            # no XLA: compiling the search costs more than it gains here
            decoders.append(make_decoder(model, options, dataclasses.replace(hparams, jit_compile=False)))
        sources, references = store.source_text(), store.target_text()
        found = decoders[0].decode(dataset.source_encoder.encode_batch([sources[i] for i in chosen]))
        outputs = [dataset.target_encoder.decode(best[0].ids) for best in found]
        return [(sources[i], output, references[i]) for i, output in zip(chosen, outputs, strict=True)]

    return samples


def _environment(strategy: tf.distribute.Strategy) -> dict[str, Any]:
    """What a run is trained with."""
    device = f"{platform.machine()} processor, {os.cpu_count()} cores"
    if "GPU" in strategy.extended.worker_devices[0]:
        details = tf.config.experimental.get_device_details(tf.config.list_physical_devices("GPU")[0])
        device = details.get("device_name", "GPU")
    return {
        "t2tlite": t2tlite.__version__,
        "tensorflow": tf.__version__,
        "keras": keras.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "device": device,
        "replicas": strategy.num_replicas_in_sync,
    }
