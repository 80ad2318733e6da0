"""Constituency trees in the brackets of the Penn Treebank: read, written, and cleaned
for training and scoring.

    (TOP (S (NP (DT The) (NN cat)) (VP (VBD sat)) (. .)))

Readers of trees split at ASCII white space only, as EVALB does: the no-break space of
10 000 is a part of its word. In sentences any white space separates words
(vocabularies/normalisation.py), so `clean_tree` writes _ for it inside a word. Trees
may be thousands of brackets deep, so nothing in this file recurses.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from t2tlite.files import text_files
from t2tlite.vocabularies.normalisation import WHITE_SPACE, is_blank

ROOT = "TOP"
# the labels that treebanks and parsers give the root
ROOT_LABELS = frozenset({ROOT, "ROOT", "S1", ""})
EMPTY_TAG = "-NONE-"  # the tag of a trace, whose "word" is not part of the sentence
# The label of a node for a line with several trees, or none: not a bracket, and
# impossible in a file.
FOREST = "()"
# the start of the copyright lines above the trees in some files of the Penn Treebank
HEADER = "*x*"

OPEN, TAG, CLOSE = "open", "tag", "close"  # the kinds of steps in `Tree.walk`
TOKEN = re.compile(r"[()]|[^\s()]+", re.ASCII)
SEQUENCE_TOKEN = re.compile(r"\S+", re.ASCII)
ADVICE = "Correct it; a bracket that is itself a word is written -LRB- or -RRB-."
CATEGORY = re.compile(r"[^-=|]+")


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
                stack.extend((OPEN, child) for child in reversed(node.children))
            yield kind, node

    def preterminals(self) -> Iterator[Tree]:
        """Yields the tags over words, from left to right."""
        return (node for kind, node in self.walk() if kind == TAG)

    def words(self) -> list[str]:
        """The words of the sentence, from left to right."""
        return [node.word for node in self.preterminals()]

    def tags(self) -> list[str]:
        """The part-of-speech tags from left to right, one for each word."""
        return [node.label for node in self.preterminals()]

    def __repr__(self) -> str:
        return f"Tree({format_tree(self)!r})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tree):
            return NotImplemented
        return format_tree(self) == format_tree(other)

    def __hash__(self) -> int:
        return hash(format_tree(self))


def split_tokens(sequence: str) -> list[str]:
    """Splits a sequence at ASCII white space."""
    return SEQUENCE_TOKEN.findall(sequence)


def parse_tree(text: str) -> Tree:
    """Returns the single tree in a text. The outermost bracket of `( (S ...))` has the
    label "". Raises ValueError if the text is not one tree (see `read_trees`).
    """
    trees = list(_at_least_one_tree(text.split("\n"), "the text"))
    if len(trees) != 1:
        raise ValueError(
            f"Exactly one bracketed tree is required. Received: {len(trees)} trees in"
            f" {_shortened(text)}."
        )
    return trees[0]


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


def read_trees(path: str | Path) -> Iterator[Tree]:
    """Yields the trees of a UTF-8 file in any layout: over several lines, or several on
    a line.

    Words and labels are not changed: `-LRB-`, `\\/` and `\\*` stay. Lines between trees
    that start with `*x*`, the headers of some Penn Treebank files, are skipped.
    Brackets without words, with or without the label of a root, are a tree without
    children: parsers write `(())` for a sentence that they cannot parse. A file is
    decompressed if its name ends in `.gz`, `.xz` or `.bz2`.

    While reading, raises FileNotFoundError, or ValueError with file and line if the
    text is not UTF-8, contains a NUL, or is not well-formed: there is no tree, a word
    has no tag, or a bracket is unmatched or empty, or lacks a label inside a tree.
    """
    return _at_least_one_tree(text_files.read_lines(path), str(Path(path)))


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
    stack: list[list[Tree]] = [[]]  # the cleaned children of each open constituent
    for kind, node in tree.walk():
        if kind == OPEN:
            stack.append([])
        elif kind == TAG:
            if node.label not in removed and not is_blank(node.word):
                tag = _without_spaces(clean_label(node.label))
                stack[-1].append(Tree(tag, (_without_spaces(node.word),)))
        elif (children := stack.pop()) and node.label not in removed:
            label = _without_spaces(clean_label(node.label))
            stack[-1].append(Tree(label, tuple(children)))
    if not stack[0]:
        return None
    (result,) = stack[0]
    while (
        result.label in ROOT_LABELS
        and len(result.children) == 1
        and isinstance(result.children[0], Tree)
    ):
        result = result.children[0]  # nested roots become one, which follows
    if result.label in ROOT_LABELS and not result.is_preterminal:
        return Tree(ROOT, result.children)
    return Tree(ROOT, (result,))


def clean_label(label: str) -> str:
    """Removes function tags, indices and alternatives: NP-SBJ-1 and NP=2 become NP,
    ADVP|PRT becomes ADVP.

    A label that begins with such a mark is not changed: -LRB-, -NONE-.
    """
    category = CATEGORY.match(label)
    return category.group() if category else label


def _without_spaces(text: str) -> str:
    return WHITE_SPACE.sub("_", text)


def _at_least_one_tree(lines: Iterable[str], name: str) -> Iterator[Tree]:
    tree = None
    for _, tree in _numbered_trees(lines, name):
        yield tree
    if tree is None:
        raise ValueError(f"{name}: at least one tree is required. Received: none.")


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
    lines = list(text_files.read_lines(path))
    by_line: dict[int, list[Tree]] = {}
    for number, tree in _numbered_trees(lines, str(path), as_evalb=True):
        by_line.setdefault(number, []).append(tree)
    has_long_trees = False
    for number, line in enumerate(lines, start=1):
        has_long_trees |= number not in by_line and not is_blank(line)
    parses = []
    for number in range(1, len(lines) + 1):
        trees = by_line.get(number, [])
        if len(trees) == 1:
            parses += trees
        elif trees or not has_long_trees:
            parses.append(Tree(FOREST, tuple(trees)))
    return parses


@dataclasses.dataclass
class _OpenBracket:
    """A bracket whose end has not been read."""

    line: int
    items: list[Tree | str] = dataclasses.field(default_factory=list)

    def __str__(self) -> str:
        texts = []
        for item in self.items:
            texts.append(item if isinstance(item, str) else "(...)")
        return _shortened(f"({' '.join(texts)})")


def _numbered_trees(
    lines: Iterable[str], name: str, as_evalb: bool = False
) -> Iterator[tuple[int, Tree]]:
    """Yields the trees in lines of text, each after the number of the line on which it
    begins. Raises ValueError with `name` and a line as `read_trees`.

    With `as_evalb`, brackets without words may be anywhere, and are left out. A line
    that begins with a bracket then begins a tree.
    """
    stack: list[_OpenBracket] = []
    wordless: list[_OpenBracket] = []  # brackets of the current tree
    for number, line in enumerate(lines, start=1):
        place = f"{name}, line {number}"
        if "\0" in line:
            raise ValueError(f"{place}: trees are text. Received: a NUL character.")
        if stack and as_evalb and line.startswith("("):
            raise _unclosed(name, stack)
        if not stack and line.lstrip().startswith(HEADER):
            continue
        for token in TOKEN.findall(line):
            if token == "(":
                stack.append(_OpenBracket(number))
                continue
            if not stack:
                raise ValueError(
                    f"{place}: words and closing brackets must lie inside brackets."
                    f" Received: {token!r} outside, in {_shortened(line)}. {ADVICE}"
                )
            if token != ")":
                stack[-1].items.append(token)
                continue
            bracket = stack.pop()
            tree = Tree("", ())
            if len(bracket.items) < 2 and _has_text_alone(bracket.items):
                wordless.append(bracket)
            else:
                tree = _constituent(bracket, stack, name)
                if stack:
                    stack[-1].items.append(tree)
            if not stack:
                if not as_evalb:
                    _check_words(wordless, tree, name)
                wordless = []
                yield bracket.line, tree
    if stack:
        raise _unclosed(name, stack)


def _has_text_alone(items: Iterable[Tree | str]) -> bool:
    return all(isinstance(item, str) for item in items)


def _constituent(bracket: _OpenBracket, stack: list[_OpenBracket], name: str) -> Tree:
    """The tree of a bracket inside those of `stack`."""
    place = f"{name}, line {bracket.line}"
    label, *children = bracket.items
    if not isinstance(label, str):
        label = ""
        children = bracket.items
    if not label and stack:
        raise ValueError(
            f"{place}: only the outermost bracket may lack a label. Received: one in a"
            f" tree that begins on line {stack[0].line}. {ADVICE}"
        )
    if len(children) > 1 and any(isinstance(child, str) for child in children):
        raise ValueError(
            f"{place}: each word has a tag and a bracket of its own, (NN cat)."
            f" Received: {bracket}. {ADVICE}"
        )
    return Tree(label, tuple(children))


def _check_words(wordless: list[_OpenBracket], tree: Tree, name: str) -> None:
    """Raises ValueError for brackets without words in a tree with words, or with labels
    other than a root's.
    """
    for bracket in wordless:
        if tree.children or not ROOT_LABELS.issuperset(bracket.items):
            raise ValueError(
                f"{name}, line {bracket.line}: a bracket holds a label and words or"
                f" further brackets. Received: {bracket}. {ADVICE}"
            )


def _unclosed(name: str, stack: list[_OpenBracket]) -> ValueError:
    return ValueError(
        f"{name}, line {stack[0].line}: every bracket must be closed. Received: a tree"
        f" that begins on this line and has {len(stack)} open at its end. {ADVICE}"
    )


def _shortened(text: str) -> str:
    return repr(text if len(text) <= 80 else text[:77] + "...")
