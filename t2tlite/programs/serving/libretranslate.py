"""LibreTranslate's API: /translate, /languages, /detect and /frontend/settings, as its
clients use them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from fastapi import APIRouter, Request

from t2tlite.decoding.source_text import as_list
from t2tlite.programs.documents.html_text import HtmlText, PlainText
from t2tlite.programs.documents.sentences import LETTER_OR_DIGIT
from t2tlite.programs.serving import schemas
from t2tlite.programs.serving.computing import (
    TranslationJob,
    check_hypotheses,
)
from t2tlite.programs.serving.detection import detect_each
from t2tlite.programs.serving.errors import SHOWN, RequestError
from t2tlite.programs.serving.languages import language_name
from t2tlite.programs.serving.models import (
    AlignedOutput,
    Catalogue,
    ServedModel,
)
from t2tlite.programs.serving.options import MAX_PLACED_TAGS
from t2tlite.programs.serving.request_reading import read_fields, takes
from t2tlite.programs.serving.service import CurrentService, Service

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
    results = []
    for group in prepared.groups:
        job = group.job
        results.append(
            await service.compute(request, job.function, job.sentences, job.tokens)
        )
    return await service.in_thread(_response, body, prepared, results)


@router.post(
    "/detect",
    summary="Detect the language of a text, or of each text of a list",
    openapi_extra=takes(schemas.LibreDetectRequest, form=True),
)
async def detect_language(
    service: CurrentService, request: Request
) -> list[schemas.LibreDetection] | list[list[schemas.LibreDetection]]:
    """Which of the languages served a text is in, most likely first."""
    body = await read_fields(service, request, schemas.LibreDetectRequest)
    texts = as_list(body.q)
    service.check_size(texts, status=TOO_MUCH)
    detected = await service.in_thread(
        detect_each, texts, list(service.catalogue.languages())
    )
    return detected[0] if isinstance(body.q, str) else detected


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


class Group(NamedTuple):
    """The texts of a request that one model translates."""

    indices: Sequence[int]  # among the texts of the request
    documents: Sequence[Document]
    job: TranslationJob


class Prepared(NamedTuple):
    """A request to translate, checked and split."""

    texts: Sequence[str]
    groups: Sequence[Group]  # of the texts that are not in the target language already
    detected: Sequence[schemas.LibreDetection] | None


def _prepare(service: Service, body: schemas.LibreTranslateRequest) -> Prepared:
    texts = as_list(body.q)
    n_best = 1 + body.alternatives
    service.check_size(texts, status=TOO_MUCH)
    read = HtmlText if body.format == "html" else PlainText
    documents: list[Document] = [read(text) for text in texts]
    detected = None
    sources = [body.source] * len(texts)
    if body.source == AUTO:
        detected = _detect_sources(service.catalogue, documents, body.target)
        sources = [detection.language for detection in detected]
    groups = []
    for source in dict.fromkeys(sources):
        if detected is not None and source == body.target:
            continue  # these texts stay as they are
        model = service.catalogue.translator(source, body.target)
        indices = [i for i, each in enumerate(sources) if each == source]
        groups.append(_group(model, texts, documents, indices, n_best))
    if not texts and detected is None:
        service.catalogue.translator(body.source, body.target)
    sentences = sum(len(group.job.sentences) for group in groups)
    returned = [group.job.function.options.return_beams for group in groups]
    check_hypotheses(sentences, max(returned, default=1))
    return Prepared(texts, groups, detected)


def _group(
    model: ServedModel,
    texts: Sequence[str],
    documents: Sequence[Document],
    indices: Sequence[int],
    n_best: int,
) -> Group:
    """The texts at these indices, with inline tags within sentences if the model and
    the limits allow that.
    """
    options = model.decode_options(n_best)
    chosen = [documents[index] for index in indices]
    inline_tags = sum(document.inline_tags for document in chosen)
    if inline_tags and not (model.aligns and inline_tags * n_best <= MAX_PLACED_TAGS):
        chosen = _without_inline_tags([texts[index] for index in indices])
        inline_tags = 0
    try:
        job = TranslationJob(model, _pieces(chosen), options, aligned=bool(inline_tags))
    except RequestError:
        if not inline_tags:
            raise
        # whose sentences are shorter
        chosen = _without_inline_tags([texts[index] for index in indices])
        job = TranslationJob(model, _pieces(chosen), options)
    return Group(indices, chosen, job)


def _without_inline_tags(texts: Sequence[str]) -> list[Document]:
    return [HtmlText(text, inline=False) for text in texts]


def _pieces(documents: Sequence[Document]) -> list[str]:
    """What is translated by itself."""
    return [text for document in documents for text in document.texts]


def _response(
    body: schemas.LibreTranslateRequest,
    prepared: Prepared,
    results: Sequence[Sequence[Sequence[AlignedOutput]]],
) -> schemas.LibreTranslateResponse:
    ranks = [_at_rank(prepared, results, rank) for rank in range(1 + body.alternatives)]
    others = [list(texts) for texts in zip(*ranks[1:], strict=True)]
    detected = prepared.detected
    if isinstance(body.q, str):
        return schemas.LibreTranslateResponse(
            translatedText=ranks[0][0],
            alternatives=others[0] if others else None,
            detectedLanguage=detected[0] if detected else None,
        )
    return schemas.LibreTranslateResponse(
        translatedText=ranks[0],
        alternatives=others or None,
        detectedLanguage=list(detected) if detected else None,
    )


def _at_rank(
    prepared: Prepared,
    results: Sequence[Sequence[Sequence[AlignedOutput]]],
    rank: int,
) -> list[str]:
    """The translated texts, with the hypotheses of this rank."""
    texts = list(prepared.texts)
    for group, group_results in zip(prepared.groups, results, strict=True):
        translations = group.job.at_rank(group_results, rank)
        for index, document in zip(group.indices, group.documents, strict=True):
            texts[index] = document.translated(translations)
    return texts


def _detect_sources(
    catalogue: Catalogue, documents: Sequence[Document], target: str
) -> list[schemas.LibreDetection]:
    """The language of each text: one from which it can be translated, or the target.

    RequestError 400 if several are possible and nothing tells which; a text without a
    letter or digit needs none.
    """
    possible = [
        code for code, targets in catalogue.languages().items() if target in targets
    ]
    if not possible:
        problem = f"No model translates to {target[:SHOWN]}."
        raise RequestError(400, f"{problem} GET /languages lists the languages.")
    texts = ["\n".join(document.texts) for document in documents]
    detected = []
    for text, candidates in zip(
        texts, detect_each(texts, [*possible, target]), strict=True
    ):
        best = candidates[0]
        is_needed = LETTER_OR_DIGIT.search(text) is not None
        if is_needed and not best.confidence and len(possible) > 1:
            advice = f"Set source to {' or '.join(possible)}."
            raise RequestError(
                400, f"The language of the text cannot be detected. {advice}"
            )
        detected.append(best)
    return detected
