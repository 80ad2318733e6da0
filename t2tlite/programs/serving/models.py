"""A run that is served, and what can be asked of it; the catalogue of all runs, and how
it is loaded.
"""

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

from starlette.exceptions import HTTPException

from t2tlite.config import DecodeHParams
from t2tlite.console import log
from t2tlite.data.language_codes import (
    contradiction,
    distance,
    pair_of_run,
    parse_language,
)
from t2tlite.data.manifest import RunManifest
from t2tlite.decoding.engine import ALIGNMENTS, GLOSSARY, TENSORFLOW
from t2tlite.decoding.glossary import Glossary, open_glossary
from t2tlite.files.checkpoint_paths import find_checkpoint
from t2tlite.programs.runs.load import check_engine_options, load, run_dataset
from t2tlite.programs.runs.translator import Translator, decode_options
from t2tlite.programs.serving import batching, requests
from t2tlite.programs.serving.detection import detect
from t2tlite.programs.serving.options import MAX_TERM_TOKENS, ServedRunOptions
from t2tlite.run_folder import RunFolder
from t2tlite.tasks.parsing import ParsingTask
from t2tlite.tasks.task import Output, open_task

TREE = "tree"  # the "language" of a parser's output
WARM_UP = "Warm up."  # decoded once before the first request
MAX_EXAMPLES = 4  # sentences that the page offers
MAX_EXAMPLE = 60  # characters of an example

SentenceWithTerms = tuple[str, list[str]]


class ServedPair(NamedTuple):
    """What is served: a run, its language codes, and what precedes every source, for a
    run that translates to several languages.
    """

    run: str
    source: str
    target: str
    tag: str = ""


def served_pairs(
    runs: Sequence[str],
    manifests: Sequence[RunManifest],
    given: Sequence[str] = (),
) -> list[ServedPair]:
    """The language pair of each run: as given (`en-de`, one for each run), or as its
    manifest records. `en-de:<2de>,en-fr:<2fr>` of one run are two pairs with tags.

    A parser translates to TREE, from English if its manifest names no language; its
    entry in `given` may be the source language alone. Raises ValueError if there are
    not as many pairs as runs, a run has none, or two runs the same.
    """
    entries: list[str | None] = [*given] or [None] * len(runs)
    if len(runs) == 1 and all(":" in entry for entry in given):
        runs = [*runs] * len(entries)
        manifests = [*manifests] * len(entries)
    if len(entries) != len(runs):
        raise ValueError(
            "--languages needs a pair for each --output_dir, in their order. Received:"
            f" {len(given)} for {len(runs)}."
        )
    served: dict[tuple[str, str], ServedPair] = {}
    for run, manifest, entry in zip(runs, manifests, entries, strict=True):
        pair = _served_pair(run, manifest, entry)
        codes = (pair.source, pair.target)
        note = contradiction(run, manifest, codes)
        if note and not pair.tag:
            log(note)
        other = served.setdefault(codes, pair)
        if other is not pair:
            raise ValueError(
                f"Runs must differ in their languages. Received: {run} and {other.run}"
                f" for {'-'.join(codes)}. Leave one out, or use --languages."
            )
    return list(served.values())


def _served_pair(run: str, manifest: RunManifest, entry: str | None) -> ServedPair:
    tag = ""
    if entry is not None:
        entry, _, tag = entry.partition(":")
    if isinstance(open_task(manifest.task, manifest.options), ParsingTask):
        if entry is None:
            entry = manifest.language_pair[0] or "en"
        source = entry.strip().removesuffix(f"-{TREE}")
        return ServedPair(run, parse_language(source), TREE)
    source, target = pair_of_run(run, manifest, entry)
    return ServedPair(run, source, target, tag.strip())


def pairs_of_runs(options: ServedRunOptions) -> list[ServedPair]:
    """The language pairs of the runs, whose records are checked without TensorFlow."""
    glossary = open_glossary(options.glossary)
    manifests = []
    for run in options.output_dir:
        folder = RunFolder(run)
        folder.hparams()
        manifest = folder.manifest()
        find_checkpoint(folder.path, options.checkpoint_path)
        decoding = decode_options(manifest, options.decode_hparams)
        features = [GLOSSARY] * bool(glossary)
        check_engine_options(options.engine, decoding, *features)
        manifests.append(manifest)
    pairs = served_pairs(options.output_dir, manifests, options.languages)
    if glossary and (len(pairs) > 1 or pairs[0].target == TREE):
        raise ValueError(f"--glossary is of one language pair. Received: {pairs}.")
    return pairs


@dataclasses.dataclass(frozen=True, eq=False)
class ServedModel:
    """A loaded run and its language pair."""

    translator: Translator
    source: str
    target: str
    options: DecodeHParams  # unless a request says otherwise
    # before every source, for a model that translates to several languages
    tag: str = ""
    examples: tuple[str, ...] = ()
    glossary: Glossary | None = None

    @property
    def makes_trees(self) -> bool:
        """Whether this is a parser."""
        return isinstance(self.translator.task, ParsingTask)

    @property
    def aligns(self) -> bool:
        """Whether word alignments can be computed."""
        translator = self.translator
        return ALIGNMENTS in translator.engine.supported and translator.task.keeps_words

    def decode(
        self,
        items: Sequence[SentenceWithTerms],
        options: DecodeHParams,
        aligned: bool = False,
    ) -> list[list[Output]]:
        """The n-best list of each sentence, with word alignments if `aligned`, or its
        parse.
        """
        sentences, terms = zip(*items, strict=True)
        if self.makes_trees:
            parses = self.translator.parse(sentences, **dataclasses.asdict(options))
            return [[parse] for parse in parses]
        sources = self.tagged(sentences)
        given = terms if any(terms) else None
        n_best = self.translator.decode(sources, options, terms=given)
        if aligned:
            return self.translator.aligned(sources, n_best, len(self.tag.split()))
        return n_best

    def tagged(self, sources: Sequence[str]) -> list[str]:
        """The sources as the model was trained on them, with the tag before each."""
        prefix = f"{self.tag} ".lstrip()
        return [prefix + source for source in sources]

    def decode_options(
        self,
        n_best: int = 1,
        beam_size: int | None = None,
        alpha: float | None = None,
    ) -> DecodeHParams:
        """The options of a request. Raises HTTPException 400 if the beam is too small.

        The beam is at least as large as the n-best list. An n-best list is the whole
        beam, so that lists of different lengths can share a batch.
        """
        beam = beam_size or max(self.options.beam_size, n_best)
        most = 1 if self.makes_trees else beam
        if n_best > most:
            message = f"alternatives must be at most {most - 1}, less than beam_size."
            raise HTTPException(400, f"{message} Received: {n_best - 1}.")
        if alpha is None:
            alpha = self.options.alpha
        return_beams = beam if n_best > 1 else 1
        return dataclasses.replace(
            self.options,
            beam_size=beam,
            return_beams=return_beams,
            alpha=alpha,
        )

    def check_glossary(self, glossary: Glossary, options: DecodeHParams) -> None:
        """Raises ValueError if the glossary cannot be used with these options."""
        self.translator.check_glossary(glossary)
        self.translator.engine.check_supported(options, GLOSSARY)

    def with_terms(
        self,
        sentences: Sequence[str],
        glossary: Glossary | None = None,
    ) -> list[SentenceWithTerms]:
        """Each sentence with its terms in a glossary, by default the server's. Raises
        HTTPException 413 if they have more than MAX_TERM_TOKENS.
        """
        glossary = glossary or self.glossary
        items = []
        for sentence in sentences:
            terms = glossary.terms(sentence) if glossary else []
            encoded = self.translator.target_encoder.encode_batch(terms)
            tokens = sum(map(len, encoded))
            subject = "The terms of a sentence"
            requests.check_limit(subject, tokens, MAX_TERM_TOKENS, "tokens")
            items.append((sentence, terms))
        return items

    def token_counts(self, sentences: Sequence[str], limit: int) -> list[int]:
        """The number of tokens of each source, EOS included. Raises HTTPException 413
        for more than `limit`, or more than the model can read.
        """
        sources = list(map(self.translator.task.source, self.tagged(sentences)))
        encoded = self.translator.source_encoder.encode_batch(sources)
        limit = min(limit, self.translator.max_source_tokens)
        counts = []
        for sentence, ids in zip(sentences, encoded, strict=True):
            advice = f"Split it: {sentence[: requests.SHOWN]!r}..."
            requests.check_limit("A sentence", len(ids), limit, "tokens", advice)
            counts.append(len(ids) + 1)
        return counts


class Catalogue:
    """The served models by language pair."""

    def __init__(self, models: Sequence[ServedModel]) -> None:
        self.models = list(models)
        self.translators = [model for model in models if not model.makes_trees]

    def model(self, source: str | None, target: str | None) -> ServedModel:
        """The model of a language pair, whose target may be TREE. Raises HTTPException
        400 if there is none, or several and not both languages are given.
        """
        by_distance: dict[tuple[int, int], list[ServedModel]] = {}
        for model in self.models:
            to_source = distance(source, model.source)
            to_target = distance(target, model.target)
            if to_source is not None and to_target is not None:
                by_distance.setdefault((to_target, to_source), []).append(model)
        if by_distance:
            nearest = by_distance[min(by_distance)]
            if len(nearest) == 1:
                return nearest[0]
        served = ", ".join(f"{each.source}-{each.target}" for each in self.models)
        message = f"source and target must be one of the pairs served: {served}."
        received = f"source {source or 'missing'}, target {target or 'missing'}"
        raise HTTPException(400, f"{message} Received: {received[: requests.SHOWN]}.")

    def languages(self) -> dict[str, list[str]]:
        """The languages that each language can be translated to; every language served
        is a key.
        """
        targets_of: dict[str, list[str]] = {}
        for model in self.translators:
            targets_of.setdefault(model.source, []).append(model.target)
            targets_of.setdefault(model.target, [])
        return dict(sorted(targets_of.items()))

    def languages_to(self, wanted: str | None) -> tuple[list[str], list[str]]:
        """Sources and targets of the models for what a request means by a target."""
        sources = set()
        targets = set()
        for model in self.translators:
            if distance(wanted, model.target) is not None:
                sources.add(model.source)
                targets.add(model.target)
        return sorted(sources), sorted(targets)


def load_catalogue(options: ServedRunOptions, pairs: Sequence[ServedPair]) -> Catalogue:
    """The models of the pairs, warm. Raises ValueError or OSError if a run cannot be
    loaded.
    """
    detect(WARM_UP, ["en"])  # loads the classifier, so that the first request is quick
    glossary = open_glossary(options.glossary)
    models: list[ServedModel] = []
    # by run; a run may translate to several languages
    translators: dict[str, Translator] = {}
    for run, source, target, tag in pairs:
        log(f"Loading {run}: {source} to {target}.")
        if run not in translators:
            translators[run] = load(
                run,
                options.checkpoint_path,
                options.engine,
                options.quantization,
                threads=batching.WORKERS,
            )
            for note in translators[run].notes:
                log(note)
        translator = translators[run]
        translator.engine.threads = 1  # a worker decodes its batch by itself
        defaults = decode_options(translator.manifest, options.decode_hparams)
        examples = example_sentences(run, tag)
        model = ServedModel(
            translator, source, target, defaults, tag, examples, glossary
        )
        if model.glossary:
            model.check_glossary(model.glossary, defaults)
        # so that the first request is quick; with CTranslate2, one for attention would
        # load TensorFlow
        if translator.engine.name == TENSORFLOW:
            translator.attention_of(translator.sentence_pair(WARM_UP, WARM_UP))
        for sentences in ([WARM_UP], [WARM_UP] * 2):  # alone and together
            items = model.with_terms(sentences)
            model.decode(items, model.decode_options(), model.aligns)
        models.append(model)
        log(f"Loaded step {translator.step:,}.")
    return Catalogue(models)


def example_sentences(run: str, tag: str = "") -> tuple[str, ...]:
    """The first short sources of the dev split, without the tag, of those that have it;
    none if the run's data is no longer where it was in training.
    """
    try:
        sources = run_dataset(RunFolder(run)).store("dev").source_text()
    except (OSError, ValueError):
        return ()
    examples: dict[str, None] = {}
    for source in sources:
        sentence = source.removeprefix(tag).strip()
        if source.startswith(tag) and 0 < len(sentence) <= MAX_EXAMPLE:
            examples[sentence] = None
    return tuple(examples)[:MAX_EXAMPLES]
