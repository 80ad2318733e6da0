"""The table of the paper's own results, and the documented one."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from t2tlite.files.records import read_record
from t2tlite.hparams.transformer import transformer_base
from t2tlite.programs.table3.results import RowResult
from t2tlite.programs.table3.rows import ROWS, Row
from t2tlite.programs.table3.table import Table

DOCS = Path(__file__).resolve().parents[3] / "docs"


def papers_result(row: Row) -> RowResult:
    """The paper's result of a row as if it were ours."""
    hparams = row.apply(transformer_base())
    parameters = (row.parameters or 65) * 1_000_000
    return RowResult(row.name, "wmt_ende", "", hparams, 1, hparams.train_steps, 8, row.perplexity, 1.0, 0.5, row.bleu,
                  "signature", parameters, 3600.0, 1e18)  # fmt: skip


def cells(text: str, row: str) -> list[str]:
    """The cells of a row of a table."""
    lines = [
        [cell.strip() for cell in line[1:-1].split("|")]
        for line in text.splitlines()
        if line.startswith("|")
    ]
    (cells_of_row,) = [line for line in lines if row in line[:2]]
    return cells_of_row


def test_table_of_the_papers_own_results():
    """With the paper's results as ours, both halves of the table are the same."""
    table = Table(
        "wmt_ende",
        transformer_base(),
        {row: [papers_result(row)] for row in ROWS},
        "t2t-table3",
    )
    text = table.markdown()
    rows = [line for line in text.splitlines() if line.startswith("|")][2:]
    assert len(rows) == 20
    for row in ROWS:
        values = cells(text, row.name)
        assert [float(value) for value in values[12:14]] == [
            float(value) for value in values[15:]
        ]
        assert values[14] in ("", values[11])
    assert [cells(text, name)[0] for name in ("base", "h1", "h4", "k128", "l2", "dr0", "pos_learned", "big")] == [
        "", "(A)", "", "(B)", "(C)", "(D)", "(E)", "",
    ]  # fmt: skip
    assert cells(text, "big")[2:11] == [
        "",
        "1024",
        "4096",
        "16",
        "",
        "",
        "0.3",
        "",
        "300,000",
    ]
    assert "20 runs, 20.0 hours of training in all, on 8 replica(s)." in text


@pytest.fixture
def documented():
    """docs/table3.json, written by version 0.1.0."""
    return json.loads((DOCS / "table3.json").read_text(encoding="utf-8"))


def as_read(tmp_path: Path, written: dict) -> RowResult:
    """A result as table3.json has it."""
    path = tmp_path / "result.json"
    path.write_text(json.dumps({"format_version": 1, **written}), encoding="utf-8")
    return read_record(path, RowResult, "")


def test_documented_table_is_made_anew_from_its_results(documented, tmp_path):
    rows = {
        row["name"]: [as_read(tmp_path, written) for written in row["results"]]
        for row in documented["rows"]
    }
    table = Table(
        "parallel_text",
        rows["base"][0].hparams,
        {row: rows[row.name] for row in ROWS},
        "t2t-table3",
    )
    old, new = (DOCS / "table3.md").read_text(encoding="utf-8"), table.markdown()
    for line in new.splitlines():
        if line.startswith(("|", "- B", "- Perplexity", "- Several", "- 20 runs")):
            assert line in old.splitlines()
    assert [row["mean_bleu"] for row in table.as_json()["rows"]] == [
        row["mean_bleu"] for row in documented["rows"]
    ]


def test_metric_of_a_parser_has_its_own_name():
    base = ROWS[0]
    result = dataclasses.replace(
        papers_result(base), metric="F1", bleu=91.25, bleu_signature="EVALB"
    )
    text = Table(
        "wsj_parsing", transformer_base(), {base: [result]}, "t2t-table3"
    ).markdown()
    assert cells(text, "row")[12:] == [
        "PPL (dev)",
        "F1 (dev)",
        "paper: params ×10^6",
        "PPL",
        "BLEU",
    ]
    assert cells(text, "base")[13] == "91.25"
    assert "- F1 is on dev, beam 4, newest checkpoint, none averaged: `EVALB`." in text
