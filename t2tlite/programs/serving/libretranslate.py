"""LibreTranslate's API: /translate, /languages, /detect and /frontend/settings, as its
clients use them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from fastapi import APIRouter, Request

from t2tlite.decoding.source_text import as_list
from t2tlite.programs.serving import schemas
from t2tlite.programs.serving.detection import detect
from t2tlite.programs.serving.errors import SHOWN, RequestError
from t2tlite.programs.serving.html_text import HtmlText, PlainText
from t2tlite.programs.serving.languages import language_name
from t2tlite.programs.serving.options import MAX_PLACED_TAGS
from t2tlite.programs.serving.request_reading import read_fields, takes
from t2tlite.programs.serving.served_model import AlignedOutput, Catalogue
from t2tlite.programs.serving.service import CurrentService, Service
from t2tlite.programs.serving.translation_job import TranslationJob

AUTO = "auto"
TOO_MUCH = 400  # LibreTranslate's status for too much text

router = APIRouter(tags=["LibreTranslate"])


@router.post(
    "/translate",
    summary="Translate a text or texts",
    openapi_extra=takes(schemas.LibreTranslateRequest, form=True),
    response_model_exclude_none=True,
)
async def translate(
    service: CurrentService, request: Request
) -> schemas.LibreTranslateResponse:
    """Translates a text, or each text of a list."""
    body = await read_fields(service, request, schemas.LibreTranslateRequest)
    prepared = await service.in_thread(_prepare, service, body)
    job = prepared.job
    results = await service.compute(request, job.function, job.sentences, job.tokens)
    return await service.in_thread(_response, body, prepared, results)


@router.post(
    "/detect",
    summary="Detect the language of a text",
    openapi_extra=takes(schemas.LibreDetectRequest, form=True),
)
async def detect_language(
    service: CurrentService, request: Request
) -> list[schemas.LibreDetection]:
    """Which of the languages served a text is in, most likely first."""
    texts = as_list((await read_fields(service, request, schemas.LibreDetectRequest)).q)
    service.check_size(texts, status=TOO_MUCH)
    return await service.in_thread(
        detect, "\n".join(texts), list(service.catalogue.languages())
    )


@router.get("/languages", summary="The languages served")
async def languages(service: CurrentService) -> list[schemas.LibreLanguage]:
    """The languages, and what each can be translated to."""
    return [
        schemas.LibreLanguage(code=code, name=language_name(code), targets=targets)
        for code, targets in service.catalogue.languages().items()
    ]


@router.get("/frontend/settings", summary="Limits and defaults")
async def settings(service: CurrentService) -> schemas.LibreSettings:
    """Limits and defaults."""
    translators = [model for model in service.catalogue.models if not model.makes_trees]
    pair = (translators[0].source, translators[0].target) if translators else ("", "")
    source, target = (
        schemas.LibreLanguageName(code=code, name=language_name(code)) for code in pair
    )
    return schemas.LibreSettings(
        apiKeys=bool(service.options.api_key),
        keyRequired=bool(service.options.api_key),
        charLimit=service.options.max_characters,
        language=schemas.LibreDefaults(source=source, target=target),
    )


Document = HtmlText | PlainText


class Prepared(NamedTuple):
    """A request to translate, checked and split."""

    job: TranslationJob
    documents: Sequence[Document]
    detected: schemas.LibreDetection | None


def _prepare(service: Service, body: schemas.LibreTranslateRequest) -> Prepared:
    texts, n_best = as_list(body.q), 1 + body.alternatives
    service.check_size(texts, status=TOO_MUCH)
    read = HtmlText if body.format == "html" else PlainText
    documents: list[Document] = [read(text) for text in texts]
    source, detected = body.source, None
    if source == AUTO:
        detected = _detect_source(service.catalogue, _pieces(documents), body.target)
        source = detected.language
    model = service.catalogue.translator(source, body.target)
    options = model.decode_options(n_best)
    inline_tags = sum(document.inline_tags for document in documents)
    if inline_tags and not (model.aligns and inline_tags * n_best <= MAX_PLACED_TAGS):
        documents, inline_tags = _without_inline_tags(texts), 0
    try:
        job = TranslationJob(
            model, _pieces(documents), options, aligned=bool(inline_tags)
        )
    except RequestError:
        if not inline_tags:
            raise
        documents = _without_inline_tags(texts)  # whose sentences are shorter
        job = TranslationJob(model, _pieces(documents), options)
    return Prepared(job, documents, detected)


def _without_inline_tags(texts: Sequence[str]) -> list[Document]:
    return [HtmlText(text, inline=False) for text in texts]


def _pieces(documents: Sequence[Document]) -> list[str]:
    """What is translated by itself."""
    return [text for document in documents for text in document.texts]


def _response(
    body: schemas.LibreTranslateRequest,
    prepared: Prepared,
    results: Sequence[Sequence[AlignedOutput]],
) -> schemas.LibreTranslateResponse:
    ranks = [_at_rank(prepared, results, rank) for rank in range(1 + body.alternatives)]
    others = [list(texts) for texts in zip(*ranks[1:], strict=True)]
    detected = prepared.detected
    if isinstance(body.q, str):
        return schemas.LibreTranslateResponse(
            translatedText=ranks[0][0],
            alternatives=others[0] if others else None,
            detectedLanguage=detected,
        )
    return schemas.LibreTranslateResponse(
        translatedText=ranks[0],
        alternatives=others or None,
        detectedLanguage=[detected] * len(ranks[0]) if detected else None,
    )


def _at_rank(
    prepared: Prepared, results: Sequence[Sequence[AlignedOutput]], rank: int
) -> list[str]:
    """The translated texts, with the hypotheses of this rank."""
    translations = prepared.job.at_rank(results, rank)
    return [document.translated(translations) for document in prepared.documents]


def _detect_source(
    catalogue: Catalogue, texts: Sequence[str], target: str
) -> schemas.LibreDetection:
    """The language from which to translate; RequestError 400 if several are possible
    and nothing tells which.
    """
    possible = [
        code for code, targets in catalogue.languages().items() if target in targets
    ]
    if not possible:
        problem = f"No model translates to {target[:SHOWN]}."
        raise RequestError(400, f"{problem} GET /languages lists the languages.")
    detected = detect("\n".join(texts), possible)[0]
    if not detected.confidence and len(possible) > 1:
        advice = f"Set source to {' or '.join(possible)}."
        raise RequestError(
            400, f"The language of the text cannot be detected. {advice}"
        )
    return detected
