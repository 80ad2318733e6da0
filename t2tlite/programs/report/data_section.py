"""The data in the report of a run: its splits, its corpora, and its files with their
hashes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from t2tlite.config import HParams
from t2tlite.data.manifest import RunManifest
from t2tlite.data.pair_audit import FINDINGS
from t2tlite.programs.report.document import Code, folded, paragraph, table

COUNTS = (
    "pairs",
    "source_tokens",
    "target_tokens",
    "longest_source",
    "longest_target",
)


class RecordedFile(Protocol):
    """A file that a manifest records."""

    @property
    def file(self) -> str: ...
    @property
    def bytes(self) -> int: ...
    @property
    def sha256(self) -> str: ...


def data_blocks(manifest: RunManifest, hparams: HParams | None) -> list[str]:
    """The section as blocks of a document."""
    entries = manifest.vocabulary_entries()
    sizes = " and ".join(f"{entry.size:,}" for entry in entries)
    files: list[tuple[str, RecordedFile]] = []
    files += [("vocabulary", entry) for entry in entries]
    files += [("made from", entry) for entry in manifest.made_from]
    shards: list[tuple[str, RecordedFile]] = []
    for name, split in manifest.splits.items():
        shards += [(name, shard) for shard in split.shards]
    blocks = [
        _splits(manifest),
        _findings(manifest),
        _corpora(manifest, hparams),
        paragraph(
            f"Made by t2tlite {manifest.t2tlite}. The vocabulary has {sizes} pieces."
        ),
        _files(files, "Vocabulary, and the raw files that the data was made from"),
    ]
    if shards:
        blocks.append(folded(f"All {len(shards):,} files of tokens", _files(shards)))
    if manifest.options:
        blocks.append(value_table("option of the problem", manifest.options))
    return [block for block in blocks if block]


def value_table(kind: str, values: Mapping[str, Any]) -> str:
    """A table of names and their values."""
    rows = [[Code(name), str(value)] for name, value in values.items()]
    return table([kind, "value"], rows)


def _splits(manifest: RunManifest) -> str:
    """Pairs, tokens and dropped pairs of each split; empty if there is none."""
    splits = [manifest.split(name) for name in manifest.splits]
    fields = list(COUNTS)
    if any(split.source_unknown or split.target_unknown for split in splits):
        fields += ["source_unknown", "target_unknown"]
    rows = []
    for name, split in zip(manifest.splits, splits, strict=True):
        row = [name]
        for field in fields:
            row.append(f"{getattr(split, field):,}")
        row.append(f"{sum(split.dropped.values()):,}")
        rows.append(row)
    if not rows:
        return ""
    header = ["split", *(field.replace("_", " ") for field in fields), "dropped"]
    caption = (
        "Splits; tokens are pieces of the vocabulary, end-of-sentence tokens included"
    )
    return table(header, rows, caption)


def _findings(manifest: RunManifest) -> str:
    """What t2t-datagen found in each training corpus that would spoil a result, in
    pairs; empty if nothing.
    """
    corpora = manifest.corpora
    present = []
    for finding in FINDINGS:
        if any(corpus.findings.get(finding) for corpus in corpora.values()):
            present.append(finding)
    if not present:
        return ""
    rows = []
    for name, corpus in corpora.items():
        row = [name]
        for finding in present:
            row.append(f"{corpus.findings.get(finding, 0):,}")
        rows.append(row)
    header = ["corpus", *(finding.replace("_", " ") for finding in present)]
    caption = (
        "Training pairs that repeat an earlier one, have a side in common with dev or"
        " test, or have a target equal to the source"
    )
    return table(header, rows, caption)


def _corpora(manifest: RunManifest, hparams: HParams | None) -> str:
    """How much of an epoch each training corpus is; empty if there is only one."""
    corpora = manifest.corpora
    if len(corpora) < 2 or hparams is None:
        return ""
    weights = hparams.weights or [1] * len(corpora)
    in_epoch = []
    for corpus, weight in zip(corpora.values(), weights, strict=True):
        in_epoch.append(corpus.pairs * weight)
    rows = []
    for name, weight, pairs in zip(corpora, weights, in_epoch, strict=True):
        share = f"{pairs / sum(in_epoch):.1%}"
        rows.append([name, f"{corpora[name].pairs:,}", str(weight), share])
    header = ["corpus", "pairs", "weight", "share of an epoch"]
    return table(header, rows, "Training corpora, by corpus_weights")


def _files(entries: Iterable[tuple[str, RecordedFile]], caption: str = "") -> str:
    rows = []
    for kind, entry in entries:
        rows.append([kind, Code(entry.file), f"{entry.bytes:,}", Code(entry.sha256)])
    return table(["", "file", "bytes", "sha256"], rows, caption)
