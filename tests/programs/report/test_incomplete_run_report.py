"""Reports of runs of which parts are missing or damaged."""

import html

from written_report import record_decodes, report


def test_almost_everything_is_missing(tiny_run, tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    (run / "hparams.json").write_text("{}")
    page, text = report(tiny_run, run)
    for expected in (
        "<h1>unknown problem, hparam set not recorded</h1>",
        "A run needs its manifest.json.",
        "has none.",
        "The run has no TensorBoard events to draw.",
        "The versions that trained the run are not recorded.",
        "As in the defaults, the paper's base model.",
    ):
        assert html.escape(expected) in page or expected in page, expected
    assert "## What is missing here" in text


def test_damaged_files(tiny_run, decoded_copy):
    record_decodes(decoded_copy, ["eins"])
    (decoded_copy / "decodes" / "dev.1.json").write_text(
        '{"format_version": 1, "split": "dev"}'
    )
    for name, content in {
        "hparams.json": "{",
        "manifest.json": "[]",
        "environment.json": '{"format_version": 1, "keras": 1}',
        "cost.json": "nothing",
        "best/best.json": '{"format_version": 1, "step": "five"}',
        "flags.txt": "t2t-trainer\n--hparams_set=of_mine\n",
    }.items():
        (decoded_copy / name).write_text(content)
    (decoded_copy / "model.ckpt-120.index").write_bytes(b"nothing")
    page, text = report(tiny_run, decoded_copy)
    shown = html.unescape(page)
    assert "The hparam set of_mine is not known here" in shown
    for name in "hparams manifest environment cost best/best decodes/dev.1".split():
        assert f"{name}.json is damaged: " in shown
    absent = ["| parameters |", "| training cost |", "\n| best on dev |", "## Data"]
    for heading in absent:
        assert heading not in text
    assert "| sentence | output |" in text
    assert "| test | 120 |" in text


def test_outputs_that_are_not_there(tiny_run, decoded_copy):
    (decoded_copy / "decodes" / "test.120.txt").write_text("eins\n")
    _, text = report(tiny_run, decoded_copy)
    assert "The outputs of test.120 cannot be shown. " in text
    assert "must have 40 lines. Received: 1." in text
    (decoded_copy / "decodes" / "test.120.txt").unlink()
    _, text = report(tiny_run, decoded_copy)
    assert "The outputs of test.120 cannot be shown. " in text
    assert "## Samples" not in text
