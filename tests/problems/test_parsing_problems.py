"""The parsing problems: which trees they take from where, and how these are written."""

import gzip
import itertools
import re
import shutil

import pytest
from fixture_files import tree_files
from tiny_treebank import CLEAN, RAW, SYMBOLS, WORDS, WRITTEN, filled

import t2tlite.problems  # noqa: F401  (registers them)
from t2tlite import registry
from t2tlite.tasks.task import Output, open_task
from t2tlite.trees.evalb import evalb
from t2tlite.trees.linearise import LINEARISATIONS
from t2tlite.trees.tree import read_trees


def numbers(pairs):
    return [re.search(r"noun(\w+) ", source)[1] for source, _ in pairs]


# the Treebank, and trees of one's own


def test_sections_of_the_treebank(treebank):
    problem = registry.get_problem("wsj_parsing")
    pairs = {split: list(problem.pairs(split, treebank)) for split in problem.splits()}

    # sections 02-21, 22 and 23 are everybody's
    for split, sections in (("train", range(2, 22)), ("dev", [22]), ("test", [23])):
        expected = []
        for section in sections:
            expected += [f"{section:02}{end}" for end in ("98a", "98b", "99a", "99b")]
        assert numbers(pairs[split]) == expected
    assert pairs["dev"][0] == (filled(WORDS, "2298a"), WRITTEN["normalised"])
    files = [path.name for path in problem.files(treebank)]
    assert files[:3] == ["wsj_0298.mrg", "wsj_0299.mrg", "wsj_0398.mrg"]
    assert len(files) == 2 * 22


def test_order_is_that_of_the_names_wherever_the_files_lie(treebank):
    problem = registry.get_problem("wsj_parsing")
    before = list(problem.pairs("train", treebank))
    first = next(treebank.rglob("wsj_0298.mrg"))
    (treebank / "z").mkdir()
    shutil.move(first, treebank / "z")
    assert list(problem.pairs("train", treebank)) == before


def test_own_files_may_be_compressed_and_in_a_folder(own_trees):
    problem = registry.get_problem("wsj_parsing")
    names = ["test0", "test1", "test2", "test3"]
    assert numbers(problem.pairs("test", own_trees)) == names
    before = list(problem.pairs("train", own_trees))
    plain = own_trees / "train.trees"
    compressed = own_trees / "packed" / "train.trees.gz"
    compressed.parent.mkdir()
    compressed.write_bytes(gzip.compress(plain.read_bytes()))
    plain.unlink()
    assert list(problem.pairs("train", own_trees)) == before
    assert compressed in problem.files(own_trees)
    (own_trees / "dev.trees").unlink()
    with pytest.raises(FileNotFoundError, match=r"without\n  dev\.trees$"):
        next(problem.pairs("train", own_trees))


def test_a_missing_section_is_found_before_anything_is_read(treebank):
    for path in treebank.rglob("wsj_2[23]*.mrg"):
        path.unlink()
    next(treebank.rglob("wsj_0298.mrg")).write_text("(S (NN")  # an error of its own
    problem = registry.get_problem("wsj_parsing")
    message = r"from the Treebank, .*without\n  wsj_22\?\?\.mrg\n  wsj_23"
    with pytest.raises(FileNotFoundError, match=message):
        next(problem.pairs("train", treebank))


def test_a_file_that_lies_there_twice_is_read_once(treebank):
    problem = registry.get_problem("wsj_parsing")
    before = list(problem.pairs("train", treebank))
    shutil.copy(next(treebank.rglob("wsj_1099.mrg")), treebank)
    assert list(problem.pairs("train", treebank)) == before
    assert treebank / "wsj_1099.mrg" in problem.files(treebank)


def test_folder_without_trees_and_no_folder(tmp_path):
    problem = registry.get_problem("wsj_parsing")
    message = r"wsj_parsing needs .*or train\.trees .*{}, without\n  wsj_02\?\?"
    for folder, shown in ((tmp_path, str(tmp_path)), (None, "no --tmp_dir")):
        with pytest.raises(FileNotFoundError, match=message.format(shown)):
            next(problem.pairs("train", folder))


# trees parsed automatically


def test_extra_trees_follow_those_of_train(own_trees, tmp_path):
    plain, packed = tmp_path / "one.trees", tmp_path / "two.trees.gz"
    plain.write_text(filled(RAW, "x1") + filled(RAW, "x2"))
    text = f"(ROOT {filled(CLEAN, 'x3')[5:]}\n(S1 (FRAG (UH Oh)))\n"
    packed.write_bytes(gzip.compress(text.encode()))
    files = (str(plain), str(packed))
    problem = registry.get_problem("wsj_parsing_semi", extra_trees=files)
    *pairs, last = problem.pairs("train", own_trees)
    assert last == ("Oh", "(FRAG XX )FRAG")
    assert numbers(pairs) == [f"train{i}" for i in range(120)] + ["x1", "x2", "x3"]
    assert numbers(problem.pairs("dev", own_trees)) == [f"dev{i}" for i in range(6)]
    assert problem.files(own_trees)[3:] == [plain, packed]
    # a rare label of the extra trees needs no piece of its own
    assert set(problem.symbols(own_trees)) == SYMBOLS


def test_trees_without_words_are_left_out_and_counted(own_trees, tmp_path, capsys):
    """As parsers write for sentences that they cannot parse; a trace is not a word."""
    extra = tmp_path / "auto.trees"
    none = ["(())", "( ( ) )", "()", "(TOP)", "(S1 ())", "(TOP (NP (-NONE- *)))"]
    extra.write_text("\n".join([filled(CLEAN, "x1"), *none, filled(CLEAN, "x2")]))
    dev = own_trees / "dev.trees"
    dev.write_text("(())\n" + dev.read_text())
    problem = registry.get_problem("wsj_parsing_semi", extra_trees=(str(extra),))
    for _ in range(2):
        assert numbers(problem.pairs("train", own_trees))[120:] == ["x1", "x2"]
        assert numbers(problem.pairs("dev", own_trees)) == [f"dev{i}" for i in range(6)]
    assert set(problem.symbols(own_trees)) == SYMBOLS
    # once, however often they are read
    assert capsys.readouterr().err.splitlines() == [
        f"{extra}: left out 6 trees without words, such as (()).",
        f"{dev}: left out 1 tree without words, such as (()).",
    ]


def test_nodes_that_hold_no_words_are_left_out(own_trees):
    """As in historical corpora, after each sentence, and in Switchboard."""
    train = own_trees / "train.trees"
    train.write_text(
        "( (METADATA (AUTHOR Anon)))\n"
        "( (IP-MAT (CODE <P_13>) (NP (CODE {x}) (NN cat)) (LB |)) (ID FILE,.1))\n"
        "( (CODE (SYM SpeakerA1) (. .)))\n"
        "( (S (RM (-DFL- \\[)) (NN Rain) (-DFL- E_S)))\n"
    )
    problem = registry.get_problem("wsj_parsing")
    expected = ["(IP (NP XX )NP XX )IP", "(S XX )S"]
    assert [tree for _, tree in problem.pairs("train", own_trees)] == expected
    problem = registry.get_problem("wsj_parsing", not_words=("ID", "LB"))
    words = [words for words, _ in problem.pairs("train", own_trees)]
    assert words[:2] == ["Anon", "<P_13> {x} cat"]


@pytest.mark.parametrize("tree", ["(TOP () (NN cat))", "(TOP (NN cat) ())", "(cat)"])
def test_empty_brackets_beside_words_are_a_mistake(own_trees, tmp_path, tree):
    extra = tmp_path / "auto.trees"
    extra.write_text(f"(())\n{tree}\n")
    problem = registry.get_problem("wsj_parsing_semi", extra_trees=(str(extra),))
    message = r"auto\.trees, line 2: each bracket holds a label"
    with pytest.raises(ValueError, match=message):
        list(problem.pairs("train", own_trees))


def test_semi_without_extra_trees(own_trees):
    problem = registry.get_problem("wsj_parsing_semi")
    message = r"needs --extra_trees=FILE,\.\.\. wsj_parsing does not\."
    with pytest.raises(ValueError, match=message):
        next(problem.pairs("train", own_trees))


def test_missing_extra_trees_are_an_error_before_reading(own_trees, tmp_path):
    (own_trees / "train.trees").write_text("(S (NN")
    files = (str(tmp_path / "gone.gz"),)
    problem = registry.get_problem("wsj_parsing_semi", extra_trees=files)
    message = r"Received: .*gone\.gz, which does not exist\."
    with pytest.raises(FileNotFoundError, match=message):
        next(problem.pairs("train", own_trees))


# how trees are written


@pytest.mark.parametrize(("linearisation", "written"), WRITTEN.items())
def test_linearisations(own_trees, linearisation, written):
    problem = registry.get_problem("wsj_parsing", linearisation=linearisation)
    assert next(problem.pairs("dev", own_trees)) == (
        filled(WORDS, "dev0"),
        filled(written, "dev0"),
    )
    expected = {"/NP", "/PP", "/S", "/VP", "."} if linearisation == "t2t" else SYMBOLS
    assert set(problem.symbols(own_trees)) == expected


def test_fragments_follow_their_tree_in_training_alone(own_trees):
    constituents = {
        "The noun was seen in the place .": WRITTEN["normalised"],
        "The noun": "(NP XX XX )NP",
        "was seen in the place": "(VP XX (VP XX (PP XX (NP XX XX )NP )PP )VP )VP",
        "seen in the place": "(VP XX (PP XX (NP XX XX )NP )PP )VP",
        "in the place": "(PP XX (NP XX XX )NP )PP",
        "the place": "(NP XX XX )NP",
    }
    problem = registry.get_problem("wsj_parsing", fragments=2)
    pairs = list(problem.pairs("train", own_trees))
    assert len(pairs) == 3 * 120
    for source, target in pairs:
        assert constituents[re.sub(r"train\d+", "", source)] == target
    assert numbers(pairs[::3]) == [f"train{i}" for i in range(120)]
    assert all(len(set(pairs[i : i + 3])) == 3 for i in range(0, 360, 3))
    # each kind is drawn now and then
    assert len({re.sub(r"train\d+", "", source) for source, _ in pairs}) == 6
    assert list(problem.pairs("train", own_trees)) == pairs
    assert len(list(problem.pairs("dev", own_trees))) == 6
    many = list(
        registry.get_problem("wsj_parsing", fragments=9).pairs("train", own_trees)
    )
    assert len(many) == 6 * 120  # as many as there are


def test_substitutions_follow_all_trees_in_training_alone(own_trees):
    plain = list(registry.get_problem("wsj_parsing").pairs("train", own_trees))
    problem = registry.get_problem("wsj_parsing", substitutions=2, fragments=1)
    pairs = list(problem.pairs("train", own_trees))
    assert len(pairs) == 2 * 3 * 120
    whole = pairs[::2]  # each is followed by a fragment
    assert whole[:120] == plain
    assert not set(whole[120:]) & set(plain)  # all sentences have other words
    assert {target for _, target in whole} == {target for _, target in plain}
    assert len(list(problem.pairs("dev", own_trees))) == 6


def test_unknown_linearisation():
    message = r"linearisation must be one of normalised, tags, .*'flat'\."
    with pytest.raises(ValueError, match=message):
        registry.get_problem("grammar_parsing", linearisation="flat")


@pytest.mark.parametrize("trees_of", tree_files("gum.dev"))
@pytest.mark.parametrize("linearisation", WRITTEN)
def test_scores_of_written_trees_are_those_of_the_trees(tree_file, linearisation):
    """Gold is read back from its sequence; the treebank's own trees must give the same
    scores.
    """
    trees = list(itertools.islice(read_trees(tree_file), 300))
    form = LINEARISATIONS[linearisation]
    targets = [form.write(tree) for tree in trees]
    sources = [" ".join(tree.words()) for tree in trees]
    # an error in most, and repairs
    sequences = [text.replace("PP", "NP", 1) for text in targets]
    task = open_task("parsing", {"linearisation": linearisation})

    def parses(texts):
        outputs = []
        for source, text in zip(sources, texts, strict=True):
            outputs += task.choose(source, [Output(text, -1.0, -1.0)], 1)
        return outputs

    references = list(map(task.reference, sources, targets))
    score = task.score(sources, references, parses(sequences))
    predicted = [
        form.read(text, source.split()).tree
        for text, source in zip(sequences, sources, strict=True)
    ]
    expected = evalb(trees, predicted)
    assert score.value == expected.f1 < 99
    assert score.scores["complete match"] == expected.complete_match > 10
    unscored = expected.errors + expected.skipped
    tagging = expected.tagging_accuracy if linearisation in ("tags", "t2t") else None
    assert score.scores.get("tagging accuracy") == tagging
    assert str(score).startswith(
        f"F1 {expected.f1:.2f} (recall {expected.recall:.2f}, precision "
    )
    assert f"unscored sentences {unscored}" in str(score)
    assert task.score(sources, references, parses(targets)).value == 100.0
    hypotheses = [Output(text, -1.0, -1.0) for text in sequences]
    assert task.as_sequences().score(sources, targets, hypotheses) == score


# the embedded grammar
