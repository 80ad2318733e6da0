"""The files of expected numbers beside the tests, and how a test asks for larger
ones.
"""

from pathlib import Path

import pytest

FIXTURES = Path(__file__).parent / "fixtures"


def tree_files(*gum: str) -> list:
    """Values of the parameter `trees_of`: the trees of the grammar, and larger files of
    GUM by name.
    """
    return ["grammar", *(pytest.param(name, marks=pytest.mark.shared) for name in gum)]
