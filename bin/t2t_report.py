"""t2t-report writes a report of a run, fit to attach to a paper, as one HTML file and
as Markdown.

  t2t-report --output_dir=RUN

writes RUN/report.html and RUN/report.md: scores with their signatures, samples beside
their references, training curves, cost, hyperparameters that differ from the set, data
with hashes, versions and the command. The HTML file needs no other file and no network,
prints well and follows the reader's dark mode.

Scores and samples are those of t2t-decoder --output_dir=RUN --split=test, so run that
first. Sources and references are read from the data that the run was trained on, or
from --data_dir if it has moved. Of a run that is incomplete, or still training, the
report shows what there is, and says what is missing. For an hparam set of your own,
give --t2t_usr_dir too.
"""

import dataclasses
from pathlib import Path

from t2tlite.bin import groups
from t2tlite.bin.command import command, load_tensorflow


@dataclasses.dataclass(frozen=True)
class ReportFlags(groups.TensorFlowFlags, groups.DataFlags, groups.RunFlags):
    """Which run is reported."""


@command
def main(flags: ReportFlags) -> None:
    """Writes both files and prints their paths."""
    folder = groups.run_folder(flags)
    if not folder.exists():
        folder.hparams()  # raises
    load_tensorflow()
    from t2tlite.programs.report.run_report import write_report

    data_dir = Path(flags.data_dir) if flags.data_dir else None
    for path in write_report(folder, data_dir):
        print(path)


if __name__ == "__main__":
    raise SystemExit(main())
