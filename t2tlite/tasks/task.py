"""Tasks: what differs between kinds of problems, which is how decoded sequences become
outputs and how these are scored.

A problem names its task (`Problem.task`). Everything that decodes (evaluation during
training, t2t-decoder, t2t-serve, Table 3, the Python API) goes through
`decoding/text_decoder.py`, which calls the task. A new kind of problem is a subclass of
`Task` in a file of its own, registered by `register_task`.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

from t2tlite.metrics.corpus_metrics import (
    OF_TASK,
    Scoring,
    corpus_scores,
    counts_errors,
    make_metrics,
)
from t2tlite.registry import get_task, register_task
from t2tlite.tasks.bracketing import Bracketing
from t2tlite.trees.tree import Tree
from t2tlite.vocabularies.normalisation import normalise
from t2tlite.vocabularies.text_encoder import TextEncoder

# stands for a space inside a word of a pronunciation, as in "bò sữa"
INNER_SPACE = "_"


@dataclasses.dataclass(frozen=True)
class Output:
    """What a task made of a decoded sequence: a translation, or a parse.

    Attributes:
        text: the translation, or the tree in brackets, on one line.
        score: the log-probability divided by the length penalty.
        log_prob: the log-probability (natural) of the decoded sequence, its EOS
            included.
        ids: the ids of the sequence's tokens, without the EOS.
        decoded: the sequence as text, if `text` is another.
        alignment: pairs of a source word and a target word, if they were computed.
        tree: of a parse, the tree over the sentence's words, under TOP; None for a
            blank sentence.
        repairs: of a parse, the kinds of repairs that made a tree of the sequence, and
            how many; empty for most.
    """

    text: str
    score: float
    log_prob: float
    ids: tuple[int, ...] = ()
    decoded: str = ""
    alignment: list[tuple[int, int]] | None = None
    tree: Tree | None = None
    repairs: Mapping[str, int] | None = None

    @property
    def sequence(self) -> str:
        """The text as it was decoded."""
        return self.decoded or self.text

    def as_json(self, digits: int | None = None) -> dict[str, Any]:
        """The text, the log-probability and the score, with so many digits after the
        point, and the alignment in Pharaoh's format.

        >>> Output("Kater", -0.5, -0.75, alignment=[(0, 0), (2, 1)]).as_json()
        {'text': 'Kater', 'log_prob': -0.75, 'score': -0.5, 'alignment': '0-0 2-1'}
        """
        record: dict[str, Any] = {"text": self.text}
        for name, value in (("log_prob", self.log_prob), ("score", self.score)):
            record[name] = value if digits is None else round(value, digits)
        if self.alignment is not None:
            pairs = (f"{source}-{target}" for source, target in self.alignment)
            record["alignment"] = " ".join(pairs)
        return record


Texts = Sequence[str]
TextColumns = Sequence[Texts]
Outputs = Sequence[Output]


class Score(NamedTuple):
    """Scores of a split.

    Attributes:
        name: the main metric, by which the best checkpoint is chosen: "BLEU", "F1" or
            "exact_match".
        scores: the values by metric: percent, or counts, which are whole numbers.
        signatures: how they were computed, by metric; of metrics that are computed
            together, only the first has one.
        intervals: half of the 95% confidence interval, by metric, where it was asked
            for.
    """

    name: str
    scores: dict[str, float]
    signatures: dict[str, str]
    intervals: dict[str, float] = {}  # noqa: RUF012 - never changed

    @property
    def value(self) -> float:
        """The main metric."""
        return self.scores[self.name]

    @property
    def metrics(self) -> dict[str, float]:
        """The metrics that evaluations record, by name in lower case: bleu and chrf2,
        or f1.
        """
        return {name.lower(): self.scores[name] for name in self.signatures}

    def __str__(self) -> str:
        shown = {}
        for name, value in self.scores.items():
            number = str(value) if isinstance(value, int) else f"{value:.2f}"
            shown[name] = f"{name} {number}"
            if name in self.intervals:
                shown[name] += f" ± {self.intervals[name]:.2f}"
        main = shown.pop(self.name)
        return f"{main} ({', '.join(shown.values())})" if shown else main


def lower_is_better(name: str) -> bool:
    """Whether the score that evaluations record under this name counts errors."""
    try:
        return counts_errors(*make_metrics([name]))
    except ValueError:  # the name of the result alone, chrf2
        return False


def signature_lines(signatures: Mapping[str, str]) -> list[str]:
    """A line for each signature, with the name of its metric if there are several."""
    if len(signatures) == 1:
        return list(signatures.values())
    return [f"{name}|{signature}" for name, signature in signatures.items()]


def open_task(name: str, options: Mapping[str, object]) -> Task:
    """The task of this name for a problem with these options; ValueError if no such
    task is registered.
    """
    task: Task = get_task(name).from_options(options)
    return task


class Task:
    """A kind of problem."""

    name: ClassVar[str]  # as manifests record it
    # what the outputs are called, in the plural
    outputs: ClassVar[str]
    # of the name of a file with references
    references_ending: ClassVar[str] = "ref"
    # whether `source` and `choose` keep the words of texts, which can then be aligned
    keeps_words: ClassVar[bool] = True
    # registered metrics of outputs, by which two runs are compared
    all_metrics: ClassVar[tuple[str, ...]] = ("exact_match",)

    @classmethod
    def from_options(cls, options: Mapping[str, object]) -> Task:
        """The task of a problem with these options."""
        return cls()

    def source(self, sentence: str) -> str:
        """A sentence in the form of the sources in training, which themselves stay as
        they are.
        """
        return sentence

    def constraint(self, source: str, vocabulary: TextEncoder) -> Bracketing | None:
        """The sequences in a target vocabulary that `tree_constraint` allows for a
        source; None if it allows all.

        The source is as `source` returned it. Raises ValueError if the task has no such
        constraint.
        """
        raise ValueError(
            f"tree_constraint requires a parser. Received: a model of {self.outputs}."
        )

    def hypotheses(self, wanted: int, beam_size: int) -> int:
        """How many hypotheses of the beam `choose` needs to return `wanted` outputs."""
        return wanted

    def choose(self, source: str, hypotheses: Outputs, wanted: int) -> list[Output]:
        """The `wanted` best outputs of a sentence, best first; by default the
        hypotheses themselves.

        The source is as `source` returned it; the hypotheses are those of the beam,
        highest score first.
        """
        return list(hypotheses[:wanted])

    def reference(self, source: str, target: str) -> str:
        """The reference for a source, in the form of an output's text, from a target of
        the token store.
        """
        return target

    def scored_rows(
        self,
        columns: TextColumns,
        references: TextColumns,
    ) -> list[TextColumns]:
        """The columns and the references of what is scored; by default every line is.

        The first column are the sources.
        """
        return [columns, references]

    def score(
        self,
        sources: Texts,
        references: Texts,
        outputs: Outputs,
        slow_metrics: bool = False,
    ) -> Score:
        """The metrics of the outputs for sources; references are as `reference`
        returned them.

        `slow_metrics` adds those that take long, such as TER: seconds for thousands of
        sentences. Raises ValueError if the numbers of sources, references and outputs
        differ.
        """
        raise NotImplementedError

    def tally(self, outputs: Outputs) -> Counter[str]:
        """Counts of what was done to make the outputs; those of several windows can be
        added.
        """
        return Counter()

    def summary(self, tally: Mapping[str, int]) -> str:
        """A line on what was done to make the outputs, from their tally, or ""."""
        return ""

    def as_sequences(self) -> Task:
        """The same task, but its outputs are the decoded sequences themselves."""
        return self

    def scored_by(self, scoring: Scoring) -> Task:
        """The same task with other metrics, or more references. Raises ValueError if
        the task has metrics of its own alone, or one needs a missing package.
        """
        if scoring == OF_TASK:
            return self
        raise ValueError(
            "Metrics and references can be chosen for text. Received: a model of"
            f" {self.outputs}."
        )


@register_task
@dataclasses.dataclass(frozen=True)
class TranslationTask(Task):
    """Translation: a decoded sequence is the translation; the metrics are sacrebleu's,
    mainly BLEU.
    """

    scoring: Scoring = OF_TASK

    name = "translation"
    outputs = "translations"
    # by default; TER takes seconds for thousands of sentences
    fast_metrics: ClassVar[tuple[str, ...]] = ("bleu", "chrf")
    all_metrics: ClassVar[tuple[str, ...]] = ("bleu", "chrf", "ter")

    def scored_by(self, scoring: Scoring) -> Task:
        make_metrics(scoring.metrics or self.all_metrics, scoring.options)
        return dataclasses.replace(self, scoring=scoring)

    def score(
        self,
        sources: Texts,
        references: Texts,
        outputs: Outputs,
        slow_metrics: bool = False,
    ) -> Score:
        """BLEU, cased, with sacrebleu's standard tokenisation 13a; chrF2; and TER with
        `slow_metrics`; or what `scored_by` was given. The first metric is the main one.
        """
        texts = [output.text for output in outputs]
        scored, all_references = self.scored_rows(
            (sources, texts), (references, *self.scoring.more_references)
        )
        metrics = self.all_metrics if slow_metrics else self.fast_metrics
        computed = corpus_scores(
            scored[1],
            all_references[0],
            self.scoring.metrics or metrics,
            self.scoring.options,
            all_references[1:],
        )
        total = Score(computed[0].result.name, {}, {}, {})
        for score in computed:
            name = score.result.name
            total.scores[name] = score.result.score
            total.signatures[name] = score.signature
            if score.interval is not None:
                total.intervals[name] = score.interval
        return total


@register_task
@dataclasses.dataclass(frozen=True)
class TextToTextTask(TranslationTask):
    """Text of which only one output is right, such as a pronunciation or a sorted list:
    scored by exact match and token accuracy, tokens being what white space separates.
    """

    name = "text_to_text"
    outputs = "outputs"
    fast_metrics: ClassVar[tuple[str, ...]] = ("exact_match", "token_accuracy")
    all_metrics = fast_metrics


@register_task
@dataclasses.dataclass(frozen=True)
class PronunciationTask(TextToTextTask):
    """Grapheme-to-phoneme conversion: words to phonemes, scored as in the field, by the
    share of words that are wrong and by edits of phonemes.

    A word that occurs in several lines of a split, with a pronunciation each, is scored
    once, against all of them.
    """

    name = "pronunciation"
    outputs = "pronunciations"
    keeps_words = False
    fast_metrics = ("exact_match", "wer", "per")
    all_metrics = fast_metrics

    def source(self, sentence: str) -> str:
        """The letters, separated by spaces."""
        return letters(sentence)

    def scored_rows(
        self,
        columns: TextColumns,
        references: TextColumns,
    ) -> list[TextColumns]:
        """The different words, each with all its pronunciations."""
        first: dict[str, Texts] = {}
        spoken: dict[str, list[str]] = {}
        count = len(columns)
        for row in zip(*columns, *references, strict=True):
            first.setdefault(row[0], row[:count])
            spoken.setdefault(row[0], []).extend(row[count:])
        most = max(map(len, spoken.values()), default=1)
        for pronunciations in spoken.values():
            pronunciations += pronunciations[:1] * (most - len(pronunciations))
        tables = first.values(), spoken.values()
        return [list(zip(*table, strict=True)) for table in tables]


def letters(word: str) -> str:
    """The letters of a word as tokens, with a language tag before them as one. Letters
    that are separated already, as in a data set, stay as they are.

    >>> letters("cat"), letters("<vie> bò sữa"), letters("<vie> b ò _ s ữ a")
    ('c a t', '<vie> b ò _ s ữ a', '<vie> b ò _ s ữ a')
    """
    text = normalise(word)  # a letter and its accents are one
    tag, _, rest = text.partition(" ")
    if not (tag.startswith("<") and tag.endswith(">") and rest):
        tag, rest = "", text
    parts = rest.split()
    is_separated = max(map(len, parts), default=0) <= 1
    separated = " ".join(parts if is_separated else INNER_SPACE.join(parts))
    return f"{tag} {separated}".strip()
