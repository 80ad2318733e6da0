"""The Python API of a trained model: what `t2tlite.load` returns."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple, Unpack, overload

import numpy as np

from t2tlite.config import DecodeHParams
from t2tlite.data.manifest import RunManifest
from t2tlite.decoding.alignment import words_of_pieces
from t2tlite.decoding.engine import Engine, Sentence
from t2tlite.decoding.rules import rules_of
from t2tlite.decoding.text_decoder import TextDecoder
from t2tlite.keywords import DecodeOptions
from t2tlite.machine import check_not_forked
from t2tlite.programs.export.export import export_model, open_format
from t2tlite.programs.export.plan import ExportPlan
from t2tlite.programs.export.verification import keras_model
from t2tlite.programs.visualise.attention import Attention
from t2tlite.run_folder import RunFolder
from t2tlite.tasks.parsing import parser
from t2tlite.tasks.task import Output
from t2tlite.texts import as_list, check_text, one_or_all
from t2tlite.trees.words import penn_words
from t2tlite.types import EOS
from t2tlite.vocabularies.encoders import TextEncoder


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
        label: str = "",
        run: str = "",
        others: tuple[str, ...] = (),
    ) -> None:
        """`run` is the run directory, as `attention` shows it; `others` are the
        checkpoints of an ensemble's other runs.
        """
        super().__init__(engine, encoders, manifest, checkpoint, label)
        self.run = run
        self.others = others

    # mypy's complaint about the overloads is that a string is an Iterable[str] too

    @overload
    def translate(  # type: ignore[overload-overlap]
        self,
        sentences: str,
        *,
        prefix: str | None = None,
        **options: Unpack[DecodeOptions],
    ) -> str: ...
    @overload
    def translate(
        self,
        sentences: Iterable[str],
        *,
        prefix: Iterable[str] | None = None,
        **options: Unpack[DecodeOptions],
    ) -> list[str]: ...
    def translate(
        self,
        sentences: str | Iterable[str],
        *,
        prefix: str | Iterable[str] | None = None,
        **options: Unpack[DecodeOptions],
    ) -> str | list[str]:
        """The best translation of each sentence, in order; a blank sentence stays
        blank.

        A translation begins with its `prefix`, which may be empty. Its last word may be
        continued, even if a space follows it.
        """
        n_best = self.decode(
            as_list(sentences),
            self.options(**options),
            prefix=None if prefix is None else as_list(prefix),
            task=self.task.as_sequences(),
        )
        return one_or_all(sentences, [outputs[0].text for outputs in n_best])

    @overload
    def n_best(  # type: ignore[overload-overlap]
        self, sentences: str, count: int | None = None, **options: Unpack[DecodeOptions]
    ) -> list[Output]: ...
    @overload
    def n_best(
        self,
        sentences: Iterable[str],
        count: int | None = None,
        **options: Unpack[DecodeOptions],
    ) -> list[list[Output]]: ...
    def n_best(
        self,
        sentences: str | Iterable[str],
        count: int | None = None,
        **options: Unpack[DecodeOptions],
    ) -> list[Output] | list[list[Output]]:
        """The `count` best hypotheses of each sentence, best first, by default as many
        as `beam_size`.

        Each has its `text`, its `score`, by which beam search orders them, and its
        log-probability `log_prob`; a parser's are parses. A blank sentence has one,
        blank. Raises ValueError if `count` is above `beam_size`.
        """
        chosen = self.options(**options)
        if count is None:
            count = chosen.beam_size
        chosen = dataclasses.replace(chosen, return_beams=count)
        return one_or_all(sentences, self.decode(as_list(sentences), chosen))

    @overload
    def parse(  # type: ignore[overload-overlap]
        self,
        sentences: str,
        *,
        raw_text: bool = False,
        **options: Unpack[DecodeOptions],
    ) -> Output: ...
    @overload
    def parse(
        self,
        sentences: Iterable[str],
        *,
        raw_text: bool = False,
        **options: Unpack[DecodeOptions],
    ) -> list[Output]: ...
    def parse(
        self,
        sentences: str | Iterable[str],
        *,
        raw_text: bool = False,
        **options: Unpack[DecodeOptions],
    ) -> Output | list[Output]:
        """The best parse of each sentence, in order; a blank sentence has no tree.

        The best parse is the one of the beam that fits the words best
        (`ParsingTask.choose`). White space of any kind must separate words and
        punctuation, as in the training trees; with `raw_text` they are separated first,
        by the rules of the Penn Treebank. Brackets may be written as they are or as
        -LRB- and -RRB-. Raises ValueError if the model is not a parser.
        """
        task = parser(self.task, self.manifest.name)
        texts = as_list(sentences)
        if raw_text:
            texts = list(map(penn_words, texts))
        n_best = self.decode(texts, self.options(**options), task=task)
        return one_or_all(sentences, [outputs[0] for outputs in n_best])

    @overload
    def score(  # type: ignore[overload-overlap]
        self, sources: str, targets: str, **options: Unpack[DecodeOptions]
    ) -> float: ...
    @overload
    def score(
        self,
        sources: Iterable[str],
        targets: Iterable[str],
        **options: Unpack[DecodeOptions],
    ) -> list[float]: ...
    def score(
        self,
        sources: str | Iterable[str],
        targets: str | Iterable[str],
        **options: Unpack[DecodeOptions],
    ) -> float | list[float]:
        """The log-probability (natural) of each target, its EOS included, given its
        source.

        Under tensor2tensor's rules, returns the mean negative log-probability of the
        tokens. Raises ValueError if the numbers of sources and targets differ, or only
        one of the two is a string.
        """
        if isinstance(sources, str) != isinstance(targets, str):
            received = f"{type(sources).__name__} and {type(targets).__name__}"
            raise ValueError(
                "Source and target must both be strings, or both lists. Received:"
                f" {received}."
            )
        chosen = self.options(**options)
        scored = self.score_hypotheses(as_list(sources), as_list(targets), chosen)
        if rules_of(chosen).scores_per_token:
            return one_or_all(sources, [target.score for target in scored])
        return one_or_all(sources, [target.log_prob for target in scored])

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
        if target is not None:
            check_text("target", target)
        source = self.task.source(source)
        source_ids = self._encode(self.source_encoder, [source])[0]
        if self.source_encoder.is_blank(source) or not source_ids:
            raise ValueError(
                "A sentence must have words for its attention to be shown. Received:"
                f" {source!r}."
            )
        if target is None:
            [[best]] = self.engine.decode(
                [Sentence(source_ids)], self.options(return_beams=1)
            )
            target_ids = best.ids
            target = self.target_encoder.text(target_ids)
        else:
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
        # The caller counts the words of its own texts: a vocabulary may normalise "½"
        # to "1⁄2", or drop a character.
        source_words = words_of_pieces(
            self.source_encoder, pair.source_tokens[:-1], pair.source
        )
        target_words = words_of_pieces(
            self.target_encoder, pair.target_tokens[:-1], pair.target
        )
        return Attention(
            self.source_encoder.pieces(pair.source_tokens),
            self.target_encoder.pieces(pair.target_tokens),
            encoder,
            decoder,
            cross,
            pair.source,
            pair.target,
            self.run,
            self.step,
            source_words,
            target_words,
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
        plan = ExportPlan(
            run=RunFolder(self.run),
            checkpoint=self.checkpoint,
            hparams=keras_model(self).hparams,
            manifest=self.manifest,
            format=open_format(format, quantization=quantization, languages=languages),
            decoding=self.options(**options),
            export_dir=export_dir,
            overwrite=overwrite,
        )
        plan.check()
        export_model(self, plan)
        return plan.folder

    def _check_one_run(self, what: str) -> None:
        """Raises ValueError for an ensemble."""
        if self.others:
            raise ValueError(
                f"{what} of one run. Received: an ensemble of {len(self.others) + 1}."
                " Load one of its runs."
            )


def decode_options(manifest: RunManifest, changes: str = "") -> DecodeHParams:
    """The problem's decoding defaults with the changes of --decode_hparams; ValueError
    for a bad one.
    """
    return DecodeHParams(**manifest.decode_defaults).override(changes)
