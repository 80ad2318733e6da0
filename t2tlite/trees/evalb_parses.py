"""Reads files of parses as EVALB does."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from t2tlite.files.text_files import read_lines
from t2tlite.trees.tree import Tree, numbered_trees

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
    lines = list(read_lines(path))
    by_line = defaultdict(list)
    for number, tree in numbered_trees(lines, str(path), as_evalb=True):
        by_line[number].append(tree)
    without_tree = []
    for number, line in enumerate(lines, start=1):
        if number not in by_line:
            without_tree.append(line)
            by_line[number] = []
    has_long_trees = any(map(str.strip, without_tree))
    parses = []
    for _, trees in sorted(by_line.items()):
        if len(trees) == 1:
            parses += trees
        elif trees or not has_long_trees:
            parses.append(Tree(FOREST, tuple(trees)))
    return parses
