"""Problems; importing this package registers them."""

from t2tlite.problems import (  # noqa: F401
    craft_parsing,
    grammar,
    iwslt,
    multi30k,
    parallel_text,
    pronunciation,
    translate_wmt,
    wsj_parsing,
)
