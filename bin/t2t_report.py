"""t2t-report writes a report of a run, fit to attach to a paper, as one HTML file and
as Markdown.

  t2t-report --output_dir=RUN

writes RUN/report.html and RUN/report.md: scores with their signatures, samples beside
their references, training curves, cost, hyperparameters that differ from the set, data
with hashes, versions and the command. The HTML file needs no other file and no network,
prints well and follows the reader's dark mode.

Scores and samples are those of t2t-decoder --output_dir=RUN --split=test, so run that
first. Of a run that is incomplete, or still training, the report shows what there is,
and says what is missing. For an hparam set of your own, give --t2t_usr_dir too.

Two runs of one problem are compared:

  t2t-report --output_dir=RUN1,RUN2

writes RUN1/report.RUN2.html: the settings that differ, the curves of both on dev, and
of each split that both have decoded, the scores side by side, with their difference if
sentences and signatures are the same. If the sentences are, it adds the paired
bootstrap test of t2t-bleu --compare, RUN1 being the baseline, and the ten sentences
that changed most in each direction.
"""

import dataclasses

from t2tlite.bin import groups
from t2tlite.bin.command import command, load_tensorflow
from t2tlite.checked_fields import optional_field


@dataclasses.dataclass(frozen=True)
class ReportFlags(groups.TensorFlowFlags, groups.RunFlags):
    """Which run is reported, or which two are compared."""

    output_dir: str | None = optional_field(
        str,
        "Folder of a run, by default runs/PROBLEM-HPARAMS_SET; or of two to compare,"
        " comma-separated.",
    )


@command
def main(flags: ReportFlags) -> None:
    """Writes the report, or the comparison, and prints the paths of its files."""
    runs = groups.run_folders(flags)
    folder, *others = runs
    if len(others) > 1:
        raise ValueError(
            f"--output_dir must be one run, or two. Received: {flags.output_dir}."
        )
    for run in runs:
        if not run.exists():
            run.hparams()  # raises
    load_tensorflow()
    from t2tlite.programs.report import run_report

    if others:
        print(run_report.write_comparison(folder, others[0]))
        return
    for path in run_report.write_report(folder):
        print(path)


if __name__ == "__main__":
    raise SystemExit(main())
