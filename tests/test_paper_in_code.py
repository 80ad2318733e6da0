"""docs/paper-in-code.md names files and what they define."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
EQUATION = re.compile(r"`([\w/]+\.py)`[^`]*\n\n```python\n(.+?)```", re.DOTALL)
ROW = re.compile(r"\| `([\w/]+\.py)`: ((?:`\w+`(?:, )?)+) \|$", re.MULTILINE)


def defined(path: Path) -> set[str]:
    """The names that a module defines at its top level."""
    names = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                names.update(re.findall(r"\w+", ast.unparse(target)))
    return names


def test_every_name_is_defined_where_the_page_says():
    text = (ROOT / "docs" / "paper-in-code.md").read_text(encoding="utf-8")
    rows = ROW.findall(text)
    # every row of a table but its head
    assert len(rows) == len(re.findall(r"^\| (?!paper)[^-]", text, re.MULTILINE)) > 30
    for file, names in rows:
        missing = set(re.findall(r"\w+", names)) - defined(ROOT / file)
        assert not missing, file


def test_equations_are_computed_by_the_lines_that_the_page_shows():
    text = (ROOT / "docs" / "paper-in-code.md").read_text(encoding="utf-8")
    equations = EQUATION.findall(text)
    assert len(equations) == text.count("```python") == 5
    for file, lines in equations:
        assert lines in (ROOT / file).read_text(encoding="utf-8")
