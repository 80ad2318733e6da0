"""Reports of runs: whole, incomplete, damaged, of translation and of parsing; and what training notes for them."""

from __future__ import annotations

import html
import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from chromium import dump_dom
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tiny_run import small, tensors, tiny_run

from t2tlite.bin import t2t_report
from t2tlite.report.document import Code, Listing, Paragraph, Section, Table, to_html, to_markdown
from t2tlite.report.events import read_history
from t2tlite.report.samples import read_decodes, sample_blocks
from t2tlite.runs import run_dataset
from t2tlite.training import trainer
from t2tlite.trees.linearise import TAGS
from t2tlite.trees.tree import parse_tree

PARSING = {"task": "parsing", "options": {"linearisation": "tags"}}
SIGNATURE = "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return tiny_run(tmp_path_factory)


@pytest.fixture
def copy(made, tmp_path):
    """A copy of the trained run, in which nothing has been decoded."""
    folder = Path(shutil.copytree(made.run, tmp_path / "copy"))
    shutil.rmtree(folder / "decodes", ignore_errors=True)
    return folder


def note_decodes(run, outputs, split="test", step=120, scores=None, **options):
    """Leaves behind what t2t-decoder does."""
    noted = {
        "split": split,
        "step": step,
        "checkpoint": f"/elsewhere/run/averaged/model.ckpt-{step}",
        "sentences": len(outputs),
        "scores": {"BLEU": 38.29} if scores is None else scores,
        "signature": SIGNATURE,
        "decode_hparams": {"beam_size": 4, "alpha": 0.6, **options},
        "seconds": 12.34,
    }
    (run / "decodes").mkdir(exist_ok=True)
    (run / "decodes" / f"{split}.{step}.json").write_text(json.dumps(noted), encoding="utf-8")
    (run / "decodes" / f"{split}.{step}.txt").write_text("".join(f"{o}\n" for o in outputs), encoding="utf-8")


def report(made, run, *more):
    """The report's HTML and markdown."""
    assert t2t_report.main([f"--output_dir={run}", f"--t2t_usr_dir={made.package}", *more]) == 0
    return (run / "report.html").read_text(encoding="utf-8"), (run / "report.md").read_text(encoding="utf-8")


# a whole run


def test_what_a_report_holds(made, copy, capsys):
    store = run_dataset(made.run).store("test")
    outputs = ["katze <b>rot</b> | *hund*", *store.target_text()[1:]]
    note_decodes(copy, outputs)
    hparams = json.loads((copy / "hparams.json").read_text())
    (copy / "hparams.json").write_text(json.dumps({**hparams, "label_smoothing": 0.25}))

    page, text = report(made, copy)

    assert capsys.readouterr().out == f"{copy}/report.html\n{copy}/report.md\n"
    assert "<h1>twenty_words, twenty_words_tiny</h1>" in page
    assert "What is missing" not in page
    parameters = sum(array.size for name, array in tensors(copy / "model.ckpt-120").items() if name[:6] == "model/")
    manifest = json.loads((copy / "manifest.json").read_text())
    for expected in (
        "| problem | twenty_words (en to de) |",
        "| trained | 120 steps |",
        f"| parameters | {parameters:,} |",
        "| training pairs | 1,500 |",
        "| score on test | BLEU 38.29 (step 120) |",
        "| test | 120 | `averaged/model.ckpt-120` | 40 | 38.29 |\n",
        "| test | 120 | beam_size 4, alpha 0.6 | 12.3 s | `" + SIGNATURE.replace("|", "\\|") + "` |",
        f"| 1 | {store.source_text()[0]} | katze &lt;b>rot&lt;/b> \\| \\*hund\\* | {store.target_text()[0]} |",
        "| field | twenty_words_tiny | this run |\n| --- | --: | --: |\n| `label_smoothing` | 0.1 | 0.25 |\n\n",
        f"| vocabulary | `vocab.model` | {manifest['vocabulary']['bytes']:,} | `{manifest['vocabulary']['sha256']}` |",
        "The vocabulary has 500 pieces.",
        f"| TensorFlow | {tf.__version__} |",
        f"| NumPy | {np.__version__} |",
        "t2t-trainer \\\n",
        "    --hparams_set=twenty_words_tiny \\\n",
        "| `best/model.ckpt-",
    ):
        assert expected in text
    for expected in ("katze &lt;b&gt;rot&lt;/b&gt; | *hund*", SIGNATURE, manifest["vocabulary"]["sha256"]):
        assert expected in page
    assert len(re.findall(r'<svg class="chart"', page)) == 5
    told = re.findall(r"step (\d+): dev loss (\d\.\d+), perplexity (\d+\.\d+), accuracy (\d\.\d+)", made.stderr)
    rows = [row.split(" | ") for row in text.splitlines() if re.match(r"\| (40|80|120) \| [\d.]+ \| [\d.]+ \|", row)]
    assert [float(row[2]) for row in rows] == pytest.approx([float(loss) for _, loss, _, _ in told], rel=1e-3)
    assert [float(row[3].replace(",", "")) for row in rows] == pytest.approx(
        [float(p) for _, _, p, _ in told], rel=1e-3
    )


def test_page_needs_nothing_else_and_opens_in_a_browser(made, copy, tmp_path):
    page, _ = report(made, copy)
    assert set(re.findall(r"https?://[^\"' )]*", page)) == {"http://www.w3.org/2000/svg"}
    assert not re.search(r"<script|<link|<img|url\(|@import|src=", page)
    shown = dump_dom(copy / "report.html", tmp_path / "profile")
    for title in ("Summary", "Scores", "Curves", "Checkpoints", "Hyperparameters", "Data", "Software and command"):
        assert f"<section><h2>{title}</h2>" in shown
    assert shown.count("</svg>") == 5


def test_newest_decoding_gives_the_samples_and_all_are_listed(made, copy):
    note_decodes(copy, ["eins", "zwei"], split="dev", step=80, scores={"BLEU": 1.0, "chrF": 2.0})
    note_decodes(copy, ["0 ||| a ||| b ||| -0.5", "0 ||| c ||| -0.7", "1 ||| d ||| -0.1"], return_beams=2)
    path = copy / "decodes" / "test.120.json"
    path.write_text(path.read_text().replace('"sentences": 3', '"sentences": 2'))
    decodes, complaints = read_decodes(copy)
    assert complaints == []
    assert [entry.split for entry in decodes] == ["test", "dev"]
    assert decodes[0].outputs() == ["a ||| b", "d"]
    _, text = report(made, copy)
    assert "| test | 120 | `averaged/model.ckpt-120` | 2 | 38.29 |  |" in text
    assert "| dev | 80 | `averaged/model.ckpt-80` | 2 | 1.00 | 2.00 |" in text
    assert "| 1 | a \\|\\|\\| b |" in text  # without source and reference, which are of 40 sentences
    assert "test has 40 pairs now, and had 2." in text


# what is missing or damaged


def test_no_run(made, tmp_path, capsys):
    assert t2t_report.main([f"--output_dir={tmp_path}"]) == 1
    assert f"must be the folder of a run that t2t-trainer made. Received: {tmp_path}" in capsys.readouterr().err
    assert t2t_report.main([f"--output_dir={made.run / 'best'}"]) == 1
    assert f"{made.run} is one" in capsys.readouterr().err
    assert t2t_report.main([]) == 1
    assert "--output_dir must be given" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_without_decodes_the_command_is_told(made, copy):
    _, text = report(made, copy)
    assert (
        f"No split has been decoded yet. This does it, and the next report shows it: `t2t-decoder --output_dir={copy}"
        in text
    )


def test_almost_everything_is_missing(made, tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    (run / "hparams.json").write_text("{}")
    page, text = report(made, run)
    for expected in (
        "<h1>unknown problem, hparam set not recorded</h1>",
        "flags.txt names no hparam set, so hyperparameters are compared with the defaults.",
        "samples lack sources and references. A run needs its manifest.json.",
        "manifest.json is missing: was the run copied whole?",
        "The run has no checkpoint: it was stopped before the first one was saved.",
        "The run has no TensorBoard events to draw.",
        "The versions that trained the run are not recorded.",
        "As in the defaults, the paper's base model.",
    ):
        assert html.escape(expected) in page or expected in page, expected
    assert "## What is missing here" in text


def test_damaged_files(made, copy):
    note_decodes(copy, ["eins"])
    (copy / "decodes" / "test.120.txt").unlink()
    (copy / "decodes" / "dev.1.json").write_text('{"split": "dev"}')
    (copy / "hparams.json").write_text("{")
    (copy / "manifest.json").write_text("[]")
    (copy / "model.ckpt-120.index").write_bytes(b"nothing")
    (copy / "flags.txt").write_text("t2t-trainer\n--hparams_set=of_mine\n")
    _, text = report(made, copy)
    for expected in (
        r"decodes/dev.1.json is damaged: KeyError('step').",
        r"The outputs of test.120.json cannot be shown:",
        r"hparams.json is damaged: The hparams must be a JSON object.",
        r"manifest.json is damaged: it holds a list.",
        r"The hparam set of_mine is not known here, so hyperparameters are compared with the defaults.",
    ):
        assert expected in text
    assert "| parameters |" not in text


def test_data_that_has_moved(made, copy, tmp_path):
    note_decodes(copy, ["eins"] * 40)
    manifest = json.loads((copy / "manifest.json").read_text())
    (copy / "manifest.json").write_text(json.dumps({**manifest, "data_dir": str(tmp_path / "gone")}))
    _, text = report(made, copy)
    assert "Or say with --data\\_dir where the data of this run lies now." in text.replace("--data_dir", "--data\\_dir")
    assert "| sentence | output |" in text
    _, text = report(made, copy, f"--data_dir={made.data}")
    assert "| sentence | source | output | reference |" in text


# event files


def write_events(folder, name, figures):
    """An event file with {tag: {step: value}}."""
    with tf.summary.create_file_writer(str(folder), filename_suffix=name).as_default():
        for tag, values in figures.items():
            for step, value in values.items():
                tf.summary.scalar(tag, value, step=step)
    (path,) = folder.glob(f"*{name}")
    return path.rename(folder / f"events.out.tfevents.{name}")


def test_a_resumed_run_replaces_what_came_after_its_checkpoint(tmp_path):
    write_events(tmp_path, "1000", {"train/loss": {1: 9.0, 2: 8.0, 3: 7.0, 4: 6.0}, "dev/loss": {2: 5.0, 4: 4.0}})
    write_events(tmp_path, "2000", {"train/loss": {3: 7.5, 5: 5.5}})
    history = read_history(tmp_path)
    assert history.figures == {"train/loss": {1: 9.0, 2: 8.0, 3: 7.5, 5: 5.5}, "dev/loss": {2: 5.0}}
    assert (history.files, history.complaints) == (2, [])


@pytest.mark.parametrize("harm", ["cut", "changed", "no events"])
def test_damaged_events_count_up_to_the_damage(tmp_path, harm):
    path = write_events(tmp_path, "1000", {"train/loss": {step: float(step) for step in range(1, 101)}})
    content = path.read_bytes()
    middle = len(content) // 2
    path.write_bytes(
        {
            "cut": content[:middle],
            "changed": content[:middle] + b"\0\0\0\0" + content[middle + 4 :],
            "no events": b"hello, world",
        }[harm]
    )
    history = read_history(tmp_path)
    found = history.figures.get("train/loss", {})
    assert found == {step: float(step) for step in range(1, len(found) + 1)}
    assert (40 < len(found) < 60) == (harm != "no events")
    (complaint,) = history.complaints
    assert re.match(r"events\.out\.tfevents\.1000 is damaged, cut short or still being written: the last ", complaint)


# parsing


class OneSentence:
    """Stands for a dataset whose test split is one sentence."""

    def __init__(self, tree):
        self.tree = tree

    def store(self, split):
        return self

    def __len__(self):
        return 1

    def source_text(self):
        return [" ".join(self.tree.words())]

    def target_text(self):
        return [TAGS.write(self.tree)]


def parsed(tmp_path, gold, predicted):
    note_decodes(tmp_path, [predicted], scores={"F1": 91.3, "tagging accuracy": 97.0})
    (decodes,), _ = read_decodes(tmp_path)
    blocks, complaints = sample_blocks(decodes, OneSentence(parse_tree(gold)), PARSING)
    assert complaints == []
    return blocks


def test_trees_are_drawn_gold_beside_predicted(tmp_path):
    gold, predicted = "(TOP (S (NP (DT The) (NN cat)) (VP (VBD sat))))", "(TOP (S (NP (DT The) (NN cat) (VBD sat))))"
    _, sentence, drawings = parsed(tmp_path, gold, predicted)
    assert sentence == Paragraph(["Sentence 1. The cat sat"])
    assert drawings.captions == ["gold", "predicted"]
    assert [svg.count("<text") for svg in drawings.drawings] == [2 + 5 + 3, 2 + 4 + 3]
    assert drawings.instead == Listing(f"gold: {gold}\npredicted: {predicted}")
    _, sentence, _ = parsed(tmp_path, gold, gold)
    assert sentence == Paragraph(["Sentence 1. The cat sat The trees are the same."])


def test_a_prediction_that_is_no_tree_is_told(tmp_path):
    _, sentence, drawings = parsed(tmp_path, "(TOP (S (NP (NN Rain))))", "(TOP (S")
    assert "The prediction is no tree: " in sentence.pieces[0]
    assert drawings.captions == ["gold"]


def test_report_of_a_parsing_run(made, copy):
    manifest = json.loads((copy / "manifest.json").read_text())
    (copy / "manifest.json").write_text(json.dumps({**manifest, "task": "parsing"}))
    note_decodes(copy, ["(TOP (NP (NN Rain)))"] * 3, scores={"F1": 91.3, "unscored sentences": 0})
    page, text = report(made, copy)
    assert page.count('<svg class="tree"') == 3
    assert "<h2>Parse trees</h2>" in page
    assert "| split | step | checkpoint | sentences | F1 | unscored sentences |" in text
    assert "| 3 | 91.30 | 0 |\n" in text
    assert "predicted: (TOP (NP (NN Rain)))" in text


# the document


def test_document_escapes_text_in_both_forms():
    table = Table(["a|b", "n"], [["<i>*x*</i> & _y_ snake_case", "1,000.5"], [Code("p|q"), "-2"]], "A `caption`")
    sections = [Section("<Title>", [Paragraph(["see ", Code("a|b"), " #1"]), table, Listing("```\nx < y")])]
    page, text = to_html("T&T", "s", sections, "f"), to_markdown("T&T", "s", sections, "f")
    assert "<title>T&amp;T</title>" in page
    assert "<h2>&lt;Title&gt;</h2>" in page
    assert "<p>see <code>a|b</code> #1</p>" in page
    assert '<td>&lt;i&gt;*x*&lt;/i&gt; &amp; _y_ snake_case</td><td class="number">1,000.5</td>' in page
    assert "<pre>```\nx &lt; y</pre>" in page
    assert "## &lt;Title>" in text
    assert "see `a|b` \\#1" in text
    assert "| a\\|b | n |\n| --- | --: |\n" in text
    assert "| &lt;i>\\*x\\*&lt;/i> &amp; \\_y\\_ snake_case | 1,000.5 |\n| `p\\|q` | -2 |" in text
    assert "````\n```\nx < y\n````" in text


# what training notes


def test_samples_in_tensorboard_leave_training_as_it_is(made, tmp_path, monkeypatch):
    """Decoded at each evaluation, with dropout in training: the weights are those of a run without samples."""
    without, sampled = tmp_path / "without", tmp_path / "sampled"
    how = ["--train_steps=6", "--local_eval_frequency=3"]
    monkeypatch.setattr(trainer, "SAMPLES_AFTER_SECONDS", 1e9)
    assert small(made, without, *how) == 0
    monkeypatch.setattr(trainer, "SAMPLES_AFTER_SECONDS", -1.0)
    assert small(made, sampled, *how) == 0
    expected, found = tensors(without / "model.ckpt-6"), tensors(sampled / "model.ckpt-6")
    for name in expected:
        np.testing.assert_array_equal(found[name], expected[name], err_msg=name)

    (path,) = sampled.glob("events.*")
    accumulator = EventAccumulator(str(path), size_guidance={"tensors": 0})
    accumulator.Reload()
    shown = {event.step: tf.make_ndarray(event.tensor_proto) for event in accumulator.Tensors("samples")}
    assert list(shown) == [3, 6]
    assert shown[6].shape == (7, 3)
    assert shown[6][0].tolist() == [b"source", b"output", b"reference"]
    dev = run_dataset(made.run).store("dev")
    assert shown[6][1, 0].decode() == dev.source_text()[0]
    assert shown[6][6, 2].decode() == dev.target_text()[33]  # 5/6 of 40

    (path,) = without.glob("events.*")
    accumulator = EventAccumulator(str(path), size_guidance={"tensors": 0})
    accumulator.Reload()
    assert "samples" not in accumulator.Tags()["tensors"]


def test_environment_is_noted(made):
    noted = json.loads((made.run / "environment.json").read_text())
    assert noted["tensorflow"] == tf.__version__
    assert noted["replicas"] == 1
    assert re.match(r"\S+ processor, \d+ cores$", noted["device"])
