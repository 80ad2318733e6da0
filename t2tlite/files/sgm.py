"""NIST's .sgm files, in which WMT's test sets are distributed: a text is the content of
a `<seg>` element.
"""

import html
import re
from collections.abc import Iterable, Iterator

SGM_ENDINGS = (".sgm", ".sgml")
SEGMENT = re.compile(r"<seg\b[^>]*>(.*?)</seg>", re.IGNORECASE)
SEGMENT_TAG = re.compile(r"</?seg\b", re.IGNORECASE)
ENTITY = re.compile(r"&(?:#\d+|#[xX][0-9a-fA-F]+|amp|lt|gt|quot|apos|nbsp);")


def segments(lines: Iterable[str], name: str) -> Iterator[str]:
    """Yields the texts of the `<seg>` elements of a file, with entities replaced.

    These files are not well-formed XML (bare `&`), so each line is searched for
    elements. Raises ValueError with the line of an element that does not end on it, and
    if there are none.
    """
    count = 0
    for number, line in enumerate(lines, start=1):
        texts = SEGMENT.findall(line)
        if len(SEGMENT_TAG.findall(line)) != 2 * len(texts):
            raise ValueError(
                f"{name}, line {number}: each <seg> must end on its line with </seg>."
            )
        count += len(texts)
        yield from map(unescape, texts)
    if not count:
        raise ValueError(f"An .sgm file must hold <seg> elements. Received: {name}.")


def unescape(text: str) -> str:
    """Replaces entities such as `&quot;` and `&#45;`, and strips the text, which stays
    one line.

    `html.unescape` would also replace `&lt` without a semicolon.
    """
    text = ENTITY.sub(lambda entity: html.unescape(entity[0]), text)
    return text.replace("\n", " ").strip()
