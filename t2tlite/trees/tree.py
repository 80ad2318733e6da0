"""Constituency trees in the brackets of the Penn Treebank: read, written, and cleaned
for training and scoring.

    (TOP (S (NP (DT The) (NN cat)) (VP (VBD sat)) (. .)))

Readers of trees split at ASCII white space only, as EVALB does: the no-break space of
10 000 is a part of its word. In sentences any white space separates words
(vocabularies/normalisation.py), so `clean_tree` writes _ for it inside a word. Trees
may be thousands of brackets deep, so nothing in this file recurses.
"""

from __future__ import annotations

import collections
import dataclasses
import re
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from t2tlite.files.text_files import read_lines
from t2tlite.vocabularies.normalisation import WHITE_SPACE, is_blank

ROOT = "TOP"
# the labels that treebanks and parsers give the root
ROOT_LABELS = frozenset({ROOT, "ROOT", "S1", ""})
# the tag of a trace, whose "word" is not part of the sentence
EMPTY_TAG = "-NONE-"
# The label of a node for a line with several trees, or none: not a bracket, and
# impossible in a file.
FOREST = "()"
# the start of the copyright lines above the trees in some files of the Penn Treebank
HEADER = "*x*"

# the kinds of steps in `Tree.walk`
OPEN, TAG, CLOSE = "open", "tag", "close"
TOKEN = re.compile(r"[()]|[^\s()]+", re.ASCII)


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Tree:
    """A constituent, or a preterminal: a tag over one word. Labels and words contain
    neither ASCII white space nor ( nor ).

    Attributes:
        label: a category ("NP") or a part-of-speech tag ("NN"); "" if an outermost
            bracket has none.
        children: trees, or exactly one string, the word.
    """

    label: str
    children: tuple[Tree | str, ...]

    @property
    def is_preterminal(self) -> bool:
        """Whether this is a tag over a word."""
        return len(self.children) == 1 and isinstance(self.children[0], str)

    @property
    def word(self) -> str:
        """The word of a preterminal."""
        return str(self.children[0])

    def walk(self) -> Iterator[tuple[str, Tree]]:
        """Yields the nodes from left to right: (TAG, preterminal) and (OPEN, node) ...
        (CLOSE, node).

        Raises ValueError if a word is not the only child of its bracket.
        """
        stack: list[tuple[str, Tree | str]] = [(OPEN, self)]
        while stack:
            kind, node = stack.pop()
            if isinstance(node, str):
                raise ValueError(
                    f"A word must be the only child of its bracket. Received: {node!r}."
                )
            if node.is_preterminal:
                kind = TAG
            elif kind == OPEN:
                stack.append((CLOSE, node))
                for child in reversed(node.children):
                    stack.append((OPEN, child))
            yield kind, node

    def words(self) -> list[str]:
        """The words of the sentence, from left to right."""
        return [node.word for kind, node in self.walk() if kind == TAG]

    def tags(self) -> list[str]:
        """The part-of-speech tags from left to right, one for each word."""
        return [node.label for kind, node in self.walk() if kind == TAG]

    def __repr__(self) -> str:
        return f"Tree({format_tree(self)!r})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tree):
            return NotImplemented
        return format_tree(self) == format_tree(other)

    def __hash__(self) -> int:
        return hash(format_tree(self))


class Constituent(NamedTuple):
    """A constituent in its tree."""

    node: Tree
    parent: str  # its label, "" of the root
    start: int  # its first word
    end: int  # one past the last


def constituents_of(tree: Tree) -> list[Constituent]:
    """The constituents of a tree, outer ones first."""
    constituents: list[Constituent] = []
    # index, first word, label
    unclosed: list[tuple[int, int, str]] = []
    words = 0
    for kind, node in tree.walk():
        if kind == OPEN:
            unclosed.append((len(constituents), words, node.label))
        elif kind == TAG:
            words += 1
        else:
            index, start, _ = unclosed.pop()
            parent = unclosed[-1][2] if unclosed else ""
            constituents.insert(index, Constituent(node, parent, start, words))
    return constituents


# brackets without words, in a file
WORDLESS = Tree("", ())


def format_tree(tree: Tree) -> str:
    """Writes a tree on one line, with a space between a label and each child: `(TOP (S
    (NP (DT The) (NN cat))))`.
    """
    pieces = []
    for kind, node in tree.walk():
        if kind == OPEN:
            pieces.append(f" ({node.label}")
        elif kind == TAG:
            pieces.append(f" ({node.label} {node.word})")
        else:
            pieces.append(")")
    return "".join(pieces)[1:]


def parse_tree(text: str) -> Tree:
    """Returns the single tree in a text. The outermost bracket of `( (S ...))` has the
    label "". Raises ValueError if the text is not one tree (see `read_trees`).
    """
    trees = list(_numbered_trees(text.split("\n"), "the text"))
    if len(trees) != 1:
        raise ValueError(
            f"One bracketed tree is required. Received: {len(trees)} in {text!r:.80}."
        )
    return trees[0][1]


def read_trees(path: str | Path) -> Iterator[Tree]:
    """Yields the trees of a UTF-8 file in any layout: over several lines, or several on
    a line.

    Words and labels are not changed: `-LRB-`, `\\/` and `\\*` stay. Lines between trees
    that start with `*x*`, the headers of some Penn Treebank files, are skipped.
    Brackets without words, with or without the label of a root, are a tree without
    children: parsers write `(())` for a sentence that they cannot parse. A compressed
    file is decompressed.

    While reading, raises FileNotFoundError, or ValueError with file and line if the
    text is not UTF-8 or is not well-formed: there is no tree, a word has no tag, or a
    bracket is unmatched or empty, or lacks a label inside a tree.
    """
    is_empty = True
    for _, tree in _numbered_trees(read_lines(path), str(path)):
        is_empty = False
        yield tree
    if is_empty:
        raise ValueError(f"{path}: at least one tree is required. Received: none.")


def read_parses(path: str | Path) -> list[Tree]:
    """Returns the parses in a file as EVALB reads it: one on each line, or over several
    lines.

    Several trees on a line become the children of a FOREST node; of a blank line, the
    node has no children. Brackets without words are left out: parsers that fail write
    (TOP) or (()). A tree whose brackets are not closed at the end of its line continues
    on lines that begin with white space or ")", as treebanks and NLTK print trees. In a
    file with such trees, blank lines and the headers of the Penn Treebank separate
    trees and are not parses.

    Raises ValueError with file and line for text that is not UTF-8 or not bracketed.
    """
    lines = list(read_lines(path))
    by_line: dict[int, list[Tree]] = collections.defaultdict(list)
    for number, tree in _numbered_trees(lines, str(path), as_evalb=True):
        by_line[number].append(tree)
    has_long_trees = False
    for number, line in enumerate(lines, start=1):
        has_long_trees |= number not in by_line and not is_blank(line)
    parses = []
    for number in range(1, len(lines) + 1):
        trees = by_line[number]
        if len(trees) == 1:
            parses += trees
        elif trees or not has_long_trees:
            parses.append(Tree(FOREST, tuple(trees)))
    return parses


class _Malformed(Exception):
    """Brackets that are not a tree; the message says what is required."""


def _numbered_trees(
    lines: Iterable[str], name: str, as_evalb: bool = False
) -> Iterator[tuple[int, Tree]]:
    """Yields the trees in lines of text, each after the number of the line on which it
    begins. Raises ValueError with `name` and a line as `read_trees`.

    With `as_evalb`, brackets without words may be anywhere, and are left out. A line
    that begins with a bracket then begins a tree.
    """
    number = start = 0
    line = ""
    # what is inside each open bracket
    stack: list[list[Tree | str]] = []
    try:
        for number, line in enumerate(lines, start=1):
            if stack and as_evalb and line.startswith("("):
                break
            if not stack and line.lstrip().startswith(HEADER):
                continue
            for token in TOKEN.findall(line):
                start = start if stack else number
                if token == "(":
                    stack.append([])
                elif not stack:
                    raise _Malformed("words and closing brackets must lie inside one")
                elif token != ")":
                    stack[-1].append(token)
                else:
                    tree = _constituent(stack.pop(), not stack, as_evalb)
                    if stack:
                        stack[-1].append(tree)
                    else:
                        yield start, tree
        if stack:
            raise _Malformed("every bracket must be closed")
    except _Malformed as required:
        raise ValueError(
            f"{name}, line {number}: {required}. Received: {line!r:.80}, in a tree that"
            f" begins on line {start}. Write words that are brackets as -LRB- or -RRB-."
        ) from None


def _constituent(items: list[Tree | str], is_outermost: bool, as_evalb: bool) -> Tree:
    """The tree of what is inside a bracket, or WORDLESS."""
    label, *children = items or [""]
    if not isinstance(label, str):
        label = ""
        children = items
    parts = []
    words = 0
    for child in children:
        if child is not WORDLESS:
            parts.append(child)
            words += isinstance(child, str)
    if not parts and (as_evalb or label in ROOT_LABELS):
        return WORDLESS
    has_empty = len(parts) < len(children) and not as_evalb
    if words and len(parts) > 1:
        raise _Malformed("each word has a tag and a bracket of its own, (NN cat)")
    if not parts or has_empty or not (label or is_outermost):
        raise _Malformed(
            "each bracket holds a label, which only the outermost may lack, and a word"
            " or further brackets"
        )
    return Tree(label, tuple(parts))


def clean_tree(tree: Tree, not_words: Collection[str] = ()) -> Tree | None:
    """Returns the tree on which parsers are trained and scored, or None if no word is
    left. Cleaning is idempotent.

    1. Labels lose function tags, indices and alternatives (see `clean_label`).
    2. Traces (-NONE-) and the nodes labelled with one of `not_words` are removed, then
       every constituent without words.
    3. The root is TOP. ROOT, S1 and an outermost bracket without a label are renamed;
       other trees get a TOP.
    4. White space inside a word or label, such as the no-break space of 10 000, becomes
       _. Words without a visible character are removed. Any white space would split
       the input of a parser.

    `(S (NP-SBJ-1 (-NONE- *)) (VP (VB Go)))` becomes `(TOP (S (VP (VB Go))))`.

    Some tools also remove a constituent that has one child of its own label. Here it
    stays, as in `(NP (NP (PRP It)))`, where step 2 removed a trace beside the pronoun:
    parsers that are trained on the treebank predict it.
    """
    removed = {EMPTY_TAG, *not_words}
    # the cleaned children of open constituents
    stack: list[list[Any]] = [[]]
    for kind, node in tree.walk():
        if kind == OPEN:
            stack.append([])
            continue
        children = stack.pop() if kind == CLOSE else []
        if kind == TAG and not is_blank(node.word):
            children.append(WHITE_SPACE.sub("_", node.word))
        if children and node.label not in removed:
            label = WHITE_SPACE.sub("_", clean_label(node.label))
            stack[-1].append(Tree(label, tuple(children)))
    if not stack[0]:
        return None
    (result,) = stack[0]
    # nested roots become one
    while result.label in ROOT_LABELS and not result.is_preterminal:
        if len(result.children) > 1:
            return Tree(ROOT, result.children)
        (result,) = result.children
    return Tree(ROOT, (result,))


def clean_label(label: str) -> str:
    """Removes function tags, indices and alternatives: NP-SBJ-1 and NP=2 become NP,
    ADVP|PRT becomes ADVP.

    A label that begins with such a mark is not changed: -LRB-, -NONE-.
    """
    category = re.match("[^-=|]+", label)
    return category.group() if category else label
