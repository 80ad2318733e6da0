"""The endpoints of attention under /v1: between words, and a page with every head.

Attention is computed, and its answers are made, by one thread of its own with a short
queue: an answer may have millions of weights, and nobody who translates waits for it.
"""

from __future__ import annotations

import dataclasses

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response

from t2tlite.programs.serving import requests as bodies
from t2tlite.programs.serving import schemas
from t2tlite.programs.serving.errors import RequestError
from t2tlite.programs.serving.models import (
    Attending,
    AttentionAnswer,
    ServedModel,
)
from t2tlite.programs.serving.options import MAX_SENTENCE_TOKENS
from t2tlite.programs.serving.request_reading import read_fields, read_json, takes
from t2tlite.programs.serving.service import CurrentService, Service
from t2tlite.programs.serving.word_attention import word_attention
from t2tlite.programs.visualise.attention import Attention
from t2tlite.programs.visualise.attention_page import page
from t2tlite.vocabularies.normalisation import is_blank

router = APIRouter(prefix="/v1", tags=["t2tlite"])


@router.post(
    "/attention",
    summary="Which source words each target word attends to",
    openapi_extra=takes(schemas.AttentionRequest),
    response_model=schemas.AttentionResponse,
)
async def attention_by_words(service: CurrentService, request: Request) -> Response:
    """Cross-attention between words."""
    body = await read_json(service, request, schemas.AttentionRequest)
    content = await _attention(service, request, body, _words)
    return Response(content, media_type=bodies.JSON)


@router.post(
    "/attention.html",
    summary="A page to explore the attention of every head of every layer",
    openapi_extra=takes(schemas.AttentionPageRequest, form=True),
    response_class=HTMLResponse,
)
async def attention_page(service: CurrentService, request: Request) -> Response:
    """The page of `t2t-attention --html`, without the folder of the run.

    It is not a GET, which a page of another site could make a browser send, as an
    image's address, without a word of where it comes from.
    """
    body = await read_fields(service, request, schemas.AttentionPageRequest)
    return HTMLResponse(await _attention(service, request, body, _page))


async def _attention(
    service: Service,
    request: Request,
    body: schemas.AttentionRequest,
    answer: AttentionAnswer,
) -> bytes:
    """What is answered of the attention of a sentence to the given translation, or to
    the model's own if that is missing or blank.
    """
    model = service.catalogue.any_model(body.source, body.target)
    translation = None
    if body.translation and not is_blank(body.translation):
        translation = body.translation
    texts = [body.q] if translation is None else [body.q, translation]
    service.check_size(texts)
    for name, text in zip(("q", "translation"), texts, strict=False):
        if is_blank(text) or "\n" in text or "\r" in text:
            received = "a blank one" if is_blank(text) else "one with a line break"
            raise RequestError(
                400,
                f"{name} must be a sentence, without line breaks and not blank."
                f" Received: {received}. Send a request for each sentence.",
            )
    tokens = await service.in_thread(_checked_tokens, model, body.q, translation)
    [content] = await service.compute(
        request,
        Attending(model, answer),
        [(body.q, translation)],
        [tokens],
        service.attention_batcher,
    )
    return content


def _checked_tokens(model: ServedModel, source: str, translation: str | None) -> int:
    """The tokens of both sides that are known; RequestError 413 if one has too many, or
    both too many weights.
    """
    if translation is None:
        [count] = model.search_token_counts([source], model.options.beam_size)
        model.check_weights(count)
        return count
    [sources] = model.token_counts([source], limit=MAX_SENTENCE_TOKENS)
    [targets] = model.token_counts(
        [translation], targets=True, limit=MAX_SENTENCE_TOKENS
    )
    model.check_weights(sources, targets)
    return sources + targets


def _words(attention: Attention, source: str, tag_words: int) -> bytes:
    """The response of /v1/attention."""
    response = word_attention(attention, source, attention.target, tag_words)
    return response.model_dump_json().encode()


def _page(attention: Attention, source: str, tag_words: int) -> bytes:
    """The page, which does not name the folder of the run."""
    return page(dataclasses.replace(attention, run="")).encode()
