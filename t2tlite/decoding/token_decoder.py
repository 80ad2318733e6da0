"""Token ids in, token ids out: the interface of decoders, whatever program computes
(`engine.py`).
"""

# S source length, T target length, both in tokens; B batch

from __future__ import annotations

import abc
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from t2tlite.config import DecodeHParams
from t2tlite.data.batch_plan import bucket_boundaries, padded_length
from t2tlite.decoding.rules import rules_of
from t2tlite.decoding.tree_guide import Guide

# tokens; sequences are padded to one of the boundaries up to here
LONGEST_BUCKET = 4096
# The size of a batch, unless batch_size is given.
BATCH_TOKENS = 4096  # source tokens, padding counted
# of all hypotheses; their keys and values in the cache need most of the memory
BATCH_POSITIONS = 32_768


class TokenHypothesis(NamedTuple):
    """A hypothesis as token ids."""

    ids: list[int]  # without the EOS
    score: float  # log_prob / length penalty
    log_prob: float  # log-probability (natural) of the tokens, the EOS included


class Sentence(NamedTuple):
    """A source to decode, with what its hypotheses must keep to."""

    ids: Sequence[int]  # without the EOS
    max_length: int  # of a hypothesis in tokens, EOS included
    prefix: Sequence[int] = ()  # the tokens with which each hypothesis begins
    guide: Guide | None = None  # that of tree_constraint


class OutOfMemoryError(Exception):
    """There is not enough memory to decode a batch."""


class TokenDecoder(abc.ABC):
    """Decodes and scores token ids in batches of about equal length.

    `max_positions` is the number of positions that the model can represent, or None.
    `done` is called with the number of sentences after each batch, for a progress bar.
    """

    def __init__(self, options: DecodeHParams, max_positions: int | None) -> None:
        self.options = options
        self._rules = rules_of(options)
        self._longest = max_positions or LONGEST_BUCKET
        self._boundaries = bucket_boundaries(LONGEST_BUCKET)

    def decode(
        self,
        sources: Sequence[Sequence[int]],
        done: Callable[[int], object] = lambda count: None,
        batches: Iterable[list[int]] | None = None,
        prefixes: Sequence[Sequence[int]] | None = None,
        guides: Sequence[Guide | None] | None = None,
    ) -> list[list[TokenHypothesis]]:
        """For each source, in order, `return_beams` hypotheses or fewer, best first.

        Sources are token ids without EOS; an empty one gets one empty hypothesis.
        `batches` are the indices of sources to decode together, by default of about
        equal length. `prefixes` are the token ids with which each source's hypotheses
        begin, some of them empty; `guides` what tree_constraint needs. Raises
        ValueError if there is not enough memory for one sentence, or the options allow
        no translation of it.
        """
        results = [[TokenHypothesis([], 0.0, 0.0)] for _ in sources]
        sizes = (
            [len(source) for source in sources],
            self.options.hypotheses,
            self.options.extra_length,
        )
        if prefixes is None:
            prefixes = [()] * len(sources)
        if guides is None:
            guides = [None] * len(sources)
        for batch in batches or self._batches(*sizes):
            batch = [i for i in batch if sources[i]]
            if not batch:
                continue
            lengths = [max(len(sources[i]), len(prefixes[i])) for i in batch]
            limits = self._rules.limits(
                np.array(lengths), self.options.extra_length, max(lengths)
            )
            limits = np.minimum(limits, self._longest)
            sentences = []
            for i, limit in zip(batch, limits, strict=True):
                sentence = Sentence(sources[i], int(limit), prefixes[i], guides[i])
                sentences.append(sentence)
            n_best = self._decode_or_halve(sentences)
            for i, hypotheses in zip(batch, n_best, strict=True):
                results[i] = hypotheses or self._refuse(sources[i])
            done(len(batch))
        return results

    def score(
        self,
        sources: Sequence[Sequence[int]],
        targets: Sequence[Sequence[int]],
        done: Callable[[int], object] = lambda count: None,
    ) -> list[float]:
        """The log-probability (natural) of each target, EOS included, given its source,
        in order.

        Sources and targets are token ids without EOS.
        """
        results = [0.0] * len(sources)
        longest = [
            max(len(s), len(t), 1) for s, t in zip(sources, targets, strict=True)
        ]
        for batch in self._batches(longest):
            batch_sources = [sources[i] for i in batch]
            batch_targets = [targets[i] for i in batch]
            scores = self._score_batch(batch_sources, batch_targets)
            for i, score in zip(batch, scores, strict=True):
                results[i] = float(score)
            done(len(batch))
        return results

    def cross_attention(
        self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
    ) -> Iterator[tuple[int, np.ndarray]]:
        """Index and cross-attention weights of each pair, averaged over heads and
        layers: [T, S] without EOS.

        Row t is of the position that predicts token t. Sources and targets are token
        ids without EOS. Pairs come in batches of about equal length, computed when they
        are needed; pairs without tokens are left out.
        """
        sizes = [
            (len(target), len(source))
            for source, target in zip(sources, targets, strict=True)
        ]
        for batch in self._batches(list(map(max, sizes))):
            batch_sources = [sources[i] for i in batch]
            batch_targets = [targets[i] for i in batch]
            weights_of_batch = self._attend_batch(batch_sources, batch_targets)
            for i, weights in zip(batch, weights_of_batch, strict=True):
                yield i, weights[: sizes[i][0], : sizes[i][1]]

    def _decode_or_halve(
        self, sentences: list[Sentence]
    ) -> list[list[TokenHypothesis]]:
        """`_decode_batch` of the whole batch, or of its halves if there is not enough
        memory.
        """
        try:
            return self._decode_batch(sentences)
        except OutOfMemoryError:
            if len(sentences) == 1:
                raise ValueError(
                    "There is not enough memory to decode a sentence of"
                    f" {len(sentences[0].ids)} tokens with"
                    f" beam_size={self.options.hypotheses}. Split the sentence, or"
                    " lower beam_size or extra_length."
                ) from None
        half = len(sentences) // 2
        first = self._decode_or_halve(sentences[:half])
        second = self._decode_or_halve(sentences[half:])
        return first + second

    @abc.abstractmethod
    def _decode_batch(self, sentences: list[Sentence]) -> list[list[TokenHypothesis]]:
        """The hypotheses of sentences that are not empty; no hypotheses if the options
        allow none.

        Raises OutOfMemoryError if there is not enough memory for all of them.
        """

    @abc.abstractmethod
    def _score_batch(
        self, sources: list[Sequence[int]], targets: list[Sequence[int]]
    ) -> Iterable[float]:
        """The log-probability of each target, EOS included."""

    def _attend_batch(
        self, sources: list[Sequence[int]], targets: list[Sequence[int]]
    ) -> Iterable[np.ndarray]:
        """Cross-attention weights of each pair, averaged over heads and layers: [T, S]
        or larger, with EOS.

        Only of an engine that supports ALIGNMENTS.
        """
        raise NotImplementedError

    def _refuse(self, source: Sequence[int]) -> list[TokenHypothesis]:
        """Raises the error for a source without hypotheses."""
        options = self.options
        [log_prob] = self._score_batch([source], [[]])
        if not np.isfinite(log_prob):
            raise ValueError(
                "The log-probabilities of a model must be finite numbers. Received:"
                f" {log_prob} for a sentence of {len(source)} tokens. Its training"
                " diverged, or its weights are damaged. Use an earlier checkpoint."
            )
        raise ValueError(
            "The options must allow a translation of each sentence. Received:"
            f" min_length={options.min_length},"
            f" no_repeat_ngram_size={options.no_repeat_ngram_size}, and a sentence of"
            f" {len(source)} tokens for which they allow none. Lower min_length, or"
            " raise no_repeat_ngram_size."
        )

    def _batches(
        self, lengths: Sequence[int], hypotheses: int = 1, extra_length: int = 0
    ) -> Iterator[list[int]]:
        """Batches of indices of sentences, the longest first. Each needs about the same
        memory, or less.
        """
        order = [
            i
            for i in np.argsort(-np.array(lengths, np.int64), kind="stable")
            if lengths[i] > 0
        ]
        start = 0
        while start < len(order):
            width = padded_length(lengths[order[start]] + 1, self._boundaries)
            positions = hypotheses * (width + extra_length)  # of a sentence
            by_default = min(BATCH_TOKENS // width, BATCH_POSITIONS // positions)
            rows = max(
                1,
                (
                    self.options.batch_size // width
                    if self.options.batch_size
                    else by_default
                ),
            )
            yield [int(i) for i in order[start : start + rows]]
            start += rows
