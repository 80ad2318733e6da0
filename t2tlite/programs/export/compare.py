"""The comparison of an export's output with the run's."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np

from t2tlite.config import DecodeHParams
from t2tlite.decoding.tensorflow_engine import TensorFlowEngine
from t2tlite.decoding.text_decoder import TextDecoder
from t2tlite.tasks.task import Output
from t2tlite.types import Seq2SeqModel

TOLERANCE = 1e-4  # of scores and log-probabilities
# batch_size that decodes all sentences in one batch, so that rounding is the same too
ONE_BATCH = 1_000_000


NBest = Sequence[Sequence[Output]]  # hypotheses of each sentence, best first


def keras_model(model: TextDecoder) -> Seq2SeqModel:
    """The model that TensorFlow computes with; ValueError if another engine does."""
    if isinstance(model.engine, TensorFlowEngine):
        return model.engine.model
    raise ValueError(
        "Only a model that TensorFlow loaded can be exported. Received: one loaded"
        f" with engine={model.engine.name}. Load the run without naming an engine."
    )


def by_tensorflow(model: TextDecoder) -> TextDecoder:
    """The same model, computed by TensorFlow without XLA, which would round
    differently.
    """
    if isinstance(model.engine, TensorFlowEngine) and not model.engine.jit_compile:
        return model
    return TextDecoder(
        TensorFlowEngine(keras_model(model)), model.encoders, model.manifest
    )


def decoded(
    model: TextDecoder, sentences: Sequence[str], options: DecodeHParams
) -> NBest:
    """The hypotheses of each sentence's whole beam, highest score first, as
    sequences.
    """
    whole_beam = dataclasses.replace(
        options, return_beams=options.beam_size, batch_size=ONE_BATCH
    )
    return model.decode(sentences, whole_beam, task=model.task.as_sequences())


def scored(
    model: TextDecoder, sources: Sequence[str], targets: Sequence[str]
) -> list[float]:
    """The log-probability of each target given its source."""
    options = DecodeHParams(batch_size=ONE_BATCH)
    return [
        target.log_prob for target in model.score_hypotheses(sources, targets, options)
    ]


def check_export(
    model: TextDecoder,
    sentences: Sequence[str],
    options: DecodeHParams,
    decode: Callable[[Sequence[str]], NBest],
    score: Callable[[Sequence[str], Sequence[str]], Sequence[float]],
) -> None:
    """Raises ValueError unless an export, whose functions these are, decodes and scores
    as the run does.
    """
    run = by_tensorflow(model)
    by_run = decoded(run, sentences, options)
    check_hypotheses(sentences, by_run, decode(sentences))
    targets = [n_best[0].text for n_best in by_run]
    check_log_probs(
        sentences, scored(run, sentences, targets), score(sentences, targets)
    )


def check_hypotheses(sentences: Sequence[str], by_run: NBest, by_export: NBest) -> None:
    """Raises ValueError for the first sentence whose texts differ, or scores by more
    than TOLERANCE.
    """
    for sentence, ours, theirs in zip(sentences, by_run, by_export, strict=True):
        if not _equal(ours, theirs):
            raise ValueError(
                f"An export must decode as the run does. Received for {sentence!r}:"
                f" {_shown(theirs)} from the export, {_shown(ours)} from the run."
                " Nothing was kept. Please report this, with the run's hparams.json."
            )


def check_log_probs(
    sentences: Sequence[str],
    by_run: Sequence[float],
    by_export: Sequence[float],
    tolerance: float = TOLERANCE,
) -> None:
    """Raises ValueError for the first pair whose log-probabilities differ by more than
    the tolerance.
    """
    for sentence, ours, theirs in zip(sentences, by_run, by_export, strict=True):
        if not abs(ours - theirs) <= tolerance:
            raise ValueError(
                "An export must score as the run does. Received for a translation of"
                f" {sentence!r}: log-probability {theirs:.6f} from the export,"
                f" {ours:.6f} from the run. Nothing was kept. Please report this, with"
                " the run's hparams.json."
            )


def _equal(ours: Sequence[Output], theirs: Sequence[Output]) -> bool:
    """Whether two n-best lists have the same texts, and scores that differ by at most
    TOLERANCE.
    """
    if [output.text for output in ours] != [output.text for output in theirs]:
        return False
    our_scores = [output.score for output in ours]
    their_scores = [output.score for output in theirs]
    return np.allclose(our_scores, their_scores, rtol=0, atol=TOLERANCE)


def _shown(n_best: Sequence[Output]) -> str:
    return (
        "; ".join(
            f"{hypothesis.text!r} ({hypothesis.score:.6f})" for hypothesis in n_best
        )
        or "nothing"
    )
