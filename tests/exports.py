"""The checks that every format of exports passes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tiny_run import last_of_each

from t2tlite.bin import t2t_export


def export(run: Path, target: Path, *flags: str) -> int:
    """The status of t2t-export."""
    folders = f"--output_dir={run}", f"--export_dir={target}"
    return t2t_export.main(last_of_each(*folders, *flags))


def run_export_test(
    format_name: str,
    run: Path,
    target: Path,
    capsys: pytest.CaptureFixture[str],
    files: set[str],
    *flags: str,
) -> str:
    """Exports a run, with these names in the folder and nothing beside it; returns what
    the command says was equal. What the format cannot express is refused by its name.
    """
    flags = f"--format={format_name}", *flags
    assert export(run, target, *flags) == 0
    assert {path.name for path in target.iterdir()} == {
        *files,
        "README.md",
        "export.json",
    }
    assert [path.name for path in target.parent.iterdir()] == [target.name]
    record = json.loads((target / "export.json").read_text())
    assert (record["format"], record["step"]) == (format_name, 120)
    readme = (target / "README.md").read_text(encoding="utf-8")
    assert readme.startswith(f"# twenty_words, step 120, as {format_name}\n\n")
    for program in re.findall(r"```python\n(.*?)```", readme, re.DOTALL):
        compile(program, "README.md", "exec")
    said = capsys.readouterr().out
    exported = f"Exported {run}/model.ckpt-120 to {target}. Equal to the run: "
    assert said.startswith(exported)

    sampling = "--decode_hparams=sampling_method=random,sampling_temp=0.5"
    other = target.with_name("other")
    assert export(run, other, *flags, sampling) == 1
    message = capsys.readouterr().err
    assert f"format={format_name} supports alpha, " in message
    assert "Received: sampling_method=random, sampling_temp=0.5." in message
    assert not other.exists()
    return said.removeprefix(exported)
