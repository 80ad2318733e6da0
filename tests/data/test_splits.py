"""The names of splits, with and without a number."""

import pytest

from t2tlite.data.splits import (
    base,
    check_splits,
    dev_splits,
    is_training,
    number,
    numbered,
)


@pytest.mark.parametrize(
    ("split", "expected"),
    [
        ("train", ("train", 1)),
        ("train2", ("train", 2)),
        ("dev10", ("dev", 10)),
        ("test", ("test", 1)),
    ],
)
def test_base_and_number(split, expected):
    assert (base(split), number(split)) == expected


def test_numbered():
    assert numbered("dev", 3) == ["dev", "dev2", "dev3"]
    assert numbered("dev", 1) == numbered("dev", 0) == ["dev"]


def test_kinds():
    names = ["train", "train12", "dev10", "dev", "dev2", "test", "development", "dev2x"]
    assert [name for name in names if is_training(name)] == ["train", "train12"]
    assert dev_splits(names) == ["dev", "dev2", "dev10"]


@pytest.mark.parametrize(
    "names", [("train",), ("dev", "test"), ("train", "dev", "train"), ()]
)
def test_train_and_dev_are_required_once(names):
    with pytest.raises(ValueError, match=rf"Received: {', '.join(names)}\."):
        check_splits(names)
    check_splits(("train", "train2", "dev"))
