"""Engines: programs that decode with the weights of a model, token ids in and token ids
out.

`Engine` batches sentences, limits the lengths of their hypotheses and halves a batch
that does not fit into memory; an engine decodes the batch. There are two: TensorFlow
(`tensorflow_engine.py`), and CTranslate2 (`programs/export/ctranslate2_engine.py`).
"""

# B batch, S source length, T target length, both in tokens

import abc
import collections
import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import ClassVar, NamedTuple, TypeVar

import numpy as np

from t2tlite.config import LONGEST_BUCKET, DecodeHParams
from t2tlite.data.batch_plan import bucket_boundaries, padded_length
from t2tlite.decoding.rules import rules_of
from t2tlite.machine import check_not_forked
from t2tlite.tasks.bracketing import Bracketing
from t2tlite.types import AttentionWeights, Tensor

# names of engines
TENSORFLOW = "tensorflow"
CTRANSLATE2 = "ctranslate2"
ENGINES = (TENSORFLOW, CTRANSLATE2)

# What an engine may support besides fields of DecodeHParams.
PREFIXES = "prefixes"
ALIGNMENTS = "alignments"
OPTIONS = [field.name for field in dataclasses.fields(DecodeHParams)]
EVERYTHING = frozenset([*OPTIONS, PREFIXES, ALIGNMENTS])

BOUNDARIES = bucket_boundaries(LONGEST_BUCKET)
# The default size of a batch:
BATCH_TOKENS = 4096  # source tokens, padding counted
# of all hypotheses that are decoded at a time; their keys and values in the cache need
# most of the memory
BATCH_POSITIONS = 32_768
# Threads that share the work get so many batches each, so that all end together, but
# none of fewer tokens. On two cores 256 was the best of 128, 256 and 512, with 32 and
# 100 sentences, models of 128 and of 512 dimensions.
BATCHES_EACH = 4
LEAST_TOKENS = 256

Ids = Sequence[int]  # token ids, without the EOS
# called with the number of sentences after each batch, for a progress bar
Done = Callable[[int], object]
Result = TypeVar("Result")


class Sentence(NamedTuple):
    """A source to decode, and what its hypotheses must keep to."""

    ids: Ids
    prefix: Ids = ()  # the tokens with which each hypothesis begins
    constraint: Bracketing | None = None


class TokenHypothesis(NamedTuple):
    """A hypothesis as token ids."""

    ids: list[int]  # without the EOS
    score: float  # log_prob / length penalty
    log_prob: float  # log-probability (natural) of the tokens, the EOS included


class OutOfMemoryError(Exception):
    """A batch does not fit into memory."""


class Engine(abc.ABC):
    """Decodes, scores and aligns token ids with the weights of a model, in batches of
    about equal length. Several threads may use an engine at a time.

    Attributes:
        name: TENSORFLOW or CTRANSLATE2.
        supported: the fields of DecodeHParams that may differ from their defaults,
            PREFIXES and ALIGNMENTS.
        quantization: how the weights are stored; "" as they were trained.
        max_positions: the number of positions that the model can represent, or None if
            there is no limit.
        parameters: the number of the model's weights.
        threads: how many batches are decoded at a time, each by a thread.
    """

    name: ClassVar[str]
    supported: ClassVar[frozenset[str]]

    def __init__(
        self, quantization: str, max_positions: int | None, parameters: int
    ) -> None:
        self.quantization = quantization
        self.max_positions = max_positions
        self.parameters = parameters
        self.threads = 1

    @classmethod
    def check_supported(cls, options: DecodeHParams, *features: str) -> None:
        """Raises ValueError as `check_supported` below."""
        check_supported(f"The engine {cls.name}", cls.supported, options, *features)

    def decode(
        self,
        sentences: Sequence[Sentence],
        options: DecodeHParams,
        done: Done = lambda count: None,
        batches: Iterable[list[int]] | None = None,
    ) -> list[list[TokenHypothesis]]:
        """For each sentence, in order, `return_beams` hypotheses or fewer, best first.

        A sentence without ids gets one empty hypothesis. `batches` are the indices of
        the sentences to decode together, by default of about equal length. Raises
        ValueError if the engine does not support an option, there is not enough memory
        for one sentence, or the options allow no translation of it.
        """
        self.check_supported(options)
        if any(sentence.prefix for sentence in sentences):
            self.check_supported(options, PREFIXES)
        lengths = [len(sentence.ids) for sentence in sentences]
        if batches is None:
            batches = batches_by_length(
                lengths,
                options.batch_size,
                options.hypotheses,
                options.extra_length,
                self.threads,
            )

        def decode(batch: list[int]) -> list[list[TokenHypothesis]]:
            chosen = [sentences[i] for i in batch]
            limits = self._length_limits(chosen, options)
            return self._decode_or_halve(chosen, limits, options)

        filled = []
        for batch in batches:
            filled.append([i for i in batch if lengths[i]])
        n_best = [[TokenHypothesis([], 0.0, 0.0)] for _ in sentences]
        for i, hypotheses in self._results(decode, filter(None, filled), done):
            if not hypotheses:
                raise ValueError(
                    "Options and weights must allow a translation of each sentence."
                    f" Received: min_length={options.min_length},"
                    f" no_repeat_ngram_size={options.no_repeat_ngram_size}, and a"
                    f" sentence of {lengths[i]} tokens that gets none. Change these"
                    " options, or use an earlier checkpoint: weights may not be finite."
                )
            n_best[i] = hypotheses
        return n_best

    def score(
        self,
        sources: Sequence[Ids],
        targets: Sequence[Ids],
        options: DecodeHParams,
        done: Done = lambda count: None,
    ) -> list[float]:
        """The log-probability (natural) of each target, EOS included, given its source,
        in order.

        Of the options only batch_size matters, in tokens of the longer side.
        """
        log_probs = [0.0] * len(sources)
        results = self._pair_results(self._score_batch, sources, targets, options, done)
        for i, log_prob in results:
            log_probs[i] = float(log_prob)
        return log_probs

    def cross_attention(
        self, sources: Sequence[Ids], targets: Sequence[Ids], options: DecodeHParams
    ) -> Iterator[tuple[int, np.ndarray]]:
        """Index and cross-attention weights of each pair, averaged over heads and
        layers: [T, S] without EOS.

        Row t is of the position that predicts token t. Batches of pairs are computed
        when they are needed. Raises ValueError if the engine has no cross-attention.
        """
        self.check_supported(options, ALIGNMENTS)
        results = self._pair_results(self._attend_batch, sources, targets, options)
        return ((i, each[: len(targets[i]), : len(sources[i])]) for i, each in results)

    @abc.abstractmethod
    def attention(self, inputs: Tensor, targets: Tensor) -> AttentionWeights:
        """The attention weights for int32 [B, S] and [B, T]."""

    @abc.abstractmethod
    def _decode_batch(
        self, sentences: list[Sentence], limits: np.ndarray, options: DecodeHParams
    ) -> list[list[TokenHypothesis]]:
        """The hypotheses of sentences that have ids, each of at most as many tokens as
        its limit, int [B]; an empty list if the options allow none.

        Raises OutOfMemoryError if the batch does not fit into memory.
        """

    @abc.abstractmethod
    def _score_batch(self, sources: list[Ids], targets: list[Ids]) -> Iterable[float]:
        """The log-probability of each target, EOS included."""

    def _attend_batch(
        self, sources: list[Ids], targets: list[Ids]
    ) -> Iterable[np.ndarray]:
        """Cross-attention weights of each pair, averaged over heads and layers: [T, S]
        or larger, with EOS. An engine that supports ALIGNMENTS implements it.
        """
        raise NotImplementedError

    @property
    def _longest(self) -> int:
        """The maximum length of a sequence in tokens, EOS included."""
        return self.max_positions or LONGEST_BUCKET

    def _length_limits(
        self, batch: list[Sentence], options: DecodeHParams
    ) -> np.ndarray:
        """The maximum length of the hypotheses of each sentence, EOS included, int
        [B].
        """
        lengths = [max(len(each.ids), len(each.prefix)) for each in batch]
        rules = rules_of(options)
        limits = rules.limits(np.array(lengths), options.extra_length, max(lengths))
        return np.minimum(limits, self._longest)

    def _decode_or_halve(
        self, batch: list[Sentence], limits: np.ndarray, options: DecodeHParams
    ) -> list[list[TokenHypothesis]]:
        """`_decode_batch` of the batch, or of its halves if it does not fit into
        memory.
        """
        try:
            return self._decode_batch(batch, limits, options)
        except OutOfMemoryError:
            middle = len(batch) // 2
            if middle == 0:
                raise ValueError(
                    "There is not enough memory to decode a sentence of"
                    f" {len(batch[0].ids)} tokens with beam_size={options.hypotheses}."
                    " Split the sentence, or lower beam_size or extra_length."
                ) from None
        first = self._decode_or_halve(batch[:middle], limits[:middle], options)
        return first + self._decode_or_halve(batch[middle:], limits[middle:], options)

    def _pair_results(
        self,
        function: Callable[[list[Ids], list[Ids]], Iterable[Result]],
        sources: Sequence[Ids],
        targets: Sequence[Ids],
        options: DecodeHParams,
        done: Done = lambda count: None,
    ) -> Iterator[tuple[int, Result]]:
        """The index and the result of each pair. Those whose longer sides have about
        equal length are computed together.
        """

        def of_pairs(batch: list[int]) -> Iterable[Result]:
            batch_sources = [sources[i] for i in batch]
            batch_targets = [targets[i] for i in batch]
            return function(batch_sources, batch_targets)

        lengths = []
        for source, target in zip(sources, targets, strict=True):
            lengths.append(max(len(source), len(target), 1))
        batches = batches_by_length(lengths, options.batch_size, threads=self.threads)
        return self._results(of_pairs, batches, done)

    def _results(
        self,
        function: Callable[[list[int]], Iterable[Result]],
        batches: Iterable[list[int]],
        done: Done,
    ) -> Iterator[tuple[int, Result]]:
        """Each index of each batch, in order, with its result among those of the
        batch.
        """
        check_not_forked()
        batches = list(batches)
        results: Iterator[Iterable[Result]] = map(function, batches)
        if self.threads > 1:
            results = _in_threads(self.threads, function, batches)
        for batch, results_of_batch in zip(batches, results, strict=True):
            yield from zip(batch, results_of_batch, strict=True)
            done(len(batch))


def _in_threads(
    threads: int, function: Callable[[list[int]], Result], batches: list[list[int]]
) -> Iterator[Result]:
    """The function's result for each batch, in order. A few batches are computed
    before their results are needed.
    """
    pool = ThreadPoolExecutor(threads)
    waiting: collections.deque[Future[Result]] = collections.deque()
    try:
        for batch in batches:
            waiting.append(pool.submit(function, batch))
            if len(waiting) > 2 * threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)


def batches_by_length(
    lengths: Sequence[int],
    batch_size: int = 0,
    hypotheses: int = 1,
    extra_length: int = 0,
    threads: int = 1,
) -> Iterator[list[int]]:
    """Batches of indices of sequences of about equal length, the longest first; those
    of length 0 are left out.

    A batch has at most `batch_size` tokens, padding and EOS counted. By default it is
    limited by BATCH_TOKENS and BATCH_POSITIONS, where each sequence has `hypotheses` of
    up to `extra_length` tokens more than it. So many `threads` share these positions,
    and each gets several batches, if these are not too small. A batch has at least one
    sequence.
    """
    most_tokens = BATCH_TOKENS
    if threads > 1:
        part = sum(lengths) // (threads * BATCHES_EACH)
        most_tokens = min(max(part, LEAST_TOKENS), BATCH_TOKENS)
    order = np.argsort(-np.array(lengths, np.int64), kind="stable").tolist()
    filled = [i for i in order if lengths[i] > 0]
    start = 0
    while start < len(filled):
        width = padded_length(lengths[filled[start]] + 1, BOUNDARIES)
        if batch_size:
            rows = batch_size // width
        else:
            positions = hypotheses * (width + extra_length)  # of a sentence
            rows = min(most_tokens // width, BATCH_POSITIONS // threads // positions)
        end = start + max(1, rows)
        yield filled[start:end]
        start = end


def check_supported(
    who: str, supported: frozenset[str], options: DecodeHParams, *features: str
) -> None:
    """Raises ValueError for an option that is not at its default, or a feature, that is
    not supported.

    `who` is the engine or the format of an export, for the message; the features are
    PREFIXES or ALIGNMENTS.
    """
    missing = []
    for name, (value, _) in options.diff(type(options)()).items():
        if name not in supported:
            missing.append(f"{name}={value}")
    missing += [feature for feature in features if feature not in supported]
    if missing:
        raise ValueError(
            f"{who} supports {', '.join(sorted(supported))}. Received:"
            f" {', '.join(missing)}. Leave out what it does not support, or decode with"
            f" the engine {TENSORFLOW}."
        )
