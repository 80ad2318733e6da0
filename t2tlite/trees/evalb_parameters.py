"""The parameters of EVALB: which brackets and words it compares, and which labels count
as the same.
"""

import functools
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from t2tlite.files.text_files import read_lines

# keyword of a parameter file -> the field that it sets
NUMBERS = {"LABELED": "labelled", "CUTOFF_LEN": "cutoff_length"}
LABELS = {
    "DELETE_LABEL": "delete_labels",
    "DELETE_LABEL_FOR_LENGTH": "delete_labels_for_length",
    "QUOTE_LABEL": "quote_labels",
}
PAIRS = {"EQ_LABEL": "equal_labels", "EQ_WORD": "equal_words"}
# t2t-evalb has flags for its output, and errors never end the scoring
UNUSED = ("DEBUG", "MAX_ERROR")
KEYWORDS = (*UNUSED, *NUMBERS, *LABELS, *PAIRS)


@dataclass(frozen=True)
class EvalbParameters:
    """The values in a parameter file of EVALB. The defaults are EVALB's own without a
    file.
    """

    labelled: bool = True  # False: only spans must agree
    cutoff_length: int = 40  # words of the longest sentence in the second summary
    # tags whose words, and labels whose brackets, are removed
    delete_labels: frozenset[str] = frozenset()
    # tags whose words do not count in lengths
    delete_labels_for_length: frozenset[str] = frozenset()
    equal_labels: frozenset[tuple[str, str]] = frozenset()  # pairs, in either order
    equal_words: frozenset[tuple[str, str]] = frozenset()
    # tags that parsers confuse on quotation marks
    quote_labels: frozenset[str] = frozenset()

    def same_label(self, a: str, b: str) -> bool:
        """Whether two labels, or two tags, count as the same."""
        return a == b or (a, b) in self.equal_labels or (b, a) in self.equal_labels

    def same_word(self, a: str, b: str) -> bool:
        return a == b or (a, b) in self.equal_words or (b, a) in self.equal_words

    @functools.cached_property
    def delete_brackets(self) -> frozenset[str]:
        """The labels of brackets to drop. Of brackets, though not of tags, EVALB also
        drops labels that count as the same.
        """
        labels = set(self.delete_labels)
        for pair in self.equal_labels:
            if self.delete_labels.intersection(pair):
                labels.update(pair)
        return frozenset(labels)


COLLINS = EvalbParameters(
    delete_labels=frozenset({"TOP", "-NONE-", ",", ":", "``", "''", "."}),
    delete_labels_for_length=frozenset({"-NONE-"}),
    equal_labels=frozenset({("ADVP", "PRT")}),
)


def read_parameters(path: str | Path) -> EvalbParameters:
    """Reads a parameter file of EVALB, such as its COLLINS.prm.

    A line is a keyword and its values, or a comment that starts with "#". Raises
    ValueError with file and line for any other line. A parameter that the file does not
    set has its default. DEBUG and MAX_ERROR have no effect.
    """
    fields: dict[str, Any] = {}
    for number, line in enumerate(read_lines(path), start=1):
        keyword, *values = line.split() or ["#"]
        place = f"{path}, line {number}"
        if keyword.startswith("#"):
            continue
        if keyword not in KEYWORDS:
            raise ValueError(
                f"{place}: a line must start with # or one of {', '.join(KEYWORDS)}."
                f" Received: {keyword!r}. Correct it."
            )
        takes = "one value"
        is_right = len(values) == 1
        if keyword in PAIRS:
            takes = "two values"
            is_right = len(values) == 2
        elif keyword in NUMBERS:
            takes = "a whole number"
            is_right = re.fullmatch("[0-9]{1,9}", " ".join(values)) is not None
        if not is_right:
            raise ValueError(
                f"{place}: {keyword} takes {takes}. Received: {' '.join(values)!r}."
                " Write a line for each."
            )
        if keyword in NUMBERS:
            fields[NUMBERS[keyword]] = int(values[0])
        elif keyword in LABELS:
            fields.setdefault(LABELS[keyword], set()).add(values[0])
        elif keyword in PAIRS:
            fields.setdefault(PAIRS[keyword], set()).add(tuple(values))
    for field, value in fields.items():
        fields[field] = frozenset(value) if isinstance(value, set) else value
    return EvalbParameters(**fields)
