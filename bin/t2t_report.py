"""t2t-report writes a report of a run, good enough to attach to a paper: one HTML file and the same as markdown.

  t2t-report --output_dir=RUN

writes RUN/report.html and RUN/report.md: problem and hparam set, scores with their signatures, samples beside their
references (drawn trees for a parsing run), curves of training, checkpoints, hyperparameters as differences from the
named set, data with hashes, versions and the command. The HTML file needs no other file and no network, prints well
and follows the reader's dark mode.

Scores and samples are those of t2t-decoder --output_dir=RUN --split=test, so run that first. Sources and references
are read from the data that the run was trained on; --data_dir says where it lies if it has moved. A run may be
incomplete, or still training: the report is made of what there is, and says what is missing.

Where the hparam set is one of your own, give its package as in training: --t2t_usr_dir.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from t2tlite import registry
from t2tlite.bin import flags

if TYPE_CHECKING:
    from t2tlite.config import HParams
    from t2tlite.data.dataset import Dataset

FLAGS = ("output_dir", "data_dir", "t2t_usr_dir", "verbosity")


def run(args: flags.Args) -> None:
    """Writes both files and says where they are."""
    import t2tlite.hparams  # noqa: F401
    from t2tlite import runs
    from t2tlite.report.run_report import recorded_flags, write_report

    flags.require(args, "output_dir")
    flags.import_user_package(args.t2t_usr_dir)
    folder = Path(args.output_dir).expanduser()
    with contextlib.suppress(ValueError):  # damaged: the report says so
        runs.read_hparams(folder)
    notes: list[str] = []
    base = _base(recorded_flags(folder).get("hparams_set"), notes)
    dataset = _dataset(folder, args.data_dir, notes)
    for path in write_report(folder, dataset, base, notes):
        print(path)


def _base(name: str | None, notes: list[str]) -> HParams | None:
    """The hparam set that the run started from."""
    if name is None:
        notes.append("flags.txt names no hparam set, so hyperparameters are compared with the defaults.")
        return None
    try:
        return registry.hparams(name)
    except ValueError:
        notes.append(
            f"The hparam set {name} is not known here, so hyperparameters are compared with the defaults. If it is "
            "one of your own, give --t2t_usr_dir."
        )
        return None


def _dataset(folder: Path, data_dir: str | None, notes: list[str]) -> Dataset | None:
    """The data that the run was trained on."""
    from t2tlite.runs import run_dataset

    try:
        return run_dataset(folder, Path(data_dir).expanduser() if data_dir else None)
    except (OSError, ValueError) as error:
        notes.append(f"The run's data is not at hand, so samples lack sources and references. {error}")
        return None


def main(argv: Sequence[str] | None = None) -> int:
    """The command t2t-report."""
    return flags.run_command(__doc__, FLAGS, run, argv)


if __name__ == "__main__":
    raise SystemExit(main())
