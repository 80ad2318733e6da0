"""Data of the parsing problems, made by t2t-datagen: what is in it, when it is
complete, and what is refused.
"""

import json
import re

import pytest
from tiny_task import contents, write_subwords
from tiny_treebank import CLEAN, RAW, WORDS, WRITTEN, filled

import t2tlite.problems  # noqa: F401  (registers them)
from t2tlite import registry
from t2tlite.bin import t2t_datagen
from t2tlite.data.dataset import open_dataset
from t2tlite.data.generate import generate
from t2tlite.problems import grammar
from t2tlite.tasks.task import Output, open_task
from t2tlite.trees.evalb_parses import read_parses
from t2tlite.trees.tree import clean_tree, format_tree, read_trees


def datagen(data, *flags):
    return t2t_datagen.main([f"--data_dir={data}", "--num_processes=1", *flags])


def test_data_of_the_treebank(treebank, tmp_path, capsys):
    command = ["--problem=wsj_parsing", f"--tmp_dir={treebank}", "--vocab_size=320"]
    assert datagen(tmp_path / "data", *command) == 0
    assert re.search(
        r"vocabulary  320 pieces\n  train +80 pairs, ", capsys.readouterr().out
    )
    dataset = open_dataset(tmp_path / "data", "wsj_parsing")
    manifest = dataset.manifest
    assert manifest.task == "parsing"
    # section 6.3: beam 21, alpha 0.3, at most 300 tokens more than the input
    assert manifest.decode_defaults == {
        "beam_size": 21,
        "alpha": 0.3,
        "extra_length": 300,
    }
    assert manifest.options["linearisation"] == "normalised"
    assert [entry.file for entry in manifest.made_from][-1] == "wsj_2399.mrg"
    store = dataset.store("test")
    assert store.source_text() == [
        filled(WORDS, f"23{file}{letter}") for file in (98, 99) for letter in "ab"
    ]
    target = store.targets([0], int(store.target_lengths[0]))[0]
    assert (
        dataset.encoders[1].decode(target)
        == store.target_text()[0]
        == WRITTEN["normalised"]
    )
    pieces = [piece.removeprefix("▁") for piece in dataset.encoders[1].pieces(target)]
    assert [piece for piece in pieces if piece[0] in "()"] == re.findall(
        r"[()]\w+", WRITTEN["normalised"]
    )
    before = contents(tmp_path / "data")
    assert datagen(tmp_path / "data", *command) == 0
    assert "already complete, nothing to do" in capsys.readouterr().out
    assert datagen(tmp_path / "data", *command, "--linearisation=tags") == 1
    assert "linearisation was normalised, now tags." in capsys.readouterr().err
    assert contents(tmp_path / "data") == before


def test_data_of_extra_trees_is_found_complete(own_trees, tmp_path, capsys):
    extra = tmp_path / "extra.trees"
    extra.write_text(filled(RAW, "x1"))
    command = [
        "--problem=wsj_parsing_semi",
        f"--tmp_dir={own_trees}",
        "--vocab_size=330",
        "--linearisation=t2t",
    ]
    assert datagen(tmp_path / "data", *command, f"--extra_trees={extra}") == 0
    assert re.search(r"train +121 pairs", capsys.readouterr().out)
    assert datagen(tmp_path / "data", *command, f"--extra_trees={extra}") == 0
    assert "already complete" in capsys.readouterr().out
    extra.write_text(filled(RAW, "x2"))
    assert datagen(tmp_path / "data", *command, f"--extra_trees={extra}") == 1
    assert f"{extra} is not the extra.trees it was made from" in capsys.readouterr().err


def test_raw_files_in_the_home_folder(own_trees, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(own_trees.parent))
    data = generate(
        registry.get_problem("wsj_parsing", vocab_size=330),
        tmp_path / "data",
        f"~/{own_trees.name}",
        1,
    )
    assert data.dataset.manifest.training.pairs == 120


@pytest.mark.parametrize("linearisation", WRITTEN)
def test_symbols_are_single_pieces(linearisation, tmp_path, monkeypatch):
    monkeypatch.setattr(grammar, "HELD_OUT_SIZE", 20)
    command = [
        "--problem=grammar_parsing",
        "--train_size=400",
        "--vocab_size=420",
        f"--linearisation={linearisation}",
    ]
    assert datagen(tmp_path, *command) == 0
    dataset = open_dataset(tmp_path, "grammar_parsing")
    symbols = registry.get_problem(
        "grammar_parsing", train_size=400, linearisation=linearisation
    ).symbols(None)
    # of 4 kinds of clause and 8 of phrase; the tags that are no letters alone are . ,
    # and PRP$
    assert len(symbols) == (12 if linearisation == "t2t" else 24) + 3
    for symbol in symbols:
        assert (
            dataset.encoders[1].pieces(dataset.encoders[1].encode(f"{symbol} {symbol}"))
            == [f"▁{symbol}"] * 2
        )
    store = dataset.store("dev")
    for row, (source, target) in enumerate(
        zip(store.source_text(), store.target_text(), strict=True)
    ):
        for text, side in (
            (source, store.sources([row], 100)),
            (target, store.targets([row], 100)),
        ):
            assert dataset.encoders[1].decode(side[0]) == text
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
    lines = [
        filled(CLEAN, f"1\u00a0000\u2009{i}\u3000").replace("seen", "\u00a0")
        for i in range(90)
    ]
    for split in ("train", "dev", "test"):
        (trees / f"{split}.trees").write_text(
            "".join(f"{line}\n" for line in lines), encoding="utf-8"
        )
    flags = [
        f"--tmp_dir={trees}",
        "--vocab_size=320"
        if kind == "sentencepiece"
        else f"--vocab_file={write_subwords(tmp_path / 'v.subwords')}",
        f"--linearisation={linearisation}",
    ]
    assert datagen(tmp_path / "data", "--problem=wsj_parsing", *flags) == 0
    dataset = open_dataset(tmp_path / "data")
    store, task = (
        dataset.store("dev"),
        open_task(dataset.manifest.task, dataset.manifest.options),
    )
    rows = store.targets(list(range(90)), int(store.target_lengths.max()))
    sequences = [dataset.encoders[1].decode(row) for row in rows]
    gold = [clean_tree(tree) for tree in read_trees(trees / "dev.trees")]
    assert gold[1].words()[1] == "noun1_000_1_"
    assert "\u00a0" not in gold[1].words()  # a word that nobody sees
    parses = []
    for source, sequence, target, tree in zip(
        store.source_text(), sequences, store.target_text(), gold, strict=True
    ):
        assert sequence == target
        (parse,) = task.choose(task.source(source), [Output(sequence, -1.0, -1.0)], 1)
        parses.append(parse)
        assert parse.repairs == {}
        assert parse.tree.words() == tree.words()
        (tmp_path / "parsed.trees").write_text(
            f"{parse.text}\n{format_tree(tree)}\n", encoding="utf-8"
        )
        assert [parse.words() for parse in read_parses(tmp_path / "parsed.trees")] == [
            tree.words()
        ] * 2
    sources = store.source_text()
    references = list(map(task.reference, sources, store.target_text()))
    score = task.score(sources, references, parses)
    assert (score.value, score.scores["unscored sentences"]) == (100.0, 0)


@pytest.mark.parametrize(
    ("split", "bad", "message"),
    [
        ("train", "(TOP (NN cat)", "every bracket must be closed."),
        ("dev", "(TOP (NN cat)))", "every ) must close a bracket."),
        ("test", "(TOP (NP the cat))", "each word has a tag and a bracket of its own"),
    ],
)
def test_a_bad_tree(own_trees, tmp_path, capsys, split, bad, message):
    file = own_trees / f"{split}.trees"
    file.write_text(file.read_text() + f"\n\n{bad}\n")
    line = {"train": 120, "dev": 6, "test": 4}[split] + 3
    assert (
        datagen(
            tmp_path / "data",
            "--problem=wsj_parsing",
            f"--tmp_dir={own_trees}",
            "--vocab_size=330",
        )
        == 1
    )
    stderr = capsys.readouterr().err
    assert f"{file}, line {line}: {message}" in stderr
    assert "Traceback" not in stderr
    assert not list((tmp_path / "data").glob("*"))


def test_reversed_problem_has_the_same_data(own_trees, tmp_path):
    assert (
        datagen(
            tmp_path / "data",
            "--problem=wsj_parsing_rev",
            f"--tmp_dir={own_trees}",
            "--vocab_size=330",
        )
        == 0
    )
    manifest = json.loads(
        (tmp_path / "data" / "wsj_parsing" / "manifest.json").read_text()
    )
    assert manifest["options"] == {
        "vocab_size": 330,
        "vocab_type": "sentencepiece",
        "vocab_file": [],
        "user_symbols": [],
        "normalization": "nfc",
        "max_length": 0,
        "max_length_ratio": 0.0,
        "drop": [],
        "linearisation": "normalised",
        "fragments": 0,
        "substitutions": 0,
        "not_words": ["ID", "CODE", "METADATA", "-DFL-"],
    }
    assert [entry["file"] for entry in manifest["made_from"]] == [
        "train.trees",
        "dev.trees",
        "test.trees",
    ]
    dataset = open_dataset(tmp_path / "data", "wsj_parsing_rev")
    assert dataset.store("dev").source_text()[0] == WRITTEN["normalised"]
    assert dataset.store("dev").target_text()[0] == filled(WORDS, "dev0")
