"""Attention Is All You Need on today's TensorFlow, with tensor2tensor's way of working.

    import t2tlite
    data = t2tlite.prepare("grammar_ende", "data")
    model = t2tlite.train(data, "transformer_tiny", "RUN")
    model = t2tlite.load("RUN")                      # the same, later
    model.translate("A man rides a bicycle.")        # -> "Ein Mann fährt Fahrrad."

Importing this package is light: TensorFlow is imported when `load`, `train`, `layers`
or `Transformer` is used. Import it before tensorflow, so that its settings for this
machine (`machine.py`) take effect.
"""

from __future__ import annotations

import dataclasses
import importlib
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from t2tlite import registry
from t2tlite.machine import apply_settings
from t2tlite.registry import register_hparams, register_problem

if TYPE_CHECKING:
    from t2tlite import layers
    from t2tlite.config import HParams, LoopArguments
    from t2tlite.data.dataset import Dataset
    from t2tlite.data.problem import Problem
    from t2tlite.models.transformer import Transformer
    from t2tlite.programs.runs.translator import Translator
    from t2tlite.run_records import DevEvaluation

apply_settings()  # before TensorFlow loads

__version__ = "1.0.0rc1"
__all__ = [
    "Transformer",
    "__version__",
    "get_hparams",
    "get_problem",
    "layers",
    "load",
    "prepare",
    "register_hparams",
    "register_problem",
    "train",
]


def prepare(
    problem: str | Problem | None = None,
    data_dir: str | Path = "data",
    *,
    pairs: Iterable[tuple[str, str]] | None = None,
    dev_pairs: Iterable[tuple[str, str]] | None = None,
    test_pairs: Iterable[tuple[str, str]] | None = None,
    name: str | None = None,
    tmp_dir: str | Path | None = None,
    num_processes: int | None = None,
    **options: Any,
) -> Dataset:
    """Makes the data of a problem, or of pairs of sentences, as t2t-datagen does: a
    vocabulary, token shards and a manifest in `data_dir`/PROBLEM. Complete data is
    kept, and interrupted work resumes.

    Args:
        problem: the name of a problem, such as parallel_text for files of your own, or
            a problem. None for pairs.
        data_dir: the folder that holds a folder for each problem.
        pairs: (source, target) of each sentence to train on, such as
            zip(table["en"], table["de"]). They are read once, and kept in memory.
        dev_pairs: those to evaluate on, which must not be among `pairs`.
        test_pairs: those of the final test; optional.
        name: the name of the data of pairs, by default pairs.
        tmp_dir: the folder of raw files, in which downloads are kept too.
        num_processes: CPU cores that encode text; by default all.
        options: the problem's options, such as train_source="train.en". Where several
            files may be given, one path is enough. Those of pairs are vocab_size and
            others that all problems have, source_language and target_language.

    Returns:
        The data, to be given to `train`.

    Raises:
        FileNotFoundError: a raw file is missing.
        TypeError: `problem` or a folder is of another type.
        ValueError: there is no such problem or option, the text is bad (the message
            names file and line, or the number of a pair), dev_pairs are missing, or
            other data is there.
    """
    from t2tlite.data.problem import GivenPairs, Problem
    from t2tlite.programs.runs.training import DataToMake, dataset_of

    _register_all()
    given = {}
    for split, each in (("train", pairs), ("dev", dev_pairs), ("test", test_pairs)):
        if each is not None:
            given[split] = list(each)
    if problem is None:
        problem = GivenPairs.of(name or "pairs", given, **options)
    elif given or name:
        raise TypeError(f"Give a problem, or pairs and a name. Received: {problem}.")
    elif not isinstance(problem, Problem):
        problem = get_problem(problem, **options)
    elif options:
        raise TypeError(f"Options go with a problem's name. Received: {problem}.")
    return dataset_of(DataToMake(problem, data_dir, tmp_dir, num_processes))


def train(
    problem: str | Dataset,
    hparams: str | HParams | Mapping[str, object],
    output_dir: str | Path,
    *,
    data_dir: str | Path | None = None,
    train_steps: int | None = None,
    eval_bleu: bool = False,
    warm_start_from: str | Path | None = None,
    on_evaluation: Callable[[DevEvaluation], object] | None = None,
    **loop: Unpack[LoopArguments],
) -> Translator:
    """Trains a model on prepared data, as t2t-trainer does, on all GPUs of the machine
    or its CPU. If `output_dir` has a run, training resumes from its newest checkpoint,
    and does nothing if it has ended.

    Args:
        problem: the data that `prepare` returned; or the problem's name, whose data is
            in `data_dir`.
        hparams: the name of a set, such as transformer_base; `HParams`; or a dict of
            changes to the hparams of the run that resumes, of `warm_start_from`, or
            else of transformer_base.
        output_dir: the run folder.
        data_dir: the folder of the data, if `problem` is a name; by default data, or
            where the data of the run that resumes was.
        train_steps: optimizer steps in all, by default those of the hparams.
        eval_bleu: decode dev at each evaluation, and choose the best checkpoint by BLEU
            (or F1).
        warm_start_from: run folder or checkpoint whose weights a new run starts from.
        on_evaluation: called with the record of each evaluation on dev, after it is
            written. An error that it raises ends training, and the same call resumes.
        loop: local_eval_frequency, early_stopping_evals, save_checkpoints_secs,
            keep_checkpoint_max, eval_steps or random_seed, t2t-trainer's flags.

    Returns:
        The model with the weights of the newest checkpoint, as `load` returns it.

    Raises:
        FileNotFoundError: there is no data, or nothing to start from.
        FloatingPointError: training diverged.
        KeyboardInterrupt: it was interrupted. A checkpoint is saved first, and the same
            call resumes.
        MemoryError: the memory is not enough.
        TypeError: an argument is of another type.
        ValueError: a name or value is unknown or out of range, a file is damaged, or
            the run in `output_dir` is of another model or other data.
    """
    from t2tlite.console import say
    from t2tlite.machine import import_tensorflow
    from t2tlite.programs.runs.training import training_of

    _register_all()
    training = training_of(
        problem,
        hparams,
        output_dir,
        data_dir,
        train_steps,
        eval_bleu,
        warm_start_from,
        on_evaluation,
        loop,
    )
    import_tensorflow()  # which makes its logger
    logger = logging.getLogger("tensorflow")
    logger.setLevel(max(logger.level, logging.WARNING))
    from t2tlite.programs.runs.train import train_run

    for line in train_run(training):
        say(line)
    return load(output_dir)


def load(
    run: str | Path | Sequence[str | Path],
    checkpoint_path: str | Path | int | None = None,
    engine: str = "tensorflow",
    quantization: str | None = None,
    *,
    threads: int = 1,
) -> Translator:
    """The trained model in a run folder, ready to translate; or several runs as an
    ensemble, which averages their probabilities in one search.

    Args:
        run: the run folder, which t2t-trainer or `train` made; or a list of runs of
            one problem and vocabulary.
        checkpoint_path: newest (the default), best, averaged, a step, or the path of a
            checkpoint.
        engine: what computes, tensorflow or ctranslate2 (pip install
            't2tlite[ctranslate2]'), which is faster on CPUs; the model is converted
            once, into the run folder.
        quantization: how CTranslate2 stores the weights: float32 (the default), int8
            or float16.
        threads: how many batches of a list of sentences are decoded at a time on a CPU.
            They divide its cores, so one for each core is fastest, as in t2t-decoder.
            TensorFlow divides them only if it has not computed before.

    Raises:
        FileNotFoundError: there is no run, vocabulary or checkpoint.
        TypeError: `run` is not a path.
        ValueError: a file of it is damaged, the engine or quantization is unknown,
            CTranslate2 is not installed or cannot compute the model, `threads` is not
            positive, or the runs of an ensemble differ in problem or vocabulary.
    """
    from t2tlite.programs.runs import load as runs

    return runs.load(run, checkpoint_path, engine, quantization, threads=threads)


def get_problem(name: str, **options: Any) -> Problem:
    """Makes the problem of a name, with values for its options; NAME_rev swaps source
    and target. An option of several values, such as train_source, takes one alone too.

    Raises ValueError if there is no such problem or option, or a value is bad.
    """
    _register_all()
    return registry.get_problem(name, **options)


def get_hparams(name: str, **changes: Any) -> HParams:
    """The hparams of a registered set, with changes to its fields.

    Raises ValueError if there is no such set or field, or a value is bad.
    """
    _register_all()
    hparams: HParams = registry.get_hparams(name)
    return dataclasses.replace(hparams, **changes)


if not TYPE_CHECKING:  # a type checker knows the names, and finds others

    def __getattr__(name: str) -> Any:
        """Imports what needs TensorFlow when it is first used."""
        if name == "layers":
            return importlib.import_module("t2tlite.layers")
        if name == "Transformer":
            return importlib.import_module("t2tlite.models.transformer").Transformer
        raise AttributeError(f"module 't2tlite' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _register_all() -> None:
    """Registers the problems, tasks and hparam sets of this project."""
    for package in ("problems", "tasks", "hparams"):
        importlib.import_module(f"t2tlite.{package}")
