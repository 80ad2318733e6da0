"""Makes more training data for a parser from the same trees: fragments, and trees with
substituted constituents.
"""

import collections
import random
from collections.abc import Iterable, Iterator

from t2tlite.trees.tree import CLOSE, ROOT, TAG, Tree, constituents_of

MIN_FRAGMENT, MAX_FRAGMENT = 2, 15  # words
# the probability that a constituent is substituted, if none above it is
SUBSTITUTION_RATE = 0.25
# of constituents, until one is short enough
MAX_DRAWS = 4
# of a tree, until it changes: short trees have few constituents, or none
MAX_TRIES = 5

# by label of the parent and label: constituents, each after its number of words
Substitutes = dict[tuple[str, str], list[tuple[int, Tree]]]


def with_fragments(trees: Iterable[Tree], count: int) -> Iterator[Tree]:
    """Yields each tree, then up to `count` different constituents of it as trees, each
    of 2 to 15 words.
    """
    draw = random.Random(1)
    for tree in trees:
        yield tree
        if not count:
            continue
        # not the whole sentence
        longest = min(MAX_FRAGMENT, len(tree.words()) - 1)
        constituents = constituents_of(tree)
        constituents.sort(key=lambda part: (-part.end, part.start))
        parts = []
        for part in constituents:
            if MIN_FRAGMENT <= part.end - part.start <= longest:
                parts.append(part.node)
        for node in draw.sample(parts, min(count, len(parts))):
            yield Tree(ROOT, (node,))


def with_substitutions(trees: Iterable[Tree], count: int) -> Iterator[Tree]:
    """Yields all trees, then all trees `count` times with some constituents substituted
    by constituents of other trees.

    A substitute has the same label under the same parent label. If the constituent has
    n words, the substitute has at most 2n + 2. With tags left out, "(S (NP They) (VP
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
            for _ in range(MAX_TRIES):
                changed = _substitute(tree, substitutes, draw)
                if changed != tree:
                    break
            yield changed


def _constituents(trees: Iterable[Tree]) -> Substitutes:
    """Collects the constituents that may be substituted, by the labels of their parent
    and their own.
    """
    substitutes: Substitutes = collections.defaultdict(list)
    for tree in trees:
        for node, parent, start, end in constituents_of(tree):
            if parent not in ("", ROOT):
                substitutes[parent, node.label].append((end - start, node))
    return substitutes


def _substitute(tree: Tree, substitutes: Substitutes, draw: random.Random) -> Tree:
    """Substitutes each constituent with the probability SUBSTITUTION_RATE. Nothing is
    substituted inside a substitute.
    """
    # the constituent around the current node that has been substituted
    substituted: Tree | None = None
    # of the open constituents, the outermost first
    labels: list[str] = []
    # of the result, and of each open constituent
    children: list[list[Tree]] = [[]]
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
            candidates = substitutes[labels[-1], node.label]
            children[-1].append(_draw_substitute(node, candidates, draw))
            substituted = node
        else:
            labels.append(node.label)
            children.append([])
    ((result,),) = children
    return result


def _draw_substitute(
    node: Tree, candidates: list[tuple[int, Tree]], draw: random.Random
) -> Tree:
    """Returns a constituent that is not too long, or `node` itself if none is drawn."""
    longest = 2 * len(node.words()) + 2
    for _ in range(MAX_DRAWS):
        words, candidate = draw.choice(candidates)
        if words <= longest:
            return candidate
    return node
