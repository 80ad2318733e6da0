"""The documents name files, commands and flags that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from t2tlite.bin import definitions

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
FOLDERS = ("t2tlite", "problems", "hparams", "bin", "tests", "docs", "benchmarks")
FOREIGN = ("from-tensor2tensor.md",)  # names tensor2tensor's flags too


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_files_exist(document):
    text = document.read_text(encoding="utf-8")
    named = re.findall(rf"`((?:{'|'.join(FOLDERS)})/[\w./-]*)`", text)
    links = [link for link in re.findall(r"\]\(([\w./-]+)(?:#[\w-]*)?\)", text)]
    missing = [path for path in named if not (ROOT / path).exists()]
    missing += [link for link in links if not (document.parent / link).exists()]
    assert missing == []


@pytest.mark.parametrize("document", [d for d in DOCUMENTS if d.name not in FOREIGN], ids=lambda path: path.name)
def test_flags_exist(document):
    import t2tlite.problems  # noqa: F401  registers their options

    known = {*definitions.DEFINITIONS, *definitions.problem_flags(), "help"}
    text = document.read_text(encoding="utf-8")
    commands = re.findall(r"^t2t-[^\n]*(?:\\\n[^\n]*)*", text, re.MULTILINE)
    used = {flag for command in commands for flag in re.findall(r"--(\w+)", command)}
    assert used - known == set()
