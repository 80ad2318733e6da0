"""Problems; importing this package registers them."""

from t2tlite.problems import (  # noqa: F401
    algorithmic,
    craft_parsing,
    grammar,
    iwslt,
    multi30k,
    parallel_text,
    pronunciation,
    scan,
    translate_wmt,
    wsj_parsing,
)
