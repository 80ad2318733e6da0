"""What a run made of the sentences of a split: scores, and samples beside their sources and references."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from t2tlite.data.dataset import Dataset
from t2tlite.files.text_files import read_lines
from t2tlite.report.document import Block, Drawings, Listing, Paragraph, Table
from t2tlite.report.tree_drawing import tree_svg
from t2tlite.tasks.outputs import is_parsing, to_tree
from t2tlite.trees.tree import Tree, format_tree, parse_tree

SENTENCES, TREES = 8, 4  # shown


@dataclasses.dataclass(frozen=True)
class Decodes:
    """One decoding of a split, as `t2t-decoder --split` notes it in RUN/decodes/SPLIT.STEP.json."""

    path: Path
    split: str
    step: int
    checkpoint: str
    sentences: int
    scores: dict[str, float]
    signature: str
    options: dict[str, Any]
    seconds: float

    @property
    def checkpoint_name(self) -> str:
        """The checkpoint as seen from the run: model.ckpt-N, best/model.ckpt-N or averaged/model.ckpt-N."""
        path = Path(self.checkpoint)
        return f"{path.parent.name}/{path.name}" if path.parent.name in ("best", "averaged") else path.name

    def outputs(self) -> list[str]:
        """The best output for each sentence, from the text file beside the scores.

        Raises:
            OSError: there is none.
            ValueError: it has not as many lines as sentences were decoded, or is not UTF-8.
        """
        path = self.path.with_suffix(".txt")
        lines = list(read_lines(path))
        if self.options.get("return_beams", 1) > 1:  # NUMBER ||| OUTPUT ||| SCORE, best first
            best: dict[str, str] = {}
            for line in lines:
                number, _, rest = line.partition(" ||| ")
                best.setdefault(number, rest.rpartition(" ||| ")[0])
            lines = list(best.values())
        if len(lines) != self.sentences:
            raise ValueError(
                f"{path} must have the {self.sentences:,} outputs of {self.path.name}, has {len(lines):,}."
            )
        return lines


def read_decodes(folder: Path) -> tuple[list[Decodes], list[str]]:
    """The decodings noted in a run's folder, newest first, and a sentence about each that cannot be read."""
    found, complaints = [], []
    for path in (folder / "decodes").glob("*.json"):
        try:
            noted = json.loads(path.read_text(encoding="utf-8"))
            decodes = Decodes(
                path=path,
                split=str(noted["split"]),
                step=int(noted["step"]),
                checkpoint=str(noted.get("checkpoint", "")),
                sentences=int(noted["sentences"]),
                scores={name: value + 0 for name, value in noted["scores"].items()},  # must be numbers
                signature=str(noted.get("signature", "")),
                options=dict(noted.get("decode_hparams") or {}),
                seconds=float(noted.get("seconds") or 0.0),
            )
            found.append((path.stat().st_mtime, path.name, decodes))
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            complaints.append(f"decodes/{path.name} is damaged: {error!r}.")
    return [decodes for _, _, decodes in sorted(found, key=lambda entry: entry[:2], reverse=True)], complaints


def sample_blocks(decodes: Decodes, dataset: Dataset | None, manifest: dict[str, Any]) -> tuple[list[Block], list[str]]:
    """Some outputs, evenly apart, beside their sources and references; trees are drawn.

    Args:
        decodes: of which decoding.
        dataset: the run's data, for sources and references; None where it is not at hand.
        manifest: the run's.

    Returns:
        What to show, and a sentence about each thing that is missing.
    """
    try:
        outputs = decodes.outputs()
    except (OSError, ValueError) as error:
        return [], [f"The outputs of {decodes.path.name} cannot be shown: {error}"]
    sources, references, complaints = _texts(decodes, dataset)
    parsing = is_parsing(manifest)
    shown = spread(len(outputs), TREES if parsing else SENTENCES)
    count = f"{len(shown)} of {decodes.sentences:,} sentences"
    told = Paragraph([f"{count} of {decodes.split}, evenly apart, decoded at step {decodes.step:,}."])
    if parsing:
        blocks = [block for i in shown for block in _tree_blocks(i, outputs, sources, references, manifest)]
        return [told, *blocks], complaints
    if not sources:
        return [told, Table(["sentence", "output"], [[f"{i + 1:,}", outputs[i]] for i in shown])], complaints
    rows = [[f"{i + 1:,}", sources[i], outputs[i], references[i]] for i in shown]
    return [told, Table(["sentence", "source", "output", "reference"], rows)], complaints


def _texts(decodes: Decodes, dataset: Dataset | None) -> tuple[list[str], list[str], list[str]]:
    """Sources and references, both empty where they cannot be had, and why."""
    if dataset is None:
        return [], [], []  # said already
    try:
        store = dataset.store(decodes.split)
        if len(store) != decodes.sentences:
            raise ValueError(f"{decodes.split} has {len(store):,} pairs now, and had {decodes.sentences:,}.")
        return store.source_text(), store.target_text(), []
    except (OSError, ValueError) as error:
        return [], [], [f"Sources and references of {decodes.path.name} cannot be shown: {error}"]


def _tree_blocks(
    i: int, outputs: Sequence[str], sources: Sequence[str], references: Sequence[str], manifest: dict[str, Any]
) -> list[Block]:
    """A sentence, and its gold and predicted trees side by side."""
    trees: list[tuple[str, Tree]] = []
    failed = ""
    if sources:
        trees.append(("gold", to_tree(manifest, references[i], sources[i].split(), fit_tags=False).tree))
    try:
        trees.append(("predicted", parse_tree(outputs[i])))
    except ValueError as error:
        failed = f" The prediction is no tree: {error}"
    same = " The trees are the same." if len(trees) == 2 and trees[0][1] == trees[1][1] else ""
    sentence = sources[i] if sources else " ".join(trees[0][1].words()) if trees else ""
    blocks: list[Block] = [Paragraph([f"Sentence {i + 1:,}. {sentence}{same}{failed}"])]
    if trees:
        text = "\n".join(f"{name}: {format_tree(tree)}" for name, tree in trees)
        drawings = [tree_svg(tree) for _, tree in trees]
        blocks.append(Drawings(drawings, Listing(text), [name for name, _ in trees]))
    return blocks


def spread(count: int, wanted: int) -> list[int]:
    """`wanted` indices below `count`, evenly apart; all where there are no more."""
    return [i * count // wanted for i in range(wanted)] if count > wanted else list(range(count))
