"""A limit on how deeply JSON may be nested.

JSON parsers are recursive. Without a limit, deep nesting ends in an error or a crash
that depends on Python's version and on the stack.
"""

from __future__ import annotations

import re

MAX_DEPTH = 100  # no file of ours or of tensor2tensor's has more than ten

# a string, which may be cut off, or a bracket
_STRING_OR_BRACKET = re.compile(r'"(?:[^"\\]|\\.?)*(?:"|\Z)|[\[\]{}]', re.DOTALL)


def check_depth(text: str | bytes) -> None:
    """Raises ValueError if JSON is nested more than MAX_DEPTH deep. The parser reports
    other mistakes.
    """
    if isinstance(text, bytes):
        text = text.decode("latin-1")  # brackets and quotes are ASCII
    if text.count("[") + text.count("{") <= MAX_DEPTH:
        return
    depth = 0
    for match in _STRING_OR_BRACKET.finditer(text):
        mark = match[0]
        if mark in ("[", "{"):
            depth += 1
        elif mark in ("]", "}"):
            depth -= 1
        if depth > MAX_DEPTH:
            raise ValueError(
                f"JSON must be nested at most {MAX_DEPTH} deep. Received: more, from"
                f" character {match.start() + 1:,} on"
            )
