"""Constituency trees in the brackets of the Penn Treebank: read, written, and cleaned
for training and scoring.

    (TOP (S (NP (DT The) (NN cat)) (VP (VBD sat)) (. .)))

In trees as they are read, white space is that of ASCII, as for EVALB: a no-break
space, as in 10 000, is a part of its word. In sentences any white space separates
words (vocabularies/normalisation.py), so `clean_tree` writes _ for it inside a word.
Trees may be thousands of brackets deep, so nothing in this file recurses.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from t2tlite.files import text_files
from t2tlite.vocabularies.normalisation import WHITE_SPACE, is_blank

ROOT = "TOP"
# the labels that treebanks and parsers give the root
ROOT_LABELS = frozenset({ROOT, "ROOT", "S1", ""})
EMPTY_TAG = "-NONE-"  # the tag of a trace, whose "word" is not part of the sentence
# the start of the copyright lines above the trees in some files of the Penn Treebank
HEADER = "*x*"

OPEN, TAG, CLOSE = "open", "tag", "close"  # the kinds of steps in `Tree.walk`
TOKEN = re.compile(r"[()]|[^\s()]+", re.ASCII)
SEQUENCE_TOKEN = re.compile(r"\S+", re.ASCII)
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


WORDLESS = Tree("", ())


def split_tokens(sequence: str) -> list[str]:
    """The tokens of a sequence, which ASCII white space separates."""
    return SEQUENCE_TOKEN.findall(sequence)


def parse_tree(text: str, name: str = "the text", first_line: int = 1) -> Tree:
    """The single tree in a text. The outermost bracket of `( (S ...))` has the label
    "".

    Raises ValueError if the text is not one well-formed tree (see `read_trees`), with
    the name of the text and the line, of which the text's first is `first_line`.
    """
    trees = list(_parse(text.split("\n"), name, first_line))
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
    that start with `*x*`, the headers of some Penn Treebank files, are skipped.
    Brackets alone, such as `(())`, which parsers write for a sentence that they cannot
    parse, are the tree WORDLESS, also with the label of a root. A file is decompressed
    if its name ends in `.gz`, `.xz` or `.bz2`.

    Raises FileNotFoundError at once; while reading, ValueError with file and line if
    text is not UTF-8, has a NUL or no tree, a word has no tag, or a bracket is
    unmatched, empty or inside a tree without a label.
    """
    return _parse(text_files.read_lines(path), str(Path(path)), with_wordless=True)


def clean_tree(tree: Tree) -> Tree | None:
    """The tree on which parsers are trained and scored; None if no word is left.
    Cleaning is idempotent.

    1. Function tags, indices and alternatives of labels are removed (see
       `clean_label`).
    2. Traces (-NONE-) are removed, and every constituent that is left without words.
    3. The root is TOP. ROOT, S1, TOP and an outermost bracket without a label are
       renamed; other trees get a TOP.
    4. White space inside a word or label, such as the no-break space of 10 000, becomes
       _, and words without a visible character are removed: a parser's input is words
       between white space of any kind.

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
            word = str(node.children[0])
            if node.label != EMPTY_TAG and not is_blank(word):
                tag = _without_spaces(clean_label(node.label))
                stack[-1].append(Tree(tag, (_without_spaces(word),)))
        elif children := stack.pop():
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


def _without_spaces(text: str) -> str:
    return WHITE_SPACE.sub("_", text)


def _parse(
    lines: Iterable[str],
    name: str,
    first_line: int = 1,
    with_wordless: bool = False,
) -> Iterator[Tree]:
    """Yields the trees in lines of text; error messages have the text's name, and the
    number of a line, counted from `first_line`. With `with_wordless`, brackets alone
    are the tree WORDLESS.
    """
    # the open brackets: line, and label and children so far
    stack: list[tuple[int, list[Tree | str]]] = []
    count = number = 0
    # of the tree that is read: whether it has more than brackets and labels of roots,
    # and where a bracket was closed before it had
    has_text = not with_wordless
    wordless = 0
    for number, line in enumerate(lines, start=first_line):
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
                is_root = not stack[-1][1] and token in ROOT_LABELS
                if wordless and not is_root:
                    # raises: beside words, empty brackets are a mistake
                    _constituent([], False, f"{name}, line {wordless}", stack[0][0])
                has_text = has_text or not is_root
                stack[-1][1].append(token)
            else:
                first_line = stack[0][0]
                opened, items = stack.pop()
                if has_text:
                    tree = _constituent(
                        items, not stack, f"{name}, line {opened}", first_line
                    )
                else:
                    tree = WORDLESS
                    wordless = wordless or opened
                if stack:
                    stack[-1][1].append(tree)
                else:
                    count += 1
                    yield tree
                    has_text = not with_wordless
                    wordless = 0
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
    label = None
    children = items
    if items and isinstance(items[0], str):
        label = items[0]
        children = items[1:]
    texts = [item if isinstance(item, str) else "(...)" for item in items]
    shown = _shortened(f"({' '.join(texts)})")
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
