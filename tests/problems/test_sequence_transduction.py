"""Problems other than translation and parsing: pronunciations, SCAN, arithmetic."""

import itertools

import pytest

from t2tlite.bin import t2t_datagen
from t2tlite.data.dataset import open_dataset
from t2tlite.files.atomic_file import write_text
from t2tlite.metrics.corpus_metrics import Scoring
from t2tlite.problems.sequence_transduction import LANGUAGES, LONG_TEST
from t2tlite.programs.serving.models import ServedModel
from t2tlite.registry import get_problem, list_problems
from t2tlite.tasks.task import Output, letters, open_task


def word(number: int) -> str:
    return f"W{number:04d}".translate(str.maketrans("0123456789", "ABCDEFGHIJ"))


@pytest.fixture
def cmudict(tmp_path):
    """2,000 words of train, one of them with two pronunciations, and two of test."""
    lines = [f"{word(number)};W AH {number % 7}" for number in range(2000)]
    write_text(tmp_path / "train_dataset.csv", "\n".join([*lines, f"{word(5)};W"]))
    write_text(tmp_path / "test_dataset.csv", "CAT;K AE T\nCAT;K AA T\nA;AH\n")
    return tmp_path


def test_cmudict(cmudict, capsys):
    """Letters and phonemes are the vocabulary; dev is 1,500 words, none in train."""
    folder = cmudict / "data"
    argv = ["--problem=g2p_cmudict", f"--tmp_dir={cmudict}", f"--data_dir={folder}"]
    assert t2t_datagen.main(argv) == 0
    assert " words\n" in capsys.readouterr().out
    encoder, _ = open_dataset(folder, "g2p_cmudict").encoders
    pieces = encoder.pieces(range(encoder.vocab_size))
    expected = {*"WABCDEFGHIJ", *"0123456", "AH"}
    assert set(pieces[3:]) == {f"\u2581{token}" for token in expected}
    problem = get_problem("g2p_cmudict")
    train = {source for source, _ in problem.pairs("train", cmudict)}
    dev = [source for source, _ in problem.pairs("dev", cmudict)]
    assert len(set(dev)) == 1500
    assert len(train) == 500
    assert not train & set(dev)
    assert next(problem.pairs("test", cmudict)) == ("C A T", "K AE T")


def test_a_line_without_phonemes_and_a_short_file(cmudict):
    problem = get_problem("g2p_cmudict")
    write_text(cmudict / "test_dataset.csv", "CAT;K AE T\nDOG\n")
    with pytest.raises(ValueError, match=r"line 2: 'SOURCE;TARGET' is .*'DOG'"):
        list(problem.pairs("test", cmudict))
    write_text(cmudict / "train_dataset.csv", "CAT;K AE T\n")
    assert list(problem.pairs("dev", cmudict)) == [("C A T", "K AE T")]


def test_current_cmudict(tmp_path):
    """Stress, comments and the numbers of further pronunciations are left out; a word's
    pronunciations are in one split, each once.
    """
    lines = [f"{word(number).lower()} W AH{number % 3}" for number in range(14_000)]
    variants = ["read R EH1 D # past", "read(2) R IY1 D", "read(3) R EH0 D"]
    write_text(tmp_path / "cmudict.dict", "\n".join([*lines, *variants]))
    problem = get_problem("g2p_cmudict_current")
    splits = {}
    for split in problem.splits():
        splits[split] = list(problem.pairs(split, tmp_path))
    words = [set(dict(pairs)) for pairs in splits.values()]
    assert list(map(len, words)) == [501, 1500, 12_000]
    assert len(set.union(*words)) == 14_001
    pairs = itertools.chain(*splits.values())
    of_read = [target for source, target in pairs if source == "r e a d"]
    assert of_read == ["R EH D", "R IY D"]


def test_a_missing_file_is_named_once(cmudict):
    (cmudict / "test_dataset.csv").unlink()
    with pytest.raises(FileNotFoundError, match=r"\n  test_dataset\.csv$"):
        get_problem("g2p_cmudict").pairs("train", cmudict)


def test_sigmorphon(tmp_path):
    lines = dict.fromkeys(LANGUAGES.split(), "a\tɑ")
    for language, line in (lines | {"fre": "chat\tʃ a", "vie": "bò sữa\tɓ ɔ"}).items():
        for split in ("train", "dev", "test"):
            write_text(tmp_path / f"{language}_{split}.tsv", f"{line}\n")
    problem = get_problem("g2p_sigmorphon2020")
    pairs = list(problem.pairs("test", tmp_path))
    assert [pairs[0], pairs[4], pairs[-1]] == [
        ("<ady> a", "ɑ"),
        ("<fre> c h a t", "ʃ a"),
        ("<vie> b ò _ s ữ a", "ɓ ɔ"),
    ]
    assert letters("\ufeff <vie>\tbo\u0300 sư\u0303a") == pairs[-1][0]
    # as t2t-decoder --split reads them again
    for source, _ in pairs:
        assert open_task("pronunciation", {}).source(source) == source
    write_text(tmp_path / "ady_test.tsv", "a\tɑ\tb\n")
    with pytest.raises(ValueError, match=r"ady_test\.tsv, line 1: 'SOURCE"):
        list(problem.pairs("test", tmp_path))


def outputs(*texts):
    return [Output(text, -1.0, -1.0) for text in texts]


def test_a_word_is_scored_once_against_all_its_pronunciations():
    """CAT is right by its second pronunciation; A has 1 edit of 1, and none by a
    further reference.
    """
    task = open_task("pronunciation", {})
    spoken = outputs("K AA T", "K AA T", "EY")
    words = ["C A T", "C A T", "A"], ["K AE T", "K AA T", "AH"], spoken
    score = task.score(*words)
    assert score.name == "exact_match"
    assert score.scores == pytest.approx(
        {"exact_match": 50.0, "WER".lower(): 50.0, "per": 100 * 1 / 4}
    )
    more = Scoring(more_references=(["", "", "EY"],))
    assert task.scored_by(more).score(*words).scores["wer"] == 0.0


def test_words_are_scored_by_their_letters(model, monkeypatch):
    monkeypatch.setattr(model, "task", open_task("pronunciation", {}))
    scores = model.score(["cat", "c a t"], ["katze", "katze"])
    assert scores[0] == pytest.approx(scores[1], abs=1e-4)
    [count] = ServedModel(model, "en", "de", model.options()).token_counts(["cat"], 99)
    assert count == len(model.source_encoder.encode("c a t")) + 1


def test_scan(tmp_path):
    lines = [f"IN: jump {n} OUT: I_JUMP I_JUMP" for n in range(400)]
    write_text(tmp_path / "tasks_train_length.txt", "\n".join(lines))
    write_text(tmp_path / "tasks_test_length.txt", "IN: run OUT: I_RUN\nrun\n")
    problem = get_problem("scan", generalisation="length")
    train = list(problem.pairs("train", tmp_path))
    dev = list(problem.pairs("dev", tmp_path))
    assert train[0] == ("jump 0", "I_JUMP I_JUMP")
    assert len(train) + len(dev) == 400
    assert 10 <= len(dev) <= 30
    test = problem.pairs("test", tmp_path)
    assert next(test) == ("run", "I_RUN")
    with pytest.raises(ValueError, match=r"line 2: 'IN: SOURCE OUT: TARGET'"):
        next(test)


ALGORITHMIC = [
    name
    for name in list_problems()
    if name.startswith("algorithmic_") and not name.endswith("_rev")
]


def number(digits: list[str], base: int) -> int:
    return int("".join(reversed(digits)), base)


@pytest.mark.parametrize("name", ALGORITHMIC)
def test_algorithmic(name):
    """The targets, by Python's own numbers and lists."""
    _, kind, form = name.split("_")
    base = 2 if form == "binary40" else 10
    problem = get_problem(name)
    longest = {}
    for split in problem.splits():
        pairs = list(itertools.islice(problem.pairs(split, None), 50))
        again = itertools.islice(problem.pairs(split, None), 50)
        assert pairs == list(again)  # seeded
        longest[split] = max(len(source.split()) for source, _ in pairs)
        for source_text, target_text in pairs:
            source, target = source_text.split(), target_text.split()
            if kind == "identity":
                assert target == source
            elif kind == "reverse":
                assert target == source[::-1]
            elif kind == "shift":
                assert [int(digit) - 10 for digit in target] == list(map(int, source))
            else:
                sign = "+" if kind == "addition" else "*"
                first, second = " ".join(source).split(sign)
                numbers = number(first.split(), base), number(second.split(), base)
                result = sum(numbers) if sign == "+" else numbers[0] * numbers[1]
                assert number(target, base) == result
                assert len(target) == 1 or target[-1] != "0"
    assert longest["train"] <= 40 < longest[LONG_TEST] <= 400
    assert len(ALGORITHMIC) == 9
