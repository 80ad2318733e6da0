"""Documents, plain text or HTML: split into sentences to translate, and put together
from their translations.

This package knows nothing of HTTP or models. `html_text.py` reads HTML by
`html_pieces.py` and `html_runs.py`; `tag_projection.py` puts inline
tags into a translation; `sentences.py` splits text.
"""
