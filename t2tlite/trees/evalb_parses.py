"""Reads files of parses as EVALB does."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from t2tlite.files.text_files import read_lines
from t2tlite.trees.tree import HEADER, Tree, Wordless, parse_tree

# The label of a node for a line with several trees, or none: not a bracket, and
# impossible in a file.
FOREST = "()"


def read_parses(path: str | Path) -> list[Tree]:
    """Returns the parses in a file: one on each line, or over several lines.

    Several trees on a line become the children of a FOREST node; of a blank line, the
    node has no children. Brackets without words are left out: parsers that fail write
    (TOP) or (()). A tree whose brackets are not closed at the end of its line continues
    on lines that begin with white space or ")", as treebanks and NLTK print trees. In a
    file with such trees, blank lines and the headers of the Penn Treebank separate
    trees and are not parses.

    Raises ValueError with file and line for text that is not UTF-8 or not bracketed.
    """
    texts = _tree_texts(str(path), read_lines(path))
    has_long_trees = any("\n" in text for text in texts.values())
    parses = []
    for number, text in texts.items():
        if not has_long_trees or not _is_separator(text):
            parses.append(_read_parse(text, str(path), number))
    return parses


def _tree_texts(name: str, lines: Iterable[str]) -> dict[int, str]:
    """Returns the lines on which a tree begins, by number, each with the further lines
    of its tree.
    """
    texts: dict[int, str] = {}
    begin = 0  # the line on which the tree begins
    depth = 0  # brackets open before the line
    for number, line in enumerate(lines, start=1):
        if depth <= 0:
            begin = number
            depth = 0
            texts[begin] = line
        elif line.startswith("("):
            raise _unclosed(name, begin, depth, f"where line {number} begins")
        else:
            texts[begin] += f"\n{line}"
        depth += line.count("(") - line.count(")")
    if depth > 0:
        raise _unclosed(name, begin, depth, "at the end of the file")
    return texts


def _unclosed(name: str, number: int, depth: int, where: str) -> ValueError:
    """The error that the tree beginning on line `number` has brackets open."""
    return ValueError(
        f"{name}, line {number}: every bracket must be closed. Received: a tree that"
        f" begins on this line and still has {depth} open {where}. Add the missing ) to"
        " it, or write a bracket that is itself a word as -LRB-. Write one tree per"
        " line, or indent the further lines of a tree."
    )


def _is_separator(text: str) -> bool:
    """Whether a line only separates trees, in a file whose trees have several lines."""
    return not text.strip() or text.lstrip().startswith(HEADER)


def _read_parse(text: str, name: str, number: int) -> Tree:
    """Returns the parse in a text that begins on line `number` of a file."""
    trees = []
    for start, part in _split_trees(text):
        first_line = number + text.count("\n", 0, start)
        trees.append(parse_tree(part, name, first_line, Wordless.ANYWHERE))
    return trees[0] if len(trees) == 1 else Tree(FOREST, tuple(trees))


def _split_trees(text: str) -> Iterator[tuple[int, str]]:
    """Yields the bracketed parts of a text, and then the rest of the text; before each,
    the index at which it begins.
    """
    depth = begin = 0
    for bracket in re.finditer("[()]", text):
        depth += 1 if bracket[0] == "(" else -1
        if depth == 0:
            yield begin, text[begin : bracket.end()]
            begin = bracket.end()
    if text[begin:].strip():
        # not a tree: `parse_tree` reports the mistake
        yield begin, text[begin:]
