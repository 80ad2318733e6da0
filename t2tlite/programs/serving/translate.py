"""A request to translate or parse: its texts, the sentences in them, the work for the
batcher, and from its results the response. No other module knows all of these.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from itertools import islice
from typing import Any

from fastapi import Request

from t2tlite.config import DecodeHParams
from t2tlite.programs.documents.html_text import HtmlText, PlainText
from t2tlite.programs.documents.sentences import (
    LETTER_OR_DIGIT,
    Segment,
    SplitText,
    parsed_sentences,
    split_text,
)
from t2tlite.programs.serving import schemas
from t2tlite.programs.serving.batching import BatchFunction, Work
from t2tlite.programs.serving.languages import detect_each
from t2tlite.programs.serving.models import Catalogue, ServedModel
from t2tlite.programs.serving.options import (
    MAX_HYPOTHESES,
    MAX_PLACED_TAGS,
    MAX_TREE_DEPTH,
)
from t2tlite.programs.serving.requests import RequestError
from t2tlite.programs.serving.schemas import Detection, TranslateRequest
from t2tlite.programs.serving.service import Service
from t2tlite.tasks.task import Output
from t2tlite.texts import as_list, one_or_all
from t2tlite.trees.tree import Tree
from t2tlite.trees.tree_drawing import tree_svg
from t2tlite.vocabularies.normalisation import words

AUTO_LANGUAGE = "auto"

RankedOutputs = Sequence[Output]  # the outputs of a sentence, best first
Document = HtmlText | PlainText


class RequestText:
    """A text of a request. One without sentences stays as it is."""

    def __init__(self, text: str, document: Document) -> None:
        self.text = text
        self.document = document
        self.splits: list[SplitText] = []  # the document's texts in sentences
        self.n_best: list[RankedOutputs] = []  # of each sentence, as far as computed

    def segments(self) -> list[Segment]:
        """Its sentences, in order."""
        return [segment for split in self.splits for segment in split.segments]

    def translated(self, rank: int) -> str:
        """The text with the hypotheses of this rank, or the last one of a list that is
        shorter.
        """
        if not self.splits:
            return self.text
        n_best = iter(self.n_best)
        translations = []
        for split in self.splits:
            chosen = []
            for outputs in islice(n_best, len(split.segments)):
                output = outputs[min(rank, len(outputs) - 1)]
                chosen.append((output.text, output.alignment or []))
            translations.append((split, chosen))
        return self.document.translated(iter(translations))


class Translation:
    """A request to translate, checked and split. Raises RequestError."""

    def __init__(self, catalogue: Catalogue, body: TranslateRequest) -> None:
        self._body = body
        read = HtmlText if body.format == "html" else PlainText
        self._texts = [RequestText(text, read(text)) for text in as_list(body.q)]
        self._detected: list[Detection] | None = None
        sources = [body.source] * len(self._texts)
        done: list[str] = []  # languages that need no translation
        if body.source and body.source.lower() == AUTO_LANGUAGE:
            documents = [text.document for text in self._texts]
            self._detected = _detect_sources(catalogue, documents, body.target)
            sources = [detection.language for detection in self._detected]
            done = catalogue.targets(body.target)
        # the texts that each model translates
        self._parts: list[tuple[list[RequestText], Work[str, RankedOutputs]]] = []
        hypotheses = 0
        for source in dict.fromkeys(sources):
            if source in done:
                continue
            model = catalogue.model(source, body.target)
            n_best = 1 + body.alternatives
            options = model.decode_options(n_best, body.beam_size, body.alpha)
            pairs = zip(self._texts, sources, strict=True)
            texts = [text for text, language in pairs if language == source]
            work = self._work(model, texts, options)
            self._parts.append((texts, work))
            hypotheses += len(work.items) * options.return_beams
        if hypotheses > MAX_HYPOTHESES:
            raise RequestError(
                413,
                f"A request must have at most {MAX_HYPOTHESES:,} hypotheses. Received:"
                f" {hypotheses:,}. Split the text, or ask for no alternatives.",
            )

    def _work(
        self, model: ServedModel, texts: Sequence[RequestText], options: DecodeHParams
    ) -> Work[str, RankedOutputs]:
        """The work to translate texts, with inline tags within sentences if the model
        and the limits allow that.
        """
        aligned = self._body.alignments
        if aligned and not model.aligns:
            raise RequestError(
                400,
                "alignments need a model that translates by the engine tensorflow."
                f" Received: {model.source}-{model.target} by"
                f" {model.translator.engine.name}. Leave them out.",
            )
        tags = sum(text.document.inline_tags for text in texts)
        if tags and model.aligns and tags * options.return_beams <= MAX_PLACED_TAGS:
            # unless a sentence is too long: those between the tags are shorter
            with contextlib.suppress(RequestError):
                return self._split(model, texts, options, aligned=True)
        if tags:
            for text in texts:
                text.document = HtmlText(text.text, inline=False)
        return self._split(model, texts, options, aligned)

    def _split(
        self,
        model: ServedModel,
        texts: Sequence[RequestText],
        options: DecodeHParams,
        aligned: bool,
    ) -> Work[str, RankedOutputs]:
        split: Callable[[str, str], SplitText] = split_text
        if model.makes_trees:
            is_list = not isinstance(self._body.q, str)
            split = _one_sentence if is_list else _parsed_lines
        sentences = []
        for text in texts:
            text.splits = [split(each, model.source) for each in text.document.texts]
            sentences += [segment.sentence for segment in text.segments()]
        function = BatchFunction(model.decode, (options, aligned), options.beam_size)
        tokens = model.search_token_counts(sentences, options.beam_size)
        return Work(function, sentences, tokens)

    @property
    def sentences(self) -> int:
        """The number of sentences to compute."""
        return sum(len(work.items) for _, work in self._parts)

    async def compute(
        self, service: Service, request: Request | None = None
    ) -> AsyncIterator[tuple[Segment, RankedOutputs]]:
        """Each sentence and its n-best list, as soon as that is computed."""
        for texts, work in self._parts:
            results = service.stream(work, request)
            for text in texts:
                for segment in text.segments():
                    outputs = await anext(results)
                    text.n_best.append(outputs)
                    yield segment, outputs

    def response(self) -> schemas.TranslateResponse:
        """The response, when all is computed."""
        body = self._body
        # a list for each field, with an entry for each text
        lists: dict[str, list[Any]] = {"translatedText": self._translated(0)}
        if body.alternatives:
            others = map(self._translated, range(1, 1 + body.alternatives))
            lists["alternatives"] = list(map(list, zip(*others, strict=True)))
        if self._detected is not None:
            lists["detectedLanguage"] = self._detected
        if (body.segments or body.alignments) and not body.stream:
            lists["segments"] = []
            for text in self._texts:
                segments = map(self.segment, text.segments(), text.n_best)
                lists["segments"].append(list(segments))
        fields = {name: one_or_all(body.q, values) for name, values in lists.items()}
        return schemas.TranslateResponse(**fields)

    def _translated(self, rank: int) -> list[str]:
        return [text.translated(rank) for text in self._texts]

    def segment(self, segment: Segment, outputs: RankedOutputs) -> schemas.Segment:
        """A sentence and its n-best list."""
        n_best = outputs[: 1 + self._body.alternatives]
        return schemas.Segment(
            source=segment.sentence,
            before=segment.before,
            hypotheses=[_hypothesis(output) for output in n_best],
        )


def _parsed_lines(text: str, language: str) -> SplitText:
    """Sentences to parse, each on a line."""
    segments: list[Segment] = []
    for sentence in parsed_sentences(text):
        segments.append(Segment("\n" if segments else "", sentence))
    return SplitText(segments, "")


def _one_sentence(text: str, language: str) -> SplitText:
    return SplitText([Segment("", " ".join(words(text)))], "")


def _hypothesis(output: Output) -> schemas.Hypothesis:
    record = output.as_json()
    if output.repairs is not None:
        record["repairs"] = dict(output.repairs)
    if output.tree is not None:
        record["tree"] = _nested(output.tree)
        record["svg"] = tree_svg(output.tree)
    return schemas.Hypothesis(**record)


def _nested(tree: Tree, levels: int = MAX_TREE_DEPTH) -> list[object] | None:
    """A tree as nested lists, [label, child, ...], with words as strings; None if it
    has more levels than clients can be expected to read in JSON.
    """
    if levels == 0:
        return None
    content: list[object] = [tree.label]
    for child in tree.children:
        below = child if isinstance(child, str) else _nested(child, levels - 1)
        if below is None:
            return None
        content.append(below)
    return content


def _detect_sources(
    catalogue: Catalogue, documents: Sequence[Document], target: str | None
) -> list[Detection]:
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
        catalogue.model(AUTO_LANGUAGE, target)  # says which pairs are served
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
