"""What the tests of attention share."""

from __future__ import annotations

import pytest
from random_attention import small_attention

from t2tlite.programs.visualise import Attention


@pytest.fixture(scope="module")
def attention() -> Attention:
    """Random weights of a short sentence pair."""
    return small_attention()
