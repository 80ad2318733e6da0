"""What the tests of t2t-import share."""

from pathlib import Path

import pytest
from refused_import import write_theirs


@pytest.fixture
def theirs(tmp_path: Path) -> Path:
    """A run folder of tensor2tensor's, in a folder of its own."""
    return write_theirs(tmp_path)
