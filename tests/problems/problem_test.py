"""The checks that every problem passes."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from t2tlite.data.problem import Problem


def run_problem_test(
    problem: Problem,
    tmp_dir: Path | None,
    pairs: Mapping[str, Sequence[tuple[str, str]]],
    files: int = 0,
) -> None:
    """Compares the pairs of each split with `pairs`, twice, and the number of raw files
    with `files`. Another split, no folder and a missing file are refused at once.
    """
    assert problem.splits() == tuple(pairs)
    for _ in range(2):
        for split, expected in pairs.items():
            assert list(problem.pairs(split, tmp_dir)) == expected
    paths = problem.files(tmp_dir)
    assert len(set(paths)) == files
    with pytest.raises(ValueError, match=r"split must be one of .*'eval'"):
        next(problem.pairs("eval", tmp_dir))
    if "tmp_dir" in problem.needed_flags:
        message = rf"{problem.name()} needs .*Received: no --tmp_dir, without"
        with pytest.raises(FileNotFoundError, match=rf"(?s){message}"):
            next(problem.pairs("train", None))
    if paths:
        moved = paths[-1].rename(paths[-1].with_name("moved"))
        with pytest.raises(FileNotFoundError, match=paths[-1].name.split(".")[0]):
            next(problem.pairs("train", tmp_dir))
        moved.rename(paths[-1])
