"""Requests and responses of the API under /v1: what is checked, what is sent, and what
/docs shows.

Requests are strict: a number is not accepted as text, nor an unknown field. The check
of a list stops at its first wrong entry, so that a list of wrong entries costs no more
than another.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import BaseModel, ConfigDict, FailFast, Field, Strict

from t2tlite.programs.serving.options import MAX_BEAM_SIZE, MAX_TREE_DEPTH
from t2tlite.texts import as_list

SENTENCE, TRANSLATION = "The cat sees the dog.", "Die Katze sieht den Hund."


class StopAtFirst(FailFast):
    """Stops the check of a list at its first wrong entry; unlike FailFast it can be
    part of a union.
    """

    __hash__ = object.__hash__


class TextRequest(BaseModel):
    """A request with texts, whose number and characters are limited."""

    too_much: ClassVar[int] = 413  # the status of a request with too much text

    def texts(self) -> list[str]:
        """All its texts."""
        return as_list(self.q)  # type: ignore[attr-defined]

    def count(self) -> int:
        """The number of texts, of which the server limits the most."""
        return len(self.texts())


class RequestBody(TextRequest):
    """A request in JSON."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class ResponseBody(BaseModel):
    """A response."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


Texts = Annotated[list[str], StopAtFirst()]
TextOrTexts = Annotated[
    str | Texts,
    Field(description="A text, or a list of texts.", examples=[SENTENCE]),
]
Pair = Annotated[tuple[str, str], Strict(False)]  # JSON has no tuples
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
    Field(
        description=(
            "Language code of the translation; needed where several models are served."
        ),
        examples=["de"],
    ),
]
Code = Annotated[str, Field(description="Language code.", examples=["en"])]
Count = Annotated[int, Field(ge=1, le=MAX_BEAM_SIZE)]
LogProb = Annotated[
    float,
    Field(
        description=(
            "Log-probability (natural) of the translation, end of the sentence"
            " included."
        ),
        examples=[-1.2],
    ),
]
Normalised = Annotated[
    float,
    Field(
        description="Log-probability divided by the length penalty.", examples=[-0.31]
    ),
]


class TranslateRequest(RequestBody):
    """Text to translate."""

    q: TextOrTexts
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


class TranslationHypothesis(ResponseBody):
    """A translation of a sentence."""

    text: str
    score: Normalised
    log_prob: LogProb
    alignment: str | None = Field(
        default=None,
        description=(
            "With alignments: pairs of a word of `source` and a word of `text`, counted"
            " from 0. Words are separated by white space."
        ),
        examples=["0-0 1-1 2-2 3-3 4-4"],
    )


class TranslatedSegment(ResponseBody):
    """A sentence and its translations."""

    source: str = Field(description="The sentence.", examples=[SENTENCE])
    before: str = Field(
        description=(
            "White space, and text without a letter or digit, before the sentence."
        ),
        examples=["", " ", "\n\n"],
    )
    hypotheses: list[TranslationHypothesis] = Field(
        description="Its translations, best first."
    )


class Translation(ResponseBody):
    """A translated text."""

    text: str = Field(
        description="The whole translation, with the text's white space.",
        examples=[TRANSLATION],
    )
    segments: list[TranslatedSegment]
    after: str = Field(
        description=(
            "White space, and text without a letter or digit, after the last sentence."
        ),
        examples=[""],
    )


class TranslateResponse(ResponseBody):
    """A translation for each text."""

    translations: list[Translation]


class StreamStart(ResponseBody):
    """The first line of a stream."""

    segments: int = Field(description="The number of segments that follow.")


class StreamedSegment(TranslatedSegment):
    """A line of a stream."""

    index: int = Field(description="Its place among the segments, counted from 0.")


class StreamEnd(ResponseBody):
    """The last line of a stream."""

    after: str = Field(description="The text after the last sentence.")


class ScoreRequest(RequestBody):
    """Pairs of sentences to score."""

    pairs: Annotated[list[Pair], StopAtFirst()] = Field(
        description="Each a sentence and its translation.",
        examples=[[[SENTENCE, TRANSLATION]]],
    )
    source: Source = None
    target: Target = None

    def texts(self) -> list[str]:
        """Both texts of each pair."""
        return [text for pair in self.pairs for text in pair]

    def count(self) -> int:
        """The number of pairs."""
        return len(self.pairs)


class PairScore(ResponseBody):
    """The log-probability of a pair."""

    log_prob: LogProb


class ScoreResponse(ResponseBody):
    """A score for each pair."""

    scores: list[PairScore]


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
            "The tree as nested lists: a label, then children; words are strings. Null"
            f" for a blank sentence and for a tree above {MAX_TREE_DEPTH} levels."
        )
    )
    score: Normalised
    repairs: dict[str, int] = Field(
        description="Repairs that made the decoded sequence a tree, by kind."
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

    q: str = Field(description="The sentence.", examples=[SENTENCE])
    translation: str | None = Field(
        default=None, description="Its translation; by default the model's own."
    )
    source: Source = None
    target: Target = None

    def texts(self) -> list[str]:
        """The sentence, and its translation if that is given."""
        return [self.q, self.translation] if self.translation else [self.q]


class AttentionPageRequest(AttentionRequest):
    """A sentence whose attention is wanted as a page; also as a form, as browsers send
    it.
    """

    api_key: str = Field(default="", description="Where one is needed.")


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
        description="The translation, as given or the model's own.",
        examples=[TRANSLATION],
    )
    source_words: list[PlacedWord]
    target_words: list[PlacedWord]
    weights: list[list[float]] = Field(
        description=(
            "A row for each target word, a column for each source word; rows sum to 1."
        )
    )


class ModelDescription(ResponseBody):
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
        examples=[[SENTENCE]],
    )


class ModelsResponse(ResponseBody):
    """All served models."""

    models: list[ModelDescription]


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
