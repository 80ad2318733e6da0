"""A parser, through the real commands: it learns, its trees are over the words, and its
F1 is EVALB's.
"""

import contextlib
import io
import json
import re
import shutil
from pathlib import Path
from typing import NamedTuple

import pytest
from run_command import run_command, said

import t2tlite
from t2tlite import registry
from t2tlite.bin import t2t_decoder, t2t_evalb, t2t_trainer
from t2tlite.problems import grammar
from t2tlite.programs.bulk import decode_split
from t2tlite.programs.runs.translator import Translator
from t2tlite.run_folder import RunFolder
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
    """Calls t2t-trainer in this process."""
    where = [f"--data_dir={data}", f"--output_dir={run}"]
    run_command(t2t_trainer, "--hparams_set=transformer_tiny", *where, *flags)


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
    data, run = folder / "data", folder / "run"
    err = io.StringIO()
    flags = ["--problem=grammar_parsing", f"--hparams={LEARNS}", "--train_steps=300"]
    flags += ["--local_eval_frequency=0", "--eval_bleu", *generated("tags", 4000)]
    with contextlib.redirect_stderr(err):
        train(data, run, *flags)
    problem = registry.get_problem("grammar_parsing", linearisation="tags")
    return Made(data, run, err.getvalue(), list(problem.trees("dev", None)))


@pytest.fixture(scope="module")
def model(trained_parser, load):
    return load(trained_parser.run, None)


@pytest.fixture
def decode(trained_parser, loaded_once, capsys):
    """decode(*flags): what the command prints."""
    run = f"--output_dir={trained_parser.run}"
    return lambda *flags: said(capsys, t2t_decoder, run, *flags)


def trees_of(path):
    return [parse_tree(line) for line in path.read_text().splitlines()]


def f1_of(written, gold):
    """EVALB's F1 of a file of trees."""
    score = evalb(gold, trees_of(written))
    return score.f1


def words_of(trees):
    return [tree.words() for tree in trees]


def test_learns_to_parse(decode, tmp_path):
    written = tmp_path / "test.trees"
    shown = decode("--split=test", f"--decode_to_file={written}").out
    pattern = r"(?m)^F1 (\d+\.\d\d) \(recall .*\) on test \(30 sentences\)$"
    assert float(re.search(pattern, shown)[1]) >= 80  # 93 where this was written
    assert len(written.read_text().splitlines()) == 30


def test_f1_of_a_split_is_that_of_the_trees_written(trained_parser, decode, capsys):
    run, dev = trained_parser.run, trained_parser.dev
    shown = decode("--split=dev").out
    written = run / "decodes" / "dev.300.txt"
    gold = written.with_suffix(".gold")
    assert words_of(trees_of(written)) == words_of(dev)
    assert trees_of(gold) == dev
    sources = written.with_suffix(".src").read_text().splitlines()
    assert [line.split() for line in sources] == words_of(dev)
    f1 = f1_of(written, dev)
    scored = rf"(?m)^F1 {f1:.2f} \(recall \d+\.\d\d, precision \d+\.\d\d, .*, unscored"
    scored += (
        r" sentences 0, tagging accuracy \d+\.\d\d\) on dev \(30 sentences\)\nEVALB"
    )
    assert re.search(scored, shown)
    assert re.search(r"(?m)^Sequences repaired to make trees: \d+ of 30", shown)
    where = f"checkpoint {run}/model.ckpt-300, trees {written}, references {gold}\n"
    assert shown.endswith(f"Run {run}, {where}")
    files = f"--gold={gold}", f"--predicted={written}"
    assert f"{f1:.2f}" in said(capsys, t2t_evalb, *files).out
    record = RunFolder(run).decode_record("dev.300")
    assert record.scores["F1"] == pytest.approx(f1)
    assert record.scores["tagging accuracy"] > 50
    assert (record.split, record.step, record.sentences) == ("dev", 300, 30)
    assert record.checkpoint == f"{run}/model.ckpt-300"
    assert record.signatures["F1"] == "EVALB, COLLINS.prm, all lengths"
    # section 6.3
    expected = {"beam_size": 21, "alpha": 0.3, "extra_length": 300, "return_beams": 1}
    assert record.decode_hparams.items() >= expected.items()
    # the same search during training
    pattern = (
        r"step 300: .*, F1 (\d+\.\d\d) \(recall .*, unscored sentences 0, .*\(best"
    )
    assert float(re.search(pattern, trained_parser.stderr)[1]) == pytest.approx(
        f1, abs=0.01
    )
    assert RunFolder(run).best().metrics["f1"] == pytest.approx(f1, abs=0.01)


@pytest.mark.parametrize("engine_option", ["beam_size=21", "sampling_method=random"])
def test_tree_constraint_leaves_nothing_to_repair(engine_option, decode, tmp_path):
    options = f"--decode_hparams={engine_option},tree_constraint=true"
    target = f"--decode_to_file={tmp_path / 'dev.trees'}"
    shown = decode("--split=dev", options, target).out
    assert "\nSequences repaired to make trees: 0 of 30\n" in shown


@pytest.mark.parametrize("beams", ["beam_size=2", "beam_size=3,return_beams=2"])
def test_an_interrupted_split_resumes(
    trained_parser, loaded_once, tmp_path, capsys, monkeypatch, beams
):
    """Its scores are of the decoded sequences, and its file has the repaired trees."""
    # so there are three of the 30 sentences
    monkeypatch.setattr(decode_split, "SPLIT_WINDOW", 12)
    ignored = shutil.ignore_patterns("decodes")
    run = shutil.copytree(trained_parser.run, tmp_path / "run", ignore=ignored)
    flags = [f"--output_dir={run}", "--split=test"]
    flags.append(f"--decode_hparams={beams},extra_length=20")
    decoded, seen = Translator.decode, []

    def stop(self, sources, *rest):
        seen.append(len(sources))
        if len(seen) == 3 + 2:
            raise KeyboardInterrupt
        return decoded(self, sources, *rest)

    monkeypatch.setattr(Translator, "decode", stop)
    outcomes = []
    for status in (0, 130, 0):
        shown = said(capsys, t2t_decoder, *flags, status=status).out
        decodes = run / "decodes"
        if status == 130:
            assert len(list(decodes.glob("*.txt.part"))) == 1
            continue
        files = {path.name: path.read_bytes() for path in decodes.glob("*.*")}
        [record] = [name for name in files if name.endswith(".json")]
        values = json.loads(files.pop(record)) | {"seconds": None}
        report = re.sub(r"(?m)^30 sentences in .*$", "", shown)
        outcomes.append((report, files, values))
        shutil.rmtree(decodes)
    assert seen == [12, 12, 6, 12, 12, 12, 6]
    assert outcomes[1] == outcomes[0]
    repaired = r"(?m)^Sequences repaired to make trees: [1-9]\d* of 30"
    assert re.search(repaired, outcomes[0][0])


def test_file_to_file(decode, tmp_path):
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
    out, err = decode(f"--decode_from_file={source}", f"--decode_to_file={target}")
    written = target.read_text().split("\n")
    assert [written[1], written[2], written[6:]] == ["", "", [""]]
    words = [parse_tree(written[i]).words() for i in (0, 3, 4, 5)]
    expected = ["qwxyz", "\u00fcber", "-LRB-zzz-RRB-", "-LRB-", "\U0001f600", "?"]
    assert words == [lines[0].split(), lines[3].split(), expected, ["."]]
    assert out == ""
    repaired = r"6 sentences in \d.*\nSequences repaired to make trees: \d of 6"
    assert re.search(repaired, err)


def test_parse(model):
    sentences = ["A bird was not sick .", " ", "(A) [b] {c} ''", "bird"]
    parses = model.parse(sentences, beam_size=2)
    words = [parse.tree.words() if parse.tree else None for parse in parses]
    third = ["-LRB-A-RRB-", "[b]", "{c}", "''"]
    assert words == [sentences[0].split(), None, third, ["bird"]]
    nothing = parses[1]
    values = nothing.text, nothing.sequence, nothing.score
    assert (values, bool(nothing.repairs)) == (("", "", 0.0), False)
    for parse in (parses[0], parses[2], parses[3]):
        assert parse_tree(parse.text) == parse.tree
        assert parse.tree.label == "TOP"
        assert parse.score < 0
        assert all(count > 0 for count in parse.repairs.values())
    escaped = model.parse(["-LRB-A-RRB- [b] {c} ''"], beam_size=2)[0]
    assert escaped.tree == parses[2].tree
    options = model.options(beam_size=2, return_beams=2)
    [n_best] = model.decode(sentences[:1], options)
    assert parses[0].ids == n_best[0].ids
    # in batches of other sizes
    assert parses[0].score == pytest.approx(n_best[0].score, abs=1e-4)
    sequences = [parse.sequence for parse in n_best]
    assert model.translate(sentences[:1], beam_size=2)[0] in sequences
    assert model.parse([]) == []
    assert model.parse(sentences[0], beam_size=2) == n_best[0]


@pytest.mark.parametrize("linearisation", ["words", "t2t"])
def test_other_ways_to_write_trees(linearisation, tmp_path, short_sentences, capsys):
    run = tmp_path / "run"
    flags = ["--problem=grammar_parsing", f"--hparams={UNLEARNED}", "--train_steps=2"]
    train(tmp_path / "data", run, *flags, *generated(linearisation, 1500))
    shown = said(capsys, t2t_decoder, f"--output_dir={run}", "--split=dev", FAST).out
    gold = list(registry.get_problem("grammar_parsing").trees("dev", None))
    [decoded] = (run / "decodes").glob("dev.2.*.txt")
    f1 = f1_of(decoded, gold)
    tagging = r", tagging accuracy \d+\.\d\d" if linearisation == "t2t" else ""
    scored = rf"(?m)^F1 {f1:.2f} \(recall .*unscored sentences \d+{tagging}\) on dev"
    assert re.search(scored, shown)
    written_gold = parse_tree(decoded.with_suffix(".gold").read_text().split("\n")[0])
    assert written_gold.words() == gold[0].words()
    assert (written_gold == gold[0]) == (linearisation == "t2t")


def test_reversed_problem_is_translation(tmp_path, short_sentences, capsys):
    run = tmp_path / "run"
    flags = ["--problem=grammar_parsing_rev", f"--hparams={UNLEARNED}"]
    flags += ["--train_steps=2", *generated("normalised", 1500)]
    train(tmp_path / "data", run, *flags)
    shown = said(capsys, t2t_decoder, f"--output_dir={run}", "--split=dev", FAST).out
    scored = r"(?m)^BLEU \d+\.\d\d \(chrF2 .*\) on dev \(30 sentences\)\nBLEU\|nrefs:1"
    assert re.search(scored, shown)
    [sources] = (run / "decodes").glob("dev.2.*.src")
    assert sources.read_text().startswith("(S (")
    assert re.match(r"\w+ ", sources.with_suffix(".ref").read_text())
    model = t2tlite.load(run)
    assert (model.task.name, model.task.outputs) == ("translation", "translations")
    message = r"a parsing problem parses\. Received: one of grammar_parsing_rev\."
    with pytest.raises(ValueError, match=message):
        model.parse(["A bird was not sick ."])
