"""Reports of runs, of translation and of parsing."""

import json
import re
import shutil

import numpy as np
import pytest
import tensorflow as tf
from chromium import opened
from tiny_run import change_manifest, tensors
from written_report import SIGNATURE, record_decodes, report, write_events

from t2tlite.programs.report.run_report import Missing, read_metrics
from t2tlite.programs.runs.load import run_dataset
from t2tlite.run_folder import RunFolder
from t2tlite.run_records import CostFile, RunCost


@pytest.fixture(scope="module")
def undecoded(tiny_run, tmp_path_factory):
    """A copy of the run without decodes, and its report's HTML and Markdown."""
    ignored = shutil.ignore_patterns("decodes")
    run = tmp_path_factory.mktemp("undecoded") / "run"
    shutil.copytree(tiny_run.run, run, ignore=ignored)
    return run, *report(tiny_run, run)


def test_what_a_report_holds(tiny_run, tiny_run_copy, capsys):
    store = run_dataset(RunFolder(tiny_run.run)).store("test")
    outputs = ["katze <b>rot</b> | *hund*", *store.target_text()[1:]]
    texts = {"src": store.source_text(), "ref": store.target_text()}
    record_decodes(tiny_run_copy, outputs, texts=texts)
    hparams = json.loads((tiny_run_copy / "hparams.json").read_text())
    changed = json.dumps({**hparams, "label_smoothing": 0.25})
    (tiny_run_copy / "hparams.json").write_text(changed)

    page, text = report(tiny_run, tiny_run_copy)

    paths = f"{tiny_run_copy}/report.html\n{tiny_run_copy}/report.md\n"
    assert capsys.readouterr().out == paths
    assert "<h1>twenty_words, twenty_words_tiny</h1>" in page
    assert "What is missing" not in page
    parameters = 0
    for name, array in tensors(tiny_run_copy / "model.ckpt-120").items():
        parameters += array.size if name.startswith("model/") else 0
    manifest = json.loads((tiny_run_copy / "manifest.json").read_text())
    for expected in (
        "| problem | twenty_words (en to de) |",
        "| trained | 120 steps |",
        f"| parameters | {parameters:,} |",
        "| training pairs | 1,500 |",
        "| score on test | BLEU 38.29 (`averaged/model.ckpt-120`) |",
        "| test | 120 | `averaged/model.ckpt-120` | 40 | 38.29 |\n",
        "| test | 120 | `averaged/model.ckpt-120` | beam_size 4, alpha 0.6 | 12.3 s | `"
        + SIGNATURE.replace("|", "\\|")
        + "` |",
        (
            f"| 1 | {store.source_text()[0]} | katze &lt;b>rot&lt;/b> \\| \\*hund\\* |"
            f" {store.target_text()[0]} |"
        ),
        (
            "| field | twenty_words_tiny | this run |\n|---|---|---|\n|"
            " `label_smoothing` | 0.1 | 0.25 |\n\n"
        ),
        (
            f"| vocabulary | `vocab.model` | {manifest['vocabulary']['bytes']:,} |"
            f" `{manifest['vocabulary']['sha256']}` |"
        ),
        "The vocabulary has 500 pieces.",
        f"| tensorflow | {tf.__version__} |",
        f"| numpy | {np.__version__} |",
        "t2t-trainer \\\n",
        "    --hparams_set=twenty_words_tiny \\\n",
    ):
        assert expected in text
    for expected in (
        "katze &lt;b&gt;rot&lt;/b&gt; | *hund*",
        SIGNATURE,
        manifest["vocabulary"]["sha256"],
    ):
        assert expected in page
    assert page.count('<svg class="chart"') == 1
    stderr = re.findall(
        r"step (\d+): dev loss (\d\.\d+), perplexity (\d+\.\d+), accuracy (\d\.\d+)",
        tiny_run.stderr,
    )
    rows = re.findall(r"(?m)^\| (\d+) \| ([\d.]+) \| ([\d,.]+) \| ([\d.]+) \|$", text)
    assert [row[0] for row in rows] == [row[0] for row in stderr]
    for column in (1, 2, 3):
        ours = [float(row[column].replace(",", "")) for row in rows]
        assert ours == pytest.approx([float(row[column]) for row in stderr], rel=1e-3)


def test_curves(tiny_run, tiny_run_copy):
    """One for each metric, with a line for each dev set; a single value is a dot."""
    dev = {"dev/loss": {1: 3.0, 2: 2.5}, "dev/per": {2: 10.0}, "news/per": {2: 9.0}}
    write_events(tiny_run_copy, {"train/loss": {1: 4.0, 2: 3.0}, **dev})
    page, _ = report(tiny_run, tiny_run_copy)
    assert re.findall(r'aria-label="(.*?)"', page) == [
        "Loss: training, dev over steps",
        "PER: dev, news over steps",
    ]


def test_a_resumed_run_replaces_what_it_repeats(tmp_path):
    for start, losses in enumerate([{1: 9.0, 2: 8.0, 3: 7.0}, {3: 7.5, 5: 5.5}]):
        new = tmp_path / "new"
        new.mkdir(exist_ok=True)
        write_events(new, {"train/loss": losses})
        (path,) = new.iterdir()
        path.rename(tmp_path / f"events.out.tfevents.{1000 + start}")
    missing = Missing()
    losses = read_metrics(tmp_path, missing)["train/loss"]
    assert losses == {1: 9.0, 2: 8.0, 3: 7.5, 5: 5.5}
    assert missing == []


@pytest.mark.parametrize("harm", ["cut", "changed", "no events"])
def test_damaged_events_count_up_to_the_damage(tmp_path, harm):
    write_events(tmp_path, {"train/loss": {n: float(n) for n in range(1, 101)}})
    (path,) = tmp_path.iterdir()
    content = path.read_bytes()
    middle = len(content) // 2
    harmed = {
        "cut": content[:middle],
        "changed": content[:middle] + b"\0\0\0\0" + content[middle + 4 :],
        "no events": b"hello, world",
    }
    path.write_bytes(harmed[harm])
    losses = read_metrics(tmp_path, Missing()).get("train/loss", {})
    assert losses == {n: float(n) for n in range(1, len(losses) + 1)}
    assert (40 < len(losses) < 60) == (harm != "no events")


def test_options_of_decoding_that_are_the_default_are_left_out(tiny_run, decoded_copy):
    options = {"extra_length": 50, "batch_size": 64, "t2t_rules": False}
    record_decodes(decoded_copy, ["eins"] * 40, options)
    shown = "| beam_size 4, alpha 0.6, extra_length 50, batch_size 64 | 12.3 s |"
    assert shown in report(tiny_run, decoded_copy)[1]


def test_page_needs_nothing_else(undecoded):
    _, page, _ = undecoded
    assert not re.search(r"https?://|href=|<script|<link|<img|url\(|@import|src=", page)


def test_newest_decoding_gives_the_samples_and_all_are_listed(tiny_run, decoded_copy):
    record_decodes(
        decoded_copy,
        ["eins", "zwei"],
        split="dev",
        step=80,
        scores={"BLEU": 1.0, "chrF": 2.0},
        intervals={"BLEU": 0.25},
    )
    record_decodes(decoded_copy, ["a ||| b", "d"])
    records, complaints = RunFolder(decoded_copy).decode_records()
    assert complaints == []
    assert [record.split for record in records] == ["test", "dev"]
    _, text = report(tiny_run, decoded_copy)
    assert "| test | 120 | `averaged/model.ckpt-120` | 2 | 38.29 |  |" in text
    assert "| dev | 80 | `averaged/model.ckpt-80` | 2 | 1.00 ± 0.25 | 2.00 |" in text
    # without source and reference, which are not there
    assert "| 1 | a \\|\\|\\| b |" in text
    assert "Samples lack sources and references. " in text


def test_each_score_has_its_signature(tiny_run, decoded_copy):
    signatures = {"BLEU": SIGNATURE, "chrF2": "nrefs:1|case:mixed|eff:yes"}
    scores = {"BLEU": 1.0, "chrF2": 2.0}
    record_decodes(decoded_copy, ["eins"] * 40, scores=scores, signatures=signatures)
    page, text = report(tiny_run, decoded_copy)
    assert f"BLEU|{SIGNATURE} chrF2|nrefs:1|case:mixed|eff:yes" in page
    assert "| test | 120 | `averaged/model.ckpt-120` | 40 | 1.00 | 2.00 |" in text
    address = (decoded_copy / "report.html").resolve().as_uri()
    with opened(address) as shown:
        shown.set_viewport_size({"width": 1000, "height": 800})
        cell = shown.locator("td code", has_text="nrefs:1").last
        table = cell.locator("xpath=ancestor::table")
        assert cell.bounding_box()["height"] > 30  # two lines
        assert table.evaluate("table => table.scrollWidth <= table.clientWidth")


def test_speed_leaves_evaluation_out(tiny_run, tiny_run_copy):
    """cost.json counts the seconds of training alone."""
    cost = RunCost(120, 120, 60.0, 60.0, 90_000, 1e9)
    RunFolder(tiny_run_copy).write(CostFile((cost,)))
    _, text = report(tiny_run, tiny_run_copy)
    assert "| training speed | 1,500 tokens/s, evaluation left out |" in text


def test_without_decodes_the_command_is_told(undecoded):
    run, _, text = undecoded
    hint = "No split has been decoded yet. This does it, and the next report shows it:"
    assert f"{hint}\n\n```\nt2t-decoder --output_dir={run} --split=test\n```" in text


def test_without_test_split_dev_is_decoded(tiny_run, tiny_run_copy):
    splits = json.loads((tiny_run_copy / "manifest.json").read_text())["splits"]
    del splits["test"]
    change_manifest(tiny_run_copy, splits=splits)
    _, text = report(tiny_run, tiny_run_copy)
    assert f"t2t-decoder --output_dir={tiny_run_copy} --split=dev\n" in text


def test_report_of_a_parsing_run(tiny_run, decoded_copy):
    change_manifest(decoded_copy, task="parsing")
    scores = {"F1": 91.3, "unscored sentences": 0}
    record_decodes(decoded_copy, ["(TOP (NP (NN Rain)))"] * 3, scores=scores)
    _, text = report(tiny_run, decoded_copy)
    assert "| split | step | checkpoint | sentences | F1 | unscored sentences |" in text
    assert "| 3 | 91.30 | 0 |\n" in text
    assert "| 1 | (TOP (NP (NN Rain))) |" in text
