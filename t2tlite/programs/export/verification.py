"""Verifies an export: its output for sample sentences must be the run's."""

from __future__ import annotations

import dataclasses
import itertools
import random
from collections.abc import Iterable, Sequence
from typing import Protocol, cast

import numpy as np

from t2tlite.config import DecodeHParams
from t2tlite.data.dataset import open_dataset
from t2tlite.decoding.text_decoder import TextDecoder
from t2tlite.tasks.task import Output
from t2tlite.types import Seq2SeqModel
from t2tlite.vocabularies.text_encoder import TextEncoder

TOLERANCE = 1e-4  # of scores and log-probabilities
LOG_PROB_TOLERANCE = 1e-3  # of programs whose matrix products round differently
# batch_size that decodes all sentences in one batch, so that rounding is the same too
ONE_BATCH = 1_000_000

BLANK = ("", " ", "\u00a0\u200b")  # the last, if the vocabulary normalises text
SAMPLES = 12  # sentences
LONGEST = 48  # tokens of a sample
WORDS = 8  # of a sentence made from the vocabulary, at most
MAX_PIECES = 20_000  # of the vocabulary, from which words are taken


NBest = Sequence[Sequence[Output]]  # hypotheses of each sentence, best first


class OpenedExport(Protocol):
    """An export that was read back."""

    def decode(self, sentences: Sequence[str]) -> NBest:
        """The hypotheses of each sentence's whole beam, best first."""

    def score(self, sources: Sequence[str], targets: Sequence[str]) -> list[float]:
        """The log-probability of each target given its source."""


class DecodedInOneBatch:
    """A model that decodes and scores all sentences in one batch."""

    def __init__(self, model: TextDecoder, options: DecodeHParams) -> None:
        self._model = model
        self._options = dataclasses.replace(
            options, return_beams=options.beam_size, batch_size=ONE_BATCH
        )

    def decode(self, sentences: Sequence[str]) -> NBest:
        """The hypotheses of each sentence's whole beam as sequences, best first."""
        task = self._model.task.as_sequences()
        return self._model.decode(sentences, self._options, task=task)

    def score(self, sources: Sequence[str], targets: Sequence[str]) -> list[float]:
        """The log-probability of each target given its source."""
        options = DecodeHParams(batch_size=ONE_BATCH)
        scored = self._model.score_hypotheses(sources, targets, options)
        return [hypothesis.log_prob for hypothesis in scored]


def keras_model(model: TextDecoder) -> Seq2SeqModel:
    """The model that TensorFlow computes with; ValueError if another engine does."""
    from t2tlite.decoding.tensorflow_engine import TensorFlowEngine  # loads TensorFlow

    if isinstance(model.engine, TensorFlowEngine):
        return cast(Seq2SeqModel, model.engine.model)
    raise ValueError(
        "Only a model that TensorFlow loaded can be exported. Received: one loaded"
        f" with engine={model.engine.name}. Load the run without naming an engine."
    )


def opened_run(model: TextDecoder, options: DecodeHParams) -> DecodedInOneBatch:
    """The run itself, to compare with: without XLA, which would round differently."""
    from t2tlite.decoding.tensorflow_engine import TensorFlowEngine  # loads TensorFlow

    engine = TensorFlowEngine(keras_model(model))
    decoder = TextDecoder(engine, model.encoders, model.manifest)
    return DecodedInOneBatch(decoder, options)


def check_export(
    run: OpenedExport,
    export: OpenedExport,
    sentences: Sequence[str],
    log_prob_tolerance: float = TOLERANCE,
) -> None:
    """Raises ValueError unless an export decodes and scores as the run does."""
    by_run = run.decode(sentences)
    check_hypotheses(sentences, by_run, export.decode(sentences))
    targets = [n_best[0].text for n_best in by_run]
    ours = run.score(sentences, targets)
    theirs = export.score(sentences, targets)
    check_log_probs(sentences, ours, theirs, log_prob_tolerance)


def count_equal(
    run: OpenedExport, export: OpenedExport, sentences: Sequence[str]
) -> int:
    """The number of sentences whose best translations are equal."""
    pairs = zip(run.decode(sentences), export.decode(sentences), strict=True)
    return sum(ours[0].text == theirs[0].text for ours, theirs in pairs)


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
    tolerance: float,
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
    if len(ours) != len(theirs):
        return False
    for first, second in zip(ours, theirs, strict=True):
        close = np.isclose(first.score, second.score, rtol=0, atol=TOLERANCE)
        if first.text != second.text or not close:
            return False
    return True


def _shown(n_best: Sequence[Output]) -> str:
    shown = [f"{output.text!r} ({output.score:.6f})" for output in n_best]
    return "; ".join(shown) or "nothing"


def sample_sentences(model: TextDecoder) -> tuple[list[str], str]:
    """Sentences to verify an export with, the longest first, none blank; and their
    origin: the run's dev data, or if that is gone words of the vocabulary.
    """
    samples = _usable(model, _dev_sentences(model))
    origin = "of dev"
    if not samples:
        samples = _usable(model, _made_sentences(model.source_encoder))
        origin = "made of the vocabulary's words"
    chosen = samples[:: max(1, len(samples) // SAMPLES)][:SAMPLES]
    chosen.sort(key=lambda sample: sample[0], reverse=True)
    return [sentence for _, sentence in chosen], origin


def _usable(model: TextDecoder, sentences: Iterable[str]) -> list[tuple[int, str]]:
    """The number of tokens and the text of each sentence, once, that the model can
    decode and that is not too long.
    """
    limit = min(LONGEST, model.max_source_tokens)
    encoder = model.source_encoder
    unique = list(dict.fromkeys(sentences))
    usable = []
    for sentence, ids in zip(unique, encoder.encode_batch(unique), strict=True):
        if len(ids) <= limit and not encoder.is_blank(sentence):
            usable.append((len(ids), sentence))
    return usable


def _dev_sentences(model: TextDecoder) -> list[str]:
    """The sources of dev; empty if the data is no longer there, or the run was
    imported.
    """
    manifest = model.manifest
    if not manifest.data_dir:
        return []
    try:
        dataset = open_dataset(manifest.data_dir, manifest.name)
        return dataset.store("dev").source_text()
    except (OSError, ValueError):
        return []


def _made_sentences(encoder: TextEncoder) -> list[str]:
    """Sentences of the vocabulary's pieces that have only letters."""
    pieces = (encoder.decode([i]).strip() for i in range(2, encoder.vocab_size))
    letters = itertools.islice(filter(str.isalpha, pieces), MAX_PIECES)
    words = sorted(set(letters)) or ["a"]
    draw = random.Random(0)
    sentences = []
    for _ in range(SAMPLES):
        count = draw.randint(1, WORDS)
        sentences.append(" ".join(draw.choices(words, k=count)))
    return sentences
