"""A request to translate or parse: its texts, the sentences in them, the work for the
batcher, and from its results the response. No other module knows all of these.
"""

import collections
import contextlib
from collections.abc import AsyncIterator, Sequence
from typing import Any

from starlette.exceptions import HTTPException

from t2tlite.config import DecodeHParams
from t2tlite.decoding.glossary import open_glossary
from t2tlite.programs.documents import sentences
from t2tlite.programs.documents.html_text import HtmlText, PlainText
from t2tlite.programs.serving import options, requests, schemas
from t2tlite.programs.serving.batching import BatchFunction, Work
from t2tlite.programs.serving.detection import detect_each
from t2tlite.programs.serving.models import Catalogue, ServedModel
from t2tlite.programs.serving.service import Service
from t2tlite.tasks.task import Output, TextToTextTask
from t2tlite.texts import as_list, one_or_all
from t2tlite.trees.drawing import tree_svg
from t2tlite.vocabularies.normalisation import words

RankedOutputs = Sequence[Output]  # the outputs of a sentence, best first
Place = tuple[sentences.Segment, list[RankedOutputs]]


class RequestText:
    """A text of a request. One without sentences stays as it is."""

    def __init__(self, text: str, form: str) -> None:
        self.text = text
        kind = HtmlText if form == "html" else PlainText
        self.document: HtmlText | PlainText = kind(text)
        # the document's texts in sentences, with the outputs of those that are computed
        self.splits: list[tuple[sentences.SplitText, list[RankedOutputs]]] = []
        self.language = ""  # of the translation

    def translated(self, rank: int) -> str:
        """The text with the hypotheses of this rank, or the last one of a list that is
        shorter.
        """
        if not self.splits:
            return self.text
        translations = []
        for split, computed in self.splits:
            chosen = []
            for outputs in computed:
                output = outputs[min(rank, len(outputs) - 1)]
                chosen.append((output.text, output.alignment or []))
            translations.append((split, chosen))
        return self.document.translated(iter(translations), self.language)


class Translation:
    """A request to translate, checked and split. Raises HTTPException, and ValueError
    for a glossary that is wrong or cannot be used.
    """

    def __init__(self, body: schemas.TranslateRequest, catalogue: Catalogue) -> None:
        self.body = body
        self.sentences = 0  # to compute
        self._catalogue = catalogue
        self._glossary = open_glossary(body.glossary)
        self._texts = [RequestText(text, body.format) for text in as_list(body.q)]
        self._detected: list[schemas.Detection] | None = None
        # what each model translates: sentences, and where their outputs belong
        self._parts: list[tuple[ServedModel, list[Place], Work]] = []
        if (body.source or "").lower() == "auto":
            self._add_detected()
        else:
            self._add(body.source, self._texts)

    def _add_detected(self) -> None:
        """Adds the texts of each language, except those in the target language.

        Raises HTTPException 400 if the language of a text is not clear and several are
        possible; a text without a letter needs none.
        """
        sources, targets = self._catalogue.languages_to(self.body.target)
        if not sources:  # says what is served
            self._catalogue.model("auto", self.body.target)
        contents = ["\n".join(text.document.texts) for text in self._texts]
        self._detected = []
        texts_in: dict[str, list[RequestText]] = {}
        ranked = detect_each(contents, [*sources, *targets])
        for text, content, [best, *_] in zip(
            self._texts,
            contents,
            ranked,
            strict=True,
        ):
            has_letter = sentences.has_letter(content)
            if has_letter and not best.confidence and len(sources) > 1:
                message = f"No language is clear. Set source to {' or '.join(sources)}."
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
        decoding = model.decode_options(n_best, body.beam_size, body.alpha)
        if body.alignments and not model.aligns:
            message = "alignments need translations by the engine tensorflow. Received:"
            raise HTTPException(400, f"{message} {model.source}-{model.target}.")
        if self._glossary:
            model.check_glossary(self._glossary, decoding)
        tags = sum(text.document.inline_tags for text in texts)
        placed = tags * decoding.return_beams
        if placed and model.aligns and placed <= options.MAX_PLACED_TAGS:
            # unless a sentence is too long: those between the tags are shorter
            with contextlib.suppress(HTTPException):
                self._split(model, texts, decoding, aligned=True)
                return
        for text in texts if tags else ():
            text.document = HtmlText(text.text, inline=False)
        self._split(model, texts, decoding, body.alignments)

    def _split(
        self,
        model: ServedModel,
        texts: Sequence[RequestText],
        decoding: DecodeHParams,
        aligned: bool = False,
    ) -> None:
        """Adds the sentences of texts to what is translated."""
        places: list[Place] = []
        for text in texts:
            text.language = "" if model.makes_trees else model.target
            text.splits = []
            for content in text.document.texts:
                split = self._sentences(content, model)
                computed: list[RankedOutputs] = []
                text.splits.append((split, computed))
                for segment in split.segments:
                    places.append((segment, computed))
        count = self.sentences + len(places)
        hypotheses = count * decoding.return_beams
        requests.check_limit(
            "A request",
            hypotheses,
            options.MAX_HYPOTHESES,
            "hypotheses",
        )
        chosen = [segment.sentence for segment, _ in places]
        # a search cannot be interrupted, so a wide one must have fewer tokens
        longest = options.MAX_SEARCH_TOKENS // decoding.beam_size
        tokens = model.token_counts(chosen, min(longest, options.MAX_SERVED_TOKENS))
        items = model.with_terms(chosen, self._glossary)
        function = BatchFunction(model.decode, (decoding, aligned), decoding.beam_size)
        self._parts.append((model, places, Work(function, items, tokens)))
        self.sentences = count

    def _sentences(self, text: str, model: ServedModel) -> sentences.SplitText:
        """The sentences of a text; to parse, an entry of a list is one, and each of
        another text is on a line.
        """
        if not model.makes_trees:
            numbers = isinstance(model.translator.task, TextToTextTask)
            return sentences.split_text(text, model.source, numbers)
        parsed = [" ".join(words(text))]
        if isinstance(self.body.q, str):
            parsed = sentences.parsed_sentences(text)
        segments: list[sentences.Segment] = []
        for sentence in parsed:
            segments.append(sentences.Segment("\n" if segments else "", sentence))
        return sentences.SplitText(segments, "")

    async def compute(
        self,
        service: Service,
    ) -> AsyncIterator[tuple[sentences.Segment, RankedOutputs]]:
        """Each sentence with its n-best list, as soon as that is computed."""
        for model, places, work in self._parts:
            name = f"{model.source}-{model.target}"
            with service.metrics.model_seconds.labels(name).time():
                left = iter(places)
                async for outputs in service.stream(work):
                    service.metrics.model_sentences.labels(name).inc()
                    segment, computed = next(left)
                    computed.append(outputs)
                    yield segment, outputs

    def answer(self) -> bytes:
        """The response in JSON, when all is computed."""
        body = self.body
        # a list for each field, with an entry for each text
        lists: dict[str, list[Any]] = collections.defaultdict(list)
        for text in self._texts:
            best, *others = map(text.translated, range(1 + body.alternatives))
            lists["translatedText"].append(best)
            if others:
                lists["alternatives"].append(others)
            if (body.segments or body.alignments) and not body.stream:
                segments: list[schemas.Segment] = []
                for split, computed in text.splits:
                    segments += map(self.segment, split.segments, computed)
                lists["segments"].append(segments)
        if self._detected is not None:
            lists["detectedLanguage"] = self._detected
        fields = {name: one_or_all(body.q, values) for name, values in lists.items()}
        return requests.as_json(schemas.TranslateResponse(**fields))

    def segment(
        self,
        segment: sentences.Segment,
        outputs: RankedOutputs,
    ) -> schemas.Segment:
        """A sentence and its n-best list."""
        hypotheses = []
        for output in outputs[: 1 + self.body.alternatives]:
            svg = None if output.tree is None else tree_svg(output.tree)
            repairs = None if output.repairs is None else dict(output.repairs)
            record = output.as_json()
            if not self.body.alignments:
                record.pop("alignment", None)
            hypotheses.append(schemas.Hypothesis(**record, svg=svg, repairs=repairs))
        return schemas.Segment(
            source=segment.sentence,
            before=segment.before,
            hypotheses=hypotheses,
        )
