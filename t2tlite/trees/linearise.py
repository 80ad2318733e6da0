"""Writes parse trees as sequences of tokens for a sequence-to-sequence parser, and
reads them back.

    tree        (TOP (S (NP (DT The) (NN cat)) (VP (VBD sat)) (. .)))
    normalised  (S (NP XX XX )NP (VP XX )VP . )S
    tags        (S (NP DT NN )NP (VP VBD )VP . )S
    words       (S (NP The cat )NP (VP sat )VP . )S
    t2t         S NP DT NN /NP VP VBD /VP . /S

"normalised" is the form of Vinyals et al. (2015), "Grammar as a Foreign Language",
which section 6.3 of the Transformer paper follows: labelled brackets, no words, and XX
for the tag of each word. With "tags" the model learns to tag as well. With "words" the
sequence is longer, but the model need not count words, and learns from few trees. "t2t"
is the form of tensor2tensor. All four leave out the root and write punctuation as its
tag.
"""

import dataclasses
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from t2tlite.trees.restore import (
    MALFORMED,
    NORMALISED_TAG,
    PUNCTUATION_TAGS,
    PUNCTUATION_WORDS,
    Event,
    Restored,
    may_be_punctuation,
    restore,
    split_tokens,
    tree_word,
)
from t2tlite.trees.tree import CLOSE, OPEN, TAG, Tree
from t2tlite.vocabularies.normalisation import normalise

BRACKETS = {"(": OPEN, ")": CLOSE}


class Leaf(NamedTuple):
    """The token expected for a word of the sentence.

    Attributes:
        token: the word itself, or its tag; "" allows any tag.
        may_be_punctuation: whether the tag of a punctuation mark is allowed instead.
    """

    token: str
    may_be_punctuation: bool


@dataclasses.dataclass(frozen=True)
class Linearisation:
    """Labelled brackets, and one token for each word."""

    # the value of --linearisation, which manifests record
    name: str
    # the token of a word is its part-of-speech tag
    has_tags: bool = False
    # the token of a word is the word itself
    has_words: bool = False

    def write(self, tree: Tree) -> str:
        """Returns the tokens of a cleaned tree, separated by one space, without its
        root.
        """
        tokens = []
        for kind, node in list(tree.walk())[1:-1]:
            if kind == OPEN:
                tokens.append(f"({node.label}")
            elif kind == CLOSE:
                tokens.append(f"){node.label}")
            elif self.has_tags or node.label in PUNCTUATION_TAGS:
                tokens.append(node.label)
            elif self.has_words:
                tokens.append(node.word)
            else:
                tokens.append(NORMALISED_TAG)
        return " ".join(tokens)

    def read(
        self, sequence: str, words: Sequence[str], fit_tags: bool = True
    ) -> Restored:
        """Returns the tree that a sequence represents, over exactly the given words,
        under TOP; `restore` states the rules.

        The sequence may be any text. Raises ValueError if there are no words, or if one
        contains white space. `fit_tags` corrects the tags of punctuation; it is False
        for the sequences of gold trees.
        """
        return restore(self._events(sequence), words, fit_tags, self.has_words)

    def leaves(self, words: Sequence[str]) -> list[Leaf]:
        """The leaf expected for each word. Raises ValueError as `tree_word`."""
        leaves = []
        for word in map(tree_word, words):
            token = "" if self.has_tags else NORMALISED_TAG
            if self.has_words:
                token = word
            punctuation = PUNCTUATION_WORDS.get(normalise(word))
            is_choice = punctuation is None and may_be_punctuation(word)
            leaves.append(Leaf(punctuation or token, is_choice))
        return leaves

    def symbols(self, tree: Tree) -> set[str]:
        """The tokens of a tree's brackets and tags."""
        with_tags = dataclasses.replace(self, has_tags=True)
        return set(split_tokens(with_tags.write(tree)))

    def _events(self, sequence: str) -> list[Event]:
        """Returns the tokens as events."""
        events = []
        for token in split_tokens(sequence):
            kind = BRACKETS.get(token[0], TAG)
            label = token if kind == TAG else token[1:]
            events.append((kind if _is_label(label) else MALFORMED, label))
        return events


class Tensor2tensorLinearisation(Linearisation):
    """Labels without brackets; a constituent ends with a slash and its label.

    The form does not say which labels open a constituent and which are tags. `read`
    takes a label as an opening one if its closing label comes later and belongs to no
    label in between.
    """

    def write(self, tree: Tree) -> str:
        """Returns the labels of a tree with any root, separated by one space."""
        labels = []
        for kind, node in list(tree.walk())[1:-1]:
            labels.append(f"/{node.label}" if kind == CLOSE else node.label)
        return " ".join(labels)

    def _events(self, sequence: str) -> list[Event]:
        events = []
        # closing labels to the right that have no opening label yet
        unopened: Counter[str] = Counter()
        for token in reversed(split_tokens(sequence)):
            label = token.removeprefix("/")
            kind = TAG
            if not _is_label(label):
                kind = MALFORMED
            elif label != token:
                kind = CLOSE
                unopened[label] += 1
            elif unopened[label]:
                kind = OPEN
                unopened[label] -= 1
            events.append((kind, label))
        return events[::-1]


def _is_label(text: str) -> bool:
    return text != "" and BRACKETS.keys().isdisjoint(text)


NORMALISED = Linearisation("normalised")
TAGS = Linearisation("tags", has_tags=True)
WORDS = Linearisation("words", has_words=True)
T2T = Tensor2tensorLinearisation("t2t", has_tags=True)
LINEARISATIONS = {form.name: form for form in (NORMALISED, TAGS, WORDS, T2T)}
