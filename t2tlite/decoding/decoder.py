"""Token ids in, token ids out: sorts sentences into batches and runs beam search, or scores given targets."""

# B batch, S source length, T target length, M beam size, L most positions

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import keras
import numpy as np
import tensorflow as tf

from t2tlite.config import DecodeHParams
from t2tlite.data.batch_plan import bucket_boundaries, padded_length
from t2tlite.decoding.beam_search import NEVER, beam_search
from t2tlite.tokens import EOS, PAD
from t2tlite.types import Seq2SeqModel, Tensor

LONGEST_BUCKET = 4096  # tokens; sequences are padded to one of the boundaries up to here
# What is decoded together, unless batch_size says otherwise.
BATCH_TOKENS = 1024  # source tokens, padding counted
BATCH_POSITIONS = 32_768  # positions of all hypotheses, which have keys and values in the cache: these need the memory


class TokenHypothesis(NamedTuple):
    """A hypothesis of beam search as token ids."""

    ids: list[int]  # without the EOS
    score: float  # log-probability / length penalty


class Decoder:
    """Decodes and scores token ids with a trained model.

    With `jit_compile`, XLA compiles the search once for each padded shape, which pays on GPUs. `done` is called with
    the number of sentences after each batch, for a progress bar.
    """

    def __init__(self, model: Seq2SeqModel, options: DecodeHParams, jit_compile: bool = False) -> None:
        self.options = options
        self._longest = model.max_positions or LONGEST_BUCKET
        self._jit_compile = jit_compile
        self._boundaries = bucket_boundaries(LONGEST_BUCKET)
        alpha = options.alpha if options.beam_size > 1 or options.rules.penalise_greedy else 0.0

        def search(inputs: Tensor, max_lengths: Tensor, length: Tensor) -> tuple[Tensor, Tensor]:
            with cast_kernels(model):
                cache = model.start_decoding(inputs, options.beam_size, length)
                return beam_search(
                    model.decode_step,
                    cache,
                    max_lengths=max_lengths,
                    beam_size=options.beam_size,
                    length=length,
                    alpha=alpha,
                    n_best=options.return_beams,
                    penalise_unfinished=options.rules.penalise_unfinished,
                )

        def log_probs(inputs: Tensor, targets: Tensor) -> Tensor:
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(targets, model(inputs, targets))  # [B, T]
            return -tf.reduce_sum(losses * tf.cast(targets != PAD, tf.float32), axis=1)  # [B]

        ids = tf.TensorSpec((None, None), tf.int32)
        if jit_compile:  # static shapes: one program for each
            self._search = tf.function(search, autograph=False, jit_compile=True)
        else:
            specs = (ids, tf.TensorSpec((None,), tf.int32), tf.TensorSpec((), tf.int32))
            self._search = tf.function(search, autograph=False, input_signature=specs)
        self._log_probs = tf.function(log_probs, autograph=False, input_signature=(ids, ids))

    def decode(
        self,
        sources: Sequence[Sequence[int]],
        done: Callable[[int], object] = lambda count: None,
        batches: Iterable[list[int]] | None = None,
    ) -> list[list[TokenHypothesis]]:
        """For each source, in order, `return_beams` hypotheses or fewer, best first.

        Sources are token ids without EOS; an empty one gets one empty hypothesis. `batches` are the indices of sources
        to decode together, by default of about equal length. If the memory does not suffice for one sentence, raises a
        ValueError.
        """
        results = [[TokenHypothesis([], 0.0)] for _ in sources]
        sizes = [len(source) for source in sources], self.options.beam_size, self.options.extra_length
        for batch in batches or self._batches(*sizes):
            batch = [i for i in batch if sources[i]]
            if not batch:
                continue
            rows = [sources[i] for i in batch]
            lengths = [len(row) for row in rows]
            if self.options.rules.shared_length_limit:
                lengths = [max(lengths)] * len(rows)
            # the EOS is not counted in the source's length, but is one of the tokens decoded
            max_lengths = np.array(lengths, np.int32) + self.options.extra_length + 1
            for at, hypotheses in zip(batch, self._decode_batch(rows, max_lengths), strict=True):
                results[at] = hypotheses
            done(len(batch))
        return results

    def score(
        self,
        sources: Sequence[Sequence[int]],
        targets: Sequence[Sequence[int]],
        done: Callable[[int], object] = lambda count: None,
    ) -> list[float]:
        """The log-probability (natural) of each target, EOS included, given its source, in the order of the pairs.

        Sources and targets are token ids without EOS.
        """
        results = [0.0] * len(sources)
        longest = [max(len(s), len(t), 1) for s, t in zip(sources, targets, strict=True)]
        for batch in self._batches(longest):
            inputs, goals = (self._pad([side[i] for i in batch]) for side in (sources, targets))
            for at, value in zip(batch, self._log_probs(inputs, goals).numpy(), strict=True):
                results[at] = float(value)
            done(len(batch))
        return results

    def _batches(self, lengths: Sequence[int], hypotheses: int = 1, extra_length: int = 0) -> Iterator[list[int]]:
        """Indices of sentences, the longest first. Each batch needs about the same memory, or less."""
        order = [i for i in np.argsort(-np.array(lengths, np.int64), kind="stable") if lengths[i] > 0]
        start = 0
        while start < len(order):
            width = padded_length(lengths[order[start]] + 1, self._boundaries)
            positions = hypotheses * (width + extra_length)  # of a sentence
            by_default = min(BATCH_TOKENS // width, BATCH_POSITIONS // positions)
            rows = max(1, self.options.batch_size // width if self.options.batch_size else by_default)
            yield [int(i) for i in order[start : start + rows]]
            start += rows

    def _decode_batch(self, sources: list[Sequence[int]], max_lengths: np.ndarray) -> list[list[TokenHypothesis]]:
        inputs = self._pad(sources)
        max_lengths = np.minimum(max_lengths, self._longest)
        length = min(padded_length(int(max_lengths.max()), self._boundaries), self._longest)
        try:
            found = self._search(inputs, max_lengths, length if self._jit_compile else np.int32(length))
        except tf.errors.ResourceExhaustedError:
            if len(sources) == 1:
                raise ValueError(
                    f"The memory does not suffice to decode a sentence of {len(sources[0])} tokens with "
                    f"beam_size={self.options.beam_size}. Split the sentence, or lower beam_size or extra_length."
                ) from None
            half = len(sources) // 2
            parts = zip((sources[:half], sources[half:]), (max_lengths[:half], max_lengths[half:]), strict=True)
            return [found for part, lengths in parts for found in self._decode_batch(part, lengths)]
        ids, scores = (x.numpy()[:, : self.options.return_beams] for x in found)
        return [
            [TokenHypothesis(_content(row), float(s)) for row, s in zip(rows, values, strict=True) if s > NEVER / 2]
            for rows, values in zip(ids, scores, strict=True)
        ]

    def _pad(self, rows: Sequence[Sequence[int]]) -> np.ndarray:
        """Rows with their EOS, padded to a bucket boundary: int32 [B, S]."""
        width = min(padded_length(max(map(len, rows)) + 1, self._boundaries), self._longest)
        block: np.ndarray = np.zeros((len(rows), width), np.int32)
        for at, row in enumerate(rows):
            block[at, : len(row)] = row
            block[at, len(row)] = EOS
        return block


def cast_kernels(model: Seq2SeqModel) -> keras.StatelessScope:
    """A scope in which the model's matrices have the type that it computes in.

    So they are cast once a search rather than at each position, which makes bfloat16 a sixth faster on a CPU.
    """
    scope = keras.StatelessScope()
    if model.compute_dtype != "float32":
        for variable in model.trainable_variables:
            if len(variable.shape) == 2:
                scope.add_update((variable, tf.cast(variable.value, model.compute_dtype)))
    return scope


def _content(row: np.ndarray) -> list[int]:
    ends = np.flatnonzero(row == EOS)
    ids = row[: ends[0]] if len(ends) else row
    return [int(i) for i in ids if i != PAD]
