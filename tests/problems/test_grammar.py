"""The embedded grammar: properties of many sentences, and the problems made of them."""

import hashlib
import itertools
import random
import re
from collections import Counter

import pytest

from t2tlite import registry
from t2tlite.problems.grammar import GrammarEnde, sentences
from t2tlite.trees.tree import format_tree


@pytest.fixture(scope="module")
def sample():
    return list(sentences("train", 4000, seed=7))


def test_an_english_sentence_has_one_translation_and_one_tree(sample):
    known = {}
    for sentence in sample + list(sentences("train", 4000, seed=8)):
        meaning = sentence.german, sentence.tree
        assert known.setdefault(sentence.english, meaning) == meaning
    assert len(known) > 7600  # few come twice


def test_leaves_of_a_tree_spell_its_sentence(sample):
    labels = Counter()
    for sentence in sample:
        assert sentence.tree.count("(") == sentence.tree.count(")")
        form = r"(\([^ ()]+ (?=[(])|\([^ ()]+ [^ ()]+\)|\)| )+"
        assert re.fullmatch(form, sentence.tree)
        words = " ".join(re.findall(r"([^ ()]+)\)", sentence.tree))
        words = re.sub(r" (?=[.,?]|'s )", "", words).replace("can not", "cannot")
        assert words == sentence.english
        labels.update(re.findall(r"\(([^ ]+)", sentence.tree))
    clauses = {"S", "SBAR", "SBARQ", "SQ"}
    phrases = {"NP", "VP", "PP", "ADJP", "ADVP", "PRT", "WHNP", "WHADVP"}
    words = set(
        "DT NN NNS NNP JJ JJR RB RBR RP IN TO CC CD MD PRP PRP$ POS VB VBD VBP VBZ WDT"
        " WP WRB . ,".split()
    )
    assert set(labels) == clauses | phrases | words


def test_sentences_look_like_sentences(sample):
    lengths = Counter()
    for sentence in sample:
        lengths[len(sentence.english.split())] += 1
        for text in (sentence.english, sentence.german):
            assert re.fullmatch(r"[A-ZÄÖÜ0-9][^.?]*[.?]", text)
            assert not re.search(r"  | [.,]|,,|,[.?]|\(|\)", text)
        assert sentence.english[-1] == sentence.german[-1]
        assert not re.search(r"\bin d(em|as) |\bzu de[mr] ", sentence.german)
    assert min(lengths) >= 4
    assert max(lengths) <= 20
    assert sum(lengths[n] for n in range(5, 15)) > 0.8 * len(sample)


@pytest.mark.parametrize("count", [100, pytest.param(2000, marks=pytest.mark.slow)])
def test_splits_share_no_sentence_whatever_the_seed(count):
    english = {
        split: {s.english for seed in (1, 2) for s in sentences(split, count, seed)}
        for split in ("train", "dev", "test")
    }
    for first, second in itertools.combinations(english.values(), 2):
        assert not first & second


def test_pairs_are_the_same_each_time():
    problem = GrammarEnde(train_size=300)
    first = list(problem.pairs("train", None))
    random.seed(5)
    other = problem.pairs("dev", None)
    pairs = zip(problem.pairs("train", None), other, strict=False)
    assert first == [pair for pair, _ in pairs]
    assert len(first) == 300
    # more data is the same and more
    assert list(GrammarEnde(train_size=200).pairs("train", None)) == first[:200]


# Whoever changes the grammar changes everybody's data and scores: let that be seen. The
# digests are of 5,000 training sentences, 500 of dev and 500 of test.
FROZEN = {
    "grammar_ende": {
        "train": "a8b9d6d0406b7e1c6f8603e993bb7fe6e4f487c252377f680df280367a87427f",
        "dev": "0760c6adf1fa331551ecb62412b32a68c3ef346b942ba12fd09db7d5142f8b01",
        "test": "9b7bf2597be930d80b886d77c609c28c3fbbbfc3aa01723d653c6a10accf49d6",
    },
    "grammar_parsing": {
        "train": "c5ca1118fdaeb81b3a9912f1e5dd9b7458904cd1054e2ff8042f5f13a1507c49",
        "dev": "afe6582879662e93b4ec6ecb07fb5dab3c29ecd6232288f669a9c89728dc5108",
        "test": "3574b10b79d9db45cce522c5adf72d4ff4ee1deca5c61fbaa02b4b32970629c2",
    },
}


@pytest.mark.parametrize("name", FROZEN)
def test_data_is_frozen(name, drawn_once):
    problem = registry.get_problem(name, train_size=5000)
    for split, digest in FROZEN[name].items():
        if name == "grammar_parsing":
            lines = [format_tree(tree) for tree in problem.trees(split, None)]
        else:
            lines = ["\t".join(pair) for pair in problem.pairs(split, None)]
        text = "".join(f"{line}\n" for line in lines)
        assert hashlib.sha256(text.encode()).hexdigest() == digest, split


def test_refuses_what_it_cannot_make():
    with pytest.raises(ValueError, match=r"train_size must be at least 1. Received: 0"):
        GrammarEnde(train_size=0)
    with pytest.raises(ValueError, match=r"of train, dev, test\. Received: 'valid'"):
        GrammarEnde().pairs("valid", None)
