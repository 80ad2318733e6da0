"""Requests and responses of t2t-serve: what is checked, what is sent, and what /docs
shows.

Requests are strict: a number is not accepted as text, nor an unknown field. The check
of a list stops at its first wrong entry, so that a request of many wrong entries costs
no more than others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, FailFast, Field, Strict

# that a request may name, before it is compared with what the model allows
MAX_COUNT = 10_000


class StopAtFirst(FailFast):
    """Stops the check of a list at its first wrong entry; unlike FailFast it can be
    part of a union.
    """

    __hash__ = object.__hash__


Texts = Annotated[list[str], StopAtFirst()]
Pair = Annotated[tuple[str, str], Strict(False)]  # JSON has no tuples


class RequestBody(BaseModel):
    """A request."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class ResponseBody(BaseModel):
    """A response."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


Source = Annotated[
    str | None,
    Field(
        description=(
            "Language code of the text; needed where several models are served."
        ),
        examples=["en"],
    ),
]
Target = Annotated[
    str | None,
    Field(description="Language code of the translation; likewise.", examples=["de"]),
]


Code = Annotated[str, Field(description="Language code.", examples=["en"])]
Count = Annotated[int, Field(ge=1, le=MAX_COUNT)]


class TranslateRequest(RequestBody):
    """Text to translate."""

    q: str | Texts = Field(
        description="A text, or a list of texts.",
        examples=["The cat sees the dog. We cry in the evening."],
    )
    source: Source = None
    target: Target = None
    n_best: Count = Field(
        default=1,
        description="Translations of each sentence, best first.",
        examples=[3],
    )
    beam_size: Count | None = Field(
        default=None,
        description=(
            "Hypotheses kept in the search; 1 is greedy search. By default the model's."
        ),
        examples=[4],
    )
    alpha: Annotated[float, Field(ge=0)] | None = Field(
        default=None,
        description="Exponent of the length penalty. By default the model's.",
        examples=[0.6],
    )
    alignments: bool = Field(
        default=False,
        description=(
            "Also the word alignment of each hypothesis, from the mean cross-attention"
            " over heads and layers. Needs the engine TensorFlow."
        ),
    )
    stream: bool = Field(
        default=False,
        description=(
            "Answer line by line (application/x-ndjson): a segment as soon as it is"
            " translated; q is one text."
        ),
    )


class Hypothesis(ResponseBody):
    """A translation of a sentence."""

    text: str
    score: float = Field(
        description="Log-probability divided by the length penalty.", examples=[-0.31]
    )
    log_prob: float = Field(
        description="Log-probability (natural), the end of the sentence included.",
        examples=[-1.2],
    )
    alignment: str | None = Field(
        default=None,
        description=(
            "Where alignments were wanted: pairs of a word of `source` and one of"
            " `text`, counted from 0. Words are separated by white space."
        ),
        examples=["0-0 1-1 2-2 3-3 4-4"],
    )


class TranslatedSegment(ResponseBody):
    """A sentence and its translations."""

    source: str = Field(description="The sentence.", examples=["The cat sees the dog."])
    before: str = Field(
        description="What stands before it: white space, and text without a letter or"
        " digit.",
        examples=["", " ", "\n\n"],
    )
    hypotheses: list[Hypothesis] = Field(description="Its translations, best first.")


class Translation(ResponseBody):
    """A translated text."""

    text: str = Field(
        description="The whole translation, with the text's white space.",
        examples=["Die Katze sieht den Hund."],
    )
    segments: list[TranslatedSegment]
    after: str = Field(
        description="What stands behind the last sentence, likewise.", examples=[""]
    )


class TranslateResponse(ResponseBody):
    """A translation for each text."""

    translations: list[Translation]


class StreamStart(ResponseBody):
    """The first line of a stream."""

    segments: int = Field(description="How many lines of segments follow.")


class StreamedSegment(TranslatedSegment):
    """A line of a stream."""

    index: int = Field(description="Its place among the segments, counted from 0.")


class StreamEnd(ResponseBody):
    """The last line of a stream."""

    after: str = Field(description="What stands behind the last sentence.")


class ScoreRequest(RequestBody):
    """Pairs of sentences whose log-probabilities are wanted."""

    pairs: Annotated[list[Pair], StopAtFirst()] = Field(
        description="Each a sentence and its translation.",
        examples=[[["The cat sees the dog.", "Die Katze sieht den Hund."]]],
    )
    source: Source = None
    target: Target = None


class Score(ResponseBody):
    """The log-probability of a pair."""

    log_prob: float = Field(
        description="Log-probability (natural) of the target given its source.",
        examples=[-1.2],
    )


class ScoreResponse(ResponseBody):
    """A score for each pair."""

    scores: list[Score]


class ParseRequest(RequestBody):
    """Sentences to parse, their words and punctuation separated by spaces."""

    q: str | Texts = Field(
        description="A text, which is split into sentences, or a list of sentences.",
        examples=["The cat sleeps ."],
    )
    source: Source = None


class ParsedSentence(ResponseBody):
    """A sentence and its tree."""

    sentence: str = Field(description="The sentence.", examples=["The cat sleeps ."])
    brackets: str = Field(
        description="The tree in brackets; empty for a blank sentence.",
        examples=["(TOP (S (NP (DT The) (NN cat)) ...))"],
    )
    tree: list[object] | None = Field(
        description=(
            "The tree as nested lists: a label, then children; words are strings."
        )
    )
    score: float = Field(
        description=(
            "Log-probability of the decoded sequence divided by the length penalty."
        ),
        examples=[-0.31],
    )
    repairs: dict[str, int] = Field(
        description="What had to be repaired to make a tree, by kind."
    )
    svg: str = Field(
        description=(
            "A drawing of the tree, an <svg> element; empty for a blank sentence."
        )
    )


class ParseResponse(ResponseBody):
    """A parse for each sentence."""

    parses: list[ParsedSentence]


class AttentionRequest(RequestBody):
    """A sentence whose cross-attention is wanted."""

    q: str = Field(description="The sentence.", examples=["The cat sees the dog."])
    translation: str | None = Field(
        default=None, description="Its translation; by default the model's own."
    )
    source: Source = None
    target: Target = None


class AttentionPageRequest(AttentionRequest):
    """A sentence whose attention is wanted as a page; also as a form, as browsers send
    it.
    """

    api_key: str = Field(default="", description="Where one is needed.")


class Word(ResponseBody):
    """A word, as white space separates them, and where it is."""

    text: str
    start: int = Field(description="Offset of its first character.", examples=[0])
    end: int = Field(description="Offset behind its last character.", examples=[3])


class AttentionResponse(ResponseBody):
    """Which source words each target word attends to: the mean over all heads and
    layers.
    """

    translation: str = Field(
        description="The translation, as given or the model's own.",
        examples=["Die Katze sieht den Hund."],
    )
    source_words: list[Word]
    target_words: list[Word]
    weights: list[list[float]] = Field(
        description=(
            "A row for each target word, a column for each source word; rows sum to 1."
        )
    )


class Model(ResponseBody):
    """A served model."""

    source: Code
    target: str = Field(
        description="Language code; `tree` for a parser.", examples=["de"]
    )
    source_name: str = Field(
        description="The language's English name.", examples=["English"]
    )
    target_name: str = Field(
        description="The language's English name.", examples=["German"]
    )
    task: str = Field(description="translation or parsing.", examples=["translation"])
    problem: str = Field(
        description="The problem that it was trained on.", examples=["grammar_ende"]
    )
    step: int = Field(description="The step of its checkpoint.", examples=[1000])
    beam_size: int = Field(description="By default.", examples=[4])
    alpha: float = Field(description="By default.", examples=[0.6])
    max_characters: int = Field(
        description="Most characters of a request.", examples=[20000]
    )
    max_beam_size: int = Field(
        description="Largest beam_size that a request may ask for.", examples=[16]
    )
    examples: list[str] = Field(
        description=(
            "Short sentences of the run's dev split, if its data is there and no API"
            " key is needed."
        ),
        examples=[["The cat sees the dog."]],
    )


class ModelsResponse(ResponseBody):
    """All served models."""

    models: list[Model]


class LibreTranslateRequest(BaseModel):
    """What LibreTranslate's clients send; forms have numbers as text, and other fields
    are ignored.
    """

    q: str | Texts = Field(
        description="A text, or a list of texts.", examples=["The cat sees the dog."]
    )
    source: str = Field(description="Language code, or `auto`.", examples=["en"])
    target: str = Field(description="Language code.", examples=["de"])
    format: Literal["text", "html"] = Field(
        default="text",
        description=(
            "`text`, or `html`: each sentence is translated whole, its inline tags are"
            " put around the words aligned to theirs, and other markup, scripts, style"
            " sheets, code, and elements with translate=no stay as they are."
        ),
    )
    alternatives: int = Field(
        default=0, description="Further translations.", ge=0, le=MAX_COUNT
    )
    api_key: str = Field(default="", description="Where one is needed.")


class LibreDetection(ResponseBody):
    """A language that a text may be in."""

    confidence: float = Field(description="Percent.", examples=[90.0])
    language: Code


class LibreTranslateResponse(ResponseBody):
    """Lists where q was a list."""

    translatedText: str | list[str] = Field(  # noqa: N815
        description="The translation of each text.",
        examples=["Die Katze sieht den Hund."],
    )
    alternatives: list[str] | list[list[str]] | None = Field(
        default=None, description="Where alternatives were wanted."
    )
    detectedLanguage: LibreDetection | list[LibreDetection] | None = Field(  # noqa: N815
        None, description="Where source was `auto`."
    )


class LibreDetectRequest(BaseModel):
    """What LibreTranslate's clients send."""

    q: str | Texts = Field(
        description="A text, or a list of texts.",
        examples=["The cat sees the dog."],
    )
    api_key: str = Field(default="", description="Where one is needed.")


class LibreLanguageName(ResponseBody):
    """A language."""

    code: Code
    name: str = Field(description="Its English name.", examples=["English"])


class LibreLanguage(LibreLanguageName):
    """A language and what it can be translated to."""

    targets: list[str] = Field(description="Language codes.", examples=[["de"]])


class LibreDefaults(ResponseBody):
    """The languages that a client chooses first."""

    source: LibreLanguageName
    target: LibreLanguageName


class LibreSettings(ResponseBody):
    """Limits and defaults, by the names that LibreTranslate gives them."""

    apiKeys: bool = Field(description="Whether the server has API keys.")  # noqa: N815
    keyRequired: bool = Field(description="Whether requests need one.")  # noqa: N815
    charLimit: int = Field(  # noqa: N815
        description="Most characters of a request.", examples=[20000]
    )
    filesTranslation: bool = Field(  # noqa: N815
        default=False, description="Files are not translated."
    )
    frontendTimeout: int = Field(  # noqa: N815
        default=500, description="Milliseconds that a page waits for typing to end."
    )
    language: LibreDefaults
    suggestions: bool = Field(
        default=False, description="Suggestions are not accepted."
    )
    supportedFilesFormat: Sequence[str] = Field(default=(), description="None.")  # noqa: N815


class ErrorResponse(ResponseBody):
    """What every error looks like."""

    error: str = Field(
        description="What is required, what was received, what to do.",
        examples=[
            "source and target must be one of the pairs served: en-de. Received: en-xx."
            " Choose one of these."
        ],
    )


class StatusResponse(ResponseBody):
    """The state of the server."""

    status: str = Field(
        description="ok, loading, ready, draining or broken.", examples=["ok"]
    )
