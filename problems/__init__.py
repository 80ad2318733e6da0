"""Problems; importing this package registers them."""

from t2tlite.problems import (  # noqa: F401
    grammar,
    parallel_text,
    sequence_transduction,
    translation,
    wsj_parsing,
)
