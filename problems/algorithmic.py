"""tensor2tensor's algorithmic problems on strings of digits, generated: does a model
that is trained on up to 40 digits know what to do with 400?

Numbers are written with the lowest digit first, digits as tokens.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from t2tlite.data.problem import Problem, option
from t2tlite.data.splits import DEV, TEST, TRAIN
from t2tlite.registry import register_problem
from t2tlite.vocabularies.sentencepiece_encoder import WORDS

TRAINING_LENGTH = 40
LONG_TEST = "test_400"
LONG_LENGTH = 400
SEEDS = {TRAIN: 1, DEV: 2, TEST: 3, LONG_TEST: 4}
SHIFT = 10


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
