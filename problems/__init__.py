"""Problems; importing this package registers them."""

from t2tlite.problems import grammar, grammar_parsing, parallel_text, translate_wmt, wsj_parsing  # noqa: F401
