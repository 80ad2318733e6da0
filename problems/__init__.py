"""Problems; importing this package registers them."""

from t2tlite.problems import (  # noqa: F401
    grammar,
    iwslt,
    multi30k,
    parallel_text,
    sequence_transduction,
    translate_wmt,
    wsj_parsing,
)
