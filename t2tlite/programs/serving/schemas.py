"""The request and the responses of the API: LibreTranslate's names, and optional fields
for what t2tlite's models know besides. /docs shows them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, FailFast, Field

from t2tlite.programs.serving.options import MAX_BEAM_SIZE, MAX_TREE_DEPTH
from t2tlite.texts import as_list

SENTENCE, TRANSLATION = "The cat sees the dog.", "Die Katze sieht den Hund."


class StopAtFirst(FailFast):
    """Stops the check of a list at its first wrong entry, so that a list of wrong
    entries costs no more than another; unlike FailFast it can be part of a union.
    """

    __hash__ = object.__hash__


TextOrTexts = str | Annotated[list[str], StopAtFirst()]


class TextRequest(BaseModel):
    """A request with texts. Forms have numbers as text; other fields are ignored, as
    LibreTranslate does.
    """

    q: TextOrTexts = Field(
        description="A text, or a list of texts.", examples=[SENTENCE]
    )
    api_key: str = Field(default="", description="Where one is needed.")

    def texts(self) -> list[str]:
        """All its texts."""
        return as_list(self.q)


class TranslateRequest(TextRequest):
    """Text to translate or to parse."""

    source: str | None = Field(
        default=None,
        description="Language code, or `auto`; needed where several are served.",
        examples=["en"],
    )
    target: str | None = Field(
        default=None,
        description=(
            "Language code, or `tree` to parse; needed where several are served."
        ),
        examples=["de"],
    )
    format: Literal["text", "html"] = Field(
        default="text",
        description=(
            "`text`, or `html`: each sentence is translated whole, its inline tags are"
            " put around the words aligned to theirs, and other markup, scripts, style"
            " sheets, code, and elements with translate=no stay as they are."
        ),
    )
    alternatives: int = Field(
        default=0, description="Further translations.", ge=0, lt=MAX_BEAM_SIZE
    )
    beam_size: int | None = Field(
        default=None,
        description="Hypotheses kept in the search. By default the model's.",
        ge=1,
        le=MAX_BEAM_SIZE,
    )
    alpha: float | None = Field(
        default=None,
        description="Exponent of the length penalty. By default the model's.",
    )
    segments: bool = Field(
        default=False,
        description="Also each sentence with its translations, scores and trees.",
    )
    alignments: bool = Field(
        default=False,
        description=(
            "Also word alignments in the segments, from the mean cross-attention over"
            " heads and layers. Needs the engine TensorFlow."
        ),
    )
    stream: bool = Field(
        default=False,
        description=(
            "Answer line by line (application/x-ndjson): the number of segments, each"
            " segment as soon as it is translated, and the response."
        ),
    )
    translation: TextOrTexts | None = Field(
        default=None,
        description=(
            "The translation of each text, to score it or to see its attention (there"
            " by default the model's own)."
        ),
    )

    def texts(self) -> list[str]:
        """All its texts."""
        return as_list(self.q) + as_list(self.translation or [])


class ResponseBody(BaseModel):
    """A response."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


Code = Annotated[str, Field(description="Language code.", examples=["en"])]
Name = Annotated[str, Field(description="English name.", examples=["English"])]


class Detection(ResponseBody):
    """A language that a text may be in."""

    confidence: float = Field(description="Percent.", examples=[90.0])
    language: Code


class Hypothesis(ResponseBody):
    """A translation of a sentence, or its tree."""

    text: str = Field(description="The translation, or the tree in brackets.")
    score: float = Field(
        description="Log-probability divided by the length penalty.", examples=[-0.31]
    )
    log_prob: float = Field(
        description="Natural logarithm; the end of the sentence included.",
        examples=[-1.2],
    )
    alignment: str | None = Field(
        default=None,
        description=(
            "Pairs of a word of `source` and a word of `text`, counted from 0. Words"
            " are separated by white space."
        ),
        examples=["0-0 1-1 2-2 3-3 4-4"],
    )
    tree: list[object] | None = Field(
        default=None,
        description=(
            "The tree as nested lists: a label, then children; words are strings."
            f" Absent above {MAX_TREE_DEPTH} levels."
        ),
    )
    svg: str | None = Field(default=None, description="A drawing of the tree.")
    repairs: dict[str, int] | None = Field(
        default=None,
        description="Repairs that made the decoded sequence a tree, by kind.",
    )


class Segment(ResponseBody):
    """A sentence and its translations."""

    source: str = Field(description="The sentence.", examples=[SENTENCE])
    before: str = Field(
        description=(
            "White space, and text without a letter or digit, before the sentence."
        )
    )
    hypotheses: list[Hypothesis] = Field(description="Best first.")


class TranslateResponse(ResponseBody):
    """Lists where q was a list."""

    translatedText: str | list[str] = Field(  # noqa: N815
        description="The translation of each text.", examples=[TRANSLATION]
    )
    alternatives: list[str] | list[list[str]] | None = Field(
        default=None, description="Where alternatives were wanted."
    )
    detectedLanguage: Detection | list[Detection] | None = Field(  # noqa: N815
        default=None, description="Where source was `auto`."
    )
    segments: list[Segment] | list[list[Segment]] | None = Field(
        default=None, description="Where segments were wanted."
    )


class ScoreResponse(ResponseBody):
    """The log-probability of each translation, its end of the sentence included."""

    scores: list[float]


class PlacedWord(ResponseBody):
    """A word, as white space separates them, and where it is."""

    text: str
    start: int = Field(description="Offset of its first character.", examples=[0])
    end: int = Field(description="Offset behind its last character.", examples=[3])


class AttentionResponse(ResponseBody):
    """Which source words each target word attends to: the mean over all heads and
    layers.
    """

    translation: str = Field(
        description="As given, or the model's own.", examples=[TRANSLATION]
    )
    source_words: list[PlacedWord]
    target_words: list[PlacedWord]
    weights: list[list[float]] = Field(
        description=(
            "A row for each target word, a column for each source word; rows sum to 1."
        )
    )


class LanguageName(ResponseBody):
    """A language."""

    code: Code
    name: Name


class Language(LanguageName):
    """A language and what it can be translated to."""

    targets: list[str] = Field(description="Language codes.", examples=[["de"]])


class Defaults(ResponseBody):
    """The languages that a client chooses first."""

    source: LanguageName
    target: LanguageName


class ModelDescription(ResponseBody):
    """A served model."""

    source: Code
    target: str = Field(description="Language code; `tree` for a parser.")
    source_name: Name
    target_name: Name
    problem: str = Field(description="The problem that it was trained on.")
    step: int = Field(description="The step of its checkpoint.")
    beam_size: int = Field(description="By default.")
    alpha: float = Field(description="By default.")
    examples: Sequence[str] = Field(
        description=(
            "Short sentences of the run's dev split, if its data is there and no API"
            " key is needed."
        )
    )


class Settings(ResponseBody):
    """Limits and defaults, by the names that LibreTranslate gives them; the models."""

    apiKeys: bool = Field(description="Whether the server has API keys.")  # noqa: N815
    keyRequired: bool = Field(description="Whether requests need one.")  # noqa: N815
    charLimit: int = Field(description="Most characters of a request.")  # noqa: N815
    filesTranslation: bool = False  # noqa: N815
    frontendTimeout: int = Field(  # noqa: N815
        default=500, description="Milliseconds that a page waits for typing to end."
    )
    language: Defaults
    suggestions: bool = False
    supportedFilesFormat: Sequence[str] = ()  # noqa: N815
    models: list[ModelDescription]


class ErrorResponse(ResponseBody):
    """What every error looks like."""

    error: str = Field(
        description="What is required, what was received, what to do.",
        examples=["The field q is required. It is missing or empty."],
    )


class StatusResponse(ResponseBody):
    """The state of the server."""

    status: str = Field(description="ok, loading, ready, draining or broken.")
