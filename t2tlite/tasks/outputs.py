"""What a model decoded of a split, scored as its task asks: BLEU of translations, labelled F1 of trees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from t2tlite.metrics.bleu import corpus_bleu
from t2tlite.trees.evalb import evalb
from t2tlite.trees.restore import Restored, restore, t2t_restore

EVALB_SIGNATURE = "EVALB, COLLINS.prm, all lengths"


class OutputScore(NamedTuple):
    """Scores of a split; `scores[name]` is the one that counts."""

    name: str  # "BLEU" or "F1"
    scores: dict[str, float]  # percent, or where a whole number a count
    signature: str  # how they were computed

    @property
    def value(self) -> float:
        """The score that counts."""
        return self.scores[self.name]

    def __str__(self) -> str:
        shown = {n: str(v) if isinstance(v, int) else f"{v:.2f}" for n, v in self.scores.items()}
        rest = ", ".join(f"{name} {value}" for name, value in shown.items() if name != self.name)
        return f"{self.name} {shown[self.name]}" + (f" ({rest})" if rest else "")


def score_outputs(
    manifest: Mapping[str, Any], sources: Sequence[str], references: Sequence[str], outputs: Sequence[str]
) -> OutputScore:
    """Scores decoded text.

    Args:
        manifest: of the run; says the task, and of parsing how trees are linearised.
        sources: the sentences.
        references: the targets as the token store has them: translations, or linearised trees.
        outputs: what was decoded, in the same form.

    Raises:
        ValueError: sources, references and outputs are not equally many, or of parsing a source is blank.
    """
    if not is_parsing(manifest):
        bleu = corpus_bleu(outputs, references)
        return OutputScore("BLEU", {"BLEU": bleu.score}, bleu.signature)
    words = [source.split() for source in sources]
    rows = zip(references, outputs, words, strict=True)
    trees = [(to_tree(manifest, r, w, fit_tags=False).tree, to_tree(manifest, o, w).tree) for r, o, w in rows]
    score, _ = evalb([gold for gold, _ in trees], [predicted for _, predicted in trees])
    scores = {
        "F1": score.f1,
        "recall": score.recall,
        "precision": score.precision,
        "complete match": score.complete_match,
        "unscored sentences": score.errors + score.skipped,
    }
    if _linearisation(manifest) in ("tags", "t2t"):  # otherwise nearly all tags are XX
        scores["tagging accuracy"] = score.tagging_accuracy
    return OutputScore("F1", scores, EVALB_SIGNATURE)


def is_parsing(manifest: Mapping[str, Any]) -> bool:
    """Whether targets are linearised trees."""
    return manifest.get("task") == "parsing"


def to_tree(manifest: Mapping[str, Any], sequence: str, words: Sequence[str], fit_tags: bool = True) -> Restored:
    """The tree of a linearised sequence over the given words; `data.restore.restore` says by which rules.

    Args:
        manifest: of a parsing problem.
        sequence: as decoded.
        words: of the sentence; at least one.
        fit_tags: correct tags of punctuation; False for gold trees.
    """
    linearisation = _linearisation(manifest)
    if linearisation == "t2t":
        return t2t_restore(sequence, words, fit_tags)
    return restore(sequence, words, fit_tags, "words" if linearisation == "words" else "normalised")


def rank_parses(
    manifest: Mapping[str, Any], sequences: Sequence[str], words: Sequence[str], wanted: int = 1
) -> list[tuple[int, Restored]]:
    """The trees of a sentence's decoded sequences, those first whose words and tags are most nearly the sentence's.

    A sequence that leaves words out is often more probable than one that deals with all of them.

    Args:
        manifest: of a parsing problem.
        sequences: as decoded, the most probable one first; that order stays among equals.
        words: of the sentence; at least one.
        wanted: how many to return at most.

    Returns:
        (place in `sequences`, tree) of each.
    """
    trees: list[tuple[int, Restored]] = []
    fitting = 0
    for number, sequence in enumerate(sequences):
        trees.append((number, to_tree(manifest, sequence, words)))
        fitting += not trees[-1][1].misaligned
        if fitting == wanted:  # none of the rest comes before these, and making trees takes time
            break
    return sorted(trees, key=lambda tree: tree[1].misaligned)[:wanted]


def _linearisation(manifest: Mapping[str, Any]) -> str:
    """How a parsing problem writes its trees; one of a user's may have no such option."""
    return manifest["options"].get("linearisation", "normalised")
