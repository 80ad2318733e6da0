"""LibreTranslate's API: /translate, /languages, /detect and /frontend/settings, as its clients use them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from fastapi import APIRouter, Request

from t2tlite.programs.serving import schemas
from t2tlite.programs.serving.bodies import Fields
from t2tlite.programs.serving.detection import Detected, detect
from t2tlite.programs.serving.errors import RequestError
from t2tlite.programs.serving.html_text import HtmlText, PlainText
from t2tlite.programs.serving.languages import language_name
from t2tlite.programs.serving.options import MAX_PLACED_TAGS
from t2tlite.programs.serving.request_reading import read_fields, takes
from t2tlite.programs.serving.served_model import AlignedOutput, Catalogue
from t2tlite.programs.serving.service import CurrentService, Service
from t2tlite.programs.serving.translation_job import TranslationJob

AUTO = "auto"
FORMATS = ("text", "html")
SHOWN = 40  # characters of a value in a message
TOO_MUCH = 400  # LibreTranslate's status for too much text

router = APIRouter(tags=["LibreTranslate"])


@router.post(
    "/translate",
    summary="Translate a text or texts",
    openapi_extra=takes(schemas.LibreTranslateRequest, form=True),
    response_model_exclude_none=True,
)
async def translate(service: CurrentService, request: Request) -> schemas.LibreTranslateResponse:
    """Translates a text, or each text of a list."""
    fields = await read_fields(service, request)
    prepared = await service.in_thread(_prepare, service, fields)
    job = prepared.job
    results = await service.compute(request, job.function, job.sentences, job.tokens)
    return await service.in_thread(_response, prepared, results)


@router.post(
    "/detect",
    summary="Detect the language of a text",
    openapi_extra=takes(schemas.LibreDetectRequest, form=True),
)
async def detect_language(service: CurrentService, request: Request) -> list[schemas.LibreDetection]:
    """Which of the languages served a text is in, most likely first."""
    fields = await read_fields(service, request)
    texts = _texts(_required(fields, "q"))
    service.check_size(texts, status=TOO_MUCH)
    detected = await service.in_thread(detect, "\n".join(texts), list(service.catalogue.languages()))
    return [_detection(language) for language in detected]


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
    source, target = (schemas.LibreLanguageName(code=code, name=language_name(code)) for code in pair)
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
    alternatives: int
    detected: Detected | None
    is_list: bool


def _prepare(service: Service, fields: Fields) -> Prepared:
    q, source, target = (_required(fields, name) for name in ("q", "source", "target"))
    texts = _texts(q)
    text_format = fields.get("format") or "text"
    if text_format not in FORMATS:
        raise RequestError(400, f"format must be text or html. Received: {str(text_format)[:SHOWN]!r}.")
    alternatives = _whole_number(fields.get("alternatives") or 0)
    service.check_size(texts, status=TOO_MUCH)
    if not (isinstance(source, str) and isinstance(target, str)):
        raise RequestError(400, "source and target must be language codes, such as en.")
    read = HtmlText if text_format == "html" else PlainText
    documents: list[Document] = [read(text) for text in texts]
    detected = _detect_source(service.catalogue, _pieces(documents), target) if source == AUTO else None
    model = service.catalogue.translator(detected.language if detected else source, target)
    options = model.decode_options(n_best=1 + alternatives)
    inline_tags = sum(document.inline_tags for document in documents)
    if inline_tags and not (model.aligns and inline_tags * (1 + alternatives) <= MAX_PLACED_TAGS):
        documents, inline_tags = _without_inline_tags(texts), 0
    try:
        job = TranslationJob(model, _pieces(documents), options, aligned=bool(inline_tags))
    except RequestError:
        if not inline_tags:
            raise
        documents = _without_inline_tags(texts)  # whose sentences are shorter
        job = TranslationJob(model, _pieces(documents), options)
    return Prepared(job, documents, alternatives, detected, isinstance(q, list))


def _without_inline_tags(texts: Sequence[str]) -> list[Document]:
    return [HtmlText(text, inline=False) for text in texts]


def _pieces(documents: Sequence[Document]) -> list[str]:
    """What is translated by itself."""
    return [text for document in documents for text in document.texts]


def _response(prepared: Prepared, results: Sequence[Sequence[AlignedOutput]]) -> schemas.LibreTranslateResponse:
    ranks = [_at_rank(prepared, results, rank) for rank in range(1 + prepared.alternatives)]
    others = [list(texts) for texts in zip(*ranks[1:], strict=True)]
    detected = _detection(prepared.detected) if prepared.detected else None
    if not prepared.is_list:
        return schemas.LibreTranslateResponse(
            translatedText=ranks[0][0], alternatives=others[0] if others else None, detectedLanguage=detected
        )
    return schemas.LibreTranslateResponse(
        translatedText=ranks[0],
        alternatives=others or None,
        detectedLanguage=[detected] * len(ranks[0]) if detected else None,
    )


def _at_rank(prepared: Prepared, results: Sequence[Sequence[AlignedOutput]], rank: int) -> list[str]:
    """The translated texts, with the hypotheses of this rank."""
    translations = prepared.job.at_rank(results, rank)
    return [document.translated(translations) for document in prepared.documents]


def _detection(detected: Detected) -> schemas.LibreDetection:
    return schemas.LibreDetection(confidence=detected.confidence, language=detected.language)


def _detect_source(catalogue: Catalogue, texts: Sequence[str], target: str) -> Detected:
    """The language from which to translate; RequestError 400 if several are possible and nothing tells which."""
    possible = [code for code, targets in catalogue.languages().items() if target in targets]
    if not possible:
        problem = f"No model translates to {target[:SHOWN]}."
        raise RequestError(400, f"{problem} GET /languages lists the languages.")
    detected = detect("\n".join(texts), possible)[0]
    if not detected.confidence and len(possible) > 1:
        advice = f"Set source to {' or '.join(possible)}."
        raise RequestError(400, f"The language of the text cannot be detected. {advice}")
    return detected


def _required(fields: Fields, name: str) -> object:
    if not fields.get(name):
        raise RequestError(400, f"The field {name} is required. It is missing or empty.")
    return fields[name]


def _texts(q: object) -> list[str]:
    texts = []
    for text in q if isinstance(q, list) else [q]:
        if not isinstance(text, str):
            raise RequestError(400, "q must be a string or a list of strings.")
        texts.append(text)
    return texts


def _whole_number(value: object) -> int:
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 6:
        return int(value)
    if type(value) is int and value >= 0:
        return min(value, 99_999)  # too many in any case
    shown = repr(str(value)[:SHOWN]) if type(value) is not int or value > -99_999 else "a large negative number"
    raise RequestError(400, f"alternatives must be a whole number of 0 or more. Received: {shown}.")
