"""NIST's .sgm files, in which WMT's test sets are distributed: a text is the content of
a `<seg>` element.
"""

import html
import html.entities
import re
from collections.abc import Iterable, Iterator

SGM_ENDINGS = (".sgm", ".sgml")
SEGMENT = re.compile(r"<seg\b[^>]*>(.*?)</seg>", re.IGNORECASE)
SEGMENT_TAG = re.compile(r"</?seg\b", re.IGNORECASE)
ENTITY = re.compile(r"&((?:#\d+|#[xX][0-9a-fA-F]+|[A-Za-z]\w*);)")


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
                f" Received: {line.strip()[:80]!r}. Fetch the file again or correct the"
                " line."
            )
        count += len(texts)
        yield from map(unescape, texts)
    if not count:
        raise ValueError(
            f'An .sgm file must hold <seg id="..."> elements. Received: {name} without'
            " any."
        )


def unescape(text: str) -> str:
    """Replaces entities such as `&quot;` and `&#45;`, and strips the text, which stays
    one line.

    `html.unescape` would also replace `&lt` without a semicolon.
    """

    def character(entity: re.Match[str]) -> str:
        is_known = entity[1].startswith("#") or entity[1] in html.entities.html5
        return html.unescape(entity[0]) if is_known else entity[0]

    return ENTITY.sub(character, text).replace("\n", " ").strip()
