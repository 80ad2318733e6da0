"""More training data for a parser from the same trees: fragments, and trees with
substituted constituents.
"""

from __future__ import annotations

import collections
import random
from collections.abc import Iterable, Iterator

from t2tlite.trees.tree import CLOSE, OPEN, ROOT, TAG, Tree

MIN_FRAGMENT, MAX_FRAGMENT = 2, 15  # words
# the probability that a constituent is substituted, where none above it is
SUBSTITUTION_RATE = 0.25
MAX_DRAWS = 4  # constituents drawn until one is short enough
MAX_TRIES = 5  # until a tree is changed: short ones have few constituents, or none

# by label of the parent and label: words, constituent
Substitutes = dict[tuple[str, str], list[tuple[int, Tree]]]


def with_fragments(trees: Iterable[Tree], count: int) -> Iterator[Tree]:
    """Yields each tree, then up to `count` of its constituents as trees: different ones
    of 2 to 15 words.
    """
    draw = random.Random(1)
    for tree in trees:
        yield tree
        if not count:
            continue
        longest = min(MAX_FRAGMENT, len(tree.words()) - 1)  # not the whole sentence
        parts = [
            node
            for kind, node in tree.walk()
            if kind == CLOSE and MIN_FRAGMENT <= len(node.words()) <= longest
        ]
        for part in draw.sample(parts[::-1], min(count, len(parts))):
            yield Tree(ROOT, (part,))


def with_substitutions(trees: Iterable[Tree], count: int) -> Iterator[Tree]:
    """Yields all trees, then `count` times all trees with some constituents substituted
    by those of other trees.

    A constituent is substituted by one with the same label under the same parent label,
    of at most twice as many words and two more. With tags left out, "(S (NP They) (VP
    came (NP (NP the day) (PP after (NP it)))))" may become "(S (NP They) (VP came (NP a
    month)))". The root's children stay. All trees are kept in memory unless `count` is
    0.

    Source: Shi, Livescu and Gimpel (2021), "Substructure Substitution: Structured Data
    Augmentation for NLP".
    """
    if not count:
        yield from trees
        return
    trees = list(trees)
    yield from trees
    substitutes = _constituents(trees)
    draw = random.Random(1)
    for _ in range(count):
        for tree in trees:
            tries = (_substitute(tree, substitutes, draw) for _ in range(MAX_TRIES))
            yield next((changed for changed in tries if changed != tree), tree)


def _constituents(trees: Iterable[Tree]) -> Substitutes:
    """The constituents of the trees that may be substituted, each under its parent's
    label and its own.
    """
    substitutes: Substitutes = collections.defaultdict(list)
    for tree in trees:
        labels: list[str] = []
        for kind, node in tree.walk():
            if kind == OPEN:
                if len(labels) > 1:
                    substitutes[labels[-1], node.label].append(
                        (len(node.words()), node)
                    )
                labels.append(node.label)
            elif kind == CLOSE:
                labels.pop()
    return substitutes


def _substitute(tree: Tree, substitutes: Substitutes, draw: random.Random) -> Tree:
    """The tree with each constituent substituted at SUBSTITUTION_RATE; those in a
    substituted one are its own.
    """
    # the constituent that the walk is in, whose substitute is written
    substituted: Tree | None = None
    labels: list[str] = []  # of the open constituents, the outermost first
    children: list[list[Tree]] = [[]]  # of the result, and of each of them
    for kind, node in tree.walk():
        if substituted is not None:
            if kind == CLOSE and node is substituted:
                substituted = None
        elif kind == TAG:
            children[-1].append(node)
        elif kind == CLOSE:
            parts = tuple(children.pop())
            children[-1].append(Tree(labels.pop(), parts))
        elif len(labels) > 1 and draw.random() < SUBSTITUTION_RATE:
            longest = 2 * len(node.words()) + 2
            drawn = (
                draw.choice(substitutes[labels[-1], node.label])
                for _ in range(MAX_DRAWS)
            )
            children[-1].append(
                next((other for words, other in drawn if words <= longest), node)
            )
            substituted = node
        else:
            labels.append(node.label)
            children.append([])
    ((result,),) = children
    return result
