"""What differs between kinds of problems: what becomes of decoded sequences, and how they are scored.

A problem names its task (`Problem.task`). Everything that decodes (evaluation during training, t2t-decoder, table 3,
the Python API) goes through `decoding/translator.py`, which asks the task. A new kind of problem is a subclass of
`Task` in a file of its own, with a line in `tasks/catalogue.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Protocol

from t2tlite.metrics.bleu import corpus_bleu


class Hypothesis(NamedTuple):
    """A hypothesis of beam search as text; of a translation model, a translation."""

    text: str
    score: float  # log-probability / length penalty

    @property
    def sequence(self) -> str:
        """The text as it was decoded."""
        return self.text


class Output(Protocol):
    """What a task makes of a hypothesis: its text on one line, its score, and the sequence as it was decoded."""

    @property
    def text(self) -> str: ...

    @property
    def score(self) -> float: ...

    @property
    def sequence(self) -> str: ...


class Score(NamedTuple):
    """Scores of a split; `scores[name]` is the metric that decides which checkpoint is the best."""

    name: str  # "BLEU" or "F1"
    scores: dict[str, float]  # percent, or where a whole number a count
    signature: str  # how they were computed

    @property
    def value(self) -> float:
        """The metric that decides."""
        return self.scores[self.name]

    def __str__(self) -> str:
        shown = {n: str(v) if isinstance(v, int) else f"{v:.2f}" for n, v in self.scores.items()}
        rest = ", ".join(f"{name} {value}" for name, value in shown.items() if name != self.name)
        return f"{self.name} {shown[self.name]}" + (f" ({rest})" if rest else "")


class Task:
    """A kind of problem."""

    name: ClassVar[str]  # as manifests record it
    outputs: ClassVar[str]  # what the outputs are called, in the plural
    labels: ClassVar[tuple[str, str, str]]  # of a source, an output and a reference that are shown together

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> Task:
        """The task of a problem with these options."""
        return cls()

    def source(self, sentence: str) -> str:
        """A sentence in the form in which the model was trained on sources."""
        return sentence

    def hypotheses(self, wanted: int, beam_size: int) -> int:
        """How many hypotheses of the beam `choose` needs to return `wanted` outputs."""
        return wanted

    def choose(self, source: str, hypotheses: Sequence[Hypothesis], wanted: int) -> list[Output]:
        """The `wanted` best outputs of a sentence, best first; by default the hypotheses themselves.

        The source is as `source` returned it; the hypotheses are those of the beam, highest score first.
        """
        return list(hypotheses[:wanted])

    def reference(self, source: str, reference: str) -> str:
        """A reference, given as the target in the token store, in the form of an output's text."""
        return reference

    def score(self, sources: Sequence[str], references: Sequence[str], sequences: Sequence[str]) -> Score:
        """The metrics of sequences as decoded; references are targets as the token store has them.

        If sources, references and sequences are not equally many, raises a ValueError.
        """
        raise NotImplementedError

    def summary(self, outputs: Sequence[Output]) -> str:
        """A line on what had to be done to make the outputs; empty if there is nothing to say."""
        return ""

    def as_sequences(self) -> Task:
        """The same task with decoded sequences left as they are."""
        return self

    def parser(self, problem: str) -> Task:
        """This task, if it makes trees; otherwise raises a ValueError whose message names the problem."""
        raise ValueError(f"Only a model of a parsing problem parses. Received: one of {problem}. Use translate.")


class TranslationTask(Task):
    """Translation: a decoded sequence is the translation, and the metric is sacrebleu's BLEU."""

    name = "translation"
    outputs = "translations"
    labels = ("source", "translation", "reference")

    def score(self, sources: Sequence[str], references: Sequence[str], sequences: Sequence[str]) -> Score:
        """BLEU, cased, with sacrebleu's standard tokenisation 13a."""
        bleu = corpus_bleu(sequences, references)
        return Score("BLEU", {"BLEU": bleu.result.score}, bleu.signature)
