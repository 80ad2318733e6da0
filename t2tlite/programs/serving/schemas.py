"""What requests and responses of t2t-serve's own API look like; their fields are what /docs shows.

pydantic reads these dataclasses: it checks requests against them, and FastAPI describes them in /openapi.json.
"""

# ruff: noqa: RUF009 (`_field` returns a dataclass field)

from __future__ import annotations

import dataclasses
from typing import Any

REFUSE_OTHERS = {"extra": "forbid"}  # pydantic's option: a field that is not known is an error


def _field(description: str, *examples: Any, default: Any = dataclasses.MISSING, **limits: float) -> Any:
    metadata = {"description": description, "examples": list(examples), **limits}
    return dataclasses.field(default=default, metadata={k: v for k, v in metadata.items() if v != []})


def _source() -> Any:
    return _field("Language code of the text; needed where several models are served.", "en", default=None)


def _target() -> Any:
    return _field("Language code of the translation; likewise.", "de", default=None)


@dataclasses.dataclass(frozen=True, kw_only=True)
class TranslateRequest:
    """Text to translate."""

    __pydantic_config__ = REFUSE_OTHERS
    q: str | list[str] = _field("A text, or a list of texts.", "The cat sleeps. The dog does not.")
    source: str | None = _source()
    target: str | None = _target()
    n_best: int = _field("Translations of each sentence, best first.", 3, default=1, ge=1)
    beam_size: int | None = _field(
        "Hypotheses kept in the search; 1 is greedy search. By default the model's.", 4, default=None, ge=1
    )
    alpha: float | None = _field("Exponent of the length penalty. By default the model's.", 0.6, default=None, ge=0)
    stream: bool = _field(
        "Answer line by line (application/x-ndjson): a segment as soon as it is translated; q is one text.",
        default=False,
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Hypothesis:
    """A translation of a sentence."""

    text: str
    score: float = _field("Log-probability divided by the length penalty.", -0.31)
    log_prob: float | None = _field("Log-probability (natural), the end of the sentence included.", -1.2)


@dataclasses.dataclass(frozen=True, kw_only=True)
class TranslatedSegment:
    """A sentence and its translations."""

    source: str = _field("The sentence.", "The cat sleeps.")
    before: str = _field("The white space before it.", "", " ", "\n\n")
    hypotheses: list[Hypothesis] = _field("Its translations, best first.")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Translation:
    """A translated text."""

    text: str = _field("The whole translation, with the text's white space.", "Die Katze schläft.")
    segments: list[TranslatedSegment]
    after: str = _field("The white space at the end.", "")


@dataclasses.dataclass(frozen=True, kw_only=True)
class TranslateResponse:
    """A translation for each text."""

    translations: list[Translation]


@dataclasses.dataclass(frozen=True, kw_only=True)
class ScoreRequest:
    """Pairs of sentences whose log-probabilities are wanted."""

    __pydantic_config__ = REFUSE_OTHERS
    pairs: list[tuple[str, str]] = _field(
        "Each a sentence and its translation.", [["The cat sleeps.", "Die Katze schläft."]]
    )
    source: str | None = _source()
    target: str | None = _target()


@dataclasses.dataclass(frozen=True, kw_only=True)
class Score:
    """The log-probability of a pair."""

    log_prob: float = _field("Log-probability (natural) of the target given its source.", -1.2)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ScoreResponse:
    """A score for each pair."""

    scores: list[Score]


@dataclasses.dataclass(frozen=True, kw_only=True)
class ParseRequest:
    """Sentences to parse, their words and punctuation separated by spaces."""

    __pydantic_config__ = REFUSE_OTHERS
    q: str | list[str] = _field("A text, which is split into sentences, or a list of sentences.", "The cat sleeps .")
    source: str | None = _source()


@dataclasses.dataclass(frozen=True, kw_only=True)
class Parse:
    """A sentence and its tree."""

    sentence: str = _field("The sentence.", "The cat sleeps .")
    brackets: str = _field("The tree in brackets; empty for a blank sentence.", "(TOP (S (NP (DT The) (NN cat)) ...))")
    tree: list[Any] | None = _field("The tree as nested lists: a label, then children; words are strings.")
    score: float = _field("Log-probability of the decoded sequence divided by the length penalty.", -0.31)
    repairs: dict[str, int] = _field("What had to be repaired to make a tree, by kind.")
    svg: str = _field("A drawing of the tree, an <svg> element; empty for a blank sentence.")


@dataclasses.dataclass(frozen=True, kw_only=True)
class ParseResponse:
    """A parse for each sentence."""

    parses: list[Parse]


@dataclasses.dataclass(frozen=True, kw_only=True)
class AttentionRequest:
    """A sentence whose cross-attention is wanted."""

    __pydantic_config__ = REFUSE_OTHERS
    q: str = _field("The sentence.", "The cat sleeps.")
    translation: str | None = _field("Its translation; by default the model's own.", default=None)
    source: str | None = _source()
    target: str | None = _target()


@dataclasses.dataclass(frozen=True, kw_only=True)
class Word:
    """A word and where it is."""

    text: str
    start: int = _field("Offset of its first character.", 0)
    end: int = _field("Offset behind its last character.", 3)


@dataclasses.dataclass(frozen=True, kw_only=True)
class AttentionResponse:
    """Which source words each target word attends to: the mean over all heads and layers."""

    translation: str = _field("The translation, as given or the model's own.", "Die Katze schläft.")
    source_words: list[Word]
    target_words: list[Word]
    weights: list[list[float]] = _field("A row for each target word, a column for each source word; rows sum to 1.")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Model:
    """A served model."""

    source: str = _field("Language code.", "en")
    target: str = _field("Language code; `tree` for a parser.", "de")
    source_name: str = _field("The language's English name.", "English")
    target_name: str = _field("The language's English name.", "German")
    task: str = _field("translation or parsing.", "translation")
    problem: str = _field("The problem that it was trained on.", "grammar_ende")
    step: int = _field("The step of its checkpoint.", 1000)
    beam_size: int = _field("By default.", 4)
    alpha: float = _field("By default.", 0.6)
    max_characters: int = _field("Most characters of a request.", 20000)
    max_beam_size: int = _field("Largest beam_size that a request may ask for.", 16)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ModelsResponse:
    """All served models."""

    models: list[Model]


@dataclasses.dataclass(frozen=True, kw_only=True)
class LibreTranslateRequest:
    """What LibreTranslate's clients send."""

    q: str | list[str] = _field("A text, or a list of texts.", "The cat sleeps.")
    source: str = _field("Language code, or `auto`.", "en")
    target: str = _field("Language code.", "de")
    format: str = _field(
        "`text`, or `html`: tags, scripts and style sheets stay as they are, and the text between two tags is "
        "translated by itself.",
        default="text",
    )
    alternatives: int = _field("Further translations that are wanted.", default=0, ge=0)
    api_key: str = _field("Where one is needed.", default="")


@dataclasses.dataclass(frozen=True, kw_only=True)
class LibreDetection:
    """A language that a text may be in."""

    confidence: float = _field("Percent.", 90.0)
    language: str = _field("Language code.", "en")


@dataclasses.dataclass(frozen=True, kw_only=True)
class LibreTranslateResponse:
    """Lists where q was a list."""

    translatedText: str | list[str] = _field("The translation of each text.", "Die Katze schläft.")  # noqa: N815
    alternatives: list[str] | list[list[str]] | None = _field("Where alternatives were wanted.", default=None)
    detectedLanguage: LibreDetection | list[LibreDetection] | None = _field(  # noqa: N815
        "Where source was `auto`.", default=None
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class LibreDetectRequest:
    """What LibreTranslate's clients send."""

    q: str = _field("A text.", "The cat sleeps.")
    api_key: str = _field("Where one is needed.", default="")


@dataclasses.dataclass(frozen=True, kw_only=True)
class LibreLanguage:
    """A language and what it can be translated to."""

    code: str = _field("Language code.", "en")
    name: str = _field("Its English name.", "English")
    targets: list[str] = _field("Language codes.", ["de"])


@dataclasses.dataclass(frozen=True, kw_only=True)
class ErrorResponse:
    """What every error looks like."""

    error: str = _field("What is required, what was received, what to do.", "No model translates en to xx.")


@dataclasses.dataclass(frozen=True, kw_only=True)
class StatusResponse:
    """The state of the server."""

    status: str = _field("ok, loading, ready or draining.", "ok")
