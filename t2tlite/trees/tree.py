"""Parse trees in brackets, as the Penn Treebank writes them: read, written and cleaned for training and scoring.

    (TOP (S (NP (DT The) (NN cat)) (VP (VBD sat)) (. .)))

Trees may be thousands of brackets deep, so nothing in this file recurses.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from t2tlite.files import text_files

ROOT = "TOP"
ROOT_LABELS = frozenset({ROOT, "ROOT", "S1", ""})  # what treebanks and parsers call the bracket around a sentence
EMPTY_TAG = "-NONE-"  # the tag of a trace: its "word" was never said
HEADER = "*x*"  # starts the copyright lines above the trees in some files of the Penn Treebank

TOKEN = re.compile(r"[()]|[^\s()]+")
CATEGORY = re.compile(r"[^-=|]+")


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Tree:
    """A constituent over other trees, or a pre-terminal: a part-of-speech tag over one word.

    Attributes:
        label: the category ("NP") or the tag ("NN"); "" only for an outermost bracket without one.
        children: the trees below, or exactly one string, the word.
    """

    label: str
    children: tuple[Tree | str, ...]

    @property
    def is_preterminal(self) -> bool:
        """Whether this is a tag over a word."""
        return len(self.children) == 1 and isinstance(self.children[0], str)

    def preterminals(self) -> Iterator[Tree]:
        """Yields the pre-terminals from left to right."""
        waiting: list[Tree] = [self]
        while waiting:
            tree = waiting.pop()
            if tree.is_preterminal:
                yield tree
            else:
                waiting.extend(child for child in reversed(tree.children) if isinstance(child, Tree))

    def words(self) -> list[str]:
        """The words from left to right."""
        return [str(tree.children[0]) for tree in self.preterminals()]

    def tags(self) -> list[str]:
        """The part-of-speech tags from left to right, one for each word."""
        return [tree.label for tree in self.preterminals()]

    def __repr__(self) -> str:
        return f"Tree({format_tree(self)!r})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tree):
            return NotImplemented
        waiting: list[tuple[Tree | str, Tree | str]] = [(self, other)]
        while waiting:
            one, two = waiting.pop()
            if one is two:
                continue
            if isinstance(one, str) or isinstance(two, str):
                if one != two:
                    return False
            elif one.label != two.label or len(one.children) != len(two.children):
                return False
            else:
                waiting.extend(zip(one.children, two.children, strict=True))
        return True

    def __hash__(self) -> int:
        return hash(format_tree(self))


def parse_tree(text: str) -> Tree:
    """The one tree that a text holds.

    An outermost bracket without label, as in `( (S ...))`, has the label "".

    Raises:
        ValueError: the text is no well-formed tree, or more than one. See `read_trees` for what that means.
    """
    trees = list(_trees(text.split("\n"), "the text"))
    if len(trees) != 1:
        raise ValueError(
            f"Exactly one bracketed tree is required. Received: {len(trees)} trees in {_shortened(text)}. "
            "Pass one tree, such as (TOP (NN cat))."
        )
    return trees[0]


def format_tree(tree: Tree) -> str:
    """The tree on one line, with one space between a label and each child: `(TOP (S (NP (DT The) (NN cat))))`."""
    pieces: list[str] = []
    waiting: list[Tree | str] = [tree]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            pieces.append(item)
            continue
        pieces.append("(" + item.label)
        waiting.append(")")
        for child in reversed(item.children):
            waiting += (child, " ")
    return "".join(pieces)


def read_trees(path: str | Path) -> Iterator[Tree]:
    """Yields the trees of a file in UTF-8, in any layout: over several lines, or several on a line.

    Words and labels are what lies between brackets and white space, unchanged: `-LRB-`, `-RRB-`, `\\/` and `\\*` stay
    as they are. Lines between trees that start with `*x*`, headers of some Penn Treebank files, are skipped.

    Args:
        path: a file of any name, such as wsj_0001.mrg; gzip where the name ends in `.gz`.

    Raises:
        FileNotFoundError: at once, when there is no such file.
        ValueError: while reading, with file and line: brackets that do not match, text outside brackets, a bracket with
            nothing in it, a bracket without label inside a tree, a word that has no tag of its own, a NUL character,
            no tree in the file, or text that is not UTF-8.
    """
    path = text_files.check_file(path)
    return _trees(text_files.read_lines(path), str(path))


def clean_tree(tree: Tree) -> Tree | None:
    """The tree as parsers are trained and scored on it, or None where nothing is left. Cleaning twice changes nothing.

    1. A label ends before its first `-`, `=` or `|`, so that function tags, indices and alternatives go: NP-SBJ-1,
       NP=2 and ADVP|PRT become NP, NP and ADVP. A label that begins with one of them (-LRB-, -NONE-) stays whole.
    2. Traces (-NONE-) go, and every constituent that is left without words.
    3. The outermost bracket is TOP. ROOT, S1, TOP and a bracket without label are renamed, others put under a TOP.

    `(S (NP-SBJ-1 (-NONE- *)) (VP (VB Go)))` becomes `(TOP (S (VP (VB Go))))`.

    A constituent that step 2 leaves with one child of its own label, as in `(NP (NP (PRP It)))` where a trace stood
    beside the pronoun, stays: parsers that are trained on the treebank predict it. (Some tools take it out.)
    """
    cleaned: list[Tree] = []  # where the finished tree goes
    stack: list[tuple[Tree, int, list[Tree]]] = [(tree, 0, [])]  # constituent, its next child, its cleaned children
    while stack:
        node, position, children = stack.pop()
        target = stack[-1][2] if stack else cleaned
        if node.is_preterminal:
            if node.label != EMPTY_TAG:
                target.append(Tree(clean_label(node.label), node.children))
        elif position < len(node.children):
            stack.append((node, position + 1, children))
            child = node.children[position]
            if isinstance(child, Tree):
                stack.append((child, 0, []))
        elif children:
            target.append(Tree(clean_label(node.label), tuple(children)))
    if not cleaned:
        return None
    (result,) = cleaned
    while result.label in ROOT_LABELS and len(result.children) == 1 and isinstance(result.children[0], Tree):
        result = result.children[0]  # one bracket of the root is put back below
    if result.label in ROOT_LABELS and not result.is_preterminal:
        return Tree(ROOT, result.children)
    return Tree(ROOT, (result,))


def clean_label(label: str) -> str:
    """A label without function tags, indices and alternatives: NP-SBJ-1 -> NP, ADVP|PRT -> ADVP, -LRB- -> -LRB-."""
    category = CATEGORY.match(label)
    return category.group() if category else label


@dataclasses.dataclass
class _Bracket:
    """A bracket that is still open."""

    line: int  # where it opened, from 1
    label: str | None = None
    children: list[Tree | str] = dataclasses.field(default_factory=list)


def _trees(lines: Iterable[str], name: str) -> Iterator[Tree]:
    """Yields the trees in lines of text; `name` is what error messages call the text."""
    stack: list[_Bracket] = []
    count = number = 0
    for number, line in enumerate(lines, start=1):
        place = f"{name}, line {number}"
        if "\0" in line:
            raise ValueError(f"{place}: trees are text. Received: a NUL character. Is this a text file in UTF-8?")
        if not stack and line.lstrip().startswith(HEADER):
            continue
        for token in TOKEN.findall(line):
            if token == "(":
                stack.append(_Bracket(number))
            elif not stack:
                raise _outside(place, token, line)
            elif token != ")":
                bracket = stack[-1]
                if bracket.label is None and not bracket.children:
                    bracket.label = token
                else:
                    bracket.children.append(token)
            else:
                tree = _closed(stack, name)
                if stack:
                    stack[-1].children.append(tree)
                else:
                    count += 1
                    yield tree
    if stack:
        raise ValueError(
            f"{name}, line {stack[0].line}: every bracket must be closed. Received: a tree that begins on this line "
            f"and still has {len(stack)} open at the end. Add the missing ) to it, or to a tree after it."
        )
    if not count:
        raise ValueError(
            f"{name}: at least one tree is required. Received: none in {number} lines. Is this the right file?"
        )


def _closed(stack: list[_Bracket], name: str) -> Tree:
    """Takes the innermost bracket off the stack as a tree, after checking that it is one."""
    first, bracket = stack[0], stack.pop()
    words = [child for child in bracket.children if isinstance(child, str)]
    label = bracket.label
    if not bracket.children:
        problem = "a bracket holds a label and words or further brackets", repr(f"({label or ''})"), "Remove it"
    elif label is None and stack:
        problem = (
            "only the outermost bracket may lack a label",
            f"one without a label inside the tree that begins on line {first.line}",
            "Add the label, or the ) that the tree lacks",
        )
    elif words and len(bracket.children) > 1:
        shown = " ".join(child if isinstance(child, str) else "(...)" for child in bracket.children)
        problem = (
            "each word has a tag and a bracket of its own, (NN cat)",
            _shortened(f"({label or ''} {shown})"),
            "Give the word one",
        )
    else:
        return Tree(label or "", tuple(bracket.children))
    required, received, advice = problem
    raise ValueError(
        f"{name}, line {bracket.line}: {required}. Received: {received}. {advice}; "
        "a bracket that is itself a word is written -LRB- or -RRB-."
    )


def _outside(place: str, token: str, line: str) -> ValueError:
    if token == ")":
        return ValueError(
            f"{place}: every ) must close a bracket. Received: one too many, in {_shortened(line)}. "
            "Remove it, or add the ( that it closes."
        )
    return ValueError(
        f"{place}: text must lie inside brackets. Received: {token!r} outside, in {_shortened(line)}. "
        "Give one tree after the other, such as (TOP (NN cat)), and nothing else."
    )


def _shortened(text: str) -> str:
    return repr(text if len(text) <= 80 else text[:77] + "...")
