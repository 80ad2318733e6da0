"""The parameters of EVALB: which brackets and words are compared, and which labels count as the same."""

from __future__ import annotations

import functools
import itertools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from t2tlite.files.text_files import read_lines

# keyword of a parameter file -> the field it sets, and how many values stand after the keyword
KEYWORDS: dict[str, tuple[str | None, int]] = {
    "DEBUG": (None, 1),  # the output is t2t-evalb's to choose
    "MAX_ERROR": (None, 1),  # errors are counted, and never a reason to stop
    "LABELED": ("labelled", 1),
    "CUTOFF_LEN": ("cutoff_length", 1),
    "DELETE_LABEL": ("delete_labels", 1),
    "DELETE_LABEL_FOR_LENGTH": ("delete_labels_for_length", 1),
    "EQ_LABEL": ("equal_labels", 2),
    "EQ_WORD": ("equal_words", 2),
    "QUOTE_LABEL": ("quote_labels", 1),
}


@dataclass(frozen=True)
class EvalbParameters:
    """What a parameter file of EVALB sets. The defaults are EVALB's without such a file; `COLLINS` is the standard."""

    labelled: bool = True  # False: only spans must agree
    cutoff_length: int = 40  # in words: longest sentence of the second summary
    delete_labels: frozenset[str] = frozenset()  # tags whose words, and labels whose brackets, are taken out
    delete_labels_for_length: frozenset[str] = frozenset()  # tags whose words do not count in a sentence's length
    equal_labels: frozenset[tuple[str, str]] = frozenset()  # pairs, each in either order
    equal_words: frozenset[tuple[str, str]] = frozenset()
    quote_labels: frozenset[str] = frozenset()  # tags that a parser may confuse where the word is a quotation mark

    def same_label(self, one: str, other: str) -> bool:
        """Whether two labels, or two tags, count as the same."""
        return one == other or (one, other) in self.equal_labels or (other, one) in self.equal_labels

    def same_word(self, one: str, other: str) -> bool:
        """Whether two words count as the same."""
        return one == other or (one, other) in self.equal_words or (other, one) in self.equal_words

    @functools.cached_property
    def delete_brackets(self) -> frozenset[str]:
        """Labels of brackets to drop. Unlike for tags, EVALB takes equal labels into account here."""
        pairs = itertools.chain(self.equal_labels, ((b, a) for a, b in self.equal_labels))
        return self.delete_labels | {one for one, other in pairs if other in self.delete_labels}


COLLINS = EvalbParameters(
    delete_labels=frozenset({"TOP", "-NONE-", ",", ":", "``", "''", "."}),
    delete_labels_for_length=frozenset({"-NONE-"}),
    equal_labels=frozenset({("ADVP", "PRT")}),
)


def read_parameters(path: str | Path) -> EvalbParameters:
    """The parameters in a parameter file of EVALB, such as its COLLINS.prm.

    A line is a keyword and its value; lines that start with "#" are comments. What the file does not name keeps its
    default. DEBUG and MAX_ERROR are accepted, and make no difference.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: a line is none that EVALB knows; the message names file and line.
    """
    fields: dict[str, Any] = {}
    for number, line in enumerate(read_lines(path), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        keyword, *values = line.split()
        try:
            _set(fields, keyword, values)
        except ValueError as error:
            raise ValueError(f"{path}, line {number}: {error}") from None
    return EvalbParameters(**fields)


def _set(fields: dict[str, Any], keyword: str, values: list[str]) -> None:
    """Puts what one line says into `fields`."""
    if keyword not in KEYWORDS:
        raise ValueError(
            f"a line must start with one of {', '.join(KEYWORDS)}. Received: {keyword!r}. "
            "Correct it, or make the line a comment with #."
        )
    field, count = KEYWORDS[keyword]
    if len(values) != count:
        raise ValueError(
            f"{keyword} takes {count} value{'s' * (count > 1)}. Received: {len(values)} ({' '.join(values)}). "
            "Write a line for each."
        )
    if field in ("labelled", "cutoff_length"):
        if not values[0].isdecimal():
            raise ValueError(f"{keyword} takes a whole number. Received: {values[0]!r}. Correct it.")
        fields[field] = bool(int(values[0])) if field == "labelled" else int(values[0])
    elif field is not None:
        value = values[0] if count == 1 else tuple(values)
        fields[field] = fields.get(field, frozenset()) | {value}
