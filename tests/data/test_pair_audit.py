"""Training pairs that would spoil a result: found, reported, and left out on request."""

from collections import Counter

import numpy as np
import pytest
from tiny_task import TinyTask, contents, sentences

from t2tlite.data.checked_pairs import PairAudit
from t2tlite.data.generate import generate

DEV = (("A cat .", "Eine Katze ."), ("A dog .", "Ein Hund ."))
# by the index of the chunk; what each is stands behind it
TRAIN = [
    [
        ("Two men .", "Zwei Männer ."),
        ("A cat .", "Ein Kater ."),  # source of dev
        ("Two men .", "Zwei Männer ."),  # duplicate of pair 1
        ("", ""),
    ],
    [
        ("Two  men\u00a0. ", "Zwei Ma\u0308nner ."),  # the same, written differently
        ("One dog .", "Ein Hund ."),  # target of dev
        ("Two men .", "Zwei Leute ."),
    ],
    [
        ("A cat .", "Ein Hund ."),  # both
        ("", ""),
        ("Hotel", "Hotel"),  # copy
        ("Hotel", "Hotel"),  # copy, duplicate
        ("A cat .", "Ein Kater ."),  # source of dev, duplicate
    ],
]
PAIRS = [*TRAIN[0], *TRAIN[1], *TRAIN[2]]
COUNTS = {
    "duplicates": 4,
    "test_overlap": 4,
    "copies": 2,
}


def audited(drop=()):
    audit = PairAudit(drop)
    audit.add_evaluated(DEV)
    kept = []
    dropped = Counter()
    for chunk in TRAIN:
        chunk_kept, chunk_dropped = audit.audit("train", chunk)
        kept += chunk_kept
        dropped.update(chunk_dropped)
    return audit, kept, dropped


def test_each_kind_is_counted():
    audit, kept, _ = audited()
    assert kept == [pair for pair in PAIRS if pair != ("", "")]
    assert audit.counts == {"train": COUNTS}


@pytest.mark.parametrize(
    ("drop", "left_out", "counts"),
    [
        (["duplicates"], [2, 4, 10, 11], {"duplicates": 4}),
        (["test_overlap"], [1, 5, 7, 11], {"test_overlap": 4}),
        (["copies"], [9, 10], {"copies": 2}),
        (
            ["copies", "test_overlap", "duplicates"],
            [1, 2, 4, 5, 7, 9, 10, 11],
            {"duplicates": 4, "test_overlap": 3, "copies": 1},
        ),
    ],
)
def test_pairs_are_dropped_for_the_first_reason(drop, left_out, counts):
    audit, kept, dropped = audited(drop)
    left_out = [3, 8, *left_out]
    assert kept == [pair for i, pair in enumerate(PAIRS) if i not in left_out]
    assert dropped == {"empty": 2, **counts}
    assert audit.counts["train"] == COUNTS


def test_a_pair_of_another_corpus_is_no_duplicate():
    audit, _, _ = audited()
    audit.audit("train2", TRAIN[0])
    assert audit.counts["train2"]["duplicates"] == 1


def test_duplicates_among_many_pairs_equal_those_of_a_set():
    random = np.random.default_rng(1)
    audit = PairAudit(["duplicates"])
    seen = set()
    for _ in range(20):
        numbers = random.integers(0, 3000, 300).tolist()
        pairs = [(f"a {n}", f"b {n % 7}") for n in numbers]
        expected = []
        for pair in pairs:
            if pair not in seen:
                expected.append(pair)
            seen.add(pair)
        assert audit.audit("train", pairs)[0] == expected


SPOILT = (
    *sentences(60, 1),
    *sentences(60, 1)[:4],
    *sentences(30, 2)[:3],
    ("mat mat mat", "mat mat mat"),
)
DROP = ("duplicates", "test_overlap", "copies")


def test_drop_leaves_them_out_of_data_and_vocabulary(tmp_path):
    task = TinyTask(train=SPOILT, vocab_size=320, drop=DROP)
    generated = generate(task, tmp_path / "drop", num_processes=1)
    data = generated.dataset
    entry = data.manifest.splits["train"]
    seen = set()
    evaluated = [set(side) for side in zip(*task.dev, *task.test, strict=True)]
    expected = []
    for pair in SPOILT:
        if pair in seen or pair[0] == pair[1]:
            continue
        seen.add(pair)
        if pair[0] not in evaluated[0] and pair[1] not in evaluated[1]:
            expected.append(pair)
    assert 40 < len(expected) < 60
    store = data.store("train")
    rows = store.sources(np.arange(len(store)), int(store.source_lengths.max()))
    sources = [data.encoders[0].decode(row) for row in rows]
    assert sources == [source for source, _ in expected]
    assert sum(entry.dropped.values()) == len(SPOILT) - len(expected)
    assert entry.findings["duplicates"] == entry.dropped["duplicates"] >= 4
    assert f"dropped: {entry.dropped['duplicates']} duplicates, " in str(generated)
    assert "found" not in str(generated)
    # the data and vocabulary of these pairs alone
    alone = TinyTask(train=tuple(expected), vocab_size=320)
    other = generate(alone, tmp_path / "alone", num_processes=1).dataset
    assert other.manifest.vocabulary == data.manifest.vocabulary
    lengths = other.store("train").source_lengths
    np.testing.assert_array_equal(lengths, store.source_lengths)


def test_the_same_drop_again_is_complete_and_another_refused(tmp_path):
    task = TinyTask(train=SPOILT, vocab_size=320, drop=DROP)
    generated = generate(task, tmp_path / "one", num_processes=1)
    expected = contents(tmp_path / "one")
    reordered = TinyTask(train=SPOILT, vocab_size=320, drop=DROP[::-1])
    again = generate(reordered, tmp_path / "one")
    assert again.already_there
    assert str(again).splitlines()[1:] == str(generated).splitlines()[1:]
    with pytest.raises(ValueError, match=r"drop was copies,dup.*, now none\. Delete"):
        generate(TinyTask(train=SPOILT, vocab_size=320), tmp_path / "one")
    assert contents(tmp_path / "one") == expected


def test_everything_or_something_unknown_dropped(tmp_path):
    with pytest.raises(ValueError, match=r"drop must name some of dup.*eived: dupes"):
        generate(TinyTask(drop=("dupes", "copies")), tmp_path)
    task = TinyTask(train=TinyTask().dev, drop=("test_overlap",))
    with pytest.raises(ValueError, match=r"keep in train\. Received: 30\. Check files"):
        generate(task, tmp_path)
    assert not list(tmp_path.iterdir())


def test_trees_of_the_same_shape_are_no_overlap():
    audit = PairAudit(["test_overlap"], targets_are_text=False)
    audit.add_evaluated([("A cat", "(NP XX XX )NP")])
    pairs = [("A dog", "(NP XX XX )NP"), ("A cat", "(NP XX XX )NP")]
    assert audit.audit("train", pairs)[0] == pairs[:1]
    assert audit.counts["train"]["test_overlap"] == 1
