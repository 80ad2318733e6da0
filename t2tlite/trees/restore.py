"""Makes a tree over the words of a sentence from any decoded sequence.

`restore` turns any decoded sequence into a tree by fixed rules, and counts each repair.
In long sentences models write one tag too few or too many; aligning tags and words
keeps the damage local.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from t2tlite.trees.tree import CLOSE, EMPTY_TAG, OPEN, ROOT, TAG, Tree, split_tokens
from t2tlite.vocabularies.normalisation import normalise

NORMALISED_TAG = "XX"
# Tags whose words EVALB excludes under COLLINS.prm. They are kept: EVALB could not
# score trees without them.
PUNCTUATION_TAGS = frozenset({",", ":", "``", "''", "."})
# The tag of words that are punctuation in every sentence. Others are not: ' closes a
# quotation or is a possessive (POS), - is a dash or joins two words (HYPH).
PUNCTUATION_WORDS = {
    **dict.fromkeys([","], ","),
    **dict.fromkeys([".", "!", "?"], "."),
    **dict.fromkeys([":", ";", "--", "...", "\u2014", "\u2026"], ":"),
    **dict.fromkeys(["``", "\u201c"], "``"),
    **dict.fromkeys(["''", '"', "\u201d"], "''"),
}
# also valid for such words: NNS for the " of 5 "
SYMBOL_TAGS = frozenset({"HYPH", "NFP", "NNS", "SYM"})

Event = tuple[str, str]  # OPEN, TAG or CLOSE, and the label
NO_TAG = ""  # the label of a TAG event where a tag is probably missing

# The cost of an alignment: twice the repairs; then minus the distances of what is left
# out from punctuation and the ends, which decide among equal repairs.
Cost = tuple[int, int]
# Steps of an alignment: a word gets a tag, a tag is dropped, a word has no tag. Of
# equal costs the first counts.
PAIR, DROP, MISS = 0, 1, 2


@dataclasses.dataclass(frozen=True)
class Restored:
    """A tree made from a decoded sequence."""

    tree: Tree  # over exactly the sentence's words, under TOP
    repairs: Counter[str]  # how often each rule of `restore` was applied

    @property
    def misaligned(self) -> int:
        """How many words and tags of the sequence differ from the sentence's."""
        return sum(
            self.repairs[name]
            for name in ("missing_tag", "surplus_tag", "changed_tag", "changed_word")
        )


def restore(
    events: Iterable[Event],
    words: Sequence[str],
    malformed: int,
    fit_tags: bool,
    lexical: bool,
) -> Restored:
    """The tree that a sequence of brackets and tags represents, over exactly the given
    words, under TOP.

    A tag belongs to the next word. Where the sequence is not a tree, these rules apply,
    counted in `repairs`.

    First the brackets:

    - malformed_token: a token with brackets inside is split before each bracket
      (`XX)NP`); a bare bracket is dropped.
    - unmatched_closing: a closing bracket is dropped if no constituent of its label is
      open.
    - closed_by_another: a closing bracket also closes the constituents opened inside
      its own, one count each.
    - closed_at_end: a constituent still open at the end is closed there.

    Then tags and words are aligned, both in order, at the least cost. These repairs
    cost 1 each:

    - surplus_tag: a tag is dropped.
    - missing_tag: a word without a tag joins the constituent of the word before it (at
      the start, of the word after it). It costs 1/2 where a tag is probably missing: as
      the first word of a constituent without tags, where the word is then put, and at
      the end if the last constituent is still open or without tags. If there is neither
      such a place nor any tag, the words lie flat under TOP.
    - changed_tag: the tag of a word is changed by `fitting_tag`. It costs 1 because a
      comma without its tag, or that tag on another word, is evidence that tags and
      words are misaligned. With fit_tags=False no tag is evidence.
    - changed_word: a lexical sequence has another word than the sentence.

    Of alignments of equal cost, the one is used that leaves out the tags and words
    farthest from punctuation and the ends, so that few words get another word's tag;
    then the one whose gaps come latest. Finally, constituents without a word are
    removed (empty_constituent).

    For the words `Our cat , alas , left`, the sequence `(S (NP XX )NP , XX , (VP XX`
    becomes `(TOP (S (NP (XX Our) (XX cat)) (, ,) (XX alas) (, ,) (VP (XX left))))` with
    {"missing_tag": 1, "closed_at_end": 2}.

    The events may come in any order; `malformed` is the number of malformed tokens
    among them. There is at least one word, none with white space (otherwise
    ValueError); round brackets in words become -LRB- and -RRB-. `fit_tags=False` keeps
    all tags, for the sequences of gold trees. In a `lexical` sequence the tags other
    than punctuation are the words themselves, to which all of the above then applies.
    """
    words = [tree_word(word) for word in words]
    if not words:
        raise ValueError(
            "At least one word is required. Received: none. Leave empty sentences out."
        )
    repairs = Counter(malformed_token=malformed)
    balanced = _balanced(events, repairs)
    if not any(kind == TAG for kind, _ in balanced):
        balanced.insert(0, (TAG, NO_TAG))
    leaves = _leaves(balanced, words, fit_tags, lexical, repairs)

    stack: list[list[Tree]] = [[]]  # the children of each open constituent
    for index, (kind, label) in enumerate(balanced):
        if kind == OPEN:
            stack.append([])
        elif kind == TAG:
            stack[-1].extend(leaves.get(index, []))
        else:
            children = stack.pop()
            repairs["empty_constituent"] += not children
            stack[-1].extend([Tree(label, tuple(children))] if children else [])
    return Restored(Tree(ROOT, tuple(stack[0])), +repairs)  # + leaves out the zeros


def fitting_tag(word: str, tag: str) -> str:
    """The tag, or a better one if with this tag EVALB would exclude a word or count
    punctuation.

    EVALB compares two trees only if the same words remain after those with certain tags
    are removed. Therefore
    - a punctuation tag on a word with a letter or a digit becomes XX, and so does TOP,
      and -NONE- unless the word looks like a trace (`*T*-1`, `0`);
    - a word that is always punctuation (PUNCTUATION_WORDS) gets its Penn Treebank tag,
      unless it has a punctuation tag or one of SYMBOL_TAGS.
    """
    if tag in PUNCTUATION_TAGS:
        is_word = any(character.isalnum() for character in word)
        return NORMALISED_TAG if is_word else tag
    if tag == ROOT or (tag == EMPTY_TAG and not word.startswith(("*", "0"))):
        tag = NORMALISED_TAG
    return tag if tag in SYMBOL_TAGS else PUNCTUATION_WORDS.get(word, tag)


def tree_word(word: str) -> str:
    """A word as it is in a tree, with -LRB- for ( and U+FFFD for NUL, which no file of
    trees may have.

    Raises ValueError if it is empty or holds white space.
    """
    if split_tokens(word) != [word]:
        advice = "Split the sentence on white space."
        raise ValueError(
            f"A word must be text without white space. Received: {word!r}. {advice}"
        )
    return word.replace("(", "-LRB-").replace(")", "-RRB-").replace("\0", "\ufffd")


def _balanced(events: Iterable[Event], repairs: Counter[str]) -> list[Event]:
    """Events with matching brackets; NO_TAG in empty constituents, and at the end if
    some are open.
    """
    balanced: list[Event] = []
    stack: list[str] = []  # the labels of the open constituents
    open_labels: Counter[str] = Counter()  # the same, counted

    def close() -> str:
        if balanced[-1][0] == OPEN:
            balanced.append((TAG, NO_TAG))
        label = stack.pop()
        open_labels[label] -= 1
        balanced.append((CLOSE, label))
        return label

    for kind, label in events:
        if kind == CLOSE and not open_labels[label]:
            repairs["unmatched_closing"] += 1
        elif kind == CLOSE:
            while close() != label:
                repairs["closed_by_another"] += 1
        else:
            balanced.append((kind, label))
            if kind == OPEN:
                stack.append(label)
                open_labels[label] += 1
    repairs["closed_at_end"] = len(stack)
    if stack:
        balanced.append((TAG, NO_TAG))
    while stack:
        close()
    return balanced


def _leaves(
    balanced: list[Event],
    words: list[str],
    fit_tags: bool,
    lexical: bool,
    repairs: Counter[str],
) -> Mapping[int, list[Tree]]:
    """The words, each under its tag, that replace each TAG event, by its index in
    `balanced`.
    """
    indices = [index for index, (kind, _) in enumerate(balanced) if kind == TAG]
    tags = [balanced[index][1] for index in indices]
    # words, and a lexical sequence's, as vocabularies read them, to be compared
    normal_words = [normalise(word) or word for word in words]
    if lexical:
        tags = [normalise(tag) or tag for tag in tags]

    def fits(tag: str, word: str) -> bool:
        if lexical and tag not in PUNCTUATION_TAGS:
            return tag == word
        return not fit_tags or fitting_tag(word, tag) == tag

    alignment = _aligned(tags, normal_words, fits)
    leaves: defaultdict[int, list[Tree]] = defaultdict(list)
    # where a word without a tag goes
    nearest = next((t for t in alignment if t is not None), 0)
    for word, normal, t in zip(words, normal_words, alignment, strict=True):
        if t is None:
            label = NO_TAG
        else:
            nearest = t
            label = tags[t]
        if lexical and label not in (NO_TAG, *PUNCTUATION_TAGS):
            repairs["changed_word"] += label != normal
            label = NORMALISED_TAG
        if label and not fit_tags:
            tag = label
        else:
            tag = fitting_tag(normal, label or NORMALISED_TAG)
        repairs["missing_tag"] += label == NO_TAG
        repairs["changed_tag"] += label not in (NO_TAG, tag)
        leaves[indices[nearest]].append(Tree(tag, (word,)))
    for index, tag in zip(indices, tags, strict=True):
        repairs["surplus_tag"] += tag != NO_TAG and index not in leaves
    return leaves


def _aligned(
    tags: list[str], words: list[str], fits: Callable[[str, str], bool]
) -> list[int | None]:
    """The index of each word's tag, or None, by the costs that `restore` states.

    Takes time and memory in proportion to tags times words, unless each tag fits its
    word.
    """
    # 1. What each step costs.
    pairs: dict[tuple[str, str], int] = {}
    for tag, word in itertools.product(set(tags), set(words)):
        if tag == NO_TAG:
            pairs[tag, word] = 1
        else:
            pairs[tag, word] = 0 if fits(tag, word) else 2
    if len(tags) == len(words):
        costs = [pairs[pair] for pair in zip(tags, words, strict=True)]
        if not any(costs):
            return list(range(len(words)))
    drops = _omissions([tag in {*PUNCTUATION_TAGS, NO_TAG} for tag in tags])
    for t, tag in enumerate(tags):
        if tag == NO_TAG:
            drops[t] = (0, 0)
    misses = _omissions([word in PUNCTUATION_WORDS for word in words])

    # 2. best[w][t]: the cheapest way to align the words from w on with the tags from t
    #    on, and its first step.
    best: list[list[tuple[int, int, int]]] = [
        [(0, 0, MISS)] * (len(tags) + 1) for _ in range(len(words) + 1)
    ]
    for t in reversed(range(len(tags))):
        edits, distance, _ = best[-1][t + 1]
        best[-1][t] = (edits + drops[t][0], distance + drops[t][1], DROP)
    for w, word in reversed(list(enumerate(words))):
        row = best[w]
        row_after = best[w + 1]
        edits, distance = misses[w]
        edits_at_end, distance_at_end = edits, distance
        if tags[-1] == NO_TAG:
            edits_at_end, distance_at_end = 1, 0
        after = row_after[-1]
        row[-1] = (after[0] + edits_at_end, after[1] + distance_at_end, MISS)
        for t in reversed(range(len(tags))):
            after_pair = row_after[t + 1]
            after_drop = row[t + 1]
            after_miss = row_after[t]
            drop = drops[t]
            row[t] = min(
                (after_pair[0] + pairs[tags[t], word], after_pair[1], PAIR),
                (after_drop[0] + drop[0], after_drop[1] + drop[1], DROP),
                (after_miss[0] + edits, after_miss[1] + distance, MISS),
            )

    # 3. The first steps, one after the other, lead to the alignment.
    alignment: list[int | None] = []
    t = 0
    for row in best[:-1]:
        while row[t][2] == DROP:
            t += 1
        is_pair = row[t][2] == PAIR
        alignment.append(t if is_pair else None)
        t += is_pair
    return alignment


def _omissions(marks: list[bool]) -> list[Cost]:
    """The cost of leaving out each tag or word: less, the farther it is from the
    nearest mark or end.
    """
    from_left = _distances(marks)
    from_right = _distances(marks[::-1])[::-1]
    costs = []
    for left, right in zip(from_left, from_right, strict=True):
        costs.append((2, -min(left, right)))
    return costs


def _distances(marks: list[bool]) -> list[int]:
    """Steps from each position back to the nearest mark, or to the start."""
    distances = []
    steps = 0
    for mark in marks:
        steps = 0 if mark else steps + 1
        distances.append(steps)
    return distances
