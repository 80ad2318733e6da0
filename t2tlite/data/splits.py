"""Names of splits: train, dev and test.

The first corpus to train on is train, further ones are train2, train3 and so on.
Likewise the first dev set is dev, which decides which checkpoint is best, and further
ones are dev2, dev3 and so on. The test set is test; a problem may name others, such as
test_2017_flickr.
"""

import string
from collections.abc import Iterable

TRAIN = "train"
DEV = "dev"
TEST = "test"
SPLITS = (TRAIN, DEV, TEST)


def base(split: str) -> str:
    """The name without its number: train for train2."""
    return split.rstrip(string.digits)


def number(split: str) -> int:
    """The number of a corpus or dev set, from 1: 2 for train2, 1 for train."""
    return int(split.removeprefix(base(split)) or 1)


def numbered(first: str, count: int) -> list[str]:
    """The names of `count` corpora or dev sets: train, train2, train3."""
    names = [first]
    for index in range(2, count + 1):
        names.append(f"{first}{index}")
    return names


def is_training(split: str) -> bool:
    """Whether a split is a corpus to train on: train, train2 and so on."""
    return base(split) == TRAIN


def dev_splits(splits: Iterable[str]) -> list[str]:
    """The dev sets among `splits` in the order of their numbers, dev first."""
    names = [split for split in splits if base(split) == DEV]
    return sorted(names, key=number)
