"""The summary that t2t-datagen prints: what was made, found and dropped."""

from __future__ import annotations

import dataclasses

from t2tlite.console import counted
from t2tlite.data.dataset import Dataset
from t2tlite.data.manifest import SplitEntry
from t2tlite.vocabularies.sentencepiece_encoder import PIECES


@dataclasses.dataclass(frozen=True)
class Generated:
    """The result of `generate`; `str` gives a summary to print."""

    dataset: Dataset
    seconds: float
    already_there: bool  # the data was already complete, and nothing was done

    def __str__(self) -> str:
        manifest = self.dataset.manifest
        done = f"made in {self.seconds:,.1f} s"
        if self.already_there:
            done = "already complete, nothing to do"
        entries = manifest.vocabulary_entries()
        sizes = " and ".join(f"{entry.size:,}" for entry in entries)
        kind = manifest.options.get("vocab_type", PIECES)
        lines = [
            f"{manifest.name}: {done}. The data is in {self.dataset.folder}.",
            f"  vocabulary  {sizes} {'pieces' if kind == PIECES else kind}",
        ]
        for split in manifest.splits:
            lines += _split_lines(split, manifest.split(split))
        return "\n".join(lines)


def _split_lines(name: str, split: SplitEntry) -> list[str]:
    """What a split contains, what would spoil a result, and what was dropped of it."""
    lines = [
        f"  {name:<10}  {counted(split.pairs, 'pair')}, {split.source_tokens:,} source"
        f" and {split.target_tokens:,} target tokens, at most {split.longest_source:,}"
        f" and {split.longest_target:,}"
    ]
    if split.source_unknown or split.target_unknown:
        source = split.source_unknown / max(split.source_tokens, 1)
        target = split.target_unknown / max(split.target_tokens, 1)
        lines.append(
            f"              unknown: {source:.1%} of source and {target:.1%} of target"
            " tokens, which the vocabulary lacks; learn it from text of both sides"
        )
    for what, counts in (("found", split.findings), ("dropped", split.dropped)):
        parts = []
        for reason, count in counts.items():
            if count:
                parts.append(f"{count:,} {reason.replace('_', ' ')}")
        if parts:
            lines.append(f"              {what}: {', '.join(parts)}")
    return lines
