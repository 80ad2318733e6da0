"""What the tests of attention share."""

import pytest
from random_attention import attention_of

from t2tlite.programs.visualise import Attention


@pytest.fixture(scope="module")
def attention() -> Attention:
    """Random weights: three encoder layers and two decoder layers of four heads, six
    source and five target pieces.
    """
    return attention_of(
        ["▁The", "▁cat", "▁mak", "ing", "▁it", "</s>"],
        ["▁Die", "▁Katz", "e", "▁macht", "</s>"],
    )
