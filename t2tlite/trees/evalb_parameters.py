"""EVALB's parameters: those of COLLINS.prm, and files of others."""

import functools
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from t2tlite.files.text_files import read_lines
from t2tlite.trees.tree import FOREST

# Keyword of a parameter file -> the field that it sets. t2t-evalb has flags for its
# output, and errors never end the scoring.
KEYWORDS = {
    "DEBUG": "",
    "MAX_ERROR": "",
    "LABELED": "labelled",
    "CUTOFF_LEN": "cutoff_length",
    "DELETE_LABEL": "delete_labels",
    "DELETE_LABEL_FOR_LENGTH": "delete_labels_for_length",
    "QUOTE_LABEL": "quote_labels",
    "EQ_LABEL": "equal_labels",
    "EQ_WORD": "equal_words",
}


@dataclass(frozen=True)
class EvalbParameters:
    """The values in a parameter file of EVALB. The defaults are EVALB's own without a
    file.
    """

    labelled: int = 1  # 0: only spans must agree
    # words of the longest sentence in the second summary
    cutoff_length: int = 40
    # tags whose words, and labels whose brackets, are removed
    delete_labels: frozenset[str] = frozenset()
    # tags whose words do not count in lengths
    delete_labels_for_length: frozenset[str] = frozenset()
    # pairs, in either order
    equal_labels: frozenset[tuple[str, str]] = frozenset()
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
        labels = {FOREST, *self.delete_labels}
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
        if keyword.startswith("#"):
            continue
        field = KEYWORDS.get(keyword)
        is_number = field in ("labelled", "cutoff_length")
        is_pair = keyword.startswith("EQ_")
        form = r"\S+ \S+" if is_pair else r"\S+"
        if is_number:
            form = "[0-9]{1,9}"
        if field is None or not re.fullmatch(form, " ".join(values)):
            raise ValueError(
                f"{path}, line {number}: a parameter of EVALB with its labels or"
                f" number, or a # comment, is required. Received: {line!r:.80}."
            )
        if is_number:
            fields[field] = int(values[0])
        elif field:
            value = tuple(values) if is_pair else values[0]
            fields[field] = fields.get(field, frozenset()) | {value}
    return EvalbParameters(**fields)
