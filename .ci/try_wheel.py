"""Tries an installed t2tlite. Run outside the checkout.

try_wheel.py commands: the wheel has its files and no others, and every command answers
--help. try_wheel.py modules: every module can be imported, for which the extras `serve`
and `plots` must be installed.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import pkgutil
import subprocess
import sys
import sysconfig
from pathlib import Path


def main() -> None:
    checks = {"commands": try_commands, "modules": try_modules}
    distribution = importlib.metadata.distribution("t2tlite")
    t2tlite = importlib.import_module("t2tlite")
    if Path(sys.prefix) not in Path(t2tlite.__file__ or "").parents:
        sys.exit(f"t2tlite must come from the wheel. It comes from {t2tlite.__file__}.")
    checks[sys.argv[1]](distribution, t2tlite.__path__)


def try_commands(
    distribution: importlib.metadata.Distribution, folders: list[str]
) -> None:
    top = {file.parts[0] for file in distribution.files or [] if file.parts[0] != ".."}
    allowed = {"t2tlite", f"t2tlite-{distribution.version}.dist-info"}
    if top != allowed:
        sys.exit(
            f"The wheel must install {sorted(allowed)} and nothing else. It installs"
            f" {sorted(top)}."
        )
    for file in (
        "py.typed",
        "programs/serving/page.html",
        "programs/serving/docs.html",
    ):
        if not Path(folders[0], file).is_file():
            sys.exit(f"The wheel lacks t2tlite/{file}.")

    commands = [
        entry.name
        for entry in distribution.entry_points
        if entry.group == "console_scripts"
    ]
    for command in sorted(commands):
        result = subprocess.run(
            [Path(sysconfig.get_path("scripts"), command), "--help"],
            capture_output=True,
            text=True,
            timeout=120,
        )
        if result.returncode or "Flags:" not in result.stdout:
            sys.exit(
                f"{command} --help failed with status"
                f" {result.returncode}:\n{result.stdout}{result.stderr}"
            )
    print(
        f"The wheel of t2tlite {distribution.version}: {len(commands)} commands work."
    )


def try_modules(
    distribution: importlib.metadata.Distribution, folders: list[str]
) -> None:
    names = [
        module.name
        for module in pkgutil.walk_packages(folders, "t2tlite.", onerror=_fail)
    ]
    for name in names:
        importlib.import_module(name)
    print(
        f"The wheel of t2tlite {distribution.version}: {len(names)} modules can be"
        " imported."
    )


def _fail(name: str) -> None:
    raise ImportError(f"Cannot import the package {name}.")


if __name__ == "__main__":
    main()
