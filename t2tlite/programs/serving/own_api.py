"""The endpoints under /v1, except those of attention (attention_api.py)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING

from fastapi import APIRouter, Request
from fastapi.responses import Response, StreamingResponse
from pydantic import BaseModel

from t2tlite.data.language_codes import language_name
from t2tlite.decoding.engine import TENSORFLOW
from t2tlite.programs.documents.parsed_sentences import parsed_sentences
from t2tlite.programs.serving import schemas
from t2tlite.programs.serving.batching import Work
from t2tlite.programs.serving.computing import Parsing, Scoring, TranslationPlan
from t2tlite.programs.serving.models import ServedModel
from t2tlite.programs.serving.options import (
    MAX_ANSWER_BYTES,
    MAX_BEAM_SIZE,
    MAX_TREE_DEPTH,
)
from t2tlite.programs.serving.requests import (
    RequestError,
    body_description,
    long_answer,
)
from t2tlite.programs.serving.service import CurrentService, Service
from t2tlite.trees.tree import Tree
from t2tlite.trees.tree_drawing import tree_svg
from t2tlite.vocabularies.normalisation import words

if TYPE_CHECKING:
    from t2tlite.tasks.parsing import Parse

router = APIRouter(prefix="/v1", tags=["t2tlite"])


@router.get("/models", summary="The models served")
async def models(service: CurrentService) -> schemas.ModelsResponse:
    """Describes each model."""
    descriptions = []
    for model in service.catalogue.models:
        descriptions.append(_description(service, model))
    return schemas.ModelsResponse(models=descriptions)


@router.post(
    "/translate",
    summary="Translate texts, with n-best lists and scores, or as a stream",
    openapi_extra=body_description(schemas.TranslateRequest),
    response_model=schemas.TranslateResponse,
    response_model_exclude_none=True,
)
async def translate(
    service: CurrentService, request: Request
) -> schemas.TranslateResponse | Response:
    """Translates; with `stream` line by line."""
    body = await service.read_json(request, schemas.TranslateRequest)
    plan = await service.in_thread(_translation_plan, service, body)
    if body.stream:
        lines = _lines(service, plan)
        return StreamingResponse(lines, media_type="application/x-ndjson")
    results = await service.compute(request, plan.work)
    translations = await service.in_thread(plan.translations, results)
    return schemas.TranslateResponse(translations=translations)


@router.post(
    "/score",
    summary="Log-probabilities of translations",
    openapi_extra=body_description(schemas.ScoreRequest),
)
async def score(service: CurrentService, request: Request) -> schemas.ScoreResponse:
    """Scores each pair."""
    body = await service.read_json(request, schemas.ScoreRequest)
    model = service.catalogue.translator(body.source, body.target)
    tokens = await service.in_thread(_pair_token_counts, model, body.pairs)
    work = Work(Scoring(model), body.pairs, tokens)
    scores = []
    for log_prob in await service.compute(request, work):
        scores.append(schemas.PairScore(log_prob=log_prob))
    return schemas.ScoreResponse(scores=scores)


@router.post(
    "/parse",
    summary="Parse sentences",
    openapi_extra=body_description(schemas.ParseRequest),
)
async def parse(service: CurrentService, request: Request) -> schemas.ParseResponse:
    """Parses each sentence; a blank one has no tree."""
    body = await service.read_json(request, schemas.ParseRequest)
    model = service.catalogue.parser(body.source)
    work = await service.in_thread(_parsing_work, model, body.q)
    parses = await service.compute(request, work)
    return await service.in_thread(_parse_response, work.items, parses)


def _description(service: Service, model: ServedModel) -> schemas.ModelDescription:
    return schemas.ModelDescription(
        source=model.source,
        target=model.target,
        source_name=language_name(model.source),
        target_name=language_name(model.target),
        task=model.translator.task.name,
        problem=model.translator.manifest.name,
        step=model.translator.step,
        beam_size=model.options.beam_size,
        alpha=model.options.alpha,
        max_characters=service.options.max_characters,
        max_beam_size=MAX_BEAM_SIZE,
        examples=[] if service.options.api_key else list(model.examples),
    )


def _translation_plan(
    service: Service, body: schemas.TranslateRequest
) -> TranslationPlan:
    """The request, checked and split. Raises RequestError."""
    model = service.catalogue.translator(body.source, body.target)
    if body.stream and not isinstance(body.q, str):
        raise RequestError(
            400,
            "With stream, q must be a string. Received: a list. Send a request for each"
            " text.",
        )
    options = model.decode_options(body.n_best, body.beam_size, body.alpha)
    if body.alignments and not model.aligns:
        engine = model.translator.engine.name
        raise RequestError(
            400,
            f"alignments need the engine {TENSORFLOW}. Received: a model served by"
            f" {engine}. Leave them out.",
        )
    return TranslationPlan(model, body.texts(), options, body.n_best, body.alignments)


async def _lines(service: Service, plan: TranslationPlan) -> AsyncIterator[bytes]:
    """The lines of a stream."""
    [text] = plan.texts
    yield _line(schemas.StreamStart(segments=len(text.segments)))
    index = 0
    size = 0
    try:
        async for outputs in service.stream(plan.work):
            before, sentence = text.segments[index]
            segment = schemas.StreamedSegment(
                index=index,
                source=sentence,
                before=before,
                hypotheses=plan.hypotheses(outputs),
            )
            line = _line(segment)
            size += len(line)
            if size > MAX_ANSWER_BYTES:
                raise long_answer()
            yield line
            index += 1
        yield _line(schemas.StreamEnd(after=text.after))
    except RequestError as error:
        yield _line(schemas.ErrorResponse(error=error.message))


def _line(content: BaseModel) -> bytes:
    return content.model_dump_json(exclude_none=True).encode() + b"\n"


def _pair_token_counts(
    model: ServedModel, pairs: Sequence[tuple[str, str]]
) -> list[int]:
    """The tokens of the longer side of each pair."""
    sources = model.token_counts([source for source, _ in pairs])
    targets = model.token_counts([target for _, target in pairs], targets=True)
    return [max(pair) for pair in zip(sources, targets, strict=True)]


def _parsing_work(model: ServedModel, q: str | list[str]) -> Work[str, Parse]:
    """The sentences to parse: those of a text, or a list's."""
    if isinstance(q, str):
        sentences = parsed_sentences(q, model.source)
    else:
        sentences = [" ".join(words(text)) for text in q]
    tokens = model.search_token_counts(sentences, model.options.beam_size)
    return Work(Parsing(model), sentences, tokens)


def _parse_response(
    sentences: Sequence[str], parses: Sequence[Parse]
) -> schemas.ParseResponse:
    parsed = []
    for sentence, parse in zip(sentences, parses, strict=True):
        tree = None
        svg = ""
        if parse.tree is not None:
            tree = nested(parse.tree)
            svg = tree_svg(parse.tree)
        parsed_sentence = schemas.ParsedSentence(
            sentence=sentence,
            brackets=parse.text,
            tree=tree,
            score=parse.score,
            repairs=dict(parse.repairs),
            svg=svg,
        )
        parsed.append(parsed_sentence)
    return schemas.ParseResponse(parses=parsed)


def nested(tree: Tree) -> list[object] | None:
    """A tree as nested lists, [label, child, ...], with words as strings; None if it is
    deeper than clients can be expected to read JSON.
    """
    root: list[object] = [tree.label]
    waiting = [(tree, root, 1)]
    while waiting:
        node, content, depth = waiting.pop()
        if depth > MAX_TREE_DEPTH:
            return None
        for child in node.children:
            if isinstance(child, str):
                content.append(child)
            else:
                below: list[object] = [child.label]
                content.append(below)
                waiting.append((child, below, depth + 1))
    return root
