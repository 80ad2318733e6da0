"""The endpoints under /v1, but for those of attention (attention_api.py)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING

from fastapi import APIRouter, Request
from fastapi.responses import Response, StreamingResponse
from pydantic import BaseModel

from t2tlite.decoding.engine import TENSORFLOW
from t2tlite.decoding.source_text import as_list
from t2tlite.programs.documents.parsed_sentences import parsed_sentences
from t2tlite.programs.serving import schemas
from t2tlite.programs.serving.computing import TranslationJob
from t2tlite.programs.serving.errors import RequestError
from t2tlite.programs.serving.languages import language_name
from t2tlite.programs.serving.models import (
    Parsing,
    Scoring,
    ServedModel,
)
from t2tlite.programs.serving.request_reading import read_json, takes
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
    return schemas.ModelsResponse(
        models=[_description(service, model) for model in service.catalogue.models]
    )


@router.post(
    "/translate",
    summary="Translate texts, with n-best lists and scores, or as a stream",
    openapi_extra=takes(schemas.TranslateRequest),
    response_model=schemas.TranslateResponse,
    response_model_exclude_none=True,
)
async def translate(
    service: CurrentService, request: Request
) -> schemas.TranslateResponse | Response:
    """Translates; with `stream` line by line."""
    body = await read_json(service, request, schemas.TranslateRequest)
    job = await service.in_thread(_translation_job, service, body)
    if body.stream:
        return StreamingResponse(
            _lines(service, job), media_type="application/x-ndjson"
        )
    results = await service.compute(request, job.function, job.sentences, job.tokens)
    return schemas.TranslateResponse(
        translations=await service.in_thread(job.assemble, results)
    )


@router.post(
    "/score",
    summary="Log-probabilities of translations",
    openapi_extra=takes(schemas.ScoreRequest),
)
async def score(service: CurrentService, request: Request) -> schemas.ScoreResponse:
    """Scores each pair."""
    body = await read_json(service, request, schemas.ScoreRequest)
    model = service.catalogue.translator(body.source, body.target)
    service.check_size([text for pair in body.pairs for text in pair], len(body.pairs))
    tokens = await service.in_thread(_pair_token_counts, model, body.pairs)
    scores = await service.compute(request, Scoring(model), body.pairs, tokens)
    return schemas.ScoreResponse(
        scores=[schemas.Score(log_prob=value) for value in scores]
    )


@router.post(
    "/parse", summary="Parse sentences", openapi_extra=takes(schemas.ParseRequest)
)
async def parse(service: CurrentService, request: Request) -> schemas.ParseResponse:
    """Parses each sentence; a blank one has no tree."""
    body = await read_json(service, request, schemas.ParseRequest)
    model = service.catalogue.parser(body.source)
    service.check_size(as_list(body.q))
    sentences = await service.in_thread(_sentences, body.q, model.source)
    tokens = await service.in_thread(
        model.search_token_counts, sentences, model.options.beam_size
    )
    parses = await service.compute(request, Parsing(model), sentences, tokens)
    return await service.in_thread(_parse_response, sentences, parses)


def _description(service: Service, model: ServedModel) -> schemas.Model:
    return schemas.Model(
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
        max_beam_size=model.max_beam_size,
        examples=[] if service.options.api_key else list(model.examples),
    )


def _translation_job(
    service: Service, body: schemas.TranslateRequest
) -> TranslationJob:
    """The request, checked; raises RequestError."""
    model = service.catalogue.translator(body.source, body.target)
    if body.stream and not isinstance(body.q, str):
        raise RequestError(
            400,
            "With stream, q must be a string. Received: a list. Send a request for each"
            " text.",
        )
    texts = as_list(body.q)
    service.check_size(texts)
    options = model.decode_options(body.n_best, body.beam_size, body.alpha)
    if body.alignments and not model.aligns:
        engine = model.translator.engine.name
        raise RequestError(
            400,
            f"alignments need the engine {TENSORFLOW}. Received: a model served by"
            f" {engine}. Leave them out.",
        )
    return TranslationJob(model, texts, options, body.n_best, aligned=body.alignments)


async def _lines(service: Service, job: TranslationJob) -> AsyncIterator[bytes]:
    """The lines of a stream."""
    text = job.texts[0]
    yield _line(schemas.StreamStart(segments=len(text.segments)))
    try:
        numbered = enumerate(text.segments)
        async for outputs in service.stream(job.function, job.sentences, job.tokens):
            index, (before, sentence) = next(numbered)
            hypotheses = job.hypotheses(outputs)
            yield _line(
                schemas.StreamedSegment(
                    index=index, source=sentence, before=before, hypotheses=hypotheses
                )
            )
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


def _sentences(q: str | list[str], language: str) -> list[str]:
    """The sentences to parse: those of a text, or a list's."""
    if isinstance(q, str):
        return parsed_sentences(q, language)
    return [" ".join(words(text)) for text in q]


def _parse_response(
    sentences: Sequence[str], parses: Sequence[Parse]
) -> schemas.ParseResponse:
    return schemas.ParseResponse(parses=list(map(_parsed, sentences, parses)))


def _parsed(sentence: str, parse: Parse) -> schemas.ParsedSentence:
    tree = parse.tree
    return schemas.ParsedSentence(
        sentence=sentence,
        brackets=parse.text,
        tree=None if tree is None else nested(tree),
        score=parse.score,
        repairs=dict(parse.repairs),
        svg="" if tree is None else tree_svg(tree),
    )


def nested(tree: Tree) -> list[object]:
    """A tree as nested lists, [label, child, ...], with words as strings."""
    root: list[object] = [tree.label]
    waiting = [(tree, root)]
    while waiting:
        node, content = waiting.pop()
        for child in node.children:
            if isinstance(child, str):
                content.append(child)
            else:
                below: list[object] = [child.label]
                content.append(below)
                waiting.append((child, below))
    return root
