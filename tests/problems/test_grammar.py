"""The embedded grammar: properties of many sentences, and the problems made of them."""

import hashlib
import itertools
import random
import re
from collections import Counter

import pytest

from t2tlite import registry
from t2tlite.problems.grammar import GrammarEnde, lexicon, realiser, sentences
from t2tlite.problems.grammar.lexicon import Forms, Word
from t2tlite.problems.grammar.structure import Clause, Coordination, Nominal
from t2tlite.trees.tree import format_tree


@pytest.fixture(scope="module")
def sample():
    return list(sentences("train", 10000, seed=7))


def test_an_english_sentence_has_one_translation_and_one_tree(sample):
    known = {}
    for sentence in sample + list(sentences("train", 10000, seed=8)):
        meaning = sentence.german, sentence.tree
        assert known.setdefault(sentence.english, meaning) == meaning
    assert len(known) > 19000  # few come twice


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


def test_no_reflexive_is_needed(sample):
    reflexive = re.compile(r"\b(I|we)\b (?:can |will |must )?[a-z]+ (me|us)\b")
    assert not [s.english for s in sample if reflexive.search(s.english)]


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
# digests are of 5,000 training sentences, 500 of dev and 500 of test, made when words
# and rules were not yet apart.
FROZEN = {
    "grammar_ende": {
        "train": "e6621b851c420f38a842ceb81fc06f69ecf9c2445a74941ffb6953a0c412efe2",
        "dev": "58a74eb535b8a66cbc97ce84ea516b24da37491a44388b3c023ea9a626498584",
        "test": "953f3a611ba83ba9cd8179729d1cbbbe5f32274246844b47f929435eaa71f075",
    },
    "grammar_parsing": {
        "train": "ee00cda32aa68d32c55e47605fbc434ca9083208295ec767bea93a5dafef9b4e",
        "dev": "7f1f921d64b551daebc4db3743808486c640307ca12597903e62174c1cf318d6",
        "test": "a721ec39860d509af8fa723d2df7aae1e638459e6e723b3aba46471e86749865",
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
    with pytest.raises(ValueError, match=r"are train, dev, test\. Received: 'valid'"):
        GrammarEnde().pairs("valid", None)


def test_rules_name_what_there_is():
    """Anything else would be said as nothing."""
    known = {"case", *realiser.AUXILIARIES}
    for cls in (Clause, Nominal, Coordination, Word, Forms):
        known |= {*dir(cls), *cls.__annotations__}
    tables = lexicon.read_tables("rules.txt")
    for language in (realiser.ENGLISH, realiser.GERMAN):
        names = known | language._texts.keys()
        for section, rows in tables.items():
            if not section.startswith(language._language):
                continue
            for conditions, text in rows:
                paths = re.findall(r"!?([\w.]+)(?:=\S+)?", conditions)
                paths += [path for path, _ in realiser.SLOT.findall(text)]
                parts = {part for path in paths for part in path.split(".")}
                assert not {part for part in parts - names if not part.isdigit()}
