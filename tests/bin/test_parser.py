"""A parser, through the real commands: it learns, its trees are over the words, and its
F1 is EVALB's.
"""

import builtins
import contextlib
import io
import json
import re
import shutil
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

import t2tlite
from t2tlite import registry
from t2tlite.bin import t2t_decoder, t2t_evalb, t2t_trainer
from t2tlite.problems import grammar
from t2tlite.programs.bulk import decode_split
from t2tlite.programs.runs.translator import Translator
from t2tlite.trees.evalb import evalb
from t2tlite.trees.tree import Tree, parse_tree

# trains a parser; tests/programs/tensor2tensor parses with an imported one
pytestmark = pytest.mark.slow

SMALL = (
    "num_hidden_layers=1,num_heads=4,batch_size=1024,layer_prepostprocess_dropout=0.0"
)
LEARNS = f"{SMALL},hidden_size=64,filter_size=128,learning_rate_constant=0.5,learning_rate_warmup_steps=100"
UNLEARNED = f"{SMALL},hidden_size=8,filter_size=8"
FAST = "--decode_hparams=beam_size=1,extra_length=20"


class Made(NamedTuple):
    """What the commands have made."""

    data: Path
    run: Path  # 300 steps; read only
    stderr: str  # of the training
    dev: list[Tree]  # gold, tags included


def train(data, run, *flags):
    """Calls t2t-trainer in this process and returns its exit status."""
    where = [f"--data_dir={data}", f"--output_dir={run}"]
    return t2t_trainer.main(["--hparams_set=transformer_tiny", *where, *flags])


def generated(linearisation, train_size):
    return ["--generate_data", "--num_processes=1", "--vocab_size=1000", f"--train_size={train_size}",
            f"--linearisation={linearisation}"]  # fmt: skip


@pytest.fixture(scope="module")
def short_sentences():
    """Sentences of at most 7 words, 30 each in dev and test: quickly learned and
    decoded.
    """
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (("MAX_WORDS", 7), ("HELD_OUT_SIZE", 30)):
            patch.setattr(grammar, name, value)
        yield


@pytest.fixture(scope="module")
def trained_parser(tmp_path_factory, short_sentences):
    folder = tmp_path_factory.mktemp("parser")
    err = io.StringIO()
    flags = [
        "--problem=grammar_parsing",
        f"--hparams={LEARNS}",
        "--train_steps=300",
        "--local_eval_frequency=0",
    ]
    with contextlib.redirect_stderr(err):
        status = train(
            folder / "data",
            folder / "run",
            *flags,
            "--eval_bleu",
            *generated("tags", 4000),
        )
    assert status == 0, err.getvalue()
    dev = list(
        registry.get_problem("grammar_parsing", linearisation="tags").trees("dev", None)
    )
    return Made(folder / "data", folder / "run", err.getvalue(), dev)


@pytest.fixture(scope="module")
def model(trained_parser, load):
    return load(trained_parser.run, None)


def decode(run, *flags):
    return t2t_decoder.main([f"--output_dir={run}", *flags])


def f1_of(written, gold):
    """EVALB's F1 of a file of trees."""
    score, _ = evalb(
        gold, [parse_tree(line) for line in written.read_text().splitlines()]
    )
    return score.f1


def test_learns_to_parse(trained_parser, loaded_once, tmp_path, capsys):
    written = tmp_path / "test.trees"
    status = decode(trained_parser.run, "--split=test", f"--decode_to_file={written}")
    assert status == 0
    f1 = re.search(
        r"^F1 (\d+\.\d\d) \(recall .*\) on test \(30 sentences\)$",
        capsys.readouterr().out,
        re.MULTILINE,
    )
    assert float(f1[1]) >= 80  # 93 where this was written
    assert len(written.read_text().splitlines()) == 30


def test_f1_of_a_split_is_that_of_the_trees_written(
    trained_parser, loaded_once, capsys
):
    assert decode(trained_parser.run, "--split=dev") == 0
    shown = capsys.readouterr().out
    written = trained_parser.run / "decodes" / "dev.300.txt"
    predicted = [parse_tree(line) for line in written.read_text().splitlines()]
    assert [tree.words() for tree in predicted] == [
        tree.words() for tree in trained_parser.dev
    ]
    f1 = f1_of(written, trained_parser.dev)
    assert re.search(
        rf"^F1 {f1:.2f} \(recall \d+\.\d\d, precision \d+\.\d\d, ", shown, re.MULTILINE
    )
    assert re.search(
        r"unscored sentences 0, tagging accuracy \d+\.\d\d\) on dev \(30"
        r" sentences\)\nEVALB, COL",
        shown,
    )
    assert re.search(
        r"^Sequences repaired to make trees: \d+ of 30", shown, re.MULTILINE
    )
    gold = written.with_suffix(".gold")
    run = trained_parser.run
    assert shown.endswith(
        f"Run {run}, checkpoint {run}/model.ckpt-300, trees {written}, references"
        f" {gold}\n"
    )
    assert [
        parse_tree(line) for line in gold.read_text().splitlines()
    ] == trained_parser.dev
    assert t2t_evalb.main([f"--gold={gold}", f"--predicted={written}"]) == 0
    assert f"{f1:.2f}" in capsys.readouterr().out
    sources = written.with_suffix(".src").read_text().splitlines()
    assert [line.split() for line in sources] == [
        tree.words() for tree in trained_parser.dev
    ]
    record = json.loads((trained_parser.run / "decodes" / "dev.300.json").read_text())
    assert record["scores"]["F1"] == pytest.approx(f1)
    assert record["scores"]["tagging accuracy"] > 50
    assert (record["split"], record["step"], record["sentences"]) == ("dev", 300, 30)
    assert record["checkpoint"] == f"{trained_parser.run}/model.ckpt-300"
    assert record["signatures"]["F1"] == "EVALB, COLLINS.prm, all lengths"
    options = {
        name: record["decode_hparams"][name]
        for name in ("beam_size", "alpha", "extra_length", "return_beams")
    }
    # section 6.3
    assert options == {
        "beam_size": 21,
        "alpha": 0.3,
        "extra_length": 300,
        "return_beams": 1,
    }


@pytest.mark.parametrize("engine_option", ["beam_size=21", "sampling_method=random"])
def test_tree_constraint_leaves_nothing_to_repair(
    engine_option, trained_parser, loaded_once, tmp_path, capsys
):
    options = f"--decode_hparams={engine_option},tree_constraint=true"
    status = decode(
        trained_parser.run,
        "--split=dev",
        options,
        f"--decode_to_file={tmp_path / 'dev.trees'}",
    )
    assert status == 0
    assert re.search(
        "^Sequences repaired to make trees: 0 of 30$",
        capsys.readouterr().out,
        re.MULTILINE,
    )


def test_examples_of_a_split_show_trees(trained_parser, loaded_once, tmp_path, capsys):
    written = tmp_path / "dev.trees"
    status = decode(
        trained_parser.run, "--split=dev", FAST, f"--decode_to_file={written}"
    )
    assert status == 0
    rows = re.findall(
        r"^source +(.*)\nparse +(.*)\ngold +(.*)\n$",
        capsys.readouterr().out,
        re.MULTILINE,
    )
    assert len(rows) == 5
    gold = {" ".join(tree.words()): tree for tree in trained_parser.dev}
    for source, parse, tree in rows:
        assert parse in written.read_text().splitlines()
        assert parse_tree(parse).words() == source.split()
        assert parse_tree(tree) == gold[source]


@pytest.mark.parametrize("beams", ["beam_size=2", "beam_size=3,return_beams=2"])
def test_an_interrupted_split_resumes(
    trained_parser, loaded_once, tmp_path, capsys, monkeypatch, beams
):
    """Its scores are of the decoded sequences, and its file has the repaired trees."""
    # so there are three of the 30 sentences
    monkeypatch.setattr(decode_split, "SPLIT_WINDOW", 12)
    flags = "--split=test", f"--decode_hparams={beams},extra_length=20"
    run = Path(
        shutil.copytree(
            trained_parser.run,
            tmp_path / "run",
            ignore=shutil.ignore_patterns("decodes"),
        )
    )
    decoded, seen = Translator.decode, []

    def stop(self, sources, *rest):
        seen.append(len(sources))
        if len(seen) == 3 + 2:
            raise KeyboardInterrupt
        return decoded(self, sources, *rest)

    monkeypatch.setattr(Translator, "decode", stop)
    outcomes = []
    for status in (0, 130, 0):
        assert decode(run, *flags) == status
        report = re.sub(
            r"^30 sentences in .*$", "", capsys.readouterr().out, flags=re.MULTILINE
        )
        if status == 130:
            assert len(list((run / "decodes").glob("*.txt.part"))) == 1
            continue
        files = {path.name: path.read_bytes() for path in (run / "decodes").glob("*.*")}
        (record,) = (
            json.loads(files.pop(name))
            for name in list(files)
            if name.endswith(".json")
        )
        outcomes.append((report, files, {**record, "seconds": None}))
        shutil.rmtree(run / "decodes")
    assert seen == [12, 12, 6, 12, 12, 12, 6]
    assert outcomes[1] == outcomes[0]
    assert re.search(
        r"^Sequences repaired to make trees: [1-9]\d* of 30",
        outcomes[0][0],
        re.MULTILINE,
    )


def test_file_to_file(trained_parser, loaded_once, tmp_path, capsys):
    source, target = tmp_path / "in.txt", tmp_path / "out.trees"
    lines = [
        "A bird was not sick .",
        "",
        " \t",
        "  I   listened to him .",
        "qwxyz \u00fcber (zzz) -LRB- \U0001f600 ?",
        ".",
    ]
    source.write_text("\n".join(lines) + "\n")
    status = decode(
        trained_parser.run,
        f"--decode_from_file={source}",
        f"--decode_to_file={target}",
    )
    assert status == 0
    written = target.read_text().split("\n")
    assert [written[1], written[2], written[6:]] == ["", "", [""]]
    assert parse_tree(written[0]).words() == lines[0].split()
    assert parse_tree(written[3]).words() == ["I", "listened", "to", "him", "."]
    assert parse_tree(written[4]).words() == [
        "qwxyz",
        "\u00fcber",
        "-LRB-zzz-RRB-",
        "-LRB-",
        "\U0001f600",
        "?",
    ]
    assert parse_tree(written[5]).words() == ["."]
    output = capsys.readouterr()
    assert output.out == ""
    assert re.search(
        r"6 sentences in \d.*\nSequences repaired to make trees: \d of 6", output.err
    )


def test_n_best(trained_parser, loaded_once, tmp_path, capsys):
    source = tmp_path / "in.txt"
    source.write_text("\nA bird was not sick .\n")
    status = decode(
        trained_parser.run,
        f"--decode_from_file={source}",
        "--decode_hparams=return_beams=2",
    )
    assert status == 0
    rows = [line.split(" ||| ") for line in capsys.readouterr().out.splitlines()]
    assert [row[0] for row in rows] == ["0", "1", "1"]
    assert rows[0][1:] == ["", "log_prob= 0.000000", "0.000000"]
    for row in rows[1:]:
        assert parse_tree(row[1]).words() == "A bird was not sick .".split()
    assert 0 > float(rows[1][3]) != float(rows[2][3])


def test_interactive(trained_parser, loaded_once, monkeypatch, capsys):
    typed = iter(["A bird was not sick .", "cat " * 2100, ""])
    monkeypatch.setattr(builtins, "input", lambda prompt: next(typed))
    for stream in (sys.stdin, sys.stdout):
        monkeypatch.setattr(stream, "isatty", lambda: True, raising=False)
    assert decode(trained_parser.run, "--decode_interactive") == 0
    lines = capsys.readouterr().out.splitlines()
    assert re.fullmatch(
        r"score +-\d\.\d{3}  log_prob +-\d+\.\d{3}  \(TOP .*\(\. \.\)+", lines[1]
    )
    assert "A sentence must have at most 2,048 tokens." in lines[2]


def test_parse(model):
    sentences = ["A bird was not sick .", " ", "(A) [b] {c} ''", "bird"]
    parses = model.parse(sentences, beam_size=2)
    words = [parse.tree.words() if parse.tree else None for parse in parses]
    assert words == [
        sentences[0].split(),
        None,
        ["-LRB-A-RRB-", "[b]", "{c}", "''"],
        ["bird"],
    ]
    assert (parses[1].text, parses[1].sequence, parses[1].score, parses[1].repairs) == (
        "",
        "",
        0.0,
        {},
    )
    for parse in (parses[0], parses[2], parses[3]):
        assert parse_tree(parse.text) == parse.tree
        assert parse.tree.label == "TOP"
        assert parse.score < 0
        assert all(count > 0 for count in parse.repairs.values())
    assert (
        model.parse(["-LRB-A-RRB- [b] {c} ''"], beam_size=2)[0].tree == parses[2].tree
    )
    n_best = model.decode(sentences[:1], model.options(beam_size=2, return_beams=2))[0]
    assert parses[0].ids == n_best[0].ids
    # in batches of other sizes
    assert parses[0].score == pytest.approx(n_best[0].score)
    assert model.translate(sentences[:1], beam_size=2)[0] in [
        parse.sequence for parse in n_best
    ]
    assert model.parse([]) == []
    assert model.parse(sentences[0], beam_size=2) == n_best[0]


def test_parse_n_best(model):
    (parses,) = model.decode(
        ["A bird was not sick ."], model.options(return_beams=3, beam_size=4)
    )
    assert len({parse.sequence for parse in parses}) == 3
    assert len({parse.score for parse in parses}) == 3
    # of four hypotheses those that fit the words come first
    assert not parses[0].repairs


def test_what_parse_refuses(model):
    with pytest.raises(
        ValueError,
        match=r"Each sentence must be a string\. Received: \['A', 'bird'\] at index 0\.",
    ):
        model.parse([["A", "bird"]])
    with pytest.raises(
        ValueError,
        match=r"at most 2,048 tokens\. Received: line 2 with 2,\d\d\d tokens",
    ):
        model.parse(["bird", "bird " * 2100])
    with pytest.raises(
        ValueError, match=r"no field 'beamsize'\. Did you mean 'beam_size'"
    ):
        model.parse(["bird"], beamsize=2)


def test_f1_of_dev_while_training(trained_parser, loaded_once, tmp_path):
    message = re.search(
        r"step 300: .*, F1 (\d+\.\d\d) \(recall .*, unscored sentences 0, .*\) \(best"
        r" so far\)",
        trained_parser.stderr,
    )
    f1 = float(message[1])
    assert json.loads((trained_parser.run / "best" / "best.json").read_text())[
        "metrics"
    ]["f1"] == pytest.approx(f1, abs=0.01)
    status = decode(
        trained_parser.run,
        "--split=dev",
        f"--decode_to_file={tmp_path / 'dev.trees'}",
    )
    assert status == 0
    # the same search, beam 21
    assert f1 == pytest.approx(
        f1_of(tmp_path / "dev.trees", trained_parser.dev), abs=0.01
    )


@pytest.mark.parametrize("linearisation", ["words", "t2t"])
def test_other_ways_to_write_trees(linearisation, tmp_path, short_sentences, capsys):
    run = tmp_path / "run"
    flags = [
        "--problem=grammar_parsing",
        f"--hparams={UNLEARNED}",
        "--train_steps=2",
        *generated(linearisation, 1500),
    ]
    assert train(tmp_path / "data", run, *flags) == 0
    assert decode(run, "--split=dev", FAST) == 0
    shown = capsys.readouterr().out
    gold = list(registry.get_problem("grammar_parsing").trees("dev", None))
    (decoded,) = (run / "decodes").glob("dev.2.*.txt")
    f1 = f1_of(decoded, gold)
    tagging = r", tagging accuracy \d+\.\d\d" if linearisation == "t2t" else ""
    assert re.search(
        rf"^F1 {f1:.2f} \(recall .*unscored sentences \d+{tagging}\) on dev",
        shown,
        re.MULTILINE,
    )
    shown_gold = parse_tree(re.search(r"^gold +(.*)$", shown, re.MULTILINE)[1])
    assert (
        shown_gold == gold[0]
        if linearisation == "t2t"
        else shown_gold.words() == gold[0].words()
    )


def test_reversed_problem_is_translation(tmp_path, short_sentences, capsys):
    run = tmp_path / "run"
    flags = [
        "--problem=grammar_parsing_rev",
        f"--hparams={UNLEARNED}",
        "--train_steps=2",
    ]
    assert train(tmp_path / "data", run, *flags, *generated("normalised", 1500)) == 0
    assert decode(run, "--split=dev", FAST) == 0
    shown = capsys.readouterr().out
    assert re.search(
        r"^BLEU \d+\.\d\d \(chrF2 .*\) on dev \(30 sentences\)\nBLEU\|nrefs:1",
        shown,
        re.MULTILINE,
    )
    assert re.search(r"^source +\(S \(", shown, re.MULTILINE)
    assert re.search(r"^reference +\w+ ", shown, re.MULTILINE)
    model = t2tlite.load(run)
    assert (model.task.name, model.task.outputs) == ("translation", "translations")
    with pytest.raises(
        ValueError,
        match=(
            r"a parsing problem parses\. Received: one of grammar_parsing_rev\. Use"
            r" tran"
        ),
    ):
        model.parse(["A bird was not sick ."])
