"""Verifies an export: its output for sample sentences must be the run's."""

from __future__ import annotations

import dataclasses
import itertools
import random
from collections.abc import Sequence
from typing import Protocol, cast

from t2tlite.config import DecodeHParams
from t2tlite.data.dataset import open_dataset
from t2tlite.decoding.text_decoder import TextDecoder
from t2tlite.tasks.task import Output
from t2tlite.types import Seq2SeqModel
from t2tlite.vocabularies.text_encoder import TextEncoder

TOLERANCE = 1e-4  # of scores and log-probabilities
# batch_size that decodes all sentences in one batch, so that rounding is the same too
ONE_BATCH = 1_000_000

BLANK = ("", " ", "\u00a0\u200b")
SAMPLES = 12  # sentences
LONGEST = 48  # tokens of a sample
WORDS = 8  # of a sentence made from the vocabulary, at most
MAX_PIECES = 20_000  # of the vocabulary, from which words are taken


NBest = Sequence[Sequence[Output]]  # hypotheses of each sentence, best first


class OpenedExport(Protocol):
    """An export that was read back."""

    def decode(self, sentences: Sequence[str]) -> NBest:
        """The `return_beams` hypotheses of each sentence as sequences, best first."""

    def score(self, sources: Sequence[str], targets: Sequence[str]) -> list[float]:
        """The log-probability of each target given its source."""


class DecodedInOneBatch:
    """A model that decodes and scores all sentences in one batch."""

    def __init__(self, model: TextDecoder, options: DecodeHParams) -> None:
        self._model = model
        self._options = dataclasses.replace(options, batch_size=ONE_BATCH)

    def decode(self, sentences: Sequence[str]) -> NBest:
        task = self._model.task.as_sequences()
        return self._model.decode(sentences, self._options, task=task)

    def score(self, sources: Sequence[str], targets: Sequence[str]) -> list[float]:
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


def check_equal(
    run: OpenedExport,
    export: OpenedExport,
    sentences: Sequence[str],
    tolerance: float = TOLERANCE,
) -> None:
    """Raises ValueError for the first sentence whose texts differ, or whose scores and
    log-probabilities differ by more than the tolerance. Blank sentences are decoded
    too.
    """
    decoded = [*sentences, *BLANK]
    by_run = run.decode(decoded)
    by_export = export.decode(decoded)
    targets = [n_best[0].text for n_best in by_run[: len(sentences)]]
    ours = [*by_run, *_scored(run, sentences, targets)]
    theirs = [*by_export, *_scored(export, sentences, targets)]
    compared = zip([*decoded, *sentences], ours, theirs, strict=True)
    for sentence, expected, actual in compared:
        if not _equal(expected, actual, tolerance):
            raise ValueError(
                "An export must decode and score as the run does. Received for"
                f" {sentence!r}: {_shown(actual)} from the export, {_shown(expected)}"
                " from the run. Please report this, with the run's hparams.json."
            )


def count_equal(
    run: OpenedExport, export: OpenedExport, sentences: Sequence[str]
) -> int:
    """The number of sentences whose best translations are equal."""
    pairs = zip(run.decode(sentences), export.decode(sentences), strict=True)
    return sum(ours[0].text == theirs[0].text for ours, theirs in pairs)


def _scored(
    model: OpenedExport, sentences: Sequence[str], targets: Sequence[str]
) -> NBest:
    """Each target as the only hypothesis, with its log-probability as its score."""
    n_best_lists = []
    log_probs = model.score(sentences, targets)
    for target, log_prob in zip(targets, log_probs, strict=True):
        n_best_lists.append([Output(target, log_prob, log_prob)])
    return n_best_lists


def _equal(
    expected: Sequence[Output], actual: Sequence[Output], tolerance: float
) -> bool:
    if len(expected) != len(actual):
        return False
    for first, second in zip(expected, actual, strict=True):
        distance = max(
            abs(first.score - second.score), abs(first.log_prob - second.log_prob)
        )
        if first.text != second.text or not distance <= tolerance:  # it may be NaN
            return False
    return True


def _shown(n_best: Sequence[Output]) -> str:
    return "; ".join(f"{output.text!r} ({output.score:.6f})" for output in n_best)


def sample_sentences(model: TextDecoder) -> tuple[list[str], str]:
    """Sentences to verify an export with; and their origin: the run's dev data, or if
    that is gone words of the vocabulary.
    """
    encoder = model.source_encoder
    samples = _usable(model, _dev_sentences(model))
    if samples:
        return samples, "of dev"
    return _usable(model, _made_sentences(encoder)), "made of the vocabulary's words"


def _usable(model: TextDecoder, sentences: Sequence[str]) -> list[str]:
    """A sample of the sentences that are neither blank nor too long."""
    limit = min(LONGEST, model.max_source_tokens)
    usable = []
    rows = model.source_encoder.encode_batch(sentences)
    for sentence, ids in zip(sentences, rows, strict=True):
        if 0 < len(ids) <= limit:
            usable.append(sentence)
    return usable[:: max(1, len(usable) // SAMPLES)][:SAMPLES]


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
