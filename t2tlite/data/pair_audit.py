"""Finds training pairs that would spoil a result: pairs that are also in dev or test,
that repeat an earlier pair of the corpus, or whose target is the source.

Texts are compared as vocabularies read them, by 64-bit hashes: 8 bytes of memory for
each training pair, and some 100 for each of dev and test. Pairs with a blank side are
no findings, since they are left out of training anyway.
"""

from __future__ import annotations

import collections
from collections.abc import Collection, Iterable, Sequence

import numpy as np

from t2tlite.console import say
from t2tlite.data.checked_pairs import Pair
from t2tlite.vocabularies.normalisation import normalise

# what a pair may be, as bits; it may be several at once
DUPLICATE, SOURCE, TARGET, COPY = 1, 2, 4, 8
# the values of --drop, in the order in which dropped pairs are counted -> their bits
REASONS = {"duplicates": DUPLICATE, "test_overlap": SOURCE | TARGET, "copies": COPY}
# finding -> the reason to drop it, its bits of those of the reason, and what it is
FINDINGS = {
    "duplicates": ("duplicates", DUPLICATE, "that repeat an earlier one"),
    "source_overlap": ("test_overlap", SOURCE, "with a source of dev or test"),
    "target_overlap": ("test_overlap", TARGET, "with a target of dev or test"),
    "pair_overlap": ("test_overlap", SOURCE | TARGET, "with both of dev or test"),
    "copies": ("copies", COPY, "with a target equal to the source"),
}
MAX_EXAMPLES = 3
SHOWN_CHARACTERS = 60  # of each side of an example
NO_HASH = 2**63 - 1  # of a pair with a blank side


def check_reasons(drop: Iterable[str]) -> None:
    """Raises ValueError for an unknown reason to leave pairs out."""
    unknown = [name for name in drop if name not in REASONS]
    if unknown:
        raise ValueError(
            f"drop must name some of {', '.join(REASONS)}. Received:"
            f" {', '.join(unknown)}."
        )


class CorpusAudit:
    """The findings in one training corpus."""

    def __init__(self) -> None:
        self.pairs = 0
        self.counts = dict.fromkeys(FINDINGS, 0)
        self.examples: dict[str, list[str]] = {name: [] for name in FINDINGS}
        self._seen = np.array([NO_HASH])  # hashes of pairs, ascending

    def add(self, bits: np.ndarray, hashes: np.ndarray, pairs: Sequence[Pair]) -> None:
        """Counts the next pairs [n], whose bits lack DUPLICATE, which is added, and
        whose hashes are int64 [n].
        """
        unique, first = np.unique(hashes, return_index=True)
        at: np.ndarray = np.asarray(np.searchsorted(self._seen, unique))
        is_new = self._seen[at] != unique
        repeats = hashes != NO_HASH
        repeats[first[is_new]] = False
        bits[repeats] |= DUPLICATE
        self._seen = np.insert(self._seen, at[is_new], unique[is_new])
        for name, (reason, needed, _) in FINDINGS.items():
            rows = np.flatnonzero(bits & REASONS[reason] == needed)
            self.counts[name] += len(rows)
            examples = self.examples[name]
            for row in rows[: MAX_EXAMPLES - len(examples)].tolist():
                source, target = (text[:SHOWN_CHARACTERS] for text in pairs[row])
                examples.append(f"{self.pairs + row + 1:,}: {source} | {target}")
        self.pairs += len(pairs)


class PairAudit:
    """The findings in all training corpora of a problem.

    `add_evaluated` first gets every pair of dev and test; then `audit` gets the
    training pairs, chunk by chunk.
    """

    def __init__(self, drop: Collection[str], targets_are_text: bool = True) -> None:
        """`drop` are the REASONS for which pairs are left out. Targets that are no
        text, such as trees, are not looked for in dev and test.
        """
        self._drop = {name: bits for name, bits in REASONS.items() if name in drop}
        self._targets_are_text = targets_are_text
        self._sources: set[int] = set()
        self._targets: set[int] = set()
        self.corpora: dict[str, CorpusAudit] = collections.defaultdict(CorpusAudit)

    def add_evaluated(self, pairs: Iterable[Pair]) -> None:
        """Remembers pairs of dev or test."""
        for source, target in pairs:
            self._sources.add(hash(normalise(source)))
            if self._targets_are_text:
                self._targets.add(hash(normalise(target)))

    def audit(
        self, split: str, pairs: Sequence[Pair]
    ) -> tuple[list[Pair], dict[str, int]]:
        """Records the next pairs of a training corpus. Returns those to train on, and
        the numbers of the others by the reason.
        """
        bits: np.ndarray = np.zeros(len(pairs), np.uint8)
        hashes: np.ndarray = np.full(len(pairs), NO_HASH)
        for row, pair in enumerate(pairs):
            source, target = map(normalise, pair)
            if not source or not target:
                continue
            hashes[row] = hash((source, target))
            if hash(source) in self._sources:
                bits[row] |= SOURCE
            if hash(target) in self._targets:
                bits[row] |= TARGET
            if source == target:
                bits[row] |= COPY
        self.corpora[split].add(bits, hashes, pairs)
        dropped = dict.fromkeys(self._drop, 0)
        kept = []
        for pair, mask in zip(pairs, bits.tolist(), strict=True):
            reasons = [name for name, of_it in self._drop.items() if mask & of_it]
            if reasons:
                dropped[reasons[0]] += 1
            else:
                kept.append(pair)
        return kept, dropped

    def report(self) -> None:
        """Says what was found, with examples and what to do."""
        for split, corpus in self.corpora.items():
            for name, (reason, _, what) in FINDINGS.items():
                action = f"--drop={reason} leaves them out"
                if reason in self._drop:
                    action = f"left out, by --drop={reason}"
                count = f"{corpus.counts[name]:,} of {corpus.pairs:,}"
                lines = [f"{split}: pairs {what}: {count}; {action}."]
                for example in corpus.examples[name]:
                    lines.append(f"    pair {example}")
                if corpus.counts[name]:
                    say("\n".join(lines))
