"""Parse trees as sequences of tokens, for a sequence-to-sequence parser; `restore.py` makes trees of them again.

    (TOP (S (NP (DT The) (NN cat)) (VP (VBD sat)) (. .)))
    (S (NP XX XX )NP (VP XX )VP . )S

The form is that of Vinyals et al. 2015, "Grammar as a Foreign Language", which section 6.3 of the Transformer paper
follows: brackets carry their label, words are left out, and tags are normalised to XX.
"""

from __future__ import annotations

from t2tlite.trees.tree import ROOT, Tree

# Tags whose words EVALB leaves out of the score under COLLINS.prm. They stay, or the trees could not be scored.
PUNCTUATION_TAGS = frozenset({",", ":", "``", "''", "."})
NORMALISED_TAG = "XX"

OPEN, CLOSE, TAG = "open", "close", "tag"
Event = tuple[str, str]  # one of the three, and its label


def linearise(tree: Tree, tags: str = "normalised") -> str:
    """A cleaned tree as tokens separated by one space: `(S (NP XX XX )NP (VP XX )VP . )S`.

    Args:
        tree: with a TOP root, which is not written (see `trees.clean_tree`).
        tags: what stands for a word whose tag is not one of PUNCTUATION_TAGS: "normalised" XX, "kept" its tag, "words"
            the word itself, `(S (NP The cat )NP (VP sat )VP . )S`. Punctuation is always written as its tag.

    Raises:
        ValueError: the root is not TOP, or `tags` is none of the three.
    """
    if tree.label != ROOT or tree.is_preterminal:
        raise ValueError(
            f"A tree with a {ROOT} root is required. Received: root {tree.label!r}. Pass it through clean_tree first."
        )
    if tags not in ("normalised", "kept", "words"):
        raise ValueError(f'tags must be "normalised", "kept" or "words". Received: {tags!r}.')
    words = iter(tree.words())
    tokens = []
    for kind, label in events(tree)[1:-1]:
        if kind == TAG:
            written = {"normalised": NORMALISED_TAG, "kept": label, "words": next(words)}[tags]
            tokens.append(label if label in PUNCTUATION_TAGS else written)
        else:
            tokens.append(("(" if kind == OPEN else ")") + label)
    return " ".join(tokens)


def t2t_linearise(tree: Tree) -> tuple[str, str]:
    """tensor2tensor's form of a tree: the words, and all labels without the outermost, closed as `/NP`.

    `(TOP (NP (DT the) (NN cat)))` becomes `the cat` and `NP DT NN /NP`.
    """
    labels = [f"/{label}" if kind == CLOSE else label for kind, label in events(tree)]
    return " ".join(tree.words()), " ".join(labels[1:-1])


def events(tree: Tree) -> list[Event]:
    """A tree from left to right as (OPEN, label), (TAG, tag) and (CLOSE, label)."""
    events = []
    waiting: list[tuple[str, Tree]] = [(OPEN, tree)]
    while waiting:
        kind, node = waiting.pop()
        if kind == CLOSE:
            events.append((CLOSE, node.label))
        elif node.is_preterminal:
            events.append((TAG, node.label))
        else:
            events.append((OPEN, node.label))
            waiting.append((CLOSE, node))
            waiting.extend((OPEN, child) for child in reversed(node.children) if isinstance(child, Tree))
    return events
