"""Data of the parsing problems, made by t2t-datagen: what is in it, when it is
complete, and what is refused.
"""

import re

import pytest
from tiny_task import contents, write_subwords
from tiny_treebank import CLEAN, WORDS, WRITTEN, filled

import t2tlite.problems  # noqa: F401  (registers them)
from t2tlite import registry
from t2tlite.bin import t2t_datagen
from t2tlite.data.dataset import open_dataset
from t2tlite.data.generate import generate
from t2tlite.problems import grammar
from t2tlite.tasks.task import Output, open_task
from t2tlite.trees.tree import clean_tree, format_tree, read_parses, read_trees


def datagen(data, *flags):
    return t2t_datagen.main([f"--data_dir={data}", "--num_processes=1", *flags])


def test_data_of_the_treebank(treebank, tmp_path, capsys):
    command = ["--problem=wsj_parsing", f"--tmp_dir={treebank}", "--vocab_size=320"]
    assert datagen(tmp_path / "data", *command) == 0
    stdout = capsys.readouterr().out
    assert re.search(r"vocabulary  320 pieces\n  train +80 pairs, ", stdout)
    dataset = open_dataset(tmp_path / "data", "wsj_parsing")
    manifest = dataset.manifest
    assert manifest.task == "parsing"
    # section 6.3: beam 21, alpha 0.3, at most 300 tokens more than the input
    defaults = {"beam_size": 21, "alpha": 0.3, "extra_length": 300}
    assert manifest.decode_defaults == defaults
    assert manifest.options["linearisation"] == "normalised"
    assert [entry.file for entry in manifest.made_from][-1] == "wsj_2399.mrg"
    store = dataset.store("test")
    names = ("2398a", "2398b", "2399a", "2399b")
    assert store.source_text() == [filled(WORDS, name) for name in names]
    target = store.targets([0], int(store.target_lengths[0]))[0]
    encoder = dataset.encoders[1]
    assert encoder.decode(target) == store.target_text()[0] == WRITTEN["normalised"]
    pieces = [piece.removeprefix("▁") for piece in encoder.pieces(target)]
    brackets = re.findall(r"[()]\w+", WRITTEN["normalised"])
    assert [piece for piece in pieces if piece[0] in "()"] == brackets
    before = contents(tmp_path / "data")
    assert datagen(tmp_path / "data", *command) == 0
    assert "already complete, nothing to do" in capsys.readouterr().out
    assert datagen(tmp_path / "data", *command, "--linearisation=tags") == 1
    assert "linearisation was normalised, now tags." in capsys.readouterr().err
    assert contents(tmp_path / "data") == before


def test_raw_files_in_the_home_folder(own_trees, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(own_trees.parent))
    problem = registry.get_problem("wsj_parsing", vocab_size=330)
    data = generate(problem, tmp_path / "data", f"~/{own_trees.name}", 1)
    assert data.dataset.manifest.training.pairs == 120


@pytest.mark.parametrize("linearisation", WRITTEN)
def test_symbols_are_single_pieces(linearisation, tmp_path, monkeypatch):
    monkeypatch.setattr(grammar, "HELD_OUT_SIZE", 20)
    problem = registry.get_problem(
        "grammar_parsing", train_size=400, vocab_size=460, linearisation=linearisation
    )
    dataset = generate(problem, tmp_path, num_processes=1).dataset
    encoder = dataset.encoders[1]
    symbols = problem.symbols(None)
    # of 4 kinds of clause and 8 of phrase; the tags that are no letters alone are . ,
    # and PRP$
    assert len(symbols) == (12 if linearisation == "t2t" else 24) + 3
    for symbol in symbols:
        pieces = encoder.pieces(encoder.encode(f"{symbol} {symbol}"))
        assert pieces == [f"▁{symbol}"] * 2
    store = dataset.store("dev")
    for row, source in enumerate(store.source_text()):
        target = store.target_text()[row]
        assert encoder.decode(store.sources([row], 100)[0]) == source
        assert encoder.decode(store.targets([row], 100)[0]) == target
        assert store.target_lengths[row] <= 2 * len(target.split())


@pytest.mark.parametrize("kind", ["sentencepiece", "subwords"])
@pytest.mark.parametrize("linearisation", WRITTEN)
def test_spaces_inside_words_are_written_as_one_character(
    tmp_path, kind, linearisation
):
    """In sentences every white space separates words, in treebanks ASCII's alone. Word
    by word through data, vocabulary, and task, as a model that predicts the gold
    sequence would.
    """
    trees = tmp_path / "trees"
    trees.mkdir()
    text = ""
    for i in range(90):
        tree = filled(CLEAN, f"1\u00a0000\u2009{i}\u3000")
        text += tree.replace("seen", "\u00a0") + "\n"
    for split in ("train", "dev", "test"):
        (trees / f"{split}.trees").write_text(text, encoding="utf-8")
    options = {"linearisation": linearisation, "vocab_size": 320}
    if kind == "subwords":
        options["vocab_file"] = (str(write_subwords(tmp_path / "v.subwords")),)
    problem = registry.get_problem("wsj_parsing", **options)
    dataset = generate(problem, tmp_path / "data", trees).dataset
    store = dataset.store("dev")
    task = open_task(dataset.manifest.task, dataset.manifest.options)
    rows = store.targets(list(range(90)), int(store.target_lengths.max()))
    sequences = [dataset.encoders[1].decode(row) for row in rows]
    gold = [clean_tree(tree) for tree in read_trees(trees / "dev.trees")]
    assert gold[1].words()[1] == "noun1_000_1_"
    assert "\u00a0" not in gold[1].words()  # a word that nobody sees
    parses = []
    assert sequences == store.target_text()
    for source, sequence, tree in zip(
        store.source_text(), sequences, gold, strict=True
    ):
        (parse,) = task.choose(task.source(source), [Output(sequence, -1.0, -1.0)], 1)
        parses.append(parse)
        assert parse.repairs == {}
        assert parse.tree.words() == tree.words()
        parsed = tmp_path / "parsed.trees"
        parsed.write_text(f"{parse.text}\n{format_tree(tree)}\n", encoding="utf-8")
        assert [parse.words() for parse in read_parses(parsed)] == [tree.words()] * 2
    sources = store.source_text()
    references = list(map(task.reference, sources, store.target_text()))
    score = task.score(sources, references, parses)
    assert (score.value, score.scores["unscored sentences"]) == (100.0, 0)


def test_a_bad_tree(own_trees, tmp_path, capsys):
    file = own_trees / "dev.trees"
    file.write_text(file.read_text() + "\n\n(TOP (NN cat)))\n")
    flags = ["--problem=wsj_parsing", f"--tmp_dir={own_trees}", "--vocab_size=330"]
    assert datagen(tmp_path / "data", *flags) == 1
    stderr = capsys.readouterr().err
    message = "words and closing brackets must lie inside"
    assert f"{file}, line 9: {message}" in stderr
    assert not list((tmp_path / "data").glob("*"))
