"""A request to translate or parse: its texts, the sentences in them, the work for the
batcher, and from its results the response.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

from t2tlite.config import DecodeHParams
from t2tlite.programs.documents.html_text import HtmlText, PlainText
from t2tlite.programs.documents.parsed_sentences import parsed_sentences
from t2tlite.programs.documents.sentences import (
    LETTER_OR_DIGIT,
    Segment,
    SplitText,
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
from t2tlite.tasks.task import Output
from t2tlite.texts import as_list, one_or_all
from t2tlite.trees.tree import Tree
from t2tlite.trees.tree_drawing import tree_svg
from t2tlite.vocabularies.normalisation import words

AUTO = "auto"

NBest = Sequence[Output]  # the outputs of a sentence, best first
Document = HtmlText | PlainText


class Part(NamedTuple):
    """The texts of a request that one model translates."""

    indices: Sequence[int]  # among the texts of the request
    documents: Sequence[Document]
    texts: Sequence[SplitText]  # of the documents
    work: Work[str, NBest]

    def segments(self) -> list[Segment]:
        """All segments, in the order of the work."""
        return [segment for text in self.texts for segment in text.segments]

    def by_text(
        self, results: Sequence[NBest]
    ) -> Iterator[tuple[SplitText, list[NBest]]]:
        """Each text with the results of its sentences."""
        outputs = iter(results)
        for text in self.texts:
            yield text, [next(outputs) for _ in text.segments]


class Translation:
    """A request to translate, checked and split. Raises RequestError."""

    def __init__(self, catalogue: Catalogue, body: TranslateRequest) -> None:
        self._body = body
        self._texts = as_list(body.q)
        read = HtmlText if body.format == "html" else PlainText
        self._documents: list[Document] = [read(text) for text in self._texts]
        self._detected: list[Detection] | None = None
        sources = [body.source] * len(self._texts)
        done: list[str] = []  # languages that need no translation
        if body.source and body.source.lower() == AUTO:
            self._detected = _detect_sources(catalogue, self._documents, body.target)
            sources = [detection.language for detection in self._detected]
            done = catalogue.targets(body.target)
        indices_of: dict[str | None, list[int]] = {}
        for index, source in enumerate(sources):
            if source not in done:
                indices_of.setdefault(source, []).append(index)
        self.parts: list[Part] = []
        sentences = 0
        hypotheses = 1  # of each sentence
        for source, indices in indices_of.items():
            model = catalogue.model(source, body.target)
            n_best = 1 + body.alternatives
            options = model.decode_options(n_best, body.beam_size, body.alpha)
            hypotheses = max(hypotheses, options.return_beams)
            self.parts.append(self._part(model, indices, options))
            sentences += len(self.parts[-1].work.items)
        if sentences * hypotheses > MAX_HYPOTHESES:
            raise RequestError(
                413,
                f"A request must have at most {MAX_HYPOTHESES:,} hypotheses. Received:"
                f" {sentences:,} sentences with {hypotheses} each. Split the text, or"
                " ask for one translation of each sentence.",
            )

    def _part(
        self, model: ServedModel, indices: Sequence[int], options: DecodeHParams
    ) -> Part:
        """The texts at these indices, with inline tags within sentences if the model
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
        documents = [self._documents[index] for index in indices]
        tags = sum(document.inline_tags for document in documents)
        if tags and model.aligns and tags * options.return_beams <= MAX_PLACED_TAGS:
            try:
                return self._split(model, indices, documents, options, aligned=True)
            except RequestError:
                pass  # the sentences between the tags are shorter
        if tags:
            documents = [
                HtmlText(self._texts[index], inline=False) for index in indices
            ]
        return self._split(model, indices, documents, options, aligned)

    def _split(
        self,
        model: ServedModel,
        indices: Sequence[int],
        documents: Sequence[Document],
        options: DecodeHParams,
        aligned: bool,
    ) -> Part:
        texts = []
        for document in documents:
            for text in document.texts:
                if not model.makes_trees:
                    texts.append(split_text(text, model.source))
                elif isinstance(self._body.q, str):
                    texts.append(_lines(parsed_sentences(text, model.source)))
                else:  # each text is a sentence
                    texts.append(_lines([" ".join(words(text))]))
        sentences = [segment.sentence for text in texts for segment in text.segments]
        function = BatchFunction(model.decode, (options, aligned), options.beam_size)
        tokens = model.search_token_counts(sentences, options.beam_size)
        return Part(indices, documents, texts, Work(function, sentences, tokens))

    def response(
        self, results: Sequence[Sequence[NBest]], segments: bool
    ) -> schemas.TranslateResponse:
        """The response, given the results of each part."""
        # a list for each field, with an entry for each text
        lists: dict[str, list[Any]] = {"translatedText": self._at_rank(results, 0)}
        if self._body.alternatives:
            ranks = range(1, 1 + self._body.alternatives)
            others = [self._at_rank(results, rank) for rank in ranks]
            lists["alternatives"] = list(map(list, zip(*others, strict=True)))
        if self._detected is not None:
            lists["detectedLanguage"] = self._detected
        if segments:
            lists["segments"] = self._segments(results)
        fields = {}
        for name, values in lists.items():
            fields[name] = one_or_all(self._body.q, values)
        return schemas.TranslateResponse(**fields)

    def segment(self, segment: Segment, outputs: NBest) -> schemas.Segment:
        """A sentence and its n-best list."""
        n_best = outputs[: 1 + self._body.alternatives]
        return schemas.Segment(
            source=segment.sentence,
            before=segment.before,
            hypotheses=[_hypothesis(output) for output in n_best],
        )

    def _segments(
        self, results: Sequence[Sequence[NBest]]
    ) -> list[list[schemas.Segment]]:
        """The segments of each text."""
        segments: list[list[schemas.Segment]] = [[] for _ in self._texts]
        for part, part_results in zip(self.parts, results, strict=True):
            texts = part.by_text(part_results)
            for index, document in zip(part.indices, part.documents, strict=True):
                for text, n_best in islice(texts, len(document.texts)):
                    segments[index] += map(self.segment, text.segments, n_best)
        return segments

    def _at_rank(self, results: Sequence[Sequence[NBest]], rank: int) -> list[str]:
        """The translated texts, with the hypotheses of this rank, or the last one of a
        list that is shorter.
        """
        translated = list(self._texts)
        for part, part_results in zip(self.parts, results, strict=True):
            translations = []
            for text, n_best in part.by_text(part_results):
                chosen = []
                for outputs in n_best:
                    output = outputs[min(rank, len(outputs) - 1)]
                    chosen.append((output.text, output.alignment or []))
                translations.append((text, chosen))
            following = iter(translations)
            for index, document in zip(part.indices, part.documents, strict=True):
                translated[index] = document.translated(following)
        return translated


def _lines(sentences: Sequence[str]) -> SplitText:
    """Sentences to parse, each on a line."""
    segments: list[Segment] = []
    for sentence in sentences:
        segments.append(Segment("\n" if segments else "", sentence))
    return SplitText(segments, "")


def _hypothesis(output: Output) -> schemas.Hypothesis:
    record = output.as_json()
    if output.repairs is not None:
        record["repairs"] = dict(output.repairs)
    if output.tree is not None:
        record["tree"] = nested(output.tree)
        record["svg"] = tree_svg(output.tree)
    return schemas.Hypothesis(**record)


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
        catalogue.model(AUTO, target)  # says which pairs are served
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
