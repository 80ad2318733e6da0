"""Every example in a docstring of the library has the output that it states."""

import doctest
import importlib
from pathlib import Path

import pytest

import t2tlite

FOLDER = Path(t2tlite.__file__).parent
MODULES = [
    ".".join(path.relative_to(FOLDER.parent).with_suffix("").parts)
    for path in sorted(FOLDER.rglob("*.py"))
    if ">>> " in path.read_text(encoding="utf-8")
]


@pytest.mark.parametrize("module", MODULES)
def test_docstring_examples(module):
    failed, attempted = doctest.testmod(importlib.import_module(module))
    assert (failed, attempted > 0) == (0, True)
