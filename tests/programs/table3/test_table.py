"""The table of the rows, read from the folders of their runs."""

import dataclasses
import shutil

import pytest

from t2tlite.config import DecodeHParams
from t2tlite.hparams.transformer import transformer_base
from t2tlite.programs.table3.rows import ROWS
from t2tlite.programs.table3.table import RowResult, markdown, write_table
from t2tlite.run_folder import RunFolder
from t2tlite.run_records import DecodeRecord

STEPS = 120  # of the tiny run


@pytest.fixture
def run_of_row(tiny_run, tmp_path):
    """run_of_row(name): a finished run in O/NAME, made of the records of the tiny run
    and one of dev, with these scores.
    """

    def write(name, scores=None, beam_size=4):
        run = RunFolder(tmp_path / "O" / name)
        run.path.mkdir(parents=True)
        for record in ("hparams", "manifest", "evaluations", "cost", "training"):
            shutil.copy(tiny_run.run / f"{record}.json", run.path)
        scores = scores or {"BLEU": 30.0}
        decoded = DecodeRecord(
            split="dev",
            step=STEPS,
            checkpoint=f"{run.path}/model.ckpt-{STEPS}",
            sentences=40,
            scores=scores,
            signatures=dict.fromkeys(list(scores)[:1], "signature"),
            decode_hparams=dataclasses.asdict(DecodeHParams(beam_size=beam_size)),
            seconds=1.0,
            name=f"dev.{STEPS}",
        )
        run.write_decode_record(decoded)
        return run

    return write


def change_hparams(run, old, new):
    path = run.path / "hparams.json"
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def cells(text: str, row: str) -> list[str]:
    """The cells of a row of a table."""
    lines = []
    for line in text.splitlines():
        if line.startswith("|"):
            lines.append([cell.strip() for cell in line[1:-1].split("|")])
    (cells_of_row,) = [line for line in lines if row in line[:2]]
    return cells_of_row


def test_table_of_the_papers_own_results():
    """With the paper's results as ours, both halves of the table are the same."""
    results = {}
    for row in ROWS:
        hparams = row.apply(transformer_base())
        size = (row.parameters or 65) * 1_000_000
        measured = row.perplexity, row.bleu, "BLEU", "signature"
        results[row] = [RowResult(hparams, size, *measured, 3600.0)]
    text = markdown(results, "wmt_ende", "t2t-table3")
    for row in ROWS:
        values = cells(text, row.name)
        assert list(map(float, values[4:6])) == list(map(float, values[7:]))
        assert values[6] in ("", values[3])
    labelled = ["base", "h1", "h4", "k128", "l2", "dr0", "pos_learned", "big"]
    labels = ["", "(A)", "", "(B)", "(C)", "(D)", "(E)", ""]
    assert [cells(text, name)[0] for name in labelled] == labels
    assert cells(text, "h4")[2] == "num_heads=4"
    assert cells(text, "big")[2].endswith(", train_steps=300000")
    assert "20 runs, 20.0 hours of training in all." in text


def test_table_has_the_finished_runs_of_a_folder(run_of_row, tmp_path):
    run_of_row("base", {"BLEU": 20.0, "chrF2": 50.0})
    run_of_row("base.seed2", {"BLEU": 22.0})
    change_hparams(run_of_row("hs256"), '"hidden_size": 32', '"hidden_size": 16')
    run_of_row("h4", beam_size=1)
    change_hparams(run_of_row("h16"), '"train_steps": 120', '"train_steps": 121')
    (run_of_row("h32").path / "evaluations.json").unlink()
    (tmp_path / "O" / "k128").mkdir()
    text = write_table(tmp_path / "O", "tiny", "t2t-table3 --x").read_text("utf-8")
    table = [line for line in text.splitlines() if line.startswith("|")]
    assert len(table) == 4  # with two lines above base and hs256
    assert cells(text, "base")[5] == "21.00 ± 1.41 (2)"
    assert cells(text, "hs256")[2] == "hidden_size=16"
    assert "- 3 runs, " in text
    assert "Command: `t2t-table3 --x`" in text


def test_metric_of_a_parser_has_its_own_name(run_of_row, tmp_path):
    run_of_row("base", {"F1": 91.25})
    text = write_table(tmp_path / "O", "wsj_parsing", "").read_text("utf-8")
    assert cells(text, "row")[5] == "F1 (dev)"
    assert cells(text, "base")[5] == "91.25"
    assert "- F1 is of dev, beam 4, newest checkpoint, none averaged:" in text
