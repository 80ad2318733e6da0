"""Finds training pairs that would spoil a result: pairs that are also in dev or test,
that repeat an earlier pair of the corpus, or whose target is the source.

Texts are compared as vocabularies read them, by 64-bit hashes: 8 bytes of memory for
each training pair, and some 100 for each of dev and test. Pairs with a blank side are
no findings, since they are left out of training anyway.
"""

import collections
import itertools
from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np

from t2tlite.console import say
from t2tlite.data.checked_pairs import Pair
from t2tlite.vocabularies.normalisation import normalise

# the values of --drop, in the order in which dropped pairs are counted
REASONS = {
    "duplicates": "that repeat an earlier one",
    "test_overlap": "with a source or target of dev or test",
    "copies": "with a target equal to the source",
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
        self.counts = dict.fromkeys(REASONS, 0)
        self.examples: dict[str, list[str]] = {name: [] for name in REASONS}
        self._seen = np.array([NO_HASH])  # hashes of pairs, ascending

    def repeats(self, hashes: np.ndarray) -> np.ndarray:
        """Whether each of the next pairs, with hashes int64 [n], repeats an earlier
        one: bool [n].
        """
        unique, first = np.unique(hashes, return_index=True)
        at: np.ndarray = np.asarray(np.searchsorted(self._seen, unique))
        is_new = self._seen[at] != unique
        repeats: np.ndarray = hashes != NO_HASH
        repeats[first[is_new]] = False
        self._seen = np.insert(self._seen, at[is_new], unique[is_new])
        return repeats

    def add(self, pairs: Sequence[Pair], findings: Mapping[str, np.ndarray]) -> None:
        """Counts the next pairs; `findings` has for each reason whether it is that of a
        pair, bool [n].
        """
        for name, findings_of_pairs in findings.items():
            rows = np.flatnonzero(findings_of_pairs).tolist()
            self.counts[name] += len(rows)
            examples = self.examples[name]
            for row in rows[: MAX_EXAMPLES - len(examples)]:
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
        self._drop = [name for name in REASONS if name in drop]
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
        corpus = self.corpora[split]
        hashes: np.ndarray = np.full(len(pairs), NO_HASH)
        overlap: np.ndarray = np.zeros(len(pairs), bool)
        copies: np.ndarray = np.zeros(len(pairs), bool)
        for row, pair in enumerate(pairs):
            source, target = map(normalise, pair)
            if source and target:
                hashes[row] = hash((source, target))
                overlap[row] = hash(source) in self._sources
                overlap[row] |= hash(target) in self._targets
                copies[row] = source == target
        columns = corpus.repeats(hashes), overlap, copies
        findings = dict(zip(REASONS, columns, strict=True))
        corpus.add(pairs, findings)
        dropped = {}
        is_kept: np.ndarray = np.ones(len(pairs), bool)
        for name in self._drop:
            dropped[name] = int(np.count_nonzero(is_kept & findings[name]))
            is_kept &= ~findings[name]
        return list(itertools.compress(pairs, is_kept.tolist())), dropped

    def report(self) -> None:
        """Says what was found, with examples and what to do."""
        for split, corpus in self.corpora.items():
            for reason, what in REASONS.items():
                if not corpus.counts[reason]:
                    continue
                action = f"--drop={reason} leaves them out"
                if reason in self._drop:
                    action = f"left out, by --drop={reason}"
                count = f"{corpus.counts[reason]:,} of {corpus.pairs:,}"
                lines = [f"{split}: pairs {what}: {count}; {action}."]
                for example in corpus.examples[reason]:
                    lines.append(f"    pair {example}")
                say("\n".join(lines))
