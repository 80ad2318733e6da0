"""The files that commands read and write, which must differ; see
`t2tlite/files/same_file.py`.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from t2tlite.bin import flags
from t2tlite.files.checkpoint_paths import checkpoint_files, find_checkpoint
from t2tlite.files.same_file import (
    STANDARD_OUTPUT_NUMBER,
    NamedFile,
    check_not_overwritten,
    is_same_folder,
)

if TYPE_CHECKING:
    from t2tlite.run_folder import RunFolder


def files_of_run(args: flags.Args, folder: RunFolder) -> list[NamedFile]:
    """The files that a command reads of a run with --checkpoint_path, for
    `check_not_overwritten`.

    Raises FileNotFoundError if there is no such checkpoint.
    """
    checkpoint = find_checkpoint(folder.path, args.checkpoint_path)
    files = [*folder.own_files(), *checkpoint_files(checkpoint)]
    return [(f"{file}, which is the run's", file) for file in files]


def check_standard_output(inputs: Iterable[tuple[str, str | None]]) -> None:
    """Raises ValueError if standard output is redirected to an input; `inputs` are
    flags and their values.
    """
    check_not_overwritten(
        [("standard output", STANDARD_OUTPUT_NUMBER)],
        [(f"--{name}={file}", file) for name, file in inputs if file],
    )


def check_apart(args: flags.Args, output_dir: Path) -> None:
    """Raises CommandError if --output_dir is the folder of the data."""
    folders = [flags.data_dir(args)]
    if args.problem:
        folders.append(flags.data_dir(args) / args.problem.removesuffix("_rev"))
    for folder in folders:
        if is_same_folder(output_dir, folder):
            raise flags.CommandError(
                "--output_dir and the data must be in different folders. Received:"
                f" --output_dir={output_dir}, the same folder as {folder}, which is"
                " that of --data_dir. Name another --output_dir."
            )
