"""What a glossary does to translations: the terms that they keep, BLEU, and the time.

    python benchmarks/glossary.py runs/multi30k multi30k/data/task1/raw

The terms are taken from the references of the splits. A term is a source word and a
target word with a capital letter that

- occur together in training pairs: Dice's coefficient of the two is at least 0.1, and
  among the target words of the references with the source word the greatest,
- occur together in the splits: of the references of sources with the word, at least
  --share have the target,
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

import t2tlite
from t2tlite.files.text_files import read_lines, write_lines
from t2tlite.metrics.corpus_metrics import corpus_scores

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


def dice(
    sources: Sequence[str], targets: Sequence[str]
) -> dict[tuple[str, str], float]:
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
    share: float,
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
    sentences: Counter[str] = Counter()
    nouns_of: dict[str, Counter[str]] = {}
    for source, reference, _ in rows:
        sentences.update(source)
        for word in source:
            nouns_of.setdefault(word, Counter()).update(reference)
    best: dict[str, str] = {}
    for word, nouns in sorted(nouns_of.items()):
        ranked = []
        for noun, times in nouns.items():
            if times >= share * sentences[word]:
                ranked.append((coefficients.get((word, noun), 0.0), noun))
        value, noun = max(ranked, default=(0.0, ""))
        if value >= LEAST_DICE:
            best[word] = noun
    lacking: Counter[str] = Counter()
    for source, _, translation in rows:
        for word in sorted(source & set(best)):
            lacking[word] += best[word] not in translation
    chosen = [word for word, misses in lacking.most_common() if misses]
    return {word: best[word] for word in chosen[:count]}


def kept(
    glossary: Glossary,
    sources: Sequence[str],
    translations: Sequence[str],
    whole: bool,
) -> int:
    """How many terms of the sources their translations have: as whole words, or also
    with an ending.
    """
    count = 0
    for source, text in zip(word_sets(sources), translations, strict=True):
        for word in source & set(glossary):
            end = r"\b" if whole else ""
            count += bool(re.search(rf"\b{glossary[word]}{end}", text))
    return count


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", help="folder of the run")
    parser.add_argument(
        "text", help="folder with train.en.gz, train.de.gz, SPLIT.en.gz"
    )
    parser.add_argument(
        "--splits", nargs="+", default=["test_2016_flickr", "test_2017_flickr"]
    )
    parser.add_argument("--terms", type=int, default=200)
    parser.add_argument("--share", type=float, default=2 / 3)
    parser.add_argument("--beams", type=int, nargs="+", default=[4, 8])
    parser.add_argument("--output", help="file for the glossary")
    arguments = parser.parse_args()
    model = t2tlite.load(arguments.run)

    def lines(splits: Sequence[str], language: str) -> list[str]:
        texts = []
        for split in splits:
            texts += read_lines(Path(arguments.text) / f"{split}.{language}.gz")
        return texts

    sources = lines(arguments.splits, "en")
    references = lines(arguments.splits, "de")
    plain = model.translate(sources, beam_size=arguments.beams[0])
    glossary = choose_terms(
        dice(lines(["train"], "en"), lines(["train"], "de")),
        sources,
        references,
        plain,
        arguments.terms,
        arguments.share,
    )
    if arguments.output:
        write_lines(arguments.output, map("\t".join, glossary.items()))
    rows = []
    for at, words in enumerate(word_sets(sources)):
        if words & set(glossary):
            rows.append(at)
    with_terms = [sources[at] for at in rows]
    count = sum(len(words & set(glossary)) for words in word_sets(with_terms))
    print(
        f"step {model.step:,}; {len(glossary)} terms, {count} times in"
        f" {len(rows)} of {len(sources):,} sentences\n"
    )
    print("| beam | glossary | kept | whole words | BLEU | all sentences | seconds |")
    print("|--:|---|--:|--:|--:|--:|--:|")
    for beam_size in arguments.beams:
        if beam_size != arguments.beams[0]:
            plain = model.translate(sources, beam_size=beam_size)
        for given in (None, glossary):
            # builds the search
            model.translate(with_terms[:2], beam_size=beam_size, glossary=given)
            started = time.monotonic()
            outputs = model.translate(with_terms, beam_size=beam_size, glossary=given)
            seconds = time.monotonic() - started
            complete = list(plain)
            for at, output in zip(rows, outputs, strict=True):
                complete[at] = output
            numbers = [
                100 * kept(glossary, with_terms, outputs, whole) / count
                for whole in (False, True)
            ]
            for texts, against in (
                (outputs, [references[at] for at in rows]),
                (complete, references),
            ):
                numbers.append(corpus_scores(texts, against)[0].result.score)
            cells = [f"{number:.2f}" for number in numbers]
            used = "yes" if given else "no"
            print(
                "|", " | ".join([str(beam_size), used, *cells, f"{seconds:.1f}"]), "|"
            )


if __name__ == "__main__":
    main()
