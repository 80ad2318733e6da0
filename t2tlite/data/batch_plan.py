"""Which sentence pairs make up batch k: a pure function of (lengths, batch size, seed, k).

An epoch is a seeded permutation of the corpus, sorted by length bucket, cut into batches, and the batches shuffled.
The number of batches in an epoch and their shapes depend on the lengths alone, so any batch of any epoch is found
without going through those before it: a resumed run goes on where it stopped, and since nothing here knows about
replicas, their number does not change what a batch holds.

    >>> plan = BatchPlan(np.array([3, 9, 4, 8]), np.array([4, 9, 4, 2]), batch_tokens=18, max_length=16)
    >>> plan.num_batches                                     # buckets end at 8, 9, 10, ...: 18 // 8 = 2, 18 // 9 = 2
    2
    >>> [sorted(plan.batch(k).indices.tolist()) for k in range(2)]      # either order, as the seed has it
    [[0, 2], [1, 3]]
"""

from __future__ import annotations

import dataclasses

import numpy as np

from t2tlite.config import HParams


def bucket_boundaries(max_length: int, smallest: int = 8, step: float = 1.1) -> np.ndarray:
    """The lengths to which sequences are padded: 8, 9, 10, ..., each 1.1 times the one before, as in tensor2tensor.

    Args:
        max_length: the longest sequence there may be, tokens; always the last boundary.
        smallest: the first boundary.
        step: the factor between boundaries, which differ by one at least.

    Returns:
        int32, ascending.
    """
    boundaries = []
    length = min(smallest, max_length)
    while length < max_length:
        boundaries.append(length)
        length = max(length + 1, int(length * step))
    return np.array([*boundaries, max_length], dtype=np.int32)


def padded_length(length: int, boundaries: np.ndarray) -> int:
    """The smallest boundary that `length` tokens fit in; a length beyond the last stays as it is."""
    at = int(np.searchsorted(boundaries, length))
    return int(boundaries[at]) if at < len(boundaries) else int(length)


@dataclasses.dataclass(frozen=True)
class Batch:
    """The rows of one global batch, and the lengths to which they are padded."""

    indices: np.ndarray  # int64 [rows], into the corpus
    source_width: int  # tokens
    target_width: int  # tokens
    tokens: int  # target tokens, padding left out


class BatchPlan:
    """The batches of a corpus, epoch after epoch. One thread at a time: the order of the current epoch is kept.

    Args:
        source_lengths: int [N], tokens of each source, end mark included.
        target_lengths: int [N], likewise.
        batch_tokens: tokens of a global batch: rows times the padded length of the longer side.
        max_length: pairs with a longer side are left out; `left_out` counts them.
        smallest: the first bucket boundary.
        step: the factor between boundaries.
        seed: of the permutations.

    Raises:
        ValueError: no pair is left.
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
        longer = np.maximum(source_lengths, target_lengths)
        self._corpus = np.flatnonzero(longer <= max_length)  # [n], the pairs in use
        self.left_out = len(longer) - len(self._corpus)
        if not len(self._corpus):
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
        self._epoch = -1
        self._order: np.ndarray = np.zeros(0, dtype=np.int64)  # of pairs, and of batches, in the current epoch
        self._batch_order: np.ndarray = np.zeros(0, dtype=np.int64)

    @property
    def num_batches(self) -> int:
        """Batches in an epoch."""
        return len(self._cuts) - 1

    @property
    def num_pairs(self) -> int:
        """Pairs in an epoch."""
        return len(self._corpus)

    def batch(self, k: int) -> Batch:
        """Batch k, counted from 0 at the start of training, through all epochs."""
        epoch, position = divmod(k, self.num_batches)
        if epoch != self._epoch:
            self._start_epoch(epoch)
        at = self._batch_order[position]
        rows = self._order[self._cuts[at] : self._cuts[at + 1]]
        sources, targets = self._sources[rows], self._targets[rows]
        return Batch(
            indices=self._corpus[rows],
            source_width=padded_length(int(sources.max()), self._boundaries),
            target_width=padded_length(int(targets.max()), self._boundaries),
            tokens=int(targets.sum()),
        )

    def _start_epoch(self, epoch: int) -> None:
        random = np.random.default_rng((self.seed, epoch))
        shuffled = random.permutation(len(self._corpus))
        self._order = shuffled[np.argsort(self._buckets[shuffled], kind="stable")]
        self._batch_order = random.permutation(self.num_batches)
        self._epoch = epoch

    def _cut(self, buckets: np.ndarray, batch_tokens: int) -> np.ndarray:
        """Where batches begin in the sorted epoch, and its end.

        A batch takes as many rows as fit at the length of its longest. Of the ends possible, one for each bucket, it
        takes the farthest: what is left of a bucket goes along with the next rather than into a small batch.
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
