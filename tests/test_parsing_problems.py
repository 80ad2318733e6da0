"""The parsing problems: which trees they take from where, how these are written, and the data made of them."""

from __future__ import annotations

import gzip
import itertools
import json
import re
import shutil

import pytest
from tiny_task import contents

import t2tlite.hparams
import t2tlite.problems  # noqa: F401  (registers them)
from t2tlite import registry
from t2tlite.bin import t2t_datagen
from t2tlite.data.dataset import open_dataset
from t2tlite.data.linearise import linearise, t2t_linearise
from t2tlite.data.trees import format_tree, read_trees
from t2tlite.evaluation.outputs import score_outputs, to_tree
from t2tlite.evaluation.parsing import evalb
from t2tlite.problems import grammar

# As the Penn Treebank has it: several lines, no label outside, a function tag with an index, a trace.
RAW = """
( (S
    (NP-SBJ-1 (DT The) (NN {noun}) )
    (VP (VBD was)
      (VP (VBN seen)
        (NP (-NONE- *-1) )
        (PP-LOC (IN in)
          (NP (DT the) (NN {place}) ))))
    (. .) ))
"""
WORDS = "The {noun} was seen in the {place} ."
CLEAN = (
    "(TOP (S (NP (DT The) (NN {noun})) (VP (VBD was) (VP (VBN seen) (PP (IN in) (NP (DT the) (NN {place}))))) (. .)))"
)
WRITTEN = {
    "normalised": "(S (NP XX XX )NP (VP XX (VP XX (PP XX (NP XX XX )NP )PP )VP )VP . )S",
    "tags": "(S (NP DT NN )NP (VP VBD (VP VBN (PP IN (NP DT NN )NP )PP )VP )VP . )S",
    "t2t": "S NP DT NN /NP VP VBD VP VBN PP IN NP DT NN /NP /PP /VP /VP . /S",
}
BRACKETS = {f"({label}" for label in ("NP", "PP", "S", "VP")} | {f"){label}" for label in ("NP", "PP", "S", "VP")}
HEADER = "*x*x*x*x*x*x*\n*x*  Copyright of the Treebank  *x*\n*x*x*x*x*x*x*\n"


def filled(text, number):
    return text.format(noun=f"noun{number}", place=f"place{number}")


@pytest.fixture
def treebank(tmp_path):
    """Every section of LDC99T42, two files of two trees each; the sentences name section and file."""
    for section in range(25):
        folder = tmp_path / "LDC99T42" / "parsed" / "mrg" / "wsj" / f"{section:02}"
        folder.mkdir(parents=True)
        for file in (98, 99):
            trees = [filled(RAW, f"{section:02}{file}{letter}") for letter in "ab"]
            (folder / f"wsj_{section:02}{file}.mrg").write_text(HEADER + "".join(trees))
        (folder / "readme").write_text("no trees\n")
    return tmp_path / "LDC99T42"


@pytest.fixture
def own_trees(tmp_path):
    """Trees of one's own: plain files, 120 to train on."""
    folder = tmp_path / "trees"
    folder.mkdir()
    for split, count in (("train", 120), ("dev", 6), ("test", 4)):
        (folder / f"{split}.trees").write_text("".join(f"{filled(CLEAN, f'{split}{i}')}\n" for i in range(count)))
    return folder


def numbers(pairs):
    return [re.search(r"noun(\w+) ", source)[1] for source, _ in pairs]


# the Treebank, and trees of one's own


def test_sections_of_the_treebank(treebank):
    problem = registry.problem("wsj_parsing")
    pairs = {split: list(problem.pairs(split, treebank)) for split in problem.splits()}

    def expected(sections):
        return [f"{section:02}{file}{letter}" for section in sections for file in (98, 99) for letter in "ab"]

    assert numbers(pairs["train"]) == expected(range(2, 22))  # sections 02-21, 22 and 23 are everybody's
    assert numbers(pairs["dev"]) == expected([22])
    assert numbers(pairs["test"]) == expected([23])
    assert pairs["dev"][0] == (filled(WORDS, "2298a"), WRITTEN["normalised"])
    assert [path.name for path in problem.files(treebank)][:3] == ["wsj_0298.mrg", "wsj_0299.mrg", "wsj_0398.mrg"]
    assert len(problem.files(treebank)) == 2 * 22


def test_order_is_that_of_the_names_wherever_the_files_lie(treebank):
    problem = registry.problem("wsj_parsing")
    before = list(problem.pairs("train", treebank))
    first = next(treebank.rglob("wsj_0298.mrg"))
    (treebank / "z").mkdir()
    shutil.move(first, treebank / "z")
    assert list(problem.pairs("train", treebank)) == before


def test_plain_files(own_trees):
    problem = registry.problem("wsj_parsing")
    assert numbers(problem.pairs("test", own_trees)) == ["test0", "test1", "test2", "test3"]
    assert [path.name for path in problem.files(own_trees)] == ["train.trees", "dev.trees", "test.trees"]


def test_a_missing_section_is_found_before_anything_is_read(treebank):
    for path in treebank.rglob("wsj_2[23]*.mrg"):
        path.unlink()
    found = next(treebank.rglob("wsj_0298.mrg"))
    found.write_text("(S (NN")  # would be an error of its own
    problem = registry.problem("wsj_parsing")
    with pytest.raises(FileNotFoundError, match=r"Received: .*LDC99T42, without files of section 22 \(dev\)\."):
        next(problem.pairs("train", treebank))
    for path in treebank.rglob("wsj_0[2-5]*.mrg"):
        path.unlink()
    with pytest.raises(
        FileNotFoundError, match=r"wsj_0200\.mrg to wsj_2399\.mrg \(LDC99T42\).*section 02, 03, 04, 05 \(train\)\."
    ):
        next(problem.pairs("train", treebank))


def test_a_file_that_lies_there_twice(treebank):
    shutil.copy(next(treebank.rglob("wsj_1099.mrg")), treebank)
    with pytest.raises(
        ValueError, match=r"must lie in --tmp_dir once\. Received: .*/10/wsj_1099\.mrg and .*/wsj_1099\.mrg"
    ):
        next(registry.problem("wsj_parsing").pairs("dev", treebank))


@pytest.mark.parametrize("missing", ["dev", "test"])
def test_a_missing_plain_file(own_trees, missing):
    (own_trees / f"{missing}.trees").unlink()
    with pytest.raises(FileNotFoundError, match=rf"Received: .*{missing}\.trees, which does not exist\."):
        next(registry.problem("wsj_parsing").pairs("train", own_trees))


def test_folder_without_trees_and_no_folder(tmp_path):
    problem = registry.problem("wsj_parsing")
    with pytest.raises(FileNotFoundError, match=r"either train\.trees, dev\.trees and test\.trees, or.*section 02, 03"):
        next(problem.pairs("train", tmp_path))
    with pytest.raises(FileNotFoundError, match=r"Trees are needed in --tmp_dir: .*Received: no --tmp_dir\."):
        next(problem.pairs("train", None))


def test_unknown_split(own_trees):
    with pytest.raises(ValueError, match=r"split must be one of train, dev, test\. Received: 'tset'\."):
        next(registry.problem("wsj_parsing").pairs("tset", own_trees))


# trees parsed automatically


def test_extra_trees_follow_those_of_train(own_trees, tmp_path):
    plain, packed = tmp_path / "one.trees", tmp_path / "two.trees.gz"
    plain.write_text(filled(RAW, "x1") + filled(RAW, "x2"))
    packed.write_bytes(gzip.compress(f"(ROOT {filled(CLEAN, 'x3')[5:]}\n(S1 (FRAG (UH Oh)))\n".encode()))
    problem = registry.problem("wsj_parsing_semi", extra_trees=(str(plain), str(packed)))

    *pairs, last = problem.pairs("train", own_trees)

    assert last == ("Oh", "(FRAG XX )FRAG")
    assert numbers(pairs) == [f"train{i}" for i in range(120)] + ["x1", "x2", "x3"]
    assert numbers(problem.pairs("dev", own_trees)) == [f"dev{i}" for i in range(6)]
    assert problem.files(own_trees)[3:] == [plain, packed]
    assert set(problem.symbols(own_trees)) == BRACKETS  # a rare label of the extra trees needs no piece of its own


def test_semi_without_extra_trees(own_trees):
    problem = registry.problem("wsj_parsing_semi")
    with pytest.raises(ValueError, match=r"needs --extra_trees=FILE,\.\.\. Received: none\..*or take wsj_parsing\."):
        next(problem.pairs("train", own_trees))
    with pytest.raises(ValueError, match=r"extra_trees must be a tuple of file names\. Received: 'a\.trees'\."):
        registry.problem("wsj_parsing_semi", extra_trees="a.trees")


def test_a_missing_file_of_extra_trees_is_found_before_anything_is_read(own_trees, tmp_path):
    (own_trees / "train.trees").write_text("(S (NN")
    problem = registry.problem("wsj_parsing_semi", extra_trees=(str(tmp_path / "gone.gz"),))
    with pytest.raises(FileNotFoundError, match=r"Received: .*gone\.gz, which does not exist\."):
        next(problem.pairs("train", own_trees))


# how trees are written


@pytest.mark.parametrize(("linearisation", "written"), WRITTEN.items())
def test_linearisations(own_trees, linearisation, written):
    problem = registry.problem("wsj_parsing", linearisation=linearisation)
    assert next(problem.pairs("dev", own_trees)) == (filled(WORDS, "dev0"), written)
    expected = {"/NP", "/PP", "/S", "/VP"} if linearisation == "t2t" else BRACKETS
    assert set(problem.symbols(own_trees)) == expected


@pytest.mark.parametrize("name", ["wsj_parsing", "wsj_parsing_semi", "grammar_parsing"])
def test_unknown_linearisation(name):
    with pytest.raises(ValueError, match=r"--linearisation must be one of normalised, tags, t2t\. Received: 'flat'\."):
        registry.problem(name, linearisation="flat")


@pytest.mark.parametrize("linearisation", WRITTEN)
def test_scores_of_written_trees_are_those_of_the_trees(shared, linearisation):
    """Gold is read back from its sequence; the treebank's own trees must give the same scores."""
    trees = list(itertools.islice(read_trees(shared / "data" / "trees" / "gum.dev.trees"), 300))
    pairs = {"normalised": lambda tree: linearise(tree), "tags": lambda tree: linearise(tree, "kept"),
             "t2t": lambda tree: t2t_linearise(tree)[1]}  # fmt: skip
    references = [pairs[linearisation](tree) for tree in trees]
    sources = [" ".join(tree.words()) for tree in trees]
    outputs = [text.replace("PP", "NP", 1) for text in references]  # an error in most, and repairs
    manifest = {"task": "parsing", "options": {"linearisation": linearisation}}

    score = score_outputs(manifest, sources, references, outputs)

    predicted = [to_tree(manifest, text, source.split()).tree for text, source in zip(outputs, sources, strict=True)]
    expected, _ = evalb(trees, predicted)
    assert score.name == "F1"
    assert score.value == expected.f1 < 99
    assert score.scores["recall"] == expected.recall
    assert score.scores["precision"] == expected.precision
    assert score.scores["complete match"] == expected.complete_match > 10
    assert score.scores["unscored sentences"] == expected.errors + expected.skipped
    assert score.scores.get("tagging accuracy") == (
        None if linearisation == "normalised" else expected.tagging_accuracy
    )
    assert str(score).startswith(f"F1 {expected.f1:.2f} (recall {expected.recall:.2f}, precision ")
    assert f"unscored sentences {expected.errors + expected.skipped}" in str(score)
    assert score_outputs(manifest, sources, references, references).value == 100.0


# the embedded grammar


def test_grammar_parsing():
    problem = registry.problem("grammar_parsing", train_size=300)
    pairs = {split: list(problem.pairs(split, None)) for split in problem.splits()}
    assert {split: len(rows) for split, rows in pairs.items()} == {"train": 300, "dev": 500, "test": 500}
    sentences = {split: {source for source, _ in rows} for split, rows in pairs.items()}
    assert (len(sentences["dev"]), len(sentences["test"])) == (500, 500)
    for one, other in itertools.combinations(sentences.values(), 2):
        assert not one & other
    for (source, target), tree in zip(pairs["dev"], problem.trees("dev", None), strict=True):
        assert source.split() == tree.words()
        assert len(re.findall(r"(?<!\S)[^()\s]+", target)) == len(source.split())  # a tag for each word
    assert problem.files(None) == []


def test_grammar_parsing_reads_the_same_trees_as_the_grammar():
    trees = registry.problem("grammar_parsing", train_size=20).trees("train", None)
    assert [format_tree(t) for t in trees] == [f"(TOP {s.tree})" for s in grammar.sentences("train", 20)]


# data


def datagen(data, *flags):
    return t2t_datagen.main([f"--data_dir={data}", "--num_processes=1", *flags])


def test_data_of_the_treebank(treebank, tmp_path, capsys):
    command = ["--problem=wsj_parsing", f"--tmp_dir={treebank}", "--vocab_size=320"]
    assert datagen(tmp_path / "data", *command) == 0
    assert re.search(r"vocabulary  320 pieces\n  train +80 pairs, ", capsys.readouterr().out)

    dataset = open_dataset(tmp_path / "data", "wsj_parsing")
    manifest = dataset.manifest
    assert manifest["task"] == "parsing"
    # section 6.3: beam 21, alpha 0.3, at most 300 tokens more than the input
    assert dataset.decode_defaults == {"beam_size": 21, "alpha": 0.3, "extra_length": 300}
    assert manifest["options"]["linearisation"] == "normalised"
    assert [entry["file"] for entry in manifest["made_from"]][-1] == "wsj_2399.mrg"
    store = dataset.store("test")
    assert store.source_text() == [filled(WORDS, f"23{file}{letter}") for file in (98, 99) for letter in "ab"]
    target = store.targets([0], int(store.target_lengths[0]))[0]
    assert dataset.encoder.decode(target) == store.target_text()[0] == WRITTEN["normalised"]
    pieces = [piece.removeprefix("▁") for piece in dataset.encoder.pieces(target)]
    assert [piece for piece in pieces if piece[0] in "()"] == re.findall(r"[()]\w+", WRITTEN["normalised"])

    before = contents(tmp_path / "data")
    assert datagen(tmp_path / "data", *command) == 0
    assert "already complete, nothing to do" in capsys.readouterr().out
    assert datagen(tmp_path / "data", *command, "--linearisation=tags") == 1
    assert "linearisation was normalised, now tags." in capsys.readouterr().err
    assert contents(tmp_path / "data") == before


def test_data_of_extra_trees_is_found_complete(own_trees, tmp_path, capsys):
    extra = tmp_path / "extra.trees"
    extra.write_text(filled(RAW, "x1"))
    command = ["--problem=wsj_parsing_semi", f"--tmp_dir={own_trees}", "--vocab_size=330", "--linearisation=t2t"]
    assert datagen(tmp_path / "data", *command, f"--extra_trees={extra}") == 0
    assert re.search(r"train +121 pairs", capsys.readouterr().out)
    assert datagen(tmp_path / "data", *command, f"--extra_trees={extra}") == 0
    assert "already complete" in capsys.readouterr().out
    extra.write_text(filled(RAW, "x2"))
    assert datagen(tmp_path / "data", *command, f"--extra_trees={extra}") == 1
    assert f"{extra} is not the extra.trees it was made from" in capsys.readouterr().err


@pytest.mark.parametrize("linearisation", WRITTEN)
def test_brackets_are_single_pieces(linearisation, tmp_path, monkeypatch):
    monkeypatch.setattr(grammar, "DEV_SIZE", 20)
    monkeypatch.setattr(grammar, "TEST_SIZE", 20)
    command = ["--problem=grammar_parsing", "--train_size=400", "--vocab_size=420", f"--linearisation={linearisation}"]
    assert datagen(tmp_path, *command) == 0
    dataset = open_dataset(tmp_path, "grammar_parsing")
    symbols = registry.problem("grammar_parsing", train_size=400, linearisation=linearisation).symbols(None)
    assert len(symbols) == (12 if linearisation == "t2t" else 24)  # the grammar has 4 kinds of clause and 8 of phrase
    for symbol in symbols:
        assert dataset.encoder.pieces(dataset.encoder.encode(f"{symbol} {symbol}")) == [f"▁{symbol}"] * 2
    store = dataset.store("dev")
    for row, (source, target) in enumerate(zip(store.source_text(), store.target_text(), strict=True)):
        for text, side in ((source, store.sources([row], 100)), (target, store.targets([row], 100))):
            assert dataset.encoder.decode(side[0]) == text
        assert store.target_lengths[row] <= 2 * len(target.split())


def test_vocabulary_too_small_for_the_brackets(own_trees, tmp_path, capsys):
    flags = ["--problem=wsj_parsing", f"--tmp_dir={own_trees}"]
    assert datagen(tmp_path / "data", *flags, "--vocab_size=260") == 1
    told = capsys.readouterr().err
    assert re.search(r"at least \d+ for this text: 259 ids are marks and bytes, 8 symbols, and each character", told)
    assert not (tmp_path / "data" / "wsj_parsing").exists()


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

    assert datagen(tmp_path / "data", "--problem=wsj_parsing", f"--tmp_dir={own_trees}", "--vocab_size=330") == 1

    told = capsys.readouterr().err
    assert f"{file}, line {line}: {message}" in told
    assert "Traceback" not in told
    assert not (tmp_path / "data").exists()


def test_trees_of_which_nothing_is_left(own_trees, tmp_path, capsys):
    (own_trees / "dev.trees").write_text("( (S (NP-SBJ (-NONE- *)) ) )\n")
    assert datagen(tmp_path / "data", "--problem=wsj_parsing", f"--tmp_dir={own_trees}", "--vocab_size=330") == 1
    assert "wsj_parsing needs at least one pair in dev. Received: 0 pairs." in capsys.readouterr().err


def test_reversed_problem_has_the_same_data(own_trees, tmp_path):
    assert datagen(tmp_path / "data", "--problem=wsj_parsing_rev", f"--tmp_dir={own_trees}", "--vocab_size=330") == 0
    manifest = json.loads((tmp_path / "data" / "wsj_parsing" / "manifest.json").read_text())
    assert manifest["options"] == {
        "vocab_size": 330,
        "max_length": 0,
        "max_length_ratio": 0.0,
        "linearisation": "normalised",
    }
    assert [entry["file"] for entry in manifest["made_from"]] == ["train.trees", "dev.trees", "test.trees"]
    dataset = open_dataset(tmp_path / "data", "wsj_parsing_rev")
    assert dataset.store("dev").source_text()[0] == WRITTEN["normalised"]
    assert dataset.store("dev").target_text()[0] == filled(WORDS, "dev0")


# the paper's models


def test_hparam_sets_are_the_papers():
    """Section 6.3: 4 layers, d_model 1024, 16K and 32K tokens; dropout and learning rate chosen on section 22."""
    base, parser = registry.hparams("transformer_base"), registry.hparams("transformer_parsing_wsj")
    semi = registry.hparams("transformer_parsing_semi")
    changes = {name: here for name, (here, _) in parser.diff(base).items()}
    assert (changes.pop("num_hidden_layers"), changes.pop("hidden_size")) == (4, 1024)
    assert set(changes) == {"layer_prepostprocess_dropout", "attention_dropout", "max_length"}  # else "unchanged"
    assert (parser.num_heads, parser.filter_size) == (8, 2048)
    assert set(semi.diff(parser)) == {"layer_prepostprocess_dropout", "attention_dropout"}
    assert registry.problem("wsj_parsing").vocab_size == 16_000
    assert registry.problem("wsj_parsing_semi").vocab_size == 32_000


def test_dropouts_are_tensor2tensors(shared):
    theirs = json.loads((shared / "t2t" / "hparams.json").read_text())
    names = ("layer_prepostprocess_dropout", "attention_dropout", "max_length")
    for ours, name in (("wsj", "transformer_parsing_base"), ("semi", "transformer_parsing_big")):
        hparams = registry.hparams(f"transformer_parsing_{ours}")
        assert {n: getattr(hparams, n) for n in names} == {n: theirs[name][n] for n in names}
