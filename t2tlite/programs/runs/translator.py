"""The Python API of a trained model: what `t2tlite.load` returns."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import (
    Any,
    Concatenate,
    NamedTuple,
    ParamSpec,
    Protocol,
    TypeVar,
    Unpack,
    overload,
)

import numpy as np

from t2tlite.config import DecodeHParams, DecodeOptions
from t2tlite.data.manifest import RunManifest
from t2tlite.decoding.alignment import words_of_pieces
from t2tlite.decoding.engine import Engine, Sentence
from t2tlite.decoding.glossary import Glossary, open_glossary, terms_of
from t2tlite.decoding.rules import rules_of
from t2tlite.decoding.text_decoder import NO_FILE, TextDecoder
from t2tlite.machine import check_not_forked
from t2tlite.programs.export import export, formats
from t2tlite.programs.visualise.attention import Attention
from t2tlite.run_folder import RunFolder
from t2tlite.run_records import DevEvaluation
from t2tlite.tasks import parsing
from t2tlite.tasks.task import Output
from t2tlite.texts import as_list, check_text, one_or_all
from t2tlite.types import EOS
from t2tlite.vocabularies.encoders import TextEncoder

Options = ParamSpec("Options")
Result = TypeVar("Result")


class OneOrAll(Protocol[Options, Result]):
    """A method that returns one result for a string, and a list for several."""

    # mypy's complaint about the overloads is that a string is an Iterable[str] too
    @overload
    def __call__(  # type: ignore[overload-overlap]
        self, sentences: str, /, *args: Options.args, **kwargs: Options.kwargs
    ) -> Result: ...
    @overload
    def __call__(
        self,
        sentences: Iterable[str],
        /,
        *args: Options.args,
        **kwargs: Options.kwargs,
    ) -> list[Result]: ...


def of_one_or_all(
    method: Callable[Concatenate[Any, Any, Options], list[Result]],
) -> OneOrAll[Options, Result]:
    """Lets a method of several sentences take one, too."""

    @functools.wraps(method)
    def of_sentences(
        self: Translator,
        sentences: str | Iterable[str],
        *args: Any,
        **options: Any,
    ) -> Any:
        results = method(self, as_list(sentences), *args, **options)
        return one_or_all(sentences, results)

    return of_sentences  # type: ignore[return-value]


class SentencePair(NamedTuple):
    """A sentence and its translation, as text and as tokens with EOS."""

    source: str
    target: str
    source_tokens: list[int]  # S
    target_tokens: list[int]  # T; cut at the model's last position


class Translator(TextDecoder):
    """A trained model that translates, parses, scores and shows its attention.
    `t2tlite.load` makes it.

    `translate`, `n_best`, `parse` and `score` return one result for one string, and a
    list for several. Their options are fields of DecodeHParams, such as `beam_size=8`,
    by default the problem's; a bad one raises a ValueError.
    """

    def __init__(
        self,
        engine: Engine,
        encoders: tuple[TextEncoder, TextEncoder],
        manifest: RunManifest,
        checkpoint: str = "",
        run: str = "",
        others: tuple[str, ...] = (),
        notes: Iterable[str] = (),
    ) -> None:
        """`run` is the run directory, as `attention` shows it, or those of an ensemble,
        comma-separated; `others` are the checkpoints of its other runs; `notes` is what
        a command says of the model.
        """
        super().__init__(engine, encoders, manifest, checkpoint)
        self.run = run
        self.others = others
        self.notes = list(notes)

    def __repr__(self) -> str:
        return (
            f"<Translator: problem {self.manifest.name},"
            f" {self.engine.parameters:,} parameters, step {self.step:,},"
            f" run {self.run}>"
        )

    @property
    def evaluations(self) -> list[DevEvaluation]:
        """The evaluations on dev in the run's training, oldest first; none of an
        ensemble.
        """
        return RunFolder(self.run).evaluations()

    @of_one_or_all
    def translate(
        self,
        sentences: list[str],
        *,
        prefix: str | Iterable[str] | None = None,
        glossary: str | Path | Mapping[str, str] | None = None,
        **options: Unpack[DecodeOptions],
    ) -> list[str]:
        """The best translation of each sentence, in order; a blank sentence stays
        blank.

        A translation begins with its `prefix`, which may be empty. Its last word may be
        continued, even if a space follows it. It has the terms of the `glossary`, a
        dict or a file of lines "source TAB target".
        """
        starts = None if prefix is None else as_list(prefix)
        self.check_spelled(starts or (), NO_FILE.line)
        given = open_glossary(glossary)
        if given:
            self.check_glossary(given)
        n_best = self.decode(
            sentences,
            self.options(**options),
            prefix=starts,
            task=self.task.as_sequences(),
            terms=terms_of(given, sentences),
        )
        return [outputs[0].text for outputs in n_best]

    def check_glossary(self, glossary: Glossary) -> None:
        """Raises ValueError if the model is a parser, or cannot spell a term."""
        if isinstance(self.task, parsing.ParsingTask):
            raise ValueError("A glossary is for translations. Received: a parser.")
        self.check_spelled(glossary.targets.values(), glossary.places.__getitem__)

    @of_one_or_all
    def n_best(
        self,
        sentences: list[str],
        count: int | None = None,
        **options: Unpack[DecodeOptions],
    ) -> list[list[Output]]:
        """The `count` best hypotheses of each sentence, best first, by default as many
        as `beam_size`.

        Each has its `text`, its `score`, by which beam search orders them, and its
        log-probability `log_prob`; a parser's are parses. A blank sentence has one,
        blank. Raises ValueError if `count` is above `beam_size`.
        """
        chosen = self.options(**options)
        if count is None:
            count = chosen.beam_size
        return self.decode(sentences, dataclasses.replace(chosen, return_beams=count))

    @of_one_or_all
    def parse(
        self,
        sentences: list[str],
        *,
        raw_text: bool = False,
        **options: Unpack[DecodeOptions],
    ) -> list[Output]:
        """The best parse of each sentence, in order; a blank sentence has no tree.

        The best parse is the one of the beam that fits the words best
        (`ParsingTask.choose`). White space of any kind must separate words and
        punctuation, as in the training trees; with `raw_text` they are separated first,
        by the rules of the Penn Treebank. Brackets may be written as they are or as
        -LRB- and -RRB-. Raises ValueError if the model is not a parser.
        """
        task = parsing.parser(self.task, self.manifest.name)
        if raw_text:
            sentences = list(map(parsing.penn_words, sentences))
        n_best = self.decode(sentences, self.options(**options), task=task)
        return [outputs[0] for outputs in n_best]

    @of_one_or_all
    def score(
        self,
        sources: list[str],
        targets: str | Iterable[str],
        **options: Unpack[DecodeOptions],
    ) -> list[float]:
        """The log-probability (natural) of each target, its EOS included, given its
        source.

        Under tensor2tensor's rules, returns the mean negative log-probability of the
        tokens. Raises ValueError if the numbers of sources and targets differ.
        """
        chosen = self.options(**options)
        scored = self.score_hypotheses(sources, as_list(targets), chosen)
        if rules_of(chosen).scores_per_token:
            return [target.score for target in scored]
        return [target.log_prob for target in scored]

    def attention(self, source: str, target: str | None = None) -> Attention:
        """The pieces of a sentence and its translation, and the attention weights of
        all heads.

        `target` is by default the model's own translation, with the problem's options.
        A notebook shows the result as a page. Raises ValueError for a source without
        words, or one that the vocabulary encodes as no tokens.
        """
        return self.attention_of(self.sentence_pair(source, target))

    def sentence_pair(self, source: str, target: str | None = None) -> SentencePair:
        """A sentence and its translation in tokens; arguments and errors are those of
        `attention`.
        """
        self._check_one_run("Attention is shown")
        check_text("source", source)
        source = self.task.source(source)
        source_ids = self._encode(self.source_encoder, [source])[0]
        if self.source_encoder.is_blank(source) or not source_ids:
            raise ValueError(f"Attention needs words. Received: {source!r}.")
        if target is None:
            options = self.options(return_beams=1)
            [[best]] = self.engine.decode([Sentence(source_ids)], options)
            target_ids = best.ids
            target = self.target_encoder.text(target_ids)
        else:
            check_text("target", target)
            target_ids = self._encode(self.target_encoder, [target])[0]
        # a translation may fill all positions that the model knows
        target_tokens = [*target_ids, EOS][: self.engine.max_positions]
        return SentencePair(source, target, [*source_ids, EOS], target_tokens)

    def attention_of(self, pair: SentencePair) -> Attention:
        """The attention weights of all heads for a sentence and its translation."""
        check_not_forked()
        # one sentence: no padding
        inputs = np.array([pair.source_tokens], np.int32)
        targets = np.array([pair.target_tokens], np.int32)
        stacks = []
        for stack in self.engine.attention(inputs, targets):
            stacks.append([np.asarray(layer)[0] for layer in stack])
        encoder, decoder, cross = stacks
        source_encoder, target_encoder = self.encoders
        # The caller counts the words of its own texts: a vocabulary may normalise "½"
        # to "1⁄2", or drop a character.
        return Attention(
            source_encoder.pieces(pair.source_tokens),
            target_encoder.pieces(pair.target_tokens),
            encoder,
            decoder,
            cross,
            pair.source,
            pair.target,
            self.run,
            self.step,
            words_of_pieces(source_encoder, pair.source_tokens[:-1], pair.source),
            words_of_pieces(target_encoder, pair.target_tokens[:-1], pair.target),
        )

    def export(
        self,
        export_dir: str | Path,
        format: str = "saved_model",
        *,
        overwrite: bool = False,
        quantization: str = "",
        languages: str = "",
        **options: Unpack[DecodeOptions],
    ) -> Path:
        """Exports the model for other programs, as t2t-export does (docs/export.md),
        and returns the folder.

        Options are the export's defaults. Raises ValueError if the format cannot
        express the model, or the verification of what was written fails.
        """
        self._check_one_run("A model is exported")
        formats.keras_model(self)  # raises if another engine computes
        planned = export.ExportPlan(
            run=RunFolder(self.run),
            checkpoint=self.checkpoint,
            format=formats.open_format(
                format, quantization=quantization, languages=languages
            ),
            decoding=self.options(**options),
            export_dir=export_dir,
            overwrite=overwrite,
        )
        planned.check()
        export.export_model(self, planned)
        return planned.folder

    def _check_one_run(self, what: str) -> None:
        """Raises ValueError for an ensemble."""
        if self.others:
            raise ValueError(
                f"{what} of one run. Received: an ensemble of {len(self.others) + 1}."
            )


def decode_options(manifest: RunManifest, changes: str = "") -> DecodeHParams:
    """The problem's decoding defaults with the changes of --decode_hparams; ValueError
    for a bad one.
    """
    return DecodeHParams(**manifest.decode_defaults).override(changes)
