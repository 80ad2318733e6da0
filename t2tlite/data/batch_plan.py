"""Which sentence pairs make up global batch k: a pure function of (lengths, batch size,
seed, k).

An epoch is a seeded permutation of the corpus, cut into pools. Pairs are sorted by
length bucket, by pool, and by the lengths of both sides, so that neighbours need little
padding; then they are split into batches, which are shuffled. The number of batches in
an epoch and of their rows depends on the lengths alone, so any batch of any epoch is
computed without those before it: training resumes at any step, and the number of
replicas does not change what a batch contains. A corpus of weight w is permuted with w
copies of each pair.

    >>> sources = np.array([3, 9, 4, 8])
    >>> targets = np.array([4, 9, 4, 2])
    >>> plan = BatchPlan(sources, targets, batch_tokens=18, max_length=16)

    Buckets end at 8, 9, 10, ..., so batches have 18 // 8 = 2 or 18 // 9 = 2 pairs. The
    seed determines which batch comes first:

    >>> plan.num_batches
    2
    >>> [sorted(plan.batch(k).indices.tolist()) for k in range(2)]
    [[0, 2], [1, 3]]
"""

import dataclasses
import functools
from collections.abc import Sequence

import numpy as np

from t2tlite.config import HParams

# Of the batches of a plan with few_shapes. More need less padding, and a GPU 40 s each
# to compile: docs/performance.md
MAX_SHAPES = 12
# batches of one length bucket in a pool: more need less padding, fewer mix pairs better
POOL_BATCHES = 16
MIN_POOLS = 4  # in a small corpus, so that pairs meet others in the next epoch


def bucket_boundaries(
    max_length: int,
    smallest: int = 8,
    step: float = 1.1,
) -> np.ndarray:
    """The lengths in tokens to which sequences are padded, int32, ascending, as in
    tensor2tensor.

    From `smallest` on, each is `step` times the one before, and at least 1 more; the
    last is `max_length`.
    """
    boundaries = []
    length = min(smallest, max_length)
    while length < max_length:
        boundaries.append(length)
        length = max(length + 1, int(length * step))
    return np.array([*boundaries, max_length], dtype=np.int32)


def padded_length(length: int, boundaries: np.ndarray) -> int:
    """The smallest boundary that is at least `length`; `length` itself if it exceeds
    all boundaries.
    """
    at = int(np.searchsorted(boundaries, length))
    return int(boundaries[at]) if at < len(boundaries) else int(length)


def merge_buckets(
    boundaries: np.ndarray,
    lengths: np.ndarray,
    at_most: int,
) -> np.ndarray:
    """Removes boundaries [n] one by one until `at_most` are left, each time with the
    least added padding.

    `lengths` [N] are those of the sequences to pad; none may exceed the last boundary.
    """
    # sequences in each bucket
    counts = np.bincount(
        np.searchsorted(boundaries, lengths), minlength=len(boundaries)
    )
    while len(boundaries) > at_most:
        # its sequences are padded to the next boundary instead
        at = int((counts[:-1] * np.diff(boundaries)).argmin())
        counts[at + 1] += counts[at]
        boundaries, counts = np.delete(boundaries, at), np.delete(counts, at)
    return boundaries


@dataclasses.dataclass(frozen=True, eq=False)
class Batch:
    """One global batch."""

    indices: np.ndarray  # int64 [pairs], into the corpus
    rows: int  # pairs, and rows of padding up to a fixed shape
    source_width: int  # tokens to which sources are padded
    target_width: int  # tokens to which targets are padded
    tokens: int  # target tokens, without padding


class BatchPlan:
    """The batches of a corpus, epoch after epoch.

    A pair with a side longer than `max_length` is left out of training, not truncated.
    `left_out` is the number of these pairs, `num_pairs` the number of the others in an
    epoch, and `num_batches` the number of its batches.
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
        few_shapes: bool = False,
        repeats: np.ndarray | None = None,
        batch_squares: int | None = None,
    ) -> None:
        """Plans the batches.

        Args:
            source_lengths: int [N], tokens of each source, EOS included.
            target_lengths: int [N], tokens of each target.
            batch_tokens: tokens of a global batch: rows times the padded length of the
                longer side.
            max_length: tokens of the longest side of a pair.
            smallest: the first bucket boundary, see `bucket_boundaries`.
            step: the factor between boundaries.
            seed: of the permutations.
            few_shapes: pad batches to at most MAX_SHAPES shapes, for a compiler that
                compiles a program for each. Buckets are merged, and all batches of a
                bucket have the same number of rows and one width.
            repeats: int [N], how many times each pair is in an epoch; None: once.
            batch_squares: limit of rows times the square of the padded length, which
                bounds the memory of attention; None: no limit.

        Raises ValueError if every pair has a side longer than `max_length`.
        """
        longer = np.maximum(source_lengths, target_lengths)
        self._corpus = np.flatnonzero(longer <= max_length)  # [num_pairs], the pairs
        self.left_out = len(longer) - len(self._corpus)
        if repeats is not None:
            self._corpus = np.repeat(self._corpus, repeats[self._corpus])
        self.num_pairs = len(self._corpus)
        if not self.num_pairs:
            raise ValueError(
                f"Data needs pairs of at most {max_length:,} tokens a side, with EOS."
                f" Received: {len(longer):,} longer ones. Raise max_length, or put one"
                " sentence on each line."
            )
        self.seed = seed
        self._sources = source_lengths[self._corpus].astype(np.int32)
        self._targets = target_lengths[self._corpus].astype(np.int32)
        self._boundaries = bucket_boundaries(max_length, smallest, step)
        self._few_shapes = few_shapes
        if few_shapes:
            self._boundaries = merge_buckets(
                self._boundaries, longer[self._corpus], MAX_SHAPES
            )
        # [num_pairs], the bucket of each pair
        buckets = np.searchsorted(self._boundaries, longer[self._corpus])
        self._buckets: np.ndarray = buckets.astype(np.int32)
        # for each bucket, the rows that fit at its boundary
        rows: np.ndarray = batch_tokens // self._boundaries
        if batch_squares is not None:
            rows = np.minimum(rows, batch_squares // self._boundaries.astype(int) ** 2)
        self._rows = np.maximum(rows, 1)
        self._cuts = self._cut(np.sort(self._buckets))  # [num_batches + 1]
        self.num_batches = len(self._cuts) - 1
        self._shuffle = functools.lru_cache(maxsize=1)(self._shuffled)

    def batch(self, k: int) -> Batch:
        """Batch k, counted from 0 at the start of training, through all epochs."""
        epoch, position = divmod(k, self.num_batches)
        pairs, batches = self._shuffle(epoch)
        at = batches[position]
        chosen = pairs[self._cuts[at] : self._cuts[at + 1]]
        rows = len(chosen)
        source_width = int(self._sources[chosen].max())
        target_width = int(self._targets[chosen].max())
        if self._few_shapes:
            bucket = self._buckets[chosen].max()
            rows = int(self._rows[bucket])
            source_width = target_width = int(self._boundaries[bucket])
        return Batch(
            indices=self._corpus[chosen],
            rows=rows,
            source_width=source_width,
            target_width=target_width,
            tokens=int(self._targets[chosen].sum()),
        )

    def largest_shapes(self) -> list[tuple[int, int, int]]:
        """(rows, source width, target width) for each bucket: at least the largest of
        its batches in any epoch.

        Every epoch has the same bucket and batch boundaries; only the order of pairs
        inside a bucket changes. So a batch whose longest pair is in bucket b
        has the same number of rows in each of them. Its pairs are in bucket b or a
        shorter one, and no source (target) is longer than the longest of these buckets.
        """
        # [num_batches], the bucket of a batch's longest pair
        buckets = np.sort(self._buckets)[self._cuts[1:] - 1]
        rows = self._rows
        sources = targets = self._boundaries
        if not self._few_shapes:
            rows = self._greatest(buckets, np.diff(self._cuts))
            longest_sources = self._greatest(self._buckets, self._sources)
            longest_targets = self._greatest(self._buckets, self._targets)
            sources = np.maximum.accumulate(longest_sources)
            targets = np.maximum.accumulate(longest_targets)
        shapes = []
        for b in np.unique(buckets):
            shapes.append((int(rows[b]), int(sources[b]), int(targets[b])))
        return shapes

    def _greatest(self, buckets: np.ndarray, values: np.ndarray) -> np.ndarray:
        """The greatest value in each bucket, int64; 0 where there is none."""
        greatest: np.ndarray = np.zeros(len(self._boundaries), np.int64)
        np.maximum.at(greatest, buckets, values)
        return greatest

    def _shuffled(self, epoch: int) -> tuple[np.ndarray, np.ndarray]:
        """The order of the pairs and the order of the batches in an epoch."""
        random = np.random.default_rng((self.seed, epoch))
        shuffled = random.permutation(self.num_pairs)
        place = self._buckets[shuffled]
        if not self._few_shapes:
            sources = self._sources[shuffled].astype(np.int64)
            targets = self._targets[shuffled]
            used = np.count_nonzero(np.bincount(place))
            pools = max(self.num_batches // (POOL_BATCHES * used), MIN_POOLS)
            pool = np.arange(self.num_pairs) * pools // self.num_pairs
            longest = int(self._boundaries[-1])
            place = place * pools + pool
            place = place * (longest + 1) + np.maximum(sources, targets)
            place = place * (2 * longest + 1) + sources - targets
        pairs = shuffled[np.argsort(place, kind="stable")]
        return pairs, random.permutation(self.num_batches)

    def _cut(self, buckets: np.ndarray) -> np.ndarray:
        """Where each batch begins in the sorted epoch, and where the last one ends.

        A batch has as many rows as fit at the padded length of its longest pair. Each
        bucket allows one end; the batch ends at the farthest. So the last pairs of a
        bucket join the next bucket instead of a small batch of their own.
        """
        # where each bucket ends
        ends = np.searchsorted(buckets, np.arange(len(self._rows)), side="right")
        cuts = [0]
        while cuts[-1] < len(buckets):
            cuts.append(int(np.minimum(cuts[-1] + self._rows, ends).max()))
        return np.array(cuts, dtype=np.int64)


def training_plan(
    hparams: HParams,
    source_lengths: np.ndarray,
    target_lengths: np.ndarray,
    replicas: int,
    seed: int,
    corpus_pairs: Sequence[int] = (),
) -> BatchPlan:
    """The plan of a training run on this number of replicas: a batch for each optimizer
    step.

    `corpus_pairs` are the numbers of pairs of the corpora, one after the other in the
    lengths; corpus_weights needs them. With jit_compile=true, XLA compiles the training
    step once for each shape, so there are few shapes.
    """
    return BatchPlan(
        source_lengths,
        target_lengths,
        batch_tokens=hparams.batch_tokens(replicas),
        max_length=hparams.max_length,
        smallest=hparams.min_length_bucket,
        step=hparams.length_bucket_step,
        seed=seed,
        few_shapes=hparams.uses_xla,
        repeats=pair_repeats(hparams, corpus_pairs),
    )


def pair_repeats(hparams: HParams, corpus_pairs: Sequence[int]) -> np.ndarray | None:
    """How many times each pair is in an epoch, int [N]: the weight of its corpus. None
    without weights.

    Raises ValueError unless there are several corpora, and a weight for each.

    >>> pair_repeats(HParams(corpus_weights="1:4"), [3, 2]).tolist()
    [1, 1, 1, 4, 4]
    """
    weights = hparams.weights
    if not weights:
        return None
    if len(weights) != len(corpus_pairs) or len(weights) == 1:
        raise ValueError(
            "corpus_weights must have a weight for each corpus, of --train_source=a,b."
            f" Received: {hparams.corpus_weights} for {len(corpus_pairs)}."
        )
    return np.repeat(weights, corpus_pairs)


def evaluation_plan(
    hparams: HParams,
    source_lengths: np.ndarray,
    target_lengths: np.ndarray,
    replicas: int,
) -> BatchPlan:
    """The plan of an evaluation: every pair of at most `max_evaluated_length` tokens a
    side, in batches without gradient accumulation.

    Attention to a batch of pairs longer than max_length needs no more memory than in
    training, unless the batch is a single pair. Raises ValueError if no pair is short
    enough.
    """
    longer = np.maximum(source_lengths, target_lengths)
    limit = hparams.max_evaluated_length
    evaluated = longer[longer <= limit]
    batch_tokens = hparams.batch_size * replicas
    return BatchPlan(
        source_lengths,
        target_lengths,
        batch_tokens=batch_tokens,
        max_length=int(evaluated.max()) if len(evaluated) else limit,
        smallest=hparams.min_length_bucket,
        step=hparams.length_bucket_step,
        batch_squares=batch_tokens * hparams.max_length,
    )


def not_evaluated(
    hparams: HParams,
    source_lengths: np.ndarray,
    target_lengths: np.ndarray,
) -> np.ndarray:
    """The indices of the pairs that `evaluation_plan` leaves out, ascending."""
    longer = np.maximum(source_lengths, target_lengths)
    return np.flatnonzero(longer > hparams.max_evaluated_length)
