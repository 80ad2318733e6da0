"""The request and the responses of the API: LibreTranslate's names, and optional fields
for what t2tlite's models know besides. /docs shows them with the sentences below them.
"""

from typing import Annotated, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    FailFast,
    Field,
    model_validator,
)

from t2tlite.programs.serving.options import MAX_BEAM_SIZE
from t2tlite.texts import as_list


class StopAtFirst(FailFast):
    """Stops the check of a list at its first wrong entry, so that a list of wrong
    entries costs no more than another; unlike FailFast it can be part of a union.
    """

    __hash__ = object.__hash__


TextOrTexts = str | Annotated[list[str], StopAtFirst()]
Terms = Annotated[dict[str, str], StopAtFirst()]


class TextRequest(BaseModel):
    """A request with texts. Forms have numbers as text; other fields are ignored, as
    LibreTranslate does.
    """

    model_config = ConfigDict(use_attribute_docstrings=True)

    q: TextOrTexts = Field(examples=["The cat sees the dog."])
    """A text, or a list of texts."""
    api_key: str = ""
    """Where one is needed."""

    @model_validator(mode="before")
    @classmethod
    def without_empty(cls, fields: object) -> object:
        """The fields without empty ones, which count as missing."""
        if not isinstance(fields, dict):
            return fields
        filled = {}
        for name, value in fields.items():
            if value not in (None, "", [], {}):
                filled[name] = value
        return filled

    def texts(self) -> list[str]:
        """All its texts."""
        return as_list(self.q)


class TranslateRequest(TextRequest):
    """Text to translate or to parse. Languages are needed where several are served;
    without a beam size, an alpha or a translation, the model's own is used.
    """

    source: str | None = None
    """Language code, or `auto`."""
    target: str | None = None
    """Language code, or `tree` to parse."""
    format: Literal["text", "html"] = "text"
    """With `html`, tags are put around the words aligned to theirs."""
    alternatives: int = Field(default=0, ge=0, lt=MAX_BEAM_SIZE)
    """Further translations."""
    beam_size: int | None = Field(default=None, ge=1, le=MAX_BEAM_SIZE)
    """Hypotheses kept in the search."""
    alpha: float | None = Field(default=None, ge=0, le=10)
    """Exponent of the length penalty."""
    glossary: Terms | None = None
    """Terms with their translations, in place of those of the server."""
    segments: bool = False
    """Also each sentence with its translations and scores."""
    alignments: bool = False
    """Segments whose translations have word alignments."""
    stream: bool = False
    """Answer line by line, each segment as soon as it is translated."""
    translation: str | None = None
    """The translation whose attention is shown."""

    def texts(self) -> list[str]:
        """All its texts."""
        terms = map("\t".join, (self.glossary or {}).items())
        return [*as_list(self.q), *as_list(self.translation or []), *terms]


class ResponseBody(BaseModel):
    """A response."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Detection(ResponseBody):
    """A language that a text may be in, with a confidence in percent."""

    confidence: float
    language: str


Detections = list[Detection] | list[list[Detection]]


class Hypothesis(ResponseBody):
    """A translation of a sentence, or its tree in brackets.

    The score is the log-probability divided by the length penalty; `log_prob` is the
    natural logarithm, the end of the sentence included. The alignment has pairs of a
    source word and a target word, such as `0-0 2-1`. A tree has a drawing, and the
    repairs by kind that made the decoded sequence a tree.
    """

    text: str
    score: float
    log_prob: float
    alignment: str | None = None
    svg: str | None = None
    repairs: dict[str, int] | None = None


class Segment(ResponseBody):
    """A sentence and its translations, best first. Before it are white space, and text
    without a letter or digit.
    """

    source: str
    before: str
    hypotheses: list[Hypothesis]


class TranslateResponse(ResponseBody):
    """Lists where q was a list."""

    translatedText: str | list[str]  # noqa: N815
    alternatives: list[str] | list[list[str]] | None = None
    detectedLanguage: Detection | list[Detection] | None = None  # noqa: N815
    segments: list[Segment] | list[list[Segment]] | None = None


class PlacedWord(ResponseBody):
    """A word, as white space separates them, and the offsets of its first character and
    behind its last.
    """

    text: str
    start: int
    end: int


class AttentionResponse(ResponseBody):
    """The mean attention over all heads and layers: for each target word, a weight for
    each source word; the weights of a row sum to 1.
    """

    translation: str
    source_words: list[PlacedWord]
    target_words: list[PlacedWord]
    weights: list[list[float]]


class Language(ResponseBody):
    """A language, and the codes of those that it can be translated to."""

    code: str
    name: str
    targets: list[str]


class ModelDescription(ResponseBody):
    """A served model: its language codes, of which the target is `tree` for a parser,
    the problem and the step of its run, its defaults, and short sentences
    of the run's dev split, if its data is there and no API key is needed.
    """

    source: str
    target: str
    problem: str
    step: int
    beam_size: int
    alpha: float
    examples: tuple[str, ...]


class Settings(ResponseBody):
    """Limits, by the names that LibreTranslate gives them, and the models."""

    keyRequired: bool  # noqa: N815
    charLimit: int  # noqa: N815
    models: list[ModelDescription]


class ErrorResponse(ResponseBody):
    """What is required, what was received, what to do."""

    error: str


class StatusResponse(ResponseBody):
    """The state of the server: ok, loading, ready or draining."""

    status: str
