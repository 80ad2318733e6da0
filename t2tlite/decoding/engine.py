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
from typing import Any, ClassVar, NamedTuple, TypeVar

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
GLOSSARY = "glossary"
OPTIONS = [field.name for field in dataclasses.fields(DecodeHParams)]
EVERYTHING = frozenset([*OPTIONS, PREFIXES, ALIGNMENTS, GLOSSARY])

BOUNDARIES = bucket_boundaries(LONGEST_BUCKET)
# The default size of a batch: source tokens, padding counted; and positions
BATCH_TOKENS = 4096
# of all hypotheses that are decoded at a time; their keys and values in the cache need
# most of the memory
BATCH_POSITIONS = 32_768
# Threads that share the work get so many batches each, so that all end together, but
# none of fewer tokens. On two cores 256 was the best of 128, 256 and 512, with 32 and
# 100 sentences, models of 128 and of 512 dimensions.
BATCHES_EACH = 4
LEAST_TOKENS = 256

# token ids, without the EOS; and those of several sentences
Ids = Sequence[int]
Rows = Sequence[Ids]
# called with the number of sentences after each batch, for a progress bar
Done = Callable[[int], object]
Result = TypeVar("Result")


class Sentence(NamedTuple):
    """A source to decode, and what its hypotheses must keep to.

    Attributes:
        ids: the tokens of the source.
        prefix: the tokens with which each hypothesis begins.
        constraint: the sequences that are allowed; None for all.
        terms: sequences of tokens that each hypothesis has.
    """

    ids: Ids
    prefix: Ids = ()
    constraint: Bracketing | None = None
    terms: Rows = ()


class TokenHypothesis(NamedTuple):
    """A hypothesis as token ids.

    Attributes:
        ids: those of the tokens, without the EOS.
        score: log_prob / length penalty.
        log_prob: log-probability (natural) of the tokens, the EOS included.
    """

    ids: list[int]
    score: float
    log_prob: float


# those of each sentence, best first
TokenNBest = list[list[TokenHypothesis]]


class OutOfMemoryError(Exception):
    """A batch does not fit into memory."""


class Engine(abc.ABC):
    """Decodes, scores and aligns token ids with the weights of a model, in batches of
    about equal length. Several threads may use an engine at a time.

    Attributes:
        name: TENSORFLOW or CTRANSLATE2.
        supported: the fields of DecodeHParams that may differ from their defaults,
            PREFIXES, ALIGNMENTS and GLOSSARY.
        quantization: how the weights are stored; "" as they were trained.
        max_positions: the number of positions that the model can represent, or None if
            there is no limit.
        parameters: the number of the model's weights.
        threads: how many batches are decoded at a time, each by a thread.
    """

    name: ClassVar[str]
    supported: ClassVar[frozenset[str]]

    def __init__(
        self,
        quantization: str,
        max_positions: int | None,
        parameters: int,
    ) -> None:
        self.quantization = quantization
        self.max_positions = max_positions
        self.parameters = parameters
        self.threads = 1
        # of a sequence in tokens, EOS included
        self._longest = max_positions or LONGEST_BUCKET

    @classmethod
    def check_supported(cls, options: DecodeHParams, *features: str) -> None:
        """Raises ValueError as `check_supported` below."""
        check_supported(f"The engine {cls.name}", cls.supported, options, *features)

    def decode(
        self,
        sentences: Sequence[Sentence],
        options: DecodeHParams,
        done: Done | None = None,
        batches: Iterable[list[int]] | None = None,
    ) -> TokenNBest:
        """For each sentence, in order, `return_beams` hypotheses or fewer, best first.

        A sentence without ids gets one empty hypothesis. `batches` are the indices of
        the sentences to decode together, by default of about equal length. Raises
        ValueError if the engine does not support an option, there is not enough memory
        for one sentence, or the options allow no translation of it.
        """
        is_prefixed = any(sentence.prefix for sentence in sentences)
        self.check_supported(options, *[PREFIXES] * is_prefixed)
        lengths = [len(sentence.ids) for sentence in sentences]
        if batches is None:
            batches = batches_by_length(lengths, options, self.threads)
        filled = []
        for batch in batches:
            filled.append([i for i in batch if lengths[i]])

        def decode(batch: list[Sentence]) -> TokenNBest:
            longer = [max(len(each.ids), len(each.prefix)) for each in batch]
            limits = rules_of(options).limits(
                np.array(longer), options.extra_length, max(longer)
            )
            limits = np.minimum(limits, self._longest)
            return self._decode_or_halve(batch, limits, options)

        n_best = [[TokenHypothesis([], 0.0, 0.0)] for _ in sentences]
        results = self._results(decode, filter(None, filled), done, sentences)
        for i, hypotheses in results:
            if not hypotheses:
                raise ValueError(
                    f"A sentence of {lengths[i]} tokens has no translation with"
                    f" min_length={options.min_length} and"
                    f" no_repeat_ngram_size={options.no_repeat_ngram_size}. Change"
                    " them, or use an earlier checkpoint, whose weights are finite."
                )
            n_best[i] = hypotheses
        return n_best

    def score(
        self,
        sources: Rows,
        targets: Rows,
        options: DecodeHParams,
        done: Done | None = None,
    ) -> list[float]:
        """The log-probability (natural) of each target, EOS included, given its source,
        in order.

        Of the options only batch_size matters, in tokens of the longer side.
        """
        log_probs = [0.0] * len(sources)
        batches = self._batches_of_pairs(sources, targets, options)
        results = self._results(self._score_batch, batches, done, sources, targets)
        for i, log_prob in results:
            log_probs[i] = float(log_prob)
        return log_probs

    def cross_attention(
        self,
        sources: Rows,
        targets: Rows,
        options: DecodeHParams,
    ) -> Iterator[tuple[int, np.ndarray]]:
        """Yields the index and the cross-attention weights of each pair, averaged over
        heads and layers: [T, S] without EOS.

        Row t is of the position that predicts token t. Batches of pairs are computed
        when they are needed. Raises ValueError if the engine has no cross-attention.
        """
        self.check_supported(options, ALIGNMENTS)
        batches = self._batches_of_pairs(sources, targets, options)
        function = self._attend_batch
        for i, weights in self._results(function, batches, None, sources, targets):
            yield i, weights[: len(targets[i]), : len(sources[i])]

    @abc.abstractmethod
    def attention(self, inputs: Tensor, targets: Tensor) -> AttentionWeights:
        """The attention weights for int32 [B, S] and [B, T]."""

    @abc.abstractmethod
    def _decode_batch(
        self,
        sentences: list[Sentence],
        limits: np.ndarray,
        options: DecodeHParams,
    ) -> TokenNBest:
        """The hypotheses of sentences that have ids, each of at most as many tokens as
        its limit, int [B]; an empty list if the options allow none.

        Raises OutOfMemoryError if the batch does not fit into memory.
        """

    @abc.abstractmethod
    def _score_batch(self, sources: list[Ids], targets: list[Ids]) -> Iterable[float]:
        """The log-probability of each target, EOS included."""

    def _attend_batch(self, sources: Rows, targets: Rows) -> Iterable[np.ndarray]:
        """Cross-attention weights of each pair, averaged over heads and layers: [T, S]
        or larger, with EOS. An engine that supports ALIGNMENTS implements it.
        """
        raise NotImplementedError

    def _padded(self, length: int) -> int:
        """The bucket boundary to which sequences of this length are padded."""
        return min(padded_length(length, BOUNDARIES), self._longest)

    def _decode_or_halve(
        self,
        batch: list[Sentence],
        limits: np.ndarray,
        options: DecodeHParams,
    ) -> TokenNBest:
        """`_decode_batch` of the batch, or of its halves if it does not fit into
        memory.
        """
        try:
            return self._decode_batch(batch, limits, options)
        except OutOfMemoryError:
            middle = len(batch) // 2
            if middle == 0:
                raise ValueError(
                    f"Memory is too small for {len(batch[0].ids)} tokens with"
                    f" beam_size={options.hypotheses}. Split the sentence, or lower"
                    " beam_size or extra_length."
                ) from None
        first = self._decode_or_halve(batch[:middle], limits[:middle], options)
        return first + self._decode_or_halve(batch[middle:], limits[middle:], options)

    def _batches_of_pairs(
        self,
        sources: Rows,
        targets: Rows,
        options: DecodeHParams,
    ) -> Iterator[list[int]]:
        """Batches of pairs whose longer sides have about equal length."""
        pairs = zip(sources, targets, strict=True)
        lengths = [max(1, *map(len, pair)) for pair in pairs]
        size = options.batch_size
        given = DecodeHParams(beam_size=1, extra_length=0, batch_size=size)
        return batches_by_length(lengths, given, self.threads)

    def _results(
        self,
        function: Callable[..., Iterable[Result]],
        batches: Iterable[list[int]],
        done: Done | None,
        *columns: Sequence[Any],
    ) -> Iterator[tuple[int, Result]]:
        """Yields each index of each batch, in order, and the function's result for the
        row of the columns at that index. The function gets the rows of a batch.
        """
        check_not_forked()

        def of_batch(batch: list[int]) -> Iterable[Result]:
            rows = []
            for column in columns:
                rows.append([column[i] for i in batch])
            return function(*rows)

        batches = list(batches)
        computed: Iterable[Iterable[Result]] = map(of_batch, batches)
        if self.threads > 1:
            computed = _in_threads(self.threads, of_batch, batches)
        for batch, results in zip(batches, computed, strict=True):
            yield from zip(batch, results, strict=True)
            if done:
                done(len(batch))


def _in_threads(
    threads: int,
    function: Callable[[list[int]], Result],
    batches: list[list[int]],
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
    options: DecodeHParams,
    threads: int = 1,
) -> Iterator[list[int]]:
    """Batches of indices of sequences of about equal length, the longest first; those
    of length 0 are left out.

    A batch has at most `options.batch_size` tokens, padding and EOS counted. By default
    it is limited by BATCH_TOKENS and BATCH_POSITIONS, where each sequence has
    `options.hypotheses` of up to `extra_length` tokens more than it. So many `threads`
    share these positions, and each gets several batches, if these are not too small. A
    batch has at least one sequence.
    """
    most_tokens = BATCH_TOKENS
    if threads > 1:
        part = sum(lengths) // (threads * BATCHES_EACH)
        most_tokens = min(max(part, LEAST_TOKENS), BATCH_TOKENS)
    filled = [i for i, length in enumerate(lengths) if length > 0]
    filled.sort(key=lambda i: -lengths[i])
    start = 0
    while start < len(filled):
        width = padded_length(lengths[filled[start]] + 1, BOUNDARIES)
        # of a sentence
        positions = options.hypotheses * (width + options.extra_length)
        rows = min(most_tokens // width, BATCH_POSITIONS // threads // positions)
        if options.batch_size:
            rows = options.batch_size // width
        end = start + max(1, rows)
        yield filled[start:end]
        start = end


def check_supported(
    who: str,
    supported: frozenset[str],
    options: DecodeHParams,
    *features: str,
) -> None:
    """Raises ValueError for an option that is not at its default, or a feature, that is
    not supported.

    `who` is the engine or the format of an export, for the message; the features are
    PREFIXES, ALIGNMENTS or GLOSSARY.
    """
    if GLOSSARY in features and options.samples:
        raise ValueError("A glossary needs beam search. Received: sampling.")
    received = [*options.changes(type(options)()), *features]
    missing = [each for each in received if each.partition("=")[0] not in supported]
    if missing:
        raise ValueError(
            f"{who} supports {', '.join(sorted(supported))}. Received:"
            f" {', '.join(missing)}. Leave it out, or use {TENSORFLOW}."
        )
