"""docs/tutorial.ipynb runs from beginning to end, and is kept with its outputs.

`python tests/test_tutorial.py` runs it and writes them anew: some minutes.
"""

import hashlib
import tempfile
from pathlib import Path

import nbclient
import nbformat
import pytest

NOTEBOOK = Path(__file__).resolve().parents[1] / "docs" / "tutorial.ipynb"
# in the notebook's metadata: of the code whose outputs it has
DIGEST = "code_sha256"


def code_cells(notebook: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def digest(notebook: nbformat.NotebookNode) -> str:
    """The SHA-256 of the code of all cells."""
    code = "\0".join(cell.source for cell in code_cells(notebook))
    return hashlib.sha256(code.encode()).hexdigest()


def run(notebook: nbformat.NotebookNode, folder: Path) -> None:
    """Runs every cell in a folder; a command that fails is an error."""
    nbclient.NotebookClient(
        notebook, timeout=900, resources={"metadata": {"path": str(folder)}}
    ).execute()


def joined(
    outputs: list[nbformat.NotebookNode],
) -> list[nbformat.NotebookNode]:
    """Outputs with neighbouring parts of a stream as one."""
    joined: list[nbformat.NotebookNode] = []
    for output in outputs:
        before = joined[-1] if joined else None
        if before and output.get("name") and before.get("name") == output.name:
            before.text += output.text
        else:
            joined.append(output)
    return joined


def test_notebook_has_the_outputs_of_its_code():
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(notebook)
    assert notebook.metadata[DIGEST] == digest(notebook), (
        "The code has changed: python tests/test_tutorial.py makes its outputs anew."
    )
    cells = code_cells(notebook)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    # the first cell makes the folder, the last ends the server
    silent = [number for number, cell in enumerate(cells) if not cell.outputs]
    assert silent == [0, len(cells) - 1]
    text = NOTEBOOK.read_text(encoding="utf-8")
    for machine in (str(Path.home()), tempfile.gettempdir(), "/work/"):
        assert machine not in text


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
    run(notebook, tmp_path)
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


if __name__ == "__main__":
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        run(notebook, Path(folder))
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # times
    for cell in code_cells(notebook):
        cell.outputs = joined(cell.outputs)
    notebook.metadata.language_info = {"name": "python"}
    notebook.metadata[DIGEST] = digest(notebook)
    nbformat.write(notebook, NOTEBOOK)
