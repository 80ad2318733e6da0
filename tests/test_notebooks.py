"""The notebooks in docs/ run from beginning to end, and are kept with their outputs.

`python tests/test_notebooks.py [NAME]` runs them and writes the outputs anew: some
minutes each.
"""

import hashlib
import re
import sys
import tempfile
from pathlib import Path

import nbclient
import nbformat
import pytest

DOCS = Path(__file__).resolve().parents[1] / "docs"
NOTEBOOKS = ("paper", "tutorial")
# cells that show nothing
SILENT = {"paper": [0, 1, -5], "tutorial": [0, -1]}
# in the notebook's metadata: of the code whose outputs it has
DIGEST = "code_sha256"
# TensorFlow writes them before any setting takes effect, with times
LOG_LINES = re.compile(
    r"^(?:WARNING: All log messages before|[IWE]\d{4} ).*\n", re.MULTILINE
)


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


def run_shortened(name: str, shorter: dict[str, str], folder: Path) -> dict[str, list]:
    """Runs a notebook with texts of its code replaced, so that it trains for less time;
    returns the outputs by the code of their cells.
    """
    text = (DOCS / f"{name}.ipynb").read_text(encoding="utf-8")
    for usual, short in shorter.items():
        assert usual in text
        text = text.replace(usual, short)
    notebook = nbformat.reads(text, as_version=4)
    run(notebook, folder)
    return {cell.source: cell.outputs for cell in code_cells(notebook)}


def only_cell(outputs: dict[str, list], code: str) -> list[nbformat.NotebookNode]:
    """The outputs of the cell with this code."""
    (cell,) = [cell for cell in outputs if code in cell]
    return outputs[cell]


def value(outputs: dict[str, list], code: str) -> dict:
    """What the cell with this code shows as its value."""
    (result,) = [
        output.data
        for output in only_cell(outputs, code)
        if output.output_type == "execute_result"
    ]
    return result


def printed(outputs: dict[str, list], code: str) -> str:
    """What the cell with this code prints."""
    return standard_output(only_cell(outputs, code))


def standard_output(outputs: list[nbformat.NotebookNode]) -> str:
    """The text that a cell writes to standard output."""
    texts = []
    for output in outputs:
        if output.get("name") == "stdout":
            texts.append(output.text)
    return "".join(texts)


def tidied(outputs: list[nbformat.NotebookNode]) -> list[nbformat.NotebookNode]:
    """Outputs with neighbouring parts of a stream as one, without log lines."""
    tidy: list[nbformat.NotebookNode] = []
    for output in outputs:
        before = tidy[-1] if tidy else None
        if before and output.get("name") and before.get("name") == output.name:
            before.text += output.text
        else:
            tidy.append(output)
    for output in tidy:
        if output.get("name") == "stderr":
            output.text = LOG_LINES.sub("", output.text)
    return [output for output in tidy if output.get("text", "shown").strip()]


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_notebook_has_the_outputs_of_its_code(name):
    path = DOCS / f"{name}.ipynb"
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert notebook.metadata[DIGEST] == digest(notebook), (
        f"The code has changed: python tests/test_notebooks.py {name} makes its outputs"
        " anew."
    )
    cells = code_cells(notebook)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    silent = [cell for cell in cells if not cell.outputs]
    assert silent == [cells[number] for number in SILENT[name]]
    text = path.read_text(encoding="utf-8")
    for machine in (str(Path.home()), tempfile.gettempdir(), "/work/"):
        assert machine not in text


@pytest.mark.slow
def test_tutorial_runs(tmp_path):
    """Every cell, with a short training; a command that fails is an error."""
    shorter = {
        "train_size=20000": "train_size=2000",
        "--train_steps=600": "--train_steps=20",
    }
    outputs = run_shortened("tutorial", shorter, tmp_path)
    folder = tmp_path / "tutorial"
    assert len((folder / "test.out").read_text(encoding="utf-8").splitlines()) == 500
    assert (folder / "run" / "model.ckpt-20.index").is_file()
    assert "<iframe" in value(outputs, "model.attention(")["text/html"]
    (translation,) = eval(value(outputs, "model.translate(")["text/plain"])
    assert eval(value(outputs, "urlopen")["text/plain"]) == {
        "translatedText": translation
    }


@pytest.mark.slow
def test_paper_runs(tmp_path):
    """Every cell, with short trainings. Computations by hand equal the library's, and
    so do the solutions of the exercises.
    """
    shorter = {
        "train_steps=600": "train_steps=100",
        "[:20_000]": "[:3_000]",
    }
    text = (DOCS / "paper.ipynb").read_text(encoding="utf-8")
    solutions = re.findall(r'"(\d)\. `(.+)`\\n"', text)
    assert len(solutions) == 4
    for number, solution in solutions:
        shorter[f"return ...  # exercise {number}"] = f"return {solution}"
    outputs = run_shortened("paper", shorter, tmp_path)
    for exercise in ("mask", "rate", "weights", "score"):
        assert printed(outputs, f"check(my_{exercise}(") == "right\n"
    differences = []
    for shown in outputs.values():
        match = re.search(r"largest difference: (\S+)", standard_output(shown))
        if match:
            differences.append(float(match[1]))
    assert len(differences) == 4
    assert max(differences) < 1e-5
    by_hand = printed(outputs, "def next_log_probs").splitlines()[-3:]
    assert by_hand == printed(outputs, "translator.n_best(").splitlines()
    pictures = 0
    for shown in outputs.values():
        for output in shown:
            pictures += "image/png" in output.get("data", {})
    assert pictures == 7


def write_outputs(name: str) -> None:
    """Runs a notebook, and writes it with its outputs."""
    path = DOCS / f"{name}.ipynb"
    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        run(notebook, Path(folder))
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # times
    for cell in code_cells(notebook):
        cell.outputs = tidied(cell.outputs)
    notebook.metadata.language_info = {"name": "python"}
    notebook.metadata[DIGEST] = digest(notebook)
    nbformat.write(notebook, path)


if __name__ == "__main__":
    for notebook_name in sys.argv[1:] or NOTEBOOKS:
        write_outputs(notebook_name)
