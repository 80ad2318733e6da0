"""A report of a run, as one HTML page and Markdown: the model, its data, training and
scores.

    RunFolder, events.py -> sections (this file, samples.py, curves.py, data_section.py)
    -> document.py

If parts of a run are missing or damaged, the report shows the rest and says what is
missing.
"""

from __future__ import annotations

import dataclasses
import math
import shlex
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import TypeVar

import tensorflow as tf

import t2tlite
from t2tlite.config import DecodeHParams, HParams
from t2tlite.data.splits import DEV, TEST
from t2tlite.files.atomic_file import write_text
from t2tlite.files.checkpoint_paths import (
    AVERAGED,
    BEST,
    list_checkpoints,
    readable_path,
    step_of,
)
from t2tlite.programs.report import document
from t2tlite.programs.report.curves import (
    curve_blocks,
    dev_set_blocks,
    overfitting_blocks,
)
from t2tlite.programs.report.data_section import data_blocks, value_table
from t2tlite.programs.report.document import (
    Code,
    folded,
    heading,
    listing,
    numbered,
    paragraph,
    table,
)
from t2tlite.programs.report.events import read_history
from t2tlite.programs.report.samples import sample_blocks
from t2tlite.programs.runs.load import run_dataset
from t2tlite.run_folder import RunFolder
from t2tlite.run_records import DecodeRecord
from t2tlite.tasks.task import open_task, signature_lines

T = TypeVar("T")

# of decoding; others if they differ from the default
SHOWN_OPTIONS = ("beam_size", "alpha", "extra_length")
NAMES = {
    "tensorflow": "TensorFlow",
    "keras": "Keras",
    "numpy": "NumPy",
    "python": "Python",
}


class Missing(list[str]):
    """A sentence about each thing that is missing or damaged."""

    def attempt(self, read: Callable[[], T], consequence: str = "") -> T | None:
        """Returns what `read` returns; if that fails, None, and adds a sentence."""
        try:
            return read()
        except (OSError, ValueError, RuntimeError, tf.errors.OpError) as error:
            self.append(f"{consequence}{error}")
            return None


def write_report(
    run: RunFolder, data_dir: Path | None, base: HParams | None
) -> tuple[Path, Path]:
    """Writes the report of a run, RUN/report.html and RUN/report.md, and returns their
    paths.

    The run's data is in `data_dir`, by default where it was during training; `base` is
    the run's hparam set, or None if it is not known. Raises OSError if the files cannot
    be written.
    """
    report = RunReport(run, data_dir, base)
    title = report.title()
    blocks = report.blocks()
    page, markdown = run.report_files
    write_text(page, document.to_html(title, blocks))
    write_text(markdown, document.to_markdown(blocks))
    return page, markdown


class RunReport:
    """What is known of a run, and the sections that show it."""

    def __init__(
        self, run: RunFolder, data_dir: Path | None, base: HParams | None
    ) -> None:
        """Reads the run's records; `missing` says which cannot be read."""
        self.run = run
        self.data_dir = data_dir
        self.base = base
        self.missing = Missing()
        self.manifest = self.missing.attempt(
            run.manifest,
            "Problem and data are not known, so samples lack sources and references. ",
        )
        self.history = read_history(run.path)
        self.decodes, complaints = run.decode_records()  # the newest first
        self.hparams = self.missing.attempt(run.hparams)
        self.missing += self.history.complaints + complaints
        self.best = self.missing.attempt(run.best)

    def title(self) -> str:
        problem = self.manifest.name if self.manifest else "unknown problem"
        hparams_set = self.run.flags().get("hparams_set", "hparam set not recorded")
        return f"{problem}, {hparams_set}"

    def blocks(self) -> list[str]:
        """The whole document."""
        folder = self.run.path.resolve().name
        blocks = [
            heading(self.title(), 1),
            paragraph(f"Report of a training run of t2tlite, folder {folder}"),
        ]
        for name, section in self._sections().items():
            if section:
                blocks += [heading(name, 2), *section]
        written = (
            f"Written by t2t-report of t2tlite {t2tlite.__version__} on"
            f" {_date(time.time())}."
        )
        return [*blocks, paragraph(written)]

    def _sections(self) -> dict[str, list[str]]:
        """The blocks of each section, by heading, in the order of the document. A
        section may be empty.
        """
        sections = {
            "Summary": self._summary(),
            "What is missing here": [],  # known after the others
            "Scores": self._scores(),
            "Samples": self._samples(),
            "Dev sets": self._dev_sets(),
            "Curves": curve_blocks(self.history.metrics),
            "Checkpoints": self._checkpoints(),
            "Hyperparameters": self._hyperparameters(),
            "Data": self._data(),
            "Software and command": self._software(),
        }
        if self.missing:
            sections["What is missing here"] = [numbered(self.missing)]
        return sections

    def _summary(self) -> list[str]:
        run = self.run
        rows = [("hparam set", run.flags().get("hparams_set", "not recorded"))]
        if self.manifest:
            languages = [code for code in self.manifest.language_pair if code]
            pair = f" ({' to '.join(languages)})" if languages else ""
            rows.insert(0, ("problem", f"{self.manifest.name}{pair}"))
        checkpoints = run.checkpoints()
        if checkpoints:
            rows.append(("trained", f"{step_of(checkpoints[-1]):,} steps"))
            parameters = self.missing.attempt(
                lambda: _parameters(checkpoints[-1]), "Parameters cannot be counted. "
            )
            if parameters:
                rows.append(("parameters", f"{parameters:,}"))
        if self.manifest and self.manifest.corpora:
            corpora = self.manifest.corpora.values()
            pairs = sum(corpus.pairs for corpus in corpora)
            rows.append(("training pairs", f"{pairs:,}"))
        if self.history.seconds:
            duration = timedelta(seconds=round(self.history.seconds))
            rows.append(("training time", f"{duration}, evaluation included"))
        costs = self.missing.attempt(run.costs)
        if costs:
            total = costs[-1]
            if total.seconds:
                speed = f"{total.tokens / total.seconds:,.0f} tokens/s"
                rows.append(("training speed", f"{speed}, evaluation left out"))
            cost = f"{total.flops:.2g} floating-point operations, by formula"
            rows.append(("training cost", cost))
        if self.best:
            metrics = []
            for name, value in self.best.metrics.items():
                metrics.append(f"{name} {value:.4g}")
            best = f"step {self.best.step:,}: {', '.join(metrics)}"
            rows.append(("best on dev", best))
        if self.decodes:
            record = self.decodes[0]
            scores = []
            for name, score in record.scores.items():
                scores.append(f"{name} {_score(score)}")
            shown = f"{', '.join(scores)} ({_checkpoint(record)})"
            rows.append((f"score on {record.split}", shown))
        return [table(["", ""], rows), *overfitting_blocks(self.history.metrics)]

    def _scores(self) -> list[str]:
        if not self.decodes:
            has_test = self.manifest is None or TEST in self.manifest.splits
            split = TEST if has_test else DEV
            command = Code(f"t2t-decoder --output_dir={self.run} --split={split}")
            advice = (
                "No split has been decoded yet. This does it, and the next report shows"
                " it: "
            )
            return [paragraph(advice, command)]
        names: dict[str, None] = {}  # of all scores, in their order
        for record in self.decodes:
            names |= dict.fromkeys(record.scores)
        scores = []
        settings = []
        for record in self.decodes:
            which = [record.split, f"{record.step:,}", Code(_checkpoint(record))]
            line = [*which, f"{record.sentences:,}"]
            for name in names:
                score = record.scores.get(name)
                line.append("" if score is None else _score(score))
            scores.append(line)
            signatures = Code(" ".join(signature_lines(record.signatures)))
            seconds = f"{record.seconds:,.1f} s"
            settings.append([*which, _shown_options(record), seconds, signatures])
        header = ["split", "step", "checkpoint"]
        how = table(
            [*header, "decoding", "time", "signature"],
            settings,
            "How it was decoded and scored",
        )
        return [table([*header, "sentences", *names], scores), how]

    def _samples(self) -> list[str]:
        manifest = self.manifest
        if manifest is None or not self.decodes:
            return []
        record = self.decodes[0]
        attempt = self.missing.attempt
        task = attempt(
            lambda: open_task(manifest.task, manifest.options),
            "Samples cannot be shown. ",
        )
        outputs = attempt(
            lambda: self.run.outputs(record),
            f"The outputs of {record.name} cannot be shown. ",
        )
        if task is None or outputs is None:
            return []
        sources, references = attempt(
            lambda: self._pairs(record), "Samples lack sources and references. "
        ) or ([], [])
        samples = attempt(
            lambda: sample_blocks(task, outputs, sources, references),
            "Samples cannot be shown. ",
        )
        note = (
            f"Some of {record.sentences:,} sentences of {record.split}, evenly spread,"
            f" decoded with {_checkpoint(record)}."
        )
        return [paragraph(note), *(samples or [])]

    def _pairs(self, record: DecodeRecord) -> tuple[list[str], list[str]]:
        """The sources and references of a decoded split."""
        store = run_dataset(self.run, self.data_dir).store(record.split)
        if len(store) != record.sentences:
            raise ValueError(
                f"{record.split} has {len(store):,} pairs now, and had"
                f" {record.sentences:,}."
            )
        return store.source_text(), store.target_text()

    def _dev_sets(self) -> list[str]:
        evaluations = self.missing.attempt(self.run.evaluations)
        return dev_set_blocks(evaluations or [], self.best)

    def _checkpoints(self) -> list[str]:
        run = self.run
        rows = []
        for folder, role in (
            (run.path, ""),
            (run.best_folder, "best on dev"),
            (run.averaged_folder, "average of several"),
        ):
            for checkpoint in list_checkpoints(folder):
                path = Path(checkpoint)
                size = 0
                written = 0.0
                for file in folder.glob(f"{path.name}.*"):
                    size += file.stat().st_size
                    written = max(written, file.stat().st_mtime)
                name = Code(str(path.relative_to(run.path)))
                step = f"{step_of(checkpoint):,}"
                rows.append([name, step, f"{size / 1e6:,.1f} MB", _date(written), role])
        if not rows:
            reason = "it was stopped before the first one was saved."
            return [paragraph(f"The run has no checkpoint: {reason}")]
        return [table(["checkpoint", "step", "size", "written", ""], rows)]

    def _hyperparameters(self) -> list[str]:
        name = self.run.flags().get("hparams_set")
        compared = "so hyperparameters are compared with the defaults."
        if name is None:
            self.missing.append(f"flags.txt names no hparam set, {compared}")
        elif self.base is None:
            self.missing.append(
                f"The hparam set {name} is not known here, {compared} If it is one of"
                " your own, give --t2t_usr_dir."
            )
        if self.hparams is None:
            return []
        column = "default"
        against = "the defaults, the paper's base model"
        if name and self.base:
            column = against = name
        rows = []
        changes = self.hparams.diff(self.base or HParams())
        for field, (new, old) in changes.items():
            rows.append([Code(field), str(old), str(new)])
        differences = paragraph(f"As in {against}.")
        if rows:
            header = ["field", column, "this run"]
            differences = table(header, rows, f"Differences from {against}")
        everything = value_table("field", dataclasses.asdict(self.hparams))
        return [differences, folded("All hyperparameters", everything)]

    def _data(self) -> list[str]:
        manifest = self.manifest
        if manifest is None:
            return []
        return self.missing.attempt(lambda: data_blocks(manifest, self.hparams)) or []

    def _software(self) -> list[str]:
        blocks = [paragraph("The versions that trained the run are not recorded.")]
        environment = self.missing.attempt(self.run.environment)
        if environment:
            rows = []
            for name, value in dataclasses.asdict(environment).items():
                rows.append([NAMES.get(name, name), str(value)])
            blocks = [table(["trained with", ""], rows)]
        words = [shlex.quote(word) for word in self.run.command()]
        if words:
            blocks.append(listing(" \\\n    ".join(words)))
        return blocks


def _parameters(checkpoint: str) -> int:
    """The number of a model's weights."""
    with readable_path(checkpoint) as path:
        variables = tf.train.list_variables(path)
    parameters = 0
    for name, shape in variables:
        if name.startswith("model/"):
            parameters += math.prod(shape)
    return parameters


def _shown_options(record: DecodeRecord) -> str:
    """The usual options of decoding, and those that differ from the default."""
    options = []
    for name, value in record.decode_hparams.items():
        if name in SHOWN_OPTIONS or value != getattr(DecodeHParams, name, None):
            options.append(f"{name} {value}")
    return ", ".join(options)


def _checkpoint(record: DecodeRecord) -> str:
    """The checkpoint's name, with its folder if it is not one of the run's newest, and
    the number of runs if several decoded together.
    """
    path = Path(record.checkpoint)
    name = path.name
    if path.parent.name in (BEST, AVERAGED):
        name = f"{path.parent.name}/{name}"
    runs = len(record.other_checkpoints) + 1
    return name if runs == 1 else f"{name} in an ensemble of {runs} runs"


def _score(value: float) -> str:
    """A score with two digits, a count without."""
    return f"{value:,}" if isinstance(value, int) else f"{value:.2f}"


def _date(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(seconds))
