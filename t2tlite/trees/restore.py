"""Makes a tree over the words of a sentence from any decoded sequence.

`restore` applies fixed rules and counts each repair. In long sentences models write a
tag too few or too many. Aligning tags and words keeps the damage local.
"""

import dataclasses
import itertools
import re
import unicodedata
from collections import Counter
from collections.abc import Container, Iterable, Sequence

from t2tlite.trees.tree import CLOSE, EMPTY_TAG, OPEN, ROOT, TAG, Tree
from t2tlite.vocabularies.normalisation import normalise

# OPEN, TAG, CLOSE or MALFORMED, and the label
Event = tuple[str, str]
MALFORMED = "malformed"
# the label of a TAG event where a tag is probably missing
NO_TAG = ""

NORMALISED_TAG = "XX"
# The tags that EVALB removes with their words under COLLINS.prm. Normalised trees keep
# them: EVALB could not score trees without them.
PUNCTUATION_TAGS = frozenset({",", ":", "``", "''", "."})
# The tag of words that are punctuation in every sentence. Others are not: ' closes a
# quotation or is a possessive (POS), - is a dash or joins two words (HYPH).
PUNCTUATION_WORDS = {
    ",": ",",
    ".": ".",
    "!": ".",
    "?": ".",
    ":": ":",
    ";": ":",
    "--": ":",
    "...": ":",
    "—": ":",
    "…": ":",
    "``": "``",
    "“": "``",
    "''": "''",
    '"': "''",
    "”": "''",
}
# Unicode's categories of dashes, quotation marks and other punctuation
PUNCTUATION_CATEGORIES = frozenset({"Pd", "Pi", "Pf", "Po"})
# of these categories, but with other tags: NN for %, HYPH or SYM for /
SYMBOLS = frozenset("%‰/\\#&*@′″†‡§¶")
# of other categories, but used as a quotation mark and as the mark of a list's item
OTHER_MARKS = frozenset("`+")
# also valid for such words: NNS for the " of 5 "
SYMBOL_TAGS = frozenset({"HYPH", "NFP", "NNS", "SYM"})

# repairs of tags and words
MISALIGNMENTS = ("missing_tag", "surplus_tag", "changed_tag", "changed_word")
# Steps of an alignment: a word gets a tag, a tag is dropped, a word has no tag. Of
# equal costs the first counts.
PAIR, DROP, MISS = 0, 1, 2


@dataclasses.dataclass(frozen=True)
class Restored:
    """A tree made from a decoded sequence."""

    tree: Tree  # over exactly the sentence's words, under TOP
    # how often each rule of `restore` was applied
    repairs: Counter[str]

    @property
    def misaligned(self) -> int:
        """How many words and tags of the sequence differ from the sentence's."""
        return sum(map(self.repairs.__getitem__, MISALIGNMENTS))


def split_tokens(sequence: str) -> list[str]:
    """Splits a sequence at ASCII white space."""
    return re.findall(r"\S+", sequence, re.ASCII)


def tree_word(word: str) -> str:
    """The word as trees write it: -LRB- and -RRB- for round brackets.

    Raises ValueError if the word is empty or contains white space.
    """
    if split_tokens(word) != [word]:
        raise ValueError(f"Words are text without white space. Received: {word!r}.")
    return word.replace("(", "-LRB-").replace(")", "-RRB-")


def may_be_punctuation(word: str) -> bool:
    """Whether a word can have one of PUNCTUATION_TAGS: it has no letter or digit, and
    is not made of brackets and symbols alone, such as [, %, / or =.
    """
    if any(map(str.isalnum, word)):
        return False
    for character in set(word) - SYMBOLS:
        category = unicodedata.category(character)
        if category in PUNCTUATION_CATEGORIES or character in OTHER_MARKS:
            return True
    return False


def fitting_tag(word: str, tag: str) -> str:
    """Returns the tag, or a better one if EVALB would remove the word because of it, or
    would count punctuation as a word.

    EVALB removes the words of certain tags from both trees, and can compare the trees
    only if the remaining words are the same. Therefore

    - a punctuation tag on a word that is not punctuation (`may_be_punctuation`) becomes
      XX; so does TOP, and so does -NONE- unless the word looks like a trace (`*T*-1`,
      `0`);
    - a word that is always punctuation (PUNCTUATION_WORDS) gets its Penn Treebank tag,
      unless it has a punctuation tag or one of SYMBOL_TAGS.
    """
    if tag in PUNCTUATION_TAGS:
        return tag if may_be_punctuation(word) else NORMALISED_TAG
    if tag == ROOT or (tag == EMPTY_TAG and not word.startswith(("*", "0"))):
        tag = NORMALISED_TAG
    return tag if tag in SYMBOL_TAGS else PUNCTUATION_WORDS.get(word, tag)


def restore(
    events: Iterable[Event],
    words: Sequence[str],
    fit_tags: bool,
    lexical: bool,
) -> Restored:
    """Returns the tree that a sequence of brackets and tags represents, over exactly
    the given words, under TOP.

    A tag belongs to the next word. Where the sequence is not a tree, these rules apply,
    counted in `repairs`.

    First the brackets:

    - malformed_token: a token with brackets inside (`XX)NP`), or a bracket without a
      label, is dropped.
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

    Among alignments of equal cost, the omitted tags and words are those farthest from
    punctuation and the ends, so that few words get another word's tag. If there are
    still several, the one whose gaps come latest is used. Finally, constituents without
    a word are removed (empty_constituent).

    For the words `Our cat , alas , left`, the sequence `(S (NP XX )NP , XX , (VP XX`
    becomes `(TOP (S (NP (XX Our) (XX cat)) (, ,) (XX alas) (, ,) (VP (XX left))))` with
    {"missing_tag": 1, "closed_at_end": 2}.

    Args:
        events: in any order.
        words: at least one; round brackets in words become -LRB- and -RRB-.
        fit_tags: False keeps all tags, for the sequences of gold trees.
        lexical: the tags other than punctuation are the words themselves. The rules
            above then apply to them.

    Raises:
        ValueError: there are no words, or a word is empty or contains white space.
    """
    words = list(map(tree_word, words))
    if not words:
        raise ValueError("At least one word is required. Received: none.")
    repairs: Counter[str] = Counter()
    balanced = _balanced(events, repairs)
    tags = [label for kind, label in balanced if kind == TAG]
    leaves = iter(_TagRules(fit_tags, lexical, repairs).leaves(tags, words))

    # the children of each open constituent
    stack: list[list[Tree]] = [[]]
    for kind, label in balanced:
        if kind == OPEN:
            stack.append([])
        elif kind == TAG:
            stack[-1] += next(leaves)
        elif children := stack.pop():
            stack[-1].append(Tree(label, tuple(children)))
        else:
            repairs["empty_constituent"] += 1
    # + leaves out the zeros
    return Restored(Tree(ROOT, tuple(stack[0])), +repairs)


def _balanced(events: Iterable[Event], repairs: Counter[str]) -> list[Event]:
    """Returns the events with matching brackets and at least one tag: NO_TAG in empty
    constituents, and at the end if some are open.
    """
    balanced: list[Event] = []
    # the labels of the open constituents
    stack: list[str] = []

    def close() -> str:
        if balanced[-1][0] == OPEN:
            balanced.append((TAG, NO_TAG))
        balanced.append((CLOSE, stack[-1]))
        return stack.pop()

    for kind, label in events:
        if kind == MALFORMED:
            repairs["malformed_token"] += 1
        elif kind == CLOSE and label not in stack:
            repairs["unmatched_closing"] += 1
        elif kind == CLOSE:
            while close() != label:
                repairs["closed_by_another"] += 1
        else:
            balanced.append((kind, label))
            if kind == OPEN:
                stack.append(label)
    repairs["closed_at_end"] = len(stack)
    if stack:
        balanced.append((TAG, NO_TAG))
    while stack:
        close()
    return balanced or [(TAG, NO_TAG)]


@dataclasses.dataclass(frozen=True)
class _TagRules:
    """How the tags of a sequence become those of the words; see `restore`."""

    fit_tags: bool
    lexical: bool
    repairs: Counter[str]

    def leaves(self, tags: list[str], words: list[str]) -> list[list[Tree]]:
        """Returns for each tag the words that take its place, each under its own
        tag.
        """
        normal_words = list(map(_as_read, words))
        if self.lexical:
            tags = list(map(_as_read, tags))
        alignment = self._aligned(tags, normal_words)
        leaves: list[list[Tree]] = [[] for _ in tags]
        # where a word without a tag goes
        nearest = next((t for t in alignment if t is not None), 0)
        for word, normal, t in zip(words, normal_words, alignment, strict=True):
            label = NO_TAG
            if t is not None:
                nearest = t
                label = tags[t]
            leaves[nearest].append(Tree(self._tag(normal, label), (word,)))
        for tag, replacement in zip(tags, leaves, strict=True):
            self.repairs["surplus_tag"] += tag != NO_TAG and not replacement
        return leaves

    def _tag(self, word: str, label: str) -> str:
        """The tag of a word that is aligned with a label."""
        if label == NO_TAG:
            self.repairs["missing_tag"] += 1
            return fitting_tag(word, NORMALISED_TAG)
        if self._is_word(label):
            self.repairs["changed_word"] += label != word
            label = NORMALISED_TAG
        tag = fitting_tag(word, label) if self.fit_tags else label
        self.repairs["changed_tag"] += tag != label
        return tag

    def _is_word(self, label: str) -> bool:
        return self.lexical and label not in PUNCTUATION_TAGS

    def _fits(self, word: str, label: str) -> bool:
        """Whether a word can have the label, not NO_TAG, without a repair."""
        if self._is_word(label):
            return label == word
        return not self.fit_tags or fitting_tag(word, label) == label

    def _aligned(self, tags: list[str], words: list[str]) -> list[int | None]:
        """Returns the index of each word's tag, or None, by the costs that `restore`
        states.

        Takes time and memory in proportion to tags times words, unless each tag fits
        its word.
        """
        is_complete = len(tags) == len(words) and NO_TAG not in tags
        if is_complete and all(map(self._fits, words, tags)):
            return list(range(len(words)))
        alignment: list[int | None] = []
        t = 0
        for steps in self._cheapest(tags, words):
            while steps[t] == DROP:
                t += 1
            is_pair = steps[t] == PAIR
            alignment.append(t if is_pair else None)
            t += is_pair
        return alignment

    def _cheapest(self, tags: list[str], words: list[str]) -> list[list[int]]:
        """For each word w and tag t, the first step of the cheapest alignment of the
        words from w on with the tags from t on.
        """
        # A repair costs more than all that chooses among equal repairs: the distances
        # of omitted tags and words from punctuation and the ends.
        half_repair = (len(tags) + len(words)) ** 2
        drops = _omission_costs(tags, {*PUNCTUATION_TAGS, NO_TAG}, 2 * half_repair)
        for t, tag in enumerate(tags):
            if tag == NO_TAG:
                drops[t] = 0
        misses = _omission_costs(words, PUNCTUATION_WORDS, 2 * half_repair)
        pairs = {}
        for word, tag in itertools.product(set(words), set(tags)):
            pairs[word, tag] = half_repair
            if tag != NO_TAG:
                pairs[word, tag] = 0 if self._fits(word, tag) else 2 * half_repair

        # of the words after the current one, by tag; none are left: tags are dropped
        costs = [*itertools.accumulate(reversed(drops), initial=0)][::-1]
        rows = []
        for word, miss in zip(reversed(words), reversed(misses), strict=True):
            after = costs
            # no tags are left: the other words have none
            at_end = half_repair if tags[-1] == NO_TAG else miss
            costs = [0] * len(tags) + [after[-1] + at_end]
            steps = [MISS] * len(costs)
            for t in reversed(range(len(tags))):
                costs[t], steps[t] = min(
                    (after[t + 1] + pairs[word, tags[t]], PAIR),
                    (costs[t + 1] + drops[t], DROP),
                    (after[t] + miss, MISS),
                )
            rows.append(steps)
        return rows[::-1]


def _as_read(word: str) -> str:
    """The word as vocabularies read it, or itself if nothing would be left."""
    return normalise(word) or word


def _omission_costs(tokens: list[str], marks: Container[str], repair: int) -> list[int]:
    """The cost of leaving out each token: less than a repair, the farther it is from
    the nearest mark or end.
    """
    before = _distances(tokens, marks)
    after = _distances(tokens[::-1], marks)[::-1]
    return [repair - distance for distance in map(min, before, after)]


def _distances(tokens: list[str], marks: Container[str]) -> list[int]:
    """Steps from each token back to the nearest mark, or to the start."""
    distances = []
    steps = 0
    for token in tokens:
        steps = 0 if token in marks else steps + 1
        distances.append(steps)
    return distances
