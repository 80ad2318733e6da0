"""Parse trees as sequences of tokens, for a sequence-to-sequence parser, and decoded sequences as trees again.

    (TOP (S (NP (DT The) (NN cat)) (VP (VBD sat)) (. .)))
    (S (NP XX XX )NP (VP XX )VP . )S

The form is that of Vinyals et al. 2015, "Grammar as a Foreign Language", which section 6.3 of the Transformer paper
follows: brackets carry their label, words are left out, and tags are normalised to XX. What a model decodes may be
anything at all; `restore` makes a tree over the sentence's words of it by fixed rules and counts each repair.
"""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Sequence

from t2tlite.data.trees import EMPTY_TAG, ROOT, Tree

# Tags whose words EVALB leaves out of the score under COLLINS.prm. They stay, or the trees could not be scored.
PUNCTUATION_TAGS = frozenset({",", ":", "``", "''", "."})
NORMALISED_TAG = "XX"

# The tag of words that are punctuation in every sentence. Apostrophe and hyphen are not: ' closes a quotation or is a
# possessive (POS), - is a dash or joins two words (HYPH).
PUNCTUATION_WORDS = {
    **dict.fromkeys([","], ","),
    **dict.fromkeys([".", "!", "?"], "."),
    **dict.fromkeys([":", ";", "--", "...", "\u2014", "\u2026"], ":"),
    **dict.fromkeys(["``", "\u201c"], "``"),
    **dict.fromkeys(["''", '"', "\u201d"], "''"),
}
SYMBOL_TAGS = frozenset({"HYPH", "NFP", "NNS", "SYM"})  # also right for such a word, for one NNS for the " of 5 inches

OPEN, CLOSE, TAG = "open", "close", "tag"
Event = tuple[str, str]  # one of the three, and its label
PIECE = re.compile(r"[()][^()\s\0]*|[^()\s\0]+")


@dataclasses.dataclass(frozen=True)
class Restored:
    """A tree made from a decoded sequence.

    Attributes:
        tree: a tree over exactly the sentence's words, under TOP.
        repairs: how often each rule of `restore` was needed; empty where the sequence was a tree over the words.
    """

    tree: Tree
    repairs: Counter[str]


def linearise(tree: Tree, tags: str = "normalised") -> str:
    """A cleaned tree as tokens separated by one space: `(S (NP XX XX )NP (VP XX )VP . )S`.

    Args:
        tree: with a TOP root, which is not written (see `trees.clean_tree`).
        tags: "normalised" writes XX for each part-of-speech tag outside PUNCTUATION_TAGS; "kept" writes all of them.

    Raises:
        ValueError: the root is not TOP, or `tags` is neither of the two.
    """
    if tree.label != ROOT or tree.is_preterminal:
        raise ValueError(
            f"A tree with a {ROOT} root is required. Received: root {tree.label!r}. Pass it through clean_tree first."
        )
    if tags not in ("normalised", "kept"):
        raise ValueError(f'tags must be "normalised" or "kept". Received: {tags!r}.')
    tokens = []
    for kind, label in _events(tree)[1:-1]:
        if kind == TAG:
            tokens.append(label if tags == "kept" or label in PUNCTUATION_TAGS else NORMALISED_TAG)
        else:
            tokens.append(("(" if kind == OPEN else ")") + label)
    return " ".join(tokens)


def restore(text: str, words: Sequence[str], fit_tags: bool = True) -> Restored:
    """The tree that a decoded sequence stands for, over exactly the given words, under TOP.

    The text may be anything. Each token `(NP` opens a constituent, `)NP` closes it, and every other token is the tag of
    the next word. Where that gives no tree, these rules apply, and `repairs` counts how often, by name:

    malformed_token: a token with brackets inside is split before each bracket (`XX)NP`); a bare bracket is dropped.
    unmatched_closing: a closing bracket is dropped when no constituent of its label is open.
    closed_by_another: a closing bracket also closes the constituents opened inside its own, one count each.
    closed_at_end: a constituent still open at the end is closed there.
    surplus_tag: tags after the last word's are dropped.
    missing_tag: the words left over at the end go to the lowest constituent that is still open there, or where all are
        closed to the lowest one that holds the last tag; where there is no tag at all they lie flat under TOP.
    empty_constituent: a constituent without a word is removed.
    changed_tag: the tag of a word is changed by `fitting_tag`.

    `restore("(S (NP XX )NP (VP XX", ["He", "left", "."])` is `(TOP (S (NP (XX He)) (VP (XX left) (. .))))`,
    with {"closed_at_end": 2, "missing_tag": 1}.

    Args:
        text: the decoded sequence.
        words: the sentence, at least one word. Round brackets in words become -LRB- and -RRB-, as treebanks have them.
        fit_tags: False leaves all tags as they are, for sequences made of gold trees.

    Raises:
        ValueError: there is no word, or one is empty or holds white space.
    """
    repairs: Counter[str] = Counter()
    events = []
    for token in text.split():
        pieces = PIECE.findall(token)
        repairs["malformed_token"] += pieces != [token] or token in "()"
        for piece in pieces:
            if piece[0] not in "()":
                events.append((TAG, piece))
            elif len(piece) > 1:
                events.append((OPEN if piece[0] == "(" else CLOSE, piece[1:]))
    return _restored(events, words, repairs, fit_tags)


def fitting_tag(word: str, tag: str) -> str:
    """The tag, or a better one where EVALB would by this tag leave out a word or count punctuation.

    EVALB compares two trees only if the same words are left after those with certain tags have gone. So
    - a punctuation tag becomes XX on a word with a letter or a digit in it, and so do TOP, and -NONE- unless the word
      looks like a trace (`*T*-1`, `0`);
    - a word that is always punctuation (PUNCTUATION_WORDS) gets its Penn Treebank tag, unless it has a punctuation tag
      or one of SYMBOL_TAGS.
    """
    if tag in PUNCTUATION_TAGS:
        return NORMALISED_TAG if any(character.isalnum() for character in word) else tag
    if tag == ROOT or (tag == EMPTY_TAG and not word.startswith(("*", "0"))):
        tag = NORMALISED_TAG
    return tag if tag in SYMBOL_TAGS else PUNCTUATION_WORDS.get(word, tag)


def t2t_linearise(tree: Tree) -> tuple[str, str]:
    """tensor2tensor's form of a tree: the words, and all labels without the outermost, closed as `/NP`.

    `(TOP (NP (DT the) (NN cat)))` becomes `the cat` and `NP DT NN /NP`.
    """
    labels = [f"/{label}" if kind == CLOSE else label for kind, label in _events(tree)]
    return " ".join(tree.words()), " ".join(labels[1:-1])


def t2t_restore(tags_text: str, words: Sequence[str], fit_tags: bool = True) -> Restored:
    """The tree that a sequence in tensor2tensor's form stands for, by the rules of `restore`.

    The form does not say which labels open a constituent and which are tags. A label is taken to open one if its
    closing label comes later and belongs to no label in between.

    Args:
        tags_text: the decoded sequence, such as `NP DT NN /NP`.
        words: the sentence, at least one word.

    Raises:
        ValueError: there is no word, or one is empty or holds white space.
    """
    repairs: Counter[str] = Counter()
    events = []
    to_open: Counter[str] = Counter()  # closing labels to the right without an opening one yet
    for token in reversed(tags_text.split()):
        closing = token.startswith("/")
        label = re.sub(r"[()\0]", "", token[closing:])
        repairs["malformed_token"] += not label or label != token[closing:]
        if closing and label:
            to_open[label] += 1
            events.append((CLOSE, label))
        elif to_open[label]:
            to_open[label] -= 1
            events.append((OPEN, label))
        elif label:
            events.append((TAG, label))
    return _restored(events[::-1], words, repairs, fit_tags)


def _events(tree: Tree) -> list[Event]:
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


def _restored(events: list[Event], words: Sequence[str], repairs: Counter[str], fit_tags: bool) -> Restored:
    """Applies the rules of `restore` to a sequence of events; `repairs` are those made so far."""
    words = [tree_word(word) for word in words]
    if not words:
        raise ValueError("At least one word is required. Received: none. Leave empty sentences out.")
    events, rest = _balanced(events, repairs)
    count = sum(kind == TAG for kind, _ in events)
    missing = [(TAG, fitting_tag(word, NORMALISED_TAG)) for word in words[count:]]
    repairs["missing_tag"] = len(missing)
    events[rest:rest] = missing

    root: list[Tree | str] = []
    stack = [(ROOT, root)]  # the open constituents with their children
    next_word = 0
    for kind, label in events:
        if kind == OPEN:
            stack.append((label, []))
        elif kind == CLOSE:
            _, children = stack.pop()
            if children:
                stack[-1][1].append(Tree(label, tuple(children)))
            else:
                repairs["empty_constituent"] += 1
        elif next_word == len(words):
            repairs["surplus_tag"] += 1
        else:
            tag = fitting_tag(words[next_word], label) if fit_tags else label
            repairs["changed_tag"] += tag != label
            stack[-1][1].append(Tree(tag, (words[next_word],)))
            next_word += 1
    return Restored(Tree(ROOT, tuple(root)), +repairs)


def _balanced(events: list[Event], repairs: Counter[str]) -> tuple[list[Event], int]:
    """Events with matching brackets, and the index among them at which tags that are missing belong."""
    balanced: list[Event] = []
    stack: list[str] = []  # the labels that are open
    unclosed: Counter[str] = Counter()  # how often each of them is
    after_last_tag = 0
    for kind, label in events:
        if kind == OPEN:
            stack.append(label)
            unclosed[label] += 1
        elif kind == CLOSE:
            if not unclosed[label]:
                repairs["unmatched_closing"] += 1
                continue
            while stack[-1] != label:
                repairs["closed_by_another"] += 1
                unclosed[stack[-1]] -= 1
                balanced.append((CLOSE, stack.pop()))
            unclosed[stack.pop()] -= 1
        balanced.append((kind, label))
        if kind == TAG:
            after_last_tag = len(balanced)
    rest = len(balanced) if stack else after_last_tag
    repairs["closed_at_end"] = len(stack)
    balanced.extend((CLOSE, label) for label in reversed(stack))
    return balanced, rest


def tree_word(word: str) -> str:
    """A word as it stands in a tree."""
    if not word or word.split() != [word]:
        raise ValueError(
            f"A word must be text without white space. Received: {word!r}. Split the sentence on white space."
        )
    return word.replace("(", "-LRB-").replace(")", "-RRB-")
