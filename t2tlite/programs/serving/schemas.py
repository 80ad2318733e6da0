"""The request and the responses of the API: LibreTranslate's names, and optional fields
for what t2tlite's models know besides. /docs shows them with the sentences below them.
"""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, FailFast, Field

from t2tlite.programs.serving.options import MAX_BEAM_SIZE
from t2tlite.texts import as_list

SENTENCE = "The cat sees the dog."


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

    model_config = ConfigDict(use_attribute_docstrings=True)

    q: TextOrTexts = Field(examples=[SENTENCE])
    """A text, or a list of texts."""
    api_key: str = ""
    """Where one is needed."""

    def texts(self) -> list[str]:
        """All its texts."""
        return as_list(self.q)


class TranslateRequest(TextRequest):
    """Text to translate or to parse."""

    source: str | None = Field(default=None, examples=["en"])
    """Language code, or `auto`; needed where several are served."""
    target: str | None = Field(default=None, examples=["de"])
    """Language code, or `tree` to parse; needed where several are served."""
    format: Literal["text", "html"] = "text"
    """With `html`, tags are put around the words aligned to theirs, and other markup
    stays."""
    alternatives: int = Field(default=0, ge=0, lt=MAX_BEAM_SIZE)
    """Further translations."""
    beam_size: int | None = Field(default=None, ge=1, le=MAX_BEAM_SIZE)
    """Hypotheses kept in the search. By default the model's."""
    alpha: float | None = Field(default=None, ge=0, le=10)
    """Exponent of the length penalty. By default the model's."""
    segments: bool = False
    """Also each sentence with its translations, scores and trees."""
    alignments: bool = False
    """Also word alignments in the segments. Needs the engine TensorFlow."""
    stream: bool = False
    """Answer line by line (application/x-ndjson): the number of segments, each segment
    as soon as it is translated, and the response."""
    translation: TextOrTexts | None = None
    """The translation of each text, to score it or to see its attention (there by
    default the model's own)."""

    def texts(self) -> list[str]:
        """All its texts."""
        return as_list(self.q) + as_list(self.translation or [])


class ResponseBody(BaseModel):
    """A response."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        allow_inf_nan=False,
        use_attribute_docstrings=True,
    )


class Detection(ResponseBody):
    """A language that a text may be in."""

    confidence: float
    """Percent."""
    language: str


class Hypothesis(ResponseBody):
    """A translation of a sentence, or its tree."""

    text: str
    """The translation, or the tree in brackets."""
    score: float
    """Log-probability divided by the length penalty."""
    log_prob: float
    """Natural logarithm; the end of the sentence included."""
    alignment: str | None = None
    """Pairs of a word of `source` and a word of `text`, counted from 0."""
    tree: list[object] | None = None
    """The tree as nested lists: a label, then children; words are strings. Absent if it
    is too deep."""
    svg: str | None = None
    repairs: dict[str, int] | None = None
    """Repairs that made the decoded sequence a tree, by kind."""


class Segment(ResponseBody):
    """A sentence and its translations."""

    source: str
    before: str
    """White space, and text without a letter or digit, before the sentence."""
    hypotheses: list[Hypothesis]
    """Best first."""


class TranslateResponse(ResponseBody):
    """Lists where q was a list."""

    translatedText: str | list[str]  # noqa: N815
    alternatives: list[str] | list[list[str]] | None = None
    detectedLanguage: Detection | list[Detection] | None = None  # noqa: N815
    segments: list[Segment] | list[list[Segment]] | None = None


class ScoreResponse(ResponseBody):
    """The log-probability of each translation, its end of the sentence included."""

    scores: list[float]


class PlacedWord(ResponseBody):
    """A word, as white space separates them, and the offsets of its first character and
    behind its last.
    """

    text: str
    start: int
    end: int


class AttentionResponse(ResponseBody):
    """Which source words each target word attends to: the mean over all heads and
    layers.
    """

    translation: str
    """As given, or the model's own."""
    source_words: list[PlacedWord]
    target_words: list[PlacedWord]
    weights: list[list[float]]
    """A row for each target word, a column for each source word; rows sum to 1."""


class LanguageName(ResponseBody):
    """A language, by its code and its English name."""

    code: str
    name: str


class Language(LanguageName):
    """A language and the codes of those that it can be translated to."""

    targets: list[str]


class Defaults(ResponseBody):
    """The languages that a client chooses first."""

    source: LanguageName
    target: LanguageName


class ModelDescription(ResponseBody):
    """A served model: its language codes, of which the target is `tree` for a parser,
    their names, the problem and the step of its run, and its defaults.
    """

    source: str
    target: str
    source_name: str
    target_name: str
    problem: str
    step: int
    beam_size: int
    alpha: float
    examples: tuple[str, ...]
    """Short sentences of the run's dev split, if its data is there and no API key is
    needed."""


class Settings(ResponseBody):
    """Limits and defaults, by the names that LibreTranslate gives them; the models."""

    apiKeys: bool  # noqa: N815
    keyRequired: bool  # noqa: N815
    charLimit: int  # noqa: N815
    filesTranslation: bool = False  # noqa: N815
    frontendTimeout: int = 500  # noqa: N815
    """Milliseconds that a page waits for typing to end."""
    language: Defaults
    suggestions: bool = False
    supportedFilesFormat: tuple[str, ...] = ()  # noqa: N815
    models: list[ModelDescription]


class ErrorResponse(ResponseBody):
    """What is required, what was received, what to do."""

    error: str


class StatusResponse(ResponseBody):
    """The state of the server: ok, loading, ready or draining."""

    status: str
