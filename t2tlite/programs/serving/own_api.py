"""The endpoints under /v1: what each computes."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Any

from t2tlite.programs.report.tree_drawing import tree_svg
from t2tlite.programs.serving import schemas
from t2tlite.programs.serving.errors import RequestError
from t2tlite.programs.serving.languages import language_name
from t2tlite.programs.serving.sentences import SplitText, split_text
from t2tlite.programs.serving.served_model import Attending, Catalogue, Decoding, Parsing, Scoring, ServedModel
from t2tlite.programs.serving.service import Service
from t2tlite.programs.serving.word_attention import word_attention
from t2tlite.programs.visualise.attention import Attention
from t2tlite.trees.tree import Tree

if TYPE_CHECKING:
    from fastapi import Request

LONGEST_ATTENTION = 512  # tokens of a side


def models(service: Service, catalogue: Catalogue) -> dict[str, Any]:
    """GET /v1/models."""
    return {
        "models": [
            {
                "source": model.source,
                "target": model.target,
                "source_name": language_name(model.source),
                "target_name": language_name(model.target),
                "task": "parsing" if model.parses else "translation",
                "problem": model.translator.manifest.name,
                "step": model.translator.step,
                "beam_size": model.options.beam_size,
                "alpha": model.options.alpha,
                "max_characters": service.options.max_characters,
                "max_beam_size": model.max_beam_size,
            }
            for model in catalogue.models
        ]
    }


class Translating:
    """Texts on their way to a translation."""

    def __init__(self, model: ServedModel, texts: Sequence[str], options: dict[str, Any]) -> None:
        self.n_best = options.get("n_best", 1)
        self.work = Decoding(model, model.decode_options(**options))
        self.split = [split_text(text) for text in texts]
        self.sentences = [segment.sentence for text in self.split for segment in text.segments]
        self.tokens = model.token_counts(self.sentences)

    def segment(self, text: SplitText, index: int, outputs: Sequence[Any]) -> dict[str, Any]:
        """A segment with its translations."""
        before, sentence = text.segments[index]
        found = [{"text": one.text, "score": one.score, "log_prob": one.log_prob} for one in outputs[: self.n_best]]
        return {"source": sentence, "before": before, "hypotheses": found}

    def whole(self, results: Sequence[Sequence[Any]]) -> list[dict[str, Any]]:
        """The texts with the results of their sentences."""
        found, at = [], 0
        for text in self.split:
            own = results[at : at + len(text.segments)]
            at += len(text.segments)
            segments = [self.segment(text, i, outputs) for i, outputs in enumerate(own)]
            whole = text.join([outputs[0].text for outputs in own])
            found.append({"text": whole, "segments": segments, "after": text.after})
        return found


def translating(service: Service, asked: schemas.TranslateRequest) -> Translating:
    """POST /v1/translate, checked; raises RequestError."""
    model = service.catalogue.translator(asked.source, asked.target)
    texts = [asked.q] if isinstance(asked.q, str) else asked.q
    if asked.stream and not isinstance(asked.q, str):
        raise RequestError(400, "With stream, q must be a string. Received: a list. Send a request for each text.")
    service.check_characters(texts)
    options = {"n_best": asked.n_best, "beam_size": asked.beam_size, "alpha": asked.alpha}
    return Translating(model, texts, options)


async def translate(service: Service, request: Request, asked: schemas.TranslateRequest) -> dict[str, Any]:
    """POST /v1/translate without stream."""
    work = translating(service, asked)
    return {"translations": work.whole(await service.compute(request, work.work, work.sentences, work.tokens))}


async def translate_lines(service: Service, work: Translating) -> AsyncIterator[bytes]:
    """POST /v1/translate with stream: the lines of the answer."""
    text = work.split[0]
    yield _line({"segments": len(text.segments)})
    try:
        async for index, outputs in service.stream(work.work, work.sentences, work.tokens):
            yield _line({"index": index, **work.segment(text, index, outputs)})
        yield _line({"after": text.after})
    except RequestError as error:
        yield _line({"error": error.message})


async def score(service: Service, request: Request, asked: schemas.ScoreRequest) -> dict[str, Any]:
    """POST /v1/score."""
    model = service.catalogue.translator(asked.source, asked.target)
    service.check_characters([text for pair in asked.pairs for text in pair])
    sources = model.token_counts([source for source, _ in asked.pairs])
    targets = model.token_counts([target for _, target in asked.pairs], targets=True)
    tokens = [max(pair) for pair in zip(sources, targets, strict=True)]
    found = await service.compute(request, Scoring(model), asked.pairs, tokens)
    return {"scores": [{"log_prob": value} for value in found]}


async def parse(service: Service, request: Request, asked: schemas.ParseRequest) -> dict[str, Any]:
    """POST /v1/parse."""
    model = service.catalogue.parser(asked.source)
    texts = [asked.q] if isinstance(asked.q, str) else asked.q
    service.check_characters(texts)
    if isinstance(asked.q, str):
        sentences = [segment.sentence for segment in split_text(asked.q).segments]
    else:
        sentences = [" ".join(text.split()) for text in asked.q]
    tokens = model.token_counts(sentences)
    found = await service.compute(request, Parsing(model, model.options), sentences, tokens)
    return {"parses": [_parse(sentence, one) for sentence, one in zip(sentences, found, strict=True)]}


async def attention(service: Service, request: Request, asked: schemas.AttentionRequest) -> tuple[Attention, str]:
    """The attention weights of a sentence, and its translation as given or found; of a blank one, the model's own."""
    model = service.catalogue.any_model(asked.source, asked.target)
    translation = asked.translation if asked.translation and asked.translation.strip() else None
    given = [asked.q] if translation is None else [asked.q, translation]
    service.check_characters(given)
    if any("\n" in text or "\r" in text for text in given) or not asked.q.strip():
        raise RequestError(400, "q and translation must be sentences without line breaks, and q must not be blank.")
    tokens = model.token_counts([asked.q])
    if translation is not None:
        tokens += model.token_counts([translation], targets=True)
    if max(tokens) > LONGEST_ATTENTION:
        raise RequestError(
            413,
            f"A sentence whose attention is shown must have at most {LONGEST_ATTENTION} tokens. Send a shorter one.",
        )
    found = (await service.compute(request, Attending(model), [(asked.q, translation)], [sum(tokens)]))[0]
    return found, translation or found.target


async def attention_by_words(service: Service, request: Request, asked: schemas.AttentionRequest) -> dict[str, Any]:
    """POST /v1/attention."""
    found, translation = await attention(service, request, asked)
    return word_attention(found, asked.q, translation)


def _parse(sentence: str, parse: Any) -> dict[str, Any]:
    tree = parse.tree
    return {
        "sentence": sentence,
        "brackets": parse.text,
        "tree": None if tree is None else nested(tree),
        "score": parse.score,
        "repairs": dict(parse.repairs),
        "svg": "" if tree is None else tree_svg(tree),
    }


def nested(tree: Tree) -> list[Any]:
    """A tree as nested lists, [label, child, ...], with words as strings."""
    top: list[Any] = [tree.label]
    waiting: list[tuple[Tree, list[Any]]] = [(tree, top)]
    while waiting:
        node, made = waiting.pop()
        for child in node.children:
            if isinstance(child, str):
                made.append(child)
            else:
                made.append(below := [child.label])
                waiting.append((child, below))
    return top


def _line(content: dict[str, Any]) -> bytes:
    return json.dumps(content, ensure_ascii=False).encode() + b"\n"
