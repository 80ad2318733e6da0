"""A request to translate or parse: its texts, the sentences in them, the work for the
batcher, and from its results the response. No other module knows all of these.
"""

import contextlib
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any

from fastapi import Request
from starlette.exceptions import HTTPException

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
from t2tlite.programs.serving.requests import check_limit
from t2tlite.programs.serving.service import Service
from t2tlite.tasks.task import Output
from t2tlite.texts import as_list, one_or_all
from t2tlite.trees.tree import Tree, tree_svg
from t2tlite.vocabularies.normalisation import words

AUTO_LANGUAGE = "auto"

RankedOutputs = Sequence[Output]  # the outputs of a sentence, best first


class RequestText:
    """A text of a request. One without sentences stays as it is."""

    def __init__(self, text: str, form: str) -> None:
        self.text = text
        self.document: HtmlText | PlainText = PlainText(text)
        if form == "html":
            self.document = HtmlText(text)
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
        chosen = []
        for outputs in self.n_best:
            output = outputs[min(rank, len(outputs) - 1)]
            chosen.append((output.text, output.alignment or []))
        translations = []
        start = 0
        for split in self.splits:
            end = start + len(split.segments)
            translations.append((split, chosen[start:end]))
            start = end
        return self.document.translated(iter(translations))


class Translation:
    """A request to translate, checked and split. Raises HTTPException."""

    def __init__(self, body: schemas.TranslateRequest, catalogue: Catalogue) -> None:
        self.body = body
        self._catalogue = catalogue
        self._texts = [RequestText(text, body.format) for text in as_list(body.q)]
        self._detected: list[schemas.Detection] | None = None
        # the texts that each model translates
        self._parts: list[tuple[list[RequestText], Work]] = []
        if body.source and body.source.lower() == AUTO_LANGUAGE:
            self._add_detected()
        else:
            self._add(body.source, self._texts)

    def _add_detected(self) -> None:
        """Adds the texts of each language, except those in the target language."""
        catalogue = self._catalogue
        models = catalogue.translators_to(self.body.target)
        if not models:
            catalogue.model(AUTO_LANGUAGE, self.body.target)  # says what is served
        sources = sorted({model.source for model in models})
        targets = sorted({model.target for model in models})
        self._detected = self._detect(sources, targets)
        texts_in: dict[str, list[RequestText]] = {}
        for text, detection in zip(self._texts, self._detected, strict=True):
            if detection.language not in targets:
                texts_in.setdefault(detection.language, []).append(text)
        for source, texts in texts_in.items():
            self._add(source, texts)

    def _detect(
        self, sources: Sequence[str], targets: Sequence[str]
    ) -> list[schemas.Detection]:
        """The language of each text: one from which it can be translated, or the
        target.

        Raises HTTPException 400 if the language of a text is not clear and several are
        possible; a text without a letter or digit needs none.
        """
        texts = ["\n".join(text.document.texts) for text in self._texts]
        detected = []
        for text, ranked in zip(
            texts, detect_each(texts, [*sources, *targets]), strict=True
        ):
            best = ranked[0]
            needs_language = LETTER_OR_DIGIT.search(text) is not None
            if needs_language and not best.confidence and len(sources) > 1:
                raise HTTPException(
                    400,
                    "The language of the text cannot be detected. Set source to"
                    f" {' or '.join(sources)}.",
                )
            detected.append(best)
        return detected

    def _add(self, source: str | None, texts: list[RequestText]) -> None:
        """Adds texts in a language to what is translated."""
        body = self.body
        model = self._catalogue.model(source, body.target)
        options = model.decode_options(
            1 + body.alternatives, body.beam_size, body.alpha
        )
        if body.alignments and not model.aligns:
            raise HTTPException(
                400,
                "alignments need a model that translates by the engine tensorflow."
                f" Received: {model.source}-{model.target} by"
                f" {model.translator.engine.name}. Leave them out.",
            )
        self._parts.append((texts, self._work(model, texts, options)))
        hypotheses = self.sentences * options.return_beams
        check_limit("A request", hypotheses, MAX_HYPOTHESES, "hypotheses")

    def _work(
        self, model: ServedModel, texts: Sequence[RequestText], options: DecodeHParams
    ) -> Work:
        """The work to translate texts, with inline tags within sentences if the model
        and the limits allow that.
        """
        tags = sum(text.document.inline_tags for text in texts)
        if tags and model.aligns and tags * options.return_beams <= MAX_PLACED_TAGS:
            # unless a sentence is too long: those between the tags are shorter
            with contextlib.suppress(HTTPException):
                return self._split(model, texts, options, aligned=True)
        if tags:
            for text in texts:
                text.document = HtmlText(text.text, inline=False)
        return self._split(model, texts, options, self.body.alignments)

    def _split(
        self,
        model: ServedModel,
        texts: Sequence[RequestText],
        options: DecodeHParams,
        aligned: bool,
    ) -> Work:
        split: Callable[[str, str], SplitText] = split_text
        if model.makes_trees:
            is_list = not isinstance(self.body.q, str)
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
        """Each sentence with its n-best list, as soon as that is computed."""
        for texts, work in self._parts:
            places = _places(texts)
            async for outputs in service.stream(work, request):
                text, segment = next(places)
                text.n_best.append(outputs)
                yield segment, outputs

    def response(self) -> schemas.TranslateResponse:
        """The response, when all is computed."""
        body = self.body
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
        n_best = outputs[: 1 + self.body.alternatives]
        return schemas.Segment(
            source=segment.sentence,
            before=segment.before,
            hypotheses=[_hypothesis(output) for output in n_best],
        )


def _places(texts: Sequence[RequestText]) -> Iterator[tuple[RequestText, Segment]]:
    """The sentences of texts, each with its text."""
    for text in texts:
        for segment in text.segments():
            yield text, segment


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
