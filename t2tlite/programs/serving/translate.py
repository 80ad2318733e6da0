"""A request to translate or parse: its texts, the sentences in them, the work for the
batcher, and from its results the response. No other module knows all of these.
"""

import collections
import contextlib
from collections.abc import AsyncIterator, Sequence
from typing import Any

from fastapi import Request
from starlette.exceptions import HTTPException

from t2tlite.config import DecodeHParams
from t2tlite.programs.documents import sentences
from t2tlite.programs.documents.html_text import HtmlText, PlainText
from t2tlite.programs.documents.sentences import Segment, SplitText
from t2tlite.programs.serving import options as limits
from t2tlite.programs.serving import requests, schemas
from t2tlite.programs.serving.batching import BatchFunction, Work
from t2tlite.programs.serving.models import Catalogue, ServedModel, detect_each
from t2tlite.programs.serving.service import Service
from t2tlite.tasks.task import Output
from t2tlite.texts import as_list, one_or_all
from t2tlite.trees.tree_drawing import tree_svg
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
        segments: list[Segment] = []
        for split in self.splits:
            segments += split.segments
        return segments

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
        self.sentences = 0  # to compute
        self._catalogue = catalogue
        self._texts = [RequestText(text, body.format) for text in as_list(body.q)]
        self._detected: list[schemas.Detection] | None = None
        # what each model translates: sentences with their texts
        self._parts: list[tuple[list[tuple[RequestText, Segment]], Work]] = []
        if body.source and body.source.lower() == AUTO_LANGUAGE:
            self._add_detected()
        else:
            self._add(body.source, self._texts)

    def _add_detected(self) -> None:
        """Adds the texts of each language, except those in the target language.

        Raises HTTPException 400 if the language of a text is not clear and several are
        possible; a text without a letter or digit needs none.
        """
        models = self._catalogue.translators_to(self.body.target)
        if not models:  # says what is served
            self._catalogue.model(AUTO_LANGUAGE, self.body.target)
        sources = sorted({model.source for model in models})
        targets = sorted({model.target for model in models})
        contents = ["\n".join(text.document.texts) for text in self._texts]
        self._detected = []
        texts_in: dict[str, list[RequestText]] = {}
        ranked = detect_each(contents, [*sources, *targets])
        for text, content, (best, *_) in zip(
            self._texts, contents, ranked, strict=True
        ):
            is_clear = best.confidence or len(sources) == 1
            if not is_clear and sentences.LETTER_OR_DIGIT.search(content):
                languages = " or ".join(sources)
                message = f"The language is not clear. Set source to {languages}."
                raise HTTPException(400, message)
            self._detected.append(best)
            if best.language not in targets:
                texts_in.setdefault(best.language, []).append(text)
        for source, texts in texts_in.items():
            self._add(source, texts)

    def _add(self, source: str | None, texts: list[RequestText]) -> None:
        """Adds texts in a language to what is translated, with inline tags within
        sentences if the model and the limits allow that.
        """
        body = self.body
        model = self._catalogue.model(source, body.target)
        n_best = 1 + body.alternatives
        options = model.decode_options(n_best, body.beam_size, body.alpha)
        if body.alignments and not model.aligns:
            raise HTTPException(
                400,
                "alignments need a model that translates by the engine tensorflow."
                f" Received: {model.source}-{model.target} by"
                f" {model.translator.engine.name}.",
            )
        tags = sum(text.document.inline_tags for text in texts)
        is_placed = False
        if tags and model.aligns:
            is_placed = tags * options.return_beams <= limits.MAX_PLACED_TAGS
        if is_placed:
            # unless a sentence is too long: those between the tags are shorter
            with contextlib.suppress(HTTPException):
                self._split(model, texts, options, aligned=True)
                return
        if tags:
            for text in texts:
                text.document = HtmlText(text.text, inline=False)
        self._split(model, texts, options, body.alignments)

    def _split(
        self,
        model: ServedModel,
        texts: Sequence[RequestText],
        options: DecodeHParams,
        aligned: bool,
    ) -> None:
        """Adds the sentences of texts to what is translated."""
        places = []
        for text in texts:
            text.splits = []
            for content in text.document.texts:
                text.splits.append(self._sentences(content, model))
            for segment in text.segments():
                places.append((text, segment))
        count = self.sentences + len(places)
        hypotheses = count * options.return_beams
        requests.check_limit(
            "A request", hypotheses, limits.MAX_HYPOTHESES, "hypotheses"
        )
        items = [segment.sentence for _, segment in places]
        tokens = model.token_counts(items, options.beam_size)
        function = BatchFunction(model.decode, (options, aligned), options.beam_size)
        self._parts.append((places, Work(function, items, tokens)))
        self.sentences = count

    def _sentences(self, text: str, model: ServedModel) -> SplitText:
        """The sentences of a text; to parse, an entry of a list is one, and each of
        another text is on a line.
        """
        if not model.makes_trees:
            return sentences.split_text(text, model.source)
        parsed = [" ".join(words(text))]
        if isinstance(self.body.q, str):
            parsed = list(sentences.parsed_sentences(text))
        segments: list[Segment] = []
        for sentence in parsed:
            segments.append(Segment("\n" if segments else "", sentence))
        return SplitText(segments, "")

    async def compute(
        self, service: Service, request: Request | None = None
    ) -> AsyncIterator[tuple[Segment, RankedOutputs]]:
        """Each sentence with its n-best list, as soon as that is computed."""
        for places, work in self._parts:
            left = iter(places)
            async for outputs in service.stream(work, request):
                text, segment = next(left)
                text.n_best.append(outputs)
                yield segment, outputs

    def response(self) -> schemas.TranslateResponse:
        """The response, when all is computed."""
        body = self.body
        # a list for each field, with an entry for each text
        lists: dict[str, list[Any]] = collections.defaultdict(list)
        for text in self._texts:
            best, *others = map(text.translated, range(1 + body.alternatives))
            lists["translatedText"].append(best)
            if others:
                lists["alternatives"].append(others)
            if (body.segments or body.alignments) and not body.stream:
                segments = map(self.segment, text.segments(), text.n_best)
                lists["segments"].append(list(segments))
        if self._detected is not None:
            lists["detectedLanguage"] = self._detected
        fields = {name: one_or_all(body.q, values) for name, values in lists.items()}
        return schemas.TranslateResponse(**fields)

    def segment(self, segment: Segment, outputs: RankedOutputs) -> schemas.Segment:
        """A sentence and its n-best list."""
        hypotheses = []
        for output in outputs[: 1 + self.body.alternatives]:
            record = output.as_json()
            if output.repairs is not None:
                record["repairs"] = dict(output.repairs)
            if output.tree is not None:
                record["svg"] = tree_svg(output.tree)
            hypotheses.append(schemas.Hypothesis(**record))
        return schemas.Segment(
            source=segment.sentence, before=segment.before, hypotheses=hypotheses
        )
