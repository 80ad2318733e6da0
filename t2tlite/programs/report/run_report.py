"""A report of a run, as one HTML page and Markdown: the model, its data, training and
scores.

    RunFolder, events.py -> sections (this file, samples.py, curves.py) -> document.py

If parts of a run are missing or damaged, the report shows the rest and says what is
missing.
"""

from __future__ import annotations

import dataclasses
import math
import shlex
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import tensorflow as tf

import t2tlite
from t2tlite.config import DecodeHParams, HParams
from t2tlite.data.manifest import RunManifest
from t2tlite.files.atomic_file import write_text
from t2tlite.files.checkpoint_paths import list_checkpoints, readable_path, step_of
from t2tlite.programs.report import document
from t2tlite.programs.report.curves import (
    curve_blocks,
    dev_set_blocks,
    overfitting_blocks,
)
from t2tlite.programs.report.document import (
    Code,
    folded,
    heading,
    listing,
    numbered,
    paragraph,
    table,
)
from t2tlite.programs.report.events import History, read_history
from t2tlite.programs.report.samples import sample_blocks
from t2tlite.programs.runs.load import run_dataset
from t2tlite.run_folder import RunFolder
from t2tlite.run_records import DecodeRecord, DevEvaluation, Environment
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
        """What `read` returns, or None and a sentence here."""
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
    missing = Missing()
    manifest = missing.attempt(
        run.manifest,
        "Problem and data are not known, so samples lack sources and references. ",
    )
    history = read_history(run.path)
    decodes, complaints = run.decode_records()
    hparams = missing.attempt(run.hparams)
    missing += history.complaints + complaints
    best = missing.attempt(run.best)
    summary = _summary(run, manifest, history, decodes, best, missing)
    samples = []
    if manifest and decodes:
        samples = _samples(run, manifest, decodes[0], data_dir, missing)
    dev_sets = dev_set_blocks(missing.attempt(run.evaluations) or [], best)
    hparam_blocks = _hparams(run, hparams, base, missing)
    data_blocks = []
    if manifest:
        data_blocks = missing.attempt(lambda: _data(manifest, hparams)) or []
    sections = {
        "Summary": summary,
        "What is missing here": [],  # known after the others
        "Scores": _scores(run, manifest, decodes),
        "Samples": samples,
        "Dev sets": dev_sets,
        "Curves": curve_blocks(history.metrics),
        "Checkpoints": _checkpoints(run),
        "Hyperparameters": hparam_blocks,
        "Data": data_blocks,
        "Software and command": _software(
            missing.attempt(run.environment), run.command()
        ),
    }
    sections["What is missing here"] = [numbered(missing)] if missing else []
    problem = manifest.name if manifest else "unknown problem"
    title = f"{problem}, {run.flags().get('hparams_set', 'hparam set not recorded')}"
    blocks = [
        heading(title, 1),
        paragraph(
            f"Report of a training run of t2tlite, folder {run.path.resolve().name}"
        ),
        *(
            block
            for name, section in sections.items()
            if section
            for block in (heading(name, 2), *section)
        ),
        paragraph(
            f"Written by t2t-report of t2tlite {t2tlite.__version__} on"
            f" {_date(time.time())}."
        ),
    ]
    page, markdown = run.report_files
    write_text(page, document.to_html(title, blocks))
    write_text(markdown, document.to_markdown(blocks))
    return page, markdown


def _summary(
    run: RunFolder,
    manifest: RunManifest | None,
    history: History,
    decodes: Sequence[DecodeRecord],
    best: DevEvaluation | None,
    missing: Missing,
) -> list[str]:
    rows = [("hparam set", run.flags().get("hparams_set", "not recorded"))]
    if manifest:
        pair = " to ".join(filter(None, manifest.language_pair))
        rows.insert(0, ("problem", manifest.name + (f" ({pair})" if pair else "")))
    checkpoints = run.checkpoints()
    if checkpoints:
        rows.append(("trained", f"{step_of(checkpoints[-1]):,} steps"))
        variables = missing.attempt(
            lambda: _variables(checkpoints[-1]), "Parameters cannot be counted. "
        )
        parameters = sum(
            math.prod(shape)
            for name, shape in variables or ()
            if name.startswith("model/")
        )
        rows += [("parameters", f"{parameters:,}")] if parameters else []
    if manifest and manifest.corpora:
        rows.append(
            (
                "training pairs",
                f"{sum(corpus.pairs for corpus in manifest.corpora.values()):,}",
            )
        )
    if history.seconds:
        rows.append(
            (
                "training time",
                f"{timedelta(seconds=round(history.seconds))}, evaluation included",
            )
        )
    costs = missing.attempt(run.costs)
    if costs:
        rows.append(
            (
                "training cost",
                f"{costs[-1].flops:.2g} floating-point operations, by formula",
            )
        )
    if best:
        metrics = ", ".join(
            f"{name} {value:.4g}" for name, value in best.metrics.items()
        )
        rows.append(("best on dev", f"step {best.step:,}: {metrics}"))
    for record in decodes[:1]:
        scores = ", ".join(
            f"{name} {_score(value)}" for name, value in record.scores.items()
        )
        rows.append((f"score on {record.split}", f"{scores} ({_checkpoint(record)})"))
    return [table(["", ""], rows), *overfitting_blocks(history.metrics)]


def _variables(checkpoint: str) -> list[tuple[str, list[int]]]:
    """The names and shapes of a checkpoint's variables."""
    with readable_path(checkpoint) as path:
        return tf.train.list_variables(path)


def _scores(
    run: RunFolder, manifest: RunManifest | None, decodes: Sequence[DecodeRecord]
) -> list[str]:
    if not decodes:
        split = "dev" if manifest and "test" not in manifest.splits else "test"
        command = Code(f"t2t-decoder --output_dir={run} --split={split}")
        return [
            paragraph(
                "No split has been decoded yet. This does it, and the next report shows"
                " it: ",
                command,
            )
        ]
    names: dict[str, None] = {}  # of all scores, in their order
    for record in decodes:
        names |= dict.fromkeys(record.scores)
    scores = []
    settings = []
    for record in decodes:
        which = [record.split, f"{record.step:,}", Code(_checkpoint(record))]
        shown = {name: _score(value) for name, value in record.scores.items()}
        values = [shown.get(name, "") for name in names]
        scores.append([*which, f"{record.sentences:,}", *values])
        options = []
        for name, value in record.decode_hparams.items():
            if name in SHOWN_OPTIONS or value != getattr(DecodeHParams, name, None):
                options.append(f"{name} {value}")
        signatures = signature_lines(record.signatures)
        settings.append(
            [
                *which,
                ", ".join(options),
                f"{record.seconds:,.1f} s",
                Code(" ".join(signatures)),
            ]
        )
    header = ["split", "step", "checkpoint"]
    how = table(
        [*header, "decoding", "time", "signature"],
        settings,
        "How it was decoded and scored",
    )
    return [table([*header, "sentences", *names], scores), how]


def _samples(
    run: RunFolder,
    manifest: RunManifest,
    record: DecodeRecord,
    data_dir: Path | None,
    missing: Missing,
) -> list[str]:
    task = missing.attempt(
        lambda: open_task(manifest.task, manifest.options), "Samples cannot be shown. "
    )
    outputs = missing.attempt(
        lambda: run.outputs(record), f"The outputs of {record.name} cannot be shown. "
    )
    if task is None or outputs is None:
        return []
    texts = missing.attempt(
        lambda: _pairs(run, record, data_dir), "Samples lack sources and references. "
    ) or ([], [])
    chosen = f"Some of {record.sentences:,} sentences of {record.split}, evenly spread"
    note = f"{chosen}, decoded with {_checkpoint(record)}."
    samples = missing.attempt(
        lambda: sample_blocks(task, outputs, *texts), "Samples cannot be shown. "
    )
    return [paragraph(note), *(samples or [])]


def _pairs(
    run: RunFolder, record: DecodeRecord, data_dir: Path | None
) -> tuple[list[str], list[str]]:
    """The sources and references of a decoded split."""
    store = run_dataset(run, data_dir).store(record.split)
    if len(store) != record.sentences:
        raise ValueError(
            f"{record.split} has {len(store):,} pairs now, and had"
            f" {record.sentences:,}."
        )
    return store.source_text(), store.target_text()


def _checkpoints(run: RunFolder) -> list[str]:
    rows = []
    for folder, role in (
        (run.path, ""),
        (run.best_folder, "best on dev"),
        (run.averaged_folder, "average of several"),
    ):
        for path in map(Path, list_checkpoints(folder)):
            files = [file.stat() for file in folder.glob(f"{path.name}.*")]
            megabytes = f"{sum(file.st_size for file in files) / 1e6:,.1f} MB"
            written = _date(max((file.st_mtime for file in files), default=0.0))
            rows.append(
                [
                    Code(str(path.relative_to(run.path))),
                    f"{step_of(str(path)):,}",
                    megabytes,
                    written,
                    role,
                ]
            )
    if not rows:
        return [
            paragraph(
                "The run has no checkpoint: it was stopped before the first one was"
                " saved."
            )
        ]
    return [table(["checkpoint", "step", "size", "written", ""], rows)]


def _hparams(
    run: RunFolder, hparams: HParams | None, base: HParams | None, missing: Missing
) -> list[str]:
    name = run.flags().get("hparams_set")
    compared = "so hyperparameters are compared with the defaults."
    if name is None:
        missing.append(f"flags.txt names no hparam set, {compared}")
    elif base is None:
        advice = "If it is one of your own, give --t2t_usr_dir."
        missing.append(f"The hparam set {name} is not known here, {compared} {advice}")
    if hparams is None:
        return []
    column, against = (
        (name, name)
        if name and base
        else ("default", "the defaults, the paper's base model")
    )
    rows = [
        [Code(field), str(old), str(new)]
        for field, (new, old) in hparams.diff(base or HParams()).items()
    ]
    differences = table(
        ["field", column, "this run"], rows, f"Differences from {against}"
    )
    everything = folded(
        "All hyperparameters", _values("field", dataclasses.asdict(hparams))
    )
    return [differences if rows else paragraph(f"As in {against}."), everything]


def _corpora(manifest: RunManifest, hparams: HParams | None) -> str:
    """How much of an epoch each training corpus is; empty if there is only one."""
    corpora = manifest.corpora
    if len(corpora) < 2 or hparams is None:
        return ""
    weights = hparams.weights or [1] * len(corpora)
    in_epoch = [
        corpus.pairs * weight
        for corpus, weight in zip(corpora.values(), weights, strict=True)
    ]
    rows = [
        [name, f"{corpus.pairs:,}", str(weight), f"{pairs / sum(in_epoch):.1%}"]
        for (name, corpus), weight, pairs in zip(
            corpora.items(), weights, in_epoch, strict=True
        )
    ]
    header = ["corpus", "pairs", "weight", "share of an epoch"]
    return table(header, rows, "Training corpora, by corpus_weights")


def _data(manifest: RunManifest, hparams: HParams | None) -> list[str]:
    fields = (
        "pairs",
        "source_tokens",
        "target_tokens",
        "longest_source",
        "longest_target",
    )
    rows = []
    for name in manifest.splits:
        split = manifest.split(name)
        counts = [getattr(split, field) for field in fields]
        counts.append(sum(split.dropped.values()))
        rows.append([name, *[f"{count:,}" for count in counts]])
    header = ["split", *[field.replace("_", " ") for field in fields], "dropped"]
    caption = (
        "Splits; tokens are pieces of the vocabulary, end-of-sentence tokens included"
    )
    vocabularies = manifest.vocabulary_entries()
    sizes = " and ".join(f"{entry.size:,}" for entry in vocabularies)
    files: list[tuple[str, Any]] = []
    files += [("vocabulary", file) for file in vocabularies]
    files += [("made from", file) for file in manifest.made_from]
    shards: list[tuple[str, Any]] = []
    for name, split in manifest.splits.items():
        shards += [(name, shard) for shard in split.shards]
    blocks = []
    if rows:
        blocks.append(table(header, rows, caption))
    blocks.append(_corpora(manifest, hparams))
    blocks.append(
        paragraph(
            f"Made by t2tlite {manifest.t2tlite}. The vocabulary has {sizes} pieces."
        )
    )
    blocks.append(
        _files(files, "Vocabulary, and the raw files that the data was made from")
    )
    if shards:
        blocks.append(folded(f"All {len(shards):,} files of tokens", _files(shards)))
    if manifest.options:
        blocks.append(_values("option of the problem", manifest.options))
    return [block for block in blocks if block]


def _values(kind: str, values: Mapping[str, Any]) -> str:
    return table(
        [kind, "value"], [[Code(name), str(value)] for name, value in values.items()]
    )


def _files(entries: Iterable[tuple[str, Any]], caption: str = "") -> str:
    rows = [
        [kind, Code(entry.file), f"{entry.bytes:,}", Code(entry.sha256)]
        for kind, entry in entries
    ]
    return table(["", "file", "bytes", "sha256"], rows, caption)


def _software(environment: Environment | None, command: Sequence[str]) -> list[str]:
    blocks = [paragraph("The versions that trained the run are not recorded.")]
    if environment:
        rows = [
            [NAMES.get(name, name), str(value)]
            for name, value in dataclasses.asdict(environment).items()
        ]
        blocks = [table(["trained with", ""], rows)]
    return [
        *blocks,
        *([listing(" \\\n    ".join(map(shlex.quote, command)))] if command else []),
    ]


def _checkpoint(record: DecodeRecord) -> str:
    """The checkpoint's name, with its folder if it is not one of the run's newest."""
    path = Path(record.checkpoint)
    return (
        f"{path.parent.name}/{path.name}"
        if path.parent.name in ("best", "averaged")
        else path.name
    )


def _score(value: float) -> str:
    """A score with two digits, a count without."""
    return f"{value:,}" if isinstance(value, int) else f"{value:.2f}"


def _date(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(seconds))
