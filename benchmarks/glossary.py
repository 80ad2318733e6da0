"""What a glossary does to translations: the terms that they keep, BLEU, and the time.

    python benchmarks/glossary.py runs/multi30k multi30k/data/task1/raw --split=test_2016_flickr

The terms are taken from the references of the split. A term is a source word and a
target word with a capital letter that

- occur together in training pairs: Dice's coefficient of the two is at least 0.1, and
  among the target words of the references with the source word the greatest,
- occur together in the split: every reference of a source with the word has the target,
- are not kept by themselves: a translation without a glossary lacks the target.

Of those, the terms that most translations lack come first.
"""

from __future__ import annotations

import argparse
import re
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import document

import t2tlite
from t2tlite.files.text_files import read_lines
from t2tlite.metrics.corpus_metrics import corpus_scores
from t2tlite.programs.runs.translator import Translator

LEAST_DICE = 0.1
# of a word in training pairs
LEAST_COUNT = 3
LETTERS = re.compile(r"[^\W\d_]{3,}")

Glossary = dict[str, str]


def word_sets(lines: Sequence[str]) -> list[set[str]]:
    """The words of each line, of letters alone, but its first."""
    sets = []
    for line in lines:
        words = re.findall(r"\w+", line)
        sets.append({word for word in words if LETTERS.fullmatch(word)})
    return sets


def dice(sources: Sequence[str], targets: Sequence[str]) -> dict[tuple[str, str], float]:
    """Dice's coefficient of each source word and each capitalised target word."""
    together: Counter[tuple[str, str]] = Counter()
    of_sources: Counter[str] = Counter()
    of_targets: Counter[str] = Counter()
    for source, target in zip(word_sets(sources), word_sets(targets), strict=True):
        nouns = {word for word in target if word[0].isupper()}
        of_sources.update(source)
        of_targets.update(nouns)
        for word in source:
            together.update((word, noun) for noun in nouns)
    coefficients = {}
    for (word, noun), count in together.items():
        if count >= LEAST_COUNT and word.islower():
            both = of_sources[word] + of_targets[noun]
            coefficients[word, noun] = 2 * count / both
    return coefficients


def choose_terms(
    coefficients: dict[tuple[str, str], float],
    sources: Sequence[str],
    references: Sequence[str],
    translations: Sequence[str],
    count: int,
) -> Glossary:
    """The `count` terms, by the rule above."""
    rows = list(
        zip(
            word_sets(sources),
            word_sets(references),
            word_sets(translations),
            strict=True,
        )
    )
    nouns_of: dict[str, set[str]] = {}
    for source, reference, _ in rows:
        for word in source:
            nouns_of[word] = nouns_of.get(word, reference) & reference
    best: dict[str, str] = {}
    for word, nouns in sorted(nouns_of.items()):
        ranked = [(coefficients.get((word, noun), 0.0), noun) for noun in nouns]
        value, noun = max(ranked, default=(0.0, ""))
        if value >= LEAST_DICE:
            best[word] = noun
    lacking: Counter[str] = Counter()
    for source, _, translation in rows:
        for word in sorted(source & set(best)):
            lacking[word] += best[word] not in translation
    chosen = [word for word, misses in lacking.most_common() if misses]
    return {word: best[word] for word in chosen[:count]}


def kept(glossary: Glossary, sources: Sequence[str], translations: Sequence[str]) -> tuple[int, int]:
    """How many terms of the sources their translations have, and how many there are."""
    has, all_terms = 0, 0
    for source, words in zip(word_sets(sources), word_sets(translations), strict=True):
        targets = {glossary[word] for word in source if word in glossary}
        has += len(targets & words)
        all_terms += len(targets)
    return has, all_terms
