"""LibreTranslate's API as its clients use it: /translate, /languages, /detect and
/frontend/settings.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal, NamedTuple

from fastapi import APIRouter, Request
from pydantic import Field

from t2tlite.data.language_codes import language_name
from t2tlite.programs.documents.html_text import HtmlText, PlainText
from t2tlite.programs.documents.sentences import LETTER_OR_DIGIT
from t2tlite.programs.serving.computing import (
    NBest,
    TranslationPlan,
    check_hypotheses,
)
from t2tlite.programs.serving.languages import LibreDetection, detect_each
from t2tlite.programs.serving.models import Catalogue, ServedModel
from t2tlite.programs.serving.options import MAX_BEAM_SIZE, MAX_PLACED_TAGS
from t2tlite.programs.serving.requests import SHOWN, RequestError, body_description
from t2tlite.programs.serving.schemas import (
    TRANSLATION,
    Code,
    ResponseBody,
    TextOrTexts,
    TextRequest,
)
from t2tlite.programs.serving.service import CurrentService, Service

AUTO = "auto"

router = APIRouter(tags=["LibreTranslate"])


class LibreDetectRequest(TextRequest):
    """What LibreTranslate's clients send; forms have numbers as text, and other fields
    are ignored.
    """

    too_much: ClassVar[int] = 400  # as LibreTranslate

    q: TextOrTexts
    api_key: str = Field(default="", description="Where one is needed.")


class LibreTranslateRequest(LibreDetectRequest):
    """What LibreTranslate's clients send to translate."""

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
        default=0, description="Further translations.", ge=0, lt=MAX_BEAM_SIZE
    )


class LibreTranslateResponse(ResponseBody):
    """Lists where q was a list."""

    translatedText: str | list[str] = Field(  # noqa: N815
        description="The translation of each text.", examples=[TRANSLATION]
    )
    alternatives: list[str] | list[list[str]] | None = Field(
        default=None, description="Where alternatives were wanted."
    )
    detectedLanguage: LibreDetection | list[LibreDetection] | None = Field(  # noqa: N815
        default=None, description="Where source was `auto`."
    )


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


@router.post(
    "/translate",
    summary="Translate a text or texts",
    openapi_extra=body_description(LibreTranslateRequest, form=True),
    response_model_exclude_none=True,
)
async def translate(
    service: CurrentService, request: Request
) -> LibreTranslateResponse:
    """Translates a text, or each text of a list."""
    body = await service.read_fields(request, LibreTranslateRequest)
    translation = await service.in_thread(_prepare, service, body)
    results = []
    for group in translation.groups:
        results.append(await service.compute(request, group.plan.work))
    return await service.in_thread(translation.response, body, results)


@router.post(
    "/detect",
    summary="Detect the language of a text, or of each text of a list",
    openapi_extra=body_description(LibreDetectRequest, form=True),
)
async def detect_language(
    service: CurrentService, request: Request
) -> list[LibreDetection] | list[list[LibreDetection]]:
    """The served languages that a text may be in, most likely first."""
    body = await service.read_fields(request, LibreDetectRequest)
    texts = body.texts()
    candidates = list(service.catalogue.languages())
    detected = await service.in_thread(detect_each, texts, candidates)
    return detected[0] if isinstance(body.q, str) else detected


@router.get("/languages", summary="The languages served")
async def languages(service: CurrentService) -> list[LibreLanguage]:
    """The languages, and what each can be translated to."""
    served = []
    for code, targets in service.catalogue.languages().items():
        name = language_name(code)
        served.append(LibreLanguage(code=code, name=name, targets=targets))
    return served


@router.get("/frontend/settings", summary="Limits and defaults")
async def settings(service: CurrentService) -> LibreSettings:
    """Limits and defaults."""
    source, target = "", ""
    for model in service.catalogue.translators[:1]:
        source, target = model.source, model.target
    return LibreSettings(
        apiKeys=bool(service.options.api_key),
        keyRequired=bool(service.options.api_key),
        charLimit=service.options.max_characters,
        language=LibreDefaults(
            source=LibreLanguageName(code=source, name=language_name(source)),
            target=LibreLanguageName(code=target, name=language_name(target)),
        ),
    )


Document = HtmlText | PlainText


class TextGroup(NamedTuple):
    """The texts of a request that one model translates."""

    indices: Sequence[int]  # among the texts of the request
    documents: Sequence[Document]
    plan: TranslationPlan


class RequestedTranslation(NamedTuple):
    """A request to translate, checked and split."""

    texts: Sequence[str]
    groups: Sequence[TextGroup]  # without texts that are in the target language already
    detected: list[LibreDetection] | None

    def response(
        self, body: LibreTranslateRequest, results: Sequence[Sequence[NBest]]
    ) -> LibreTranslateResponse:
        """The response, given the results of each group."""
        best = self._at_rank(results, 0)
        alternatives: list[list[str]] | None = None
        if body.alternatives:
            ranks = range(1, 1 + body.alternatives)
            others = [self._at_rank(results, rank) for rank in ranks]
            alternatives = list(map(list, zip(*others, strict=True)))
        if isinstance(body.q, str):
            return LibreTranslateResponse(
                translatedText=best[0],
                alternatives=alternatives and alternatives[0],
                detectedLanguage=self.detected and self.detected[0],
            )
        return LibreTranslateResponse(
            translatedText=best,
            alternatives=alternatives,
            detectedLanguage=self.detected,
        )

    def _at_rank(self, results: Sequence[Sequence[NBest]], rank: int) -> list[str]:
        """The translated texts, with the hypotheses of this rank."""
        texts = list(self.texts)
        for group, group_results in zip(self.groups, results, strict=True):
            translations = group.plan.at_rank(group_results, rank)
            for index, document in zip(group.indices, group.documents, strict=True):
                texts[index] = document.translated(translations)
        return texts


def _prepare(service: Service, body: LibreTranslateRequest) -> RequestedTranslation:
    """The request, checked and split. Raises RequestError."""
    texts = body.texts()
    read = HtmlText if body.format == "html" else PlainText
    documents: list[Document] = [read(text) for text in texts]
    detected = None
    sources = [body.source] * len(texts)
    targets = service.catalogue.targets(body.target)
    if body.source.lower() == AUTO:
        detected = _detect_sources(service.catalogue, documents, body.target)
        sources = [detection.language for detection in detected]
    indices_of: dict[str, list[int]] = {}
    for index, source in enumerate(sources):
        if detected is None or source not in targets:
            indices_of.setdefault(source, []).append(index)
    groups = []
    sentences = 0
    hypotheses = 1  # of each sentence
    for source, indices in indices_of.items():
        model = service.catalogue.translator(source, body.target)
        group = _group(model, texts, documents, indices, 1 + body.alternatives)
        groups.append(group)
        sentences += len(group.plan.work.items)
        hypotheses = max(hypotheses, group.plan.hypotheses_each)
    check_hypotheses(sentences, hypotheses)
    return RequestedTranslation(texts, groups, detected)


def _group(
    model: ServedModel,
    texts: Sequence[str],
    documents: Sequence[Document],
    indices: Sequence[int],
    n_best: int,
) -> TextGroup:
    """The texts at these indices, with inline tags within sentences if the model and
    the limits allow that.
    """
    options = model.decode_options(n_best)
    chosen = [documents[index] for index in indices]
    tags = sum(document.inline_tags for document in chosen)
    if tags and model.aligns and tags * n_best <= MAX_PLACED_TAGS:
        try:
            plan = TranslationPlan(model, _pieces(chosen), options, aligned=True)
            return TextGroup(indices, chosen, plan)
        except RequestError:
            pass  # the sentences between the tags are shorter
    if tags:
        chosen = [HtmlText(texts[index], inline=False) for index in indices]
    return TextGroup(indices, chosen, TranslationPlan(model, _pieces(chosen), options))


def _pieces(documents: Sequence[Document]) -> list[str]:
    """The texts of the documents, each of which is translated by itself."""
    pieces: list[str] = []
    for document in documents:
        pieces += document.texts
    return pieces


def _detect_sources(
    catalogue: Catalogue, documents: Sequence[Document], target: str
) -> list[LibreDetection]:
    """The language of each text: one from which it can be translated, or the target.

    Raises RequestError 400 if the language of a text is not clear and several are
    possible; a text without a letter or digit needs none.
    """
    meant = catalogue.targets(target)
    possible = []
    for code, targets in catalogue.languages().items():
        if not set(meant).isdisjoint(targets):
            possible.append(code)
    if not possible:
        raise RequestError(
            400,
            f"No model translates to {target[:SHOWN]}. GET /languages lists the"
            " languages.",
        )
    texts = ["\n".join(document.texts) for document in documents]
    detected = []
    for text, candidates in zip(
        texts, detect_each(texts, [*possible, *meant]), strict=True
    ):
        best = candidates[0]
        needs_language = LETTER_OR_DIGIT.search(text) is not None
        if needs_language and not best.confidence and len(possible) > 1:
            raise RequestError(
                400,
                "The language of the text cannot be detected. Set source to"
                f" {' or '.join(possible)}.",
            )
        detected.append(best)
    return detected
