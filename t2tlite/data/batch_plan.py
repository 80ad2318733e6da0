"""Which sentence pairs make up global batch k: a pure function of (lengths, batch size, seed, k).

An epoch is a seeded permutation of the corpus, sorted by length bucket and split into batches, which are then shuffled.
The number of batches in an epoch and their shapes depend on the lengths alone, so any batch of any epoch is computed
without those before it: training resumes at any step, and the number of replicas does not change what a batch contains.

    >>> plan = BatchPlan(np.array([3, 9, 4, 8]), np.array([4, 9, 4, 2]), batch_tokens=18, max_length=16)
    >>> plan.num_batches                                     # buckets end at 8, 9, 10, ...: 18 // 8 = 2, 18 // 9 = 2
    2
    >>> [sorted(plan.batch(k).indices.tolist()) for k in range(2)]      # the seed determines which comes first
    [[0, 2], [1, 3]]
"""

from __future__ import annotations

import dataclasses
import functools

import numpy as np

from t2tlite.config import HParams


def bucket_boundaries(max_length: int, smallest: int = 8, step: float = 1.1) -> np.ndarray:
    """The lengths in tokens to which sequences are padded, int32, ascending, as in tensor2tensor.

    From `smallest` on, each is `step` times the one before, and at least 1 more; the last is `max_length`.
    """
    boundaries = []
    length = min(smallest, max_length)
    while length < max_length:
        boundaries.append(length)
        length = max(length + 1, int(length * step))
    return np.array([*boundaries, max_length], dtype=np.int32)


def padded_length(length: int, boundaries: np.ndarray) -> int:
    """The smallest boundary that is at least `length`; `length` itself if it exceeds all boundaries."""
    at = int(np.searchsorted(boundaries, length))
    return int(boundaries[at]) if at < len(boundaries) else int(length)


@dataclasses.dataclass(frozen=True)
class Batch:
    """One global batch."""

    indices: np.ndarray  # int64 [rows], into the corpus
    source_width: int  # tokens to which sources are padded
    target_width: int  # tokens to which targets are padded
    tokens: int  # target tokens, without padding


class BatchPlan:
    """The batches of a corpus, epoch after epoch.

    Training never sees a pair with a side longer than `max_length`: it is left out, not truncated. `left_out` is the
    number of these pairs, `num_pairs` that of the others, and `num_batches` that of the batches in an epoch.
    """

    def __init__(
        self,
        source_lengths: np.ndarray,
        target_lengths: np.ndarray,
        batch_tokens: int,
        max_length: int,
        smallest: int = 8,
        step: float = 1.1,
        seed: int = 1,
    ) -> None:
        """Plans the batches.

        Args:
            source_lengths, target_lengths: int [N], tokens of each source and target, EOS included.
            batch_tokens: tokens of a global batch: rows times the padded length of the longer side.
            max_length: the longest side of a pair, tokens.
            smallest, step: the first bucket boundary and the factor between boundaries, see `bucket_boundaries`.
            seed: of the permutations.

        Raises ValueError if every pair has a side longer than `max_length`.
        """
        longer = np.maximum(source_lengths, target_lengths)
        self._corpus = np.flatnonzero(longer <= max_length)  # [n], the pairs in use
        self.num_pairs = len(self._corpus)
        self.left_out = len(longer) - self.num_pairs
        if not self.num_pairs:
            raise ValueError(
                f"No pair fits: each of {len(longer):,} has a side longer than max_length={max_length} tokens. "
                "Raise max_length."
            )
        self.seed = seed
        self._sources = source_lengths[self._corpus].astype(np.int32)
        self._targets = target_lengths[self._corpus].astype(np.int32)
        self._boundaries = bucket_boundaries(max_length, smallest, step)
        self._buckets: np.ndarray = np.searchsorted(self._boundaries, longer[self._corpus]).astype(np.int32)
        self._cuts = self._cut(np.sort(self._buckets), batch_tokens)  # [num_batches + 1]
        self.num_batches = len(self._cuts) - 1
        self._shuffle = functools.lru_cache(maxsize=1)(self._shuffled)

    def batch(self, k: int) -> Batch:
        """Batch k, counted from 0 at the start of training, through all epochs."""
        epoch, position = divmod(k, self.num_batches)
        pairs, batches = self._shuffle(epoch)
        at = batches[position]
        rows = pairs[self._cuts[at] : self._cuts[at + 1]]
        sources, targets = self._sources[rows], self._targets[rows]
        return Batch(
            indices=self._corpus[rows],
            source_width=padded_length(int(sources.max()), self._boundaries),
            target_width=padded_length(int(targets.max()), self._boundaries),
            tokens=int(targets.sum()),
        )

    def _shuffled(self, epoch: int) -> tuple[np.ndarray, np.ndarray]:
        """The order of the pairs, and that of the batches, in an epoch."""
        random = np.random.default_rng((self.seed, epoch))
        shuffled = random.permutation(self.num_pairs)
        return shuffled[np.argsort(self._buckets[shuffled], kind="stable")], random.permutation(self.num_batches)

    def _cut(self, buckets: np.ndarray, batch_tokens: int) -> np.ndarray:
        """Where batches begin in the sorted epoch, and its end.

        A batch has as many rows as fit at the padded length of its longest. Of its possible ends, one for each bucket,
        the farthest is used: the remainder of a bucket is batched with the next bucket, not in a small batch.
        """
        rows = np.maximum(batch_tokens // self._boundaries, 1)  # that fit, for each bucket
        ends = np.searchsorted(buckets, np.arange(len(rows)), side="right")  # where each bucket ends
        cuts = [0]
        while cuts[-1] < len(buckets):
            cuts.append(int(np.minimum(cuts[-1] + rows, ends).max()))
        return np.array(cuts, dtype=np.int64)


def training_plan(
    hparams: HParams, source_lengths: np.ndarray, target_lengths: np.ndarray, replicas: int, seed: int
) -> BatchPlan:
    """The plan of a training run: batches of batch_size tokens for each replica and each accumulated micro-batch."""
    return BatchPlan(
        source_lengths,
        target_lengths,
        batch_tokens=hparams.batch_size * hparams.accumulate_steps * replicas,
        max_length=hparams.max_length,
        smallest=hparams.min_length_bucket,
        step=hparams.length_bucket_step,
        seed=seed,
    )
