"""Samples of a run's outputs for a split, beside their sources and references; trees
are drawn.
"""

from __future__ import annotations

from collections.abc import Sequence

from t2tlite.decoding.source_text import evenly_spaced
from t2tlite.programs.report.document import drawings, folded, listing, paragraph, table
from t2tlite.tasks.parsing import ParsingTask
from t2tlite.tasks.task import Task
from t2tlite.trees.tree import format_tree, parse_tree
from t2tlite.trees.tree_drawing import tree_svg

SENTENCES, TREES = 8, 4  # shown


def sample_blocks(
    task: Task,
    outputs: Sequence[str],
    sources: Sequence[str] = (),
    references: Sequence[str] = (),
) -> list[str]:
    """Some outputs, evenly spread over a split, as blocks of a document.

    `outputs` has the best of each sentence, `references` the targets of the token
    store; sources and references are empty if they are not known.
    """
    if isinstance(task, ParsingTask):
        blocks = []
        for i in evenly_spaced(len(outputs), TREES):
            texts = {"predicted": outputs[i]}
            sentence = ""
            if sources:
                sentence = sources[i]
                texts = {"gold": task.reference(sentence, references[i]), **texts}
            blocks += _tree_blocks(f"Sentence {i + 1:,}.", sentence, texts)
        return blocks
    columns = {"output": outputs}
    if sources:
        columns = {"source": sources, "output": outputs, "reference": references}
    rows = []
    for i in evenly_spaced(len(outputs), SENTENCES):
        rows.append([f"{i + 1:,}", *[texts[i] for texts in columns.values()]])
    return [table(["sentence", *columns], rows)]


def _tree_blocks(number: str, sentence: str, texts: dict[str, str]) -> list[str]:
    """A sentence with its trees side by side; `texts` has the bracketed trees by
    caption.
    """
    trees = {}
    note = ""
    for name, text in texts.items():
        try:
            trees[name] = parse_tree(text)
        except ValueError as error:
            note = f" The prediction is not a tree: {error}"
    if len(trees) == 2 and trees["gold"] == trees["predicted"]:
        note = " The trees are the same."
    if not trees:
        return [paragraph(f"{number} {sentence}{note}")]
    words = sentence or " ".join(trees["predicted"].words())
    svgs = []
    brackets = []
    for name, tree in trees.items():
        svgs.append(tree_svg(tree))
        brackets.append(f"{name}: {format_tree(tree)}")
    return [
        paragraph(f"{number} {words}{note}"),
        drawings(svgs, list(trees)),
        folded("The same in brackets", listing("\n".join(brackets))),
    ]
