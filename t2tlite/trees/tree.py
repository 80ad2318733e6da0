"""Constituency trees in the brackets of the Penn Treebank: read, written, and cleaned
for training and scoring.

    (TOP (S (NP (DT The) (NN cat)) (VP (VBD sat)) (. .)))

White space is that of ASCII, as for EVALB: a no-break space, as in 10 000, is a part of
its word. Trees may be thousands of brackets deep, so nothing in this file recurses.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from t2tlite.files import text_files

ROOT = "TOP"
# the labels that treebanks and parsers give the root
ROOT_LABELS = frozenset({ROOT, "ROOT", "S1", ""})
EMPTY_TAG = "-NONE-"  # the tag of a trace, whose "word" is not part of the sentence
# the start of the copyright lines above the trees in some files of the Penn Treebank
HEADER = "*x*"

OPEN, TAG, CLOSE = "open", "tag", "close"  # the kinds of steps in `Tree.walk`
TOKEN = re.compile(r"[()]|[^\s()]+", re.ASCII)
WORD = re.compile(r"\S+", re.ASCII)
CATEGORY = re.compile(r"[^-=|]+")


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Tree:
    """A constituent, or a preterminal: a tag over one word. Neither labels nor words
    hold space or ( or ).

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
                    " Give it a tag."
                )
            if node.is_preterminal:
                kind = TAG
            elif kind == OPEN:
                stack.append((CLOSE, node))
                stack.extend((OPEN, child) for child in reversed(node.children))
            yield kind, node

    def words(self) -> list[str]:
        """The words of the sentence, from left to right."""
        return [str(node.children[0]) for kind, node in self.walk() if kind == TAG]

    def tags(self) -> list[str]:
        """The part-of-speech tags from left to right, one for each word."""
        return [node.label for kind, node in self.walk() if kind == TAG]

    def __repr__(self) -> str:
        return f"Tree({format_tree(self)!r})"

    def __eq__(self, other: object) -> bool:
        return (
            format_tree(self) == format_tree(other)
            if isinstance(other, Tree)
            else NotImplemented
        )

    def __hash__(self) -> int:
        return hash(format_tree(self))


def split_words(text: str) -> list[str]:
    """The words of a sentence, or the tokens of a sequence, which ASCII white space
    separates.
    """
    return WORD.findall(text)


def parse_tree(text: str) -> Tree:
    """The single tree in a text. The outermost bracket of `( (S ...))` has the label
    "".

    Raises ValueError if the text is not one well-formed tree (see `read_trees`).
    """
    trees = list(_parse(text.split("\n"), "the text"))
    if len(trees) != 1:
        raise ValueError(
            f"Exactly one bracketed tree is required. Received: {len(trees)} trees in"
            f" {_shortened(text)}. Pass one tree, such as (TOP (NN cat))."
        )
    return trees[0]


def format_tree(tree: Tree) -> str:
    """The tree on one line, a space between a label and each child: `(TOP (S (NP (DT
    The) (NN cat))))`.
    """
    pieces = []
    for kind, node in tree.walk():
        word = f" {node.children[0]})" if kind == TAG else ""
        pieces.append(")" if kind == CLOSE else f" ({node.label}{word}")
    return "".join(pieces)[1:]


def read_trees(path: str | Path) -> Iterator[Tree]:
    """Yields the trees of a UTF-8 file in any layout: over several lines, or several on
    a line.

    Words and labels are not changed: `-LRB-`, `\\/` and `\\*` stay. Lines between trees
    that start with `*x*`, the headers of some Penn Treebank files, are skipped. A file
    is gzip if its name ends in `.gz`.

    Raises FileNotFoundError at once; while reading, ValueError with file and line if
    text is not UTF-8, has a NUL or no tree, a word has no tag, or a bracket is
    unmatched, empty or inside a tree without a label.
    """
    return _parse(text_files.read_lines(path), str(Path(path)))


def clean_tree(tree: Tree) -> Tree | None:
    """The tree on which parsers are trained and scored; None if no word is left.
    Cleaning is idempotent.

    1. Function tags, indices and alternatives of labels are removed (see
       `clean_label`).
    2. Traces (-NONE-) are removed, and every constituent that is left without words.
    3. The root is TOP. ROOT, S1, TOP and an outermost bracket without a label are
       renamed; other trees get a TOP.

    `(S (NP-SBJ-1 (-NONE- *)) (VP (VB Go)))` becomes `(TOP (S (VP (VB Go))))`.

    A constituent that step 2 leaves with one child of its own label, as in `(NP (NP
    (PRP It)))` where a trace stood beside the pronoun, stays: parsers that are trained
    on the treebank predict it. (Some tools remove it.)
    """
    stack: list[list[Tree]] = [[]]  # the cleaned children of each open constituent
    for kind, node in tree.walk():
        if kind == OPEN:
            stack.append([])
        elif kind == TAG:
            if node.label != EMPTY_TAG:
                stack[-1].append(Tree(clean_label(node.label), node.children))
        elif children := stack.pop():
            stack[-1].append(Tree(clean_label(node.label), tuple(children)))
    if not stack[0]:
        return None
    (result,) = stack[0]
    while (
        result.label in ROOT_LABELS
        and len(result.children) == 1
        and isinstance(result.children[0], Tree)
    ):
        result = result.children[0]  # nested roots become one, which is added below
    if result.label in ROOT_LABELS and not result.is_preterminal:
        return Tree(ROOT, result.children)
    return Tree(ROOT, (result,))


def clean_label(label: str) -> str:
    """A label without function tags, indices and alternatives: of NP-SBJ-1 and NP=2 NP,
    of ADVP|PRT ADVP.

    A label that begins with one of these marks, such as -LRB- and -NONE-, is not
    changed.
    """
    category = CATEGORY.match(label)
    return category.group() if category else label


def _parse(lines: Iterable[str], name: str) -> Iterator[Tree]:
    """Yields the trees in lines of text; `name` is the text's name in error
    messages.
    """
    # the open brackets: line, and label and children so far
    stack: list[tuple[int, list[Tree | str]]] = []
    count = number = 0
    for number, line in enumerate(lines, start=1):
        place = f"{name}, line {number}"
        if "\0" in line:
            raise ValueError(
                f"{place}: trees are text. Received: a NUL character. Is this a text"
                " file in UTF-8?"
            )
        if not stack and line.lstrip().startswith(HEADER):
            continue
        for token in TOKEN.findall(line):
            if token == "(":
                stack.append((number, []))
            elif not stack:
                required = "every ) must close a bracket. Received: one too many"
                advice = "Remove it, or add the ( that it closes."
                if token != ")":
                    required = (
                        f"text must lie inside brackets. Received: {token!r} outside"
                    )
                    advice = (
                        "Give one tree after the other, such as (TOP (NN cat)), and"
                        " nothing else."
                    )
                raise ValueError(
                    f"{place}: {required}, in {_shortened(line)}. {advice}"
                )
            elif token != ")":
                stack[-1][1].append(token)
            else:
                first_line = stack[0][0]
                opened, items = stack.pop()
                tree = _constituent(
                    items, not stack, f"{name}, line {opened}", first_line
                )
                if stack:
                    stack[-1][1].append(tree)
                else:
                    count += 1
                    yield tree
    if stack:
        raise ValueError(
            f"{name}, line {stack[0][0]}: every bracket must be closed. Received: a"
            f" tree that begins on this line and still has {len(stack)} open at the"
            " end. Add the missing ) to it, or to a tree after it."
        )
    if not count:
        raise ValueError(
            f"{name}: at least one tree is required. Received: none in {number} lines."
            " Is this the right file?"
        )


def _constituent(
    items: list[Tree | str], outermost: bool, place: str, first_line: int
) -> Tree:
    """The tree of a closed bracket, which begins at `place`; `items` are its label, if
    any, and children.
    """
    label = items[0] if items and isinstance(items[0], str) else None
    children = items if label is None else items[1:]
    shown = _shortened(
        f"({' '.join(item if isinstance(item, str) else '(...)' for item in items)})"
    )
    if not children:
        mistake = (
            f"a bracket holds a label and words or further brackets. Received: {shown}."
            " Remove it"
        )
    elif label is None and not outermost:
        mistake = (
            "only the outermost bracket may lack a label. Received: one without a"
            f" label inside the tree that begins on line {first_line}. Add the label,"
            " or the ) that the tree lacks"
        )
    elif len(children) > 1 and any(isinstance(child, str) for child in children):
        mistake = (
            "each word has a tag and a bracket of its own, (NN cat). Received:"
            f" {shown}. Give the word one"
        )
    else:
        return Tree(label or "", tuple(children))
    raise ValueError(
        f"{place}: {mistake}; a bracket that is itself a word is written -LRB- or"
        " -RRB-."
    )


def _shortened(text: str) -> str:
    return repr(text if len(text) <= 80 else text[:77] + "...")
