"""The endpoints of attention under /v1: between words, and a page with every head.

One thread of its own, with a short queue, computes attention and makes the answers: an
answer may have millions of weights, and must not delay those who translate.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Sequence

import numpy as np
from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response

from t2tlite.decoding.alignment import pieces_by_word, word_weights
from t2tlite.programs.serving import requests
from t2tlite.programs.serving.batching import Work
from t2tlite.programs.serving.computing import Attending
from t2tlite.programs.serving.models import ServedModel
from t2tlite.programs.serving.options import MAX_SENTENCE_TOKENS
from t2tlite.programs.serving.requests import RequestError, body_description
from t2tlite.programs.serving.schemas import (
    AttentionPageRequest,
    AttentionRequest,
    AttentionResponse,
    PlacedWord,
)
from t2tlite.programs.serving.service import CurrentService, Service
from t2tlite.programs.visualise.attention import Attention, page
from t2tlite.vocabularies.normalisation import is_blank

WORD = re.compile(r"\S+")

router = APIRouter(prefix="/v1", tags=["t2tlite"])


@router.post(
    "/attention",
    summary="Which source words each target word attends to",
    openapi_extra=body_description(AttentionRequest),
    response_model=AttentionResponse,
)
async def attention_by_words(service: CurrentService, request: Request) -> Response:
    """Cross-attention between words."""
    body = await service.read_json(request, AttentionRequest)
    content = await _answer(service, request, body, _words)
    return Response(content, media_type=requests.JSON)


@router.post(
    "/attention.html",
    summary="A page to explore the attention of every head of every layer",
    openapi_extra=body_description(AttentionPageRequest, form=True),
    response_class=HTMLResponse,
)
async def attention_page(service: CurrentService, request: Request) -> Response:
    """The page of `t2t-attention --html`, without the folder of the run.

    It takes POST alone: a page of another site could make a browser send a GET, as an
    image's address, without a word of where it comes from.
    """
    body = await service.read_fields(request, AttentionPageRequest)
    return HTMLResponse(await _answer(service, request, body, _page))


async def _answer(
    service: Service,
    request: Request,
    body: AttentionRequest,
    answer: Callable[[Attention, str, int], bytes],
) -> bytes:
    """The answer made from the attention of a sentence and its translation: the given
    one, or the model's own if that is missing or blank.
    """
    model = service.catalogue.any_model(body.source, body.target)
    texts = {"q": body.q}
    if body.translation and not is_blank(body.translation):
        texts["translation"] = body.translation
    for name, text in texts.items():
        _check_sentence(name, text)
    translation = texts.get("translation")
    tokens = await service.in_thread(_checked_tokens, model, body.q, translation)
    work = Work(Attending(model, answer), [(body.q, translation)], [tokens])
    [content] = await service.compute(request, work, service.attention_batcher)
    return content


def _check_sentence(name: str, text: str) -> None:
    """Raises RequestError 400 if a text is blank or has a line break."""
    if is_blank(text):
        received = "a blank one"
    elif "\n" in text or "\r" in text:
        received = "one with a line break"
    else:
        return
    raise RequestError(
        400,
        f"{name} must be a sentence, without line breaks and not blank. Received:"
        f" {received}. Send a request for each sentence.",
    )


def _checked_tokens(model: ServedModel, source: str, translation: str | None) -> int:
    """The number of tokens that are known. Raises RequestError 413 if a side has too
    many, or both have too many weights.
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
    """The answer of /v1/attention."""
    response = word_attention(attention, source, attention.target, tag_words)
    return response.model_dump_json().encode()


def _page(attention: Attention, source: str, tag_words: int) -> bytes:
    """The page, which does not name the folder of the run."""
    return page(dataclasses.replace(attention, run="")).encode()


def word_attention(
    attention: Attention, source: str, target: str, tag_words: int = 0
) -> AttentionResponse:
    """The words of both texts, and a row of weights for each target word.

    `source` and `target` are texts as they were sent; the model's source has
    `tag_words` words before them. Weights between words follow the rule of
    decoding/alignment.py, except that all pieces of a word count. Rows are scaled to
    sum to 1. A word without a piece, such as a zero-width space that the vocabulary
    drops, is left out.
    """
    sources = _pieces_of_words(source, attention.source_words, tag_words)
    targets = _pieces_of_words(target, attention.target_words)
    weights: list[list[float]] = [[] for _ in targets]
    if sources and targets:
        # [target pieces, source pieces]
        mean = np.mean([layer.mean(axis=0) for layer in attention.cross], axis=0)
        rows = word_weights(mean, list(sources.values()), list(targets.values()))
        sums = np.maximum(rows.sum(axis=1, keepdims=True), 1e-9)
        weights = (rows / sums).tolist()
    return AttentionResponse(
        translation=target,
        source_words=list(sources),
        target_words=list(targets),
        weights=weights,
    )


def _pieces_of_words(
    text: str, words_of_pieces: Sequence[int], tag_words: int = 0
) -> dict[PlacedWord, list[int]]:
    """The pieces of each word of a text, which `tag_words` others precede.

    Words are separated by white space. If a model decoded pieces of white space alone,
    they belong to no word.
    """
    pieces = pieces_by_word(words_of_pieces)
    pieces_of_words = {}
    for number, match in enumerate(WORD.finditer(text), tag_words):
        if number in pieces:
            word = PlacedWord(text=match[0], start=match.start(), end=match.end())
            pieces_of_words[word] = pieces[number]
    return pieces_of_words
