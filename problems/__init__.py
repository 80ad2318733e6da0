"""Problems; importing this package registers them."""

from t2tlite.problems import grammar, parallel_text, translate_wmt, wsj_parsing  # noqa: F401
