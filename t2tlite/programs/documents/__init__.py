"""Documents, plain text or HTML: split into sentences to translate, and put together
from their translations.

This package knows nothing of HTTP or models. `html_text.py` cuts HTML into
texts, by the tree of `html_tree.py`; `tag_projection.py` puts inline tags into a
translation; `sentences.py` splits text.
"""
