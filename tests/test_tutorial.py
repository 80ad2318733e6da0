"""docs/tutorial.ipynb runs from beginning to end."""

from pathlib import Path

import nbclient
import nbformat
import pytest

NOTEBOOK = Path(__file__).resolve().parents[1] / "docs" / "tutorial.ipynb"


def test_notebook_is_kept_without_outputs():
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(notebook)
    assert [
        cell.outputs
        for cell in notebook.cells
        if cell.cell_type == "code" and cell.outputs
    ] == []


@pytest.mark.slow
def test_notebook_runs(tmp_path):
    """Every cell, with a short training; a command that fails is an error."""
    text = NOTEBOOK.read_text(encoding="utf-8")
    for usual, short in {
        "train_size=20000": "train_size=2000",
        "--train_steps=600": "--train_steps=20",
    }.items():
        assert text.count(usual) == 1
        text = text.replace(usual, short)
    notebook = nbformat.reads(text, as_version=4)
    nbclient.NotebookClient(
        notebook, timeout=900, resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    outputs = {
        cell.source: cell.outputs for cell in notebook.cells if cell.cell_type == "code"
    }

    def shown(code: str) -> dict:
        """What the cell with this code shows as its value."""
        (cell,) = [cell for cell in outputs if code in cell]
        (result,) = [
            output.data
            for output in outputs[cell]
            if output.output_type == "execute_result"
        ]
        return result

    folder = tmp_path / "tutorial"
    assert len((folder / "test.out").read_text(encoding="utf-8").splitlines()) == 500
    assert (folder / "run" / "model.ckpt-20.index").is_file()
    assert "<iframe" in shown("model.attention(")["text/html"]
    (translation,) = eval(shown("model.translate(")["text/plain"])
    assert eval(shown("urlopen")["text/plain"]) == {"translatedText": translation}
