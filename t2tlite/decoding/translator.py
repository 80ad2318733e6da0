"""A trained model with its vocabulary: text in, text out. `t2tlite.load` makes one."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from t2tlite.config import DecodeHParams, HParams
from t2tlite.decoding.decoder import Decoder
from t2tlite.models.transformer import Transformer
from t2tlite.registry import did_you_mean
from t2tlite.tasks.outputs import is_parsing, rank_parses
from t2tlite.training.checkpoints import step_of
from t2tlite.trees.restore import tree_word
from t2tlite.trees.tree import Tree, format_tree
from t2tlite.visualise.attention import Attention
from t2tlite.vocabularies.encoders import TextEncoder
from t2tlite.vocabularies.sentencepiece_encoder import EOS

MAX_SOURCE_TOKENS = 2048  # of a sentence to decode; far beyond what training sees


class Translation(NamedTuple):
    """One translation of a sentence."""

    text: str
    score: float  # log-probability / length penalty

    @property
    def sequence(self) -> str:
        """The text as it was decoded."""
        return self.text


class Parse(NamedTuple):
    """One parse of a sentence."""

    tree: Tree | None  # over the sentence's words, under TOP; None for a blank sentence
    score: float  # log-probability / length penalty
    repairs: Counter[str]  # what had to be done to make a tree of the sequence (data/restore.py); empty for most
    sequence: str  # as it was decoded

    @property
    def text(self) -> str:
        """The tree in brackets, on one line."""
        return "" if self.tree is None else format_tree(self.tree)


class Translator:
    """A trained model with its vocabulary: text in, text out."""

    def __init__(
        self,
        model: Transformer,
        encoders: tuple[TextEncoder, TextEncoder],
        hparams: HParams,
        manifest: dict[str, Any],
        path: str,
    ) -> None:
        self.model = model
        self.source_encoder, self.target_encoder = encoders  # mostly the same
        self.hparams = hparams
        self.manifest = manifest
        self.checkpoint = path
        self.step = step_of(path)
        self._decoders: dict[DecodeHParams, Decoder] = {}

    def translate(self, sentences: Sequence[str], **options: Any) -> list[str]:
        """The best translation of each sentence, in order; a blank one stays blank.

        Args:
            sentences: without line breaks.
            **options: fields of DecodeHParams, such as `beam_size=8` or `alpha=1.0`; by default the problem's.

        Raises:
            ValueError: a bad option, or a sentence longer than the limit; the message names it.
        """
        chosen = self.options(**options)
        return [best[0].text for best in self.translate_n_best(sentences, chosen)]

    def translate_n_best(
        self, sentences: Sequence[str], options: DecodeHParams, done: Callable[[int], None] = lambda count: None
    ) -> list[list[Translation]]:
        """The `return_beams` best translations of each sentence, best first, with their scores.

        Args:
            sentences: without line breaks; a blank one gets one blank translation.
            options: how to decode.
            done: called with the number of sentences after each batch, for a progress bar.
        """
        encoded = self._encode(self.source_encoder, sentences, options.t2t_rules)
        sources = [ids if sentence.strip() else [] for sentence, ids in zip(sentences, encoded, strict=True)]
        batches = _batches_by_words(sentences, options.sentences_together) if options.t2t_rules else None
        found = self._decoder(options).decode(sources, done, batches)
        return [[Translation(self._text(h.ids), h.score) for h in hypotheses] for hypotheses in found]

    def parse(self, sentences: Sequence[str], **options: Any) -> list[Parse]:
        """The best parse of each sentence, in order, by a model of a parsing problem; a blank sentence has no tree.

        Args:
            sentences: words and punctuation separated by spaces, as in the training trees; brackets may be written
                as they are or as -LRB- and -RRB-.
            **options: fields of DecodeHParams, such as `beam_size=4`; by default the problem's.

        Raises:
            ValueError: the model does not parse, a bad option, or a sentence longer than the limit.
        """
        return [best[0] for best in self.parse_n_best(sentences, self.options(**options))]

    def parse_n_best(
        self, sentences: Sequence[str], options: DecodeHParams, done: Callable[[int], None] = lambda count: None
    ) -> list[list[Parse]]:
        """The `return_beams` best parses of each sentence, best first; several sequences may give one tree.

        All hypotheses of the beam are looked at: first come those that fit the words best (`rank_parses`).

        Args:
            sentences: as for `parse`.
            options: how to decode.
            done: called with the number of sentences after each batch, for a progress bar.

        Raises:
            ValueError: the model does not parse, or a sentence is longer than the limit.
        """
        if not self.is_parser:
            name = self.manifest["problem"] + ("_rev" if self.manifest["reverse"] else "")
            raise ValueError(f"Only a model of a parsing problem parses. Received: one of {name}. Use translate.")
        _check(sentences)
        rows = [[tree_word(word) for word in sentence.split()] for sentence in sentences]
        beam = dataclasses.replace(options, return_beams=options.beam_size)
        found = self.translate_n_best([" ".join(words) for words in rows], beam, done)
        wanted = options.return_beams
        return [self._parses(n_best, words, wanted) for words, n_best in zip(rows, found, strict=True)]

    @property
    def is_parser(self) -> bool:
        """Whether the run's problem is parsing."""
        return is_parsing(self.manifest)

    def score(
        self,
        sources: Sequence[str],
        targets: Sequence[str],
        options: DecodeHParams | None = None,
        done: Callable[[int], None] = lambda count: None,
    ) -> list[float]:
        """The log-probability (natural) of each target, end mark included, given its source.

        With t2t_rules: the negative of it, divided by the number of tokens.

        Args:
            sources: without line breaks.
            targets: likewise, as many.
            options: of which only batch_size and t2t_rules matter; by default the problem's.
            done: called with the number of pairs after each batch, for a progress bar.

        Raises:
            ValueError: not as many targets as sources, or one longer than the limit.
        """
        _check(sources)
        _check(targets)
        if len(sources) != len(targets):
            raise ValueError(f"Each source needs a target. Received: {len(sources)} sources, {len(targets)} targets.")
        options = options or self.options()
        source_ids = self._encode(self.source_encoder, sources, options.t2t_rules)
        target_ids = self._encode(self.target_encoder, targets, options.t2t_rules)
        log_probs = self._decoder(options).score(source_ids, target_ids, done)
        if options.t2t_rules:
            return [-value / (len(ids) + 1) for value, ids in zip(log_probs, target_ids, strict=True)]
        return log_probs

    def attention(self, source: str, target: str | None = None) -> Attention:
        """What every head of every layer looks at, for one sentence and its translation.

        Args:
            source: a sentence without line breaks.
            target: its translation; by default the model's own, found by beam search as the problem decodes.

        Returns:
            The pieces of both sentences and the weights. A notebook shows it as a page; `t2tlite.visualise` draws it.

        Raises:
            ValueError: a blank source, or a sentence longer than the limit.
        """
        if self.is_parser:  # brackets in the form that the model was trained on
            source = " ".join(tree_word(word) for word in source.split())
        source_ids = self._encode(self.source_encoder, [source])[0]
        if not source.strip():
            raise ValueError(f"A sentence to look at must have words. Received: {source!r}.")
        if target is None:
            target_ids = self._decoder(self.options(return_beams=1)).decode([source_ids])[0][0].ids
        else:
            target_ids = self._encode(self.target_encoder, [target])[0]
        sides = [*source_ids, EOS], [*target_ids, EOS]
        if self.hparams.pos == "emb":  # a translation may fill all positions that the model knows
            sides = sides[0], sides[1][: self.hparams.max_length]
        inputs, targets = (np.array([ids], np.int32) for ids in sides)  # one sentence: no padding
        found = self.model.attention(inputs, targets)
        encoder, decoder, cross = ([np.asarray(layer)[0] for layer in stack] for stack in found)
        source_pieces, target_pieces = self.source_encoder.pieces(sides[0]), self.target_encoder.pieces(sides[1])
        return Attention(source_pieces, target_pieces, encoder, decoder, cross, source, self._text(target_ids))

    def options(self, **changes: Any) -> DecodeHParams:
        """The problem's decoding defaults with changes, such as `beam_size=8`.

        Raises:
            ValueError: an unknown field or a bad value.
        """
        fields = [field.name for field in dataclasses.fields(DecodeHParams)]
        for name in changes:
            if name not in fields:
                raise ValueError(f"decode_hparams has no field {name!r}. {did_you_mean(name, fields)}")
        return DecodeHParams(**{**self.manifest["decode_defaults"], **changes})

    def _decoder(self, options: DecodeHParams) -> Decoder:
        if options not in self._decoders:
            self._decoders[options] = make_decoder(self.model, options, self.hparams)
        return self._decoders[options]

    def _encode(self, encoder: TextEncoder, sentences: Sequence[str], strip: bool = False) -> list[list[int]]:
        _check(sentences)
        if strip:
            sentences = [sentence.strip() for sentence in sentences]
        limit = MAX_SOURCE_TOKENS if self.hparams.pos != "emb" else self.hparams.max_length - 1
        encoded = encoder.encode_batch(sentences)
        for number, ids in enumerate(encoded, start=1):
            if len(ids) > limit:
                raise ValueError(
                    f"A sentence must have at most {limit:,} tokens. Received: line {number} with {len(ids):,} tokens, "
                    f"beginning {sentences[number - 1][:40]!r}. Split it, or leave it blank."
                )
        return encoded

    def _parses(self, decoded: list[Translation], words: list[str], wanted: int) -> list[Parse]:
        if not words:
            return [Parse(None, one.score, Counter(), one.text) for one in decoded]
        ranked = rank_parses(self.manifest, [one.text for one in decoded], words, wanted)
        return [Parse(tree.tree, decoded[i].score, tree.repairs, decoded[i].text) for i, tree in ranked]

    def _text(self, ids: list[int]) -> str:
        return self.target_encoder.decode(ids).replace("\n", " ")


def _batches_by_words(sentences: Sequence[str], together: int) -> list[list[int]]:
    """Which sentences tensor2tensor decodes together: those with most words first."""
    order = sorted(range(len(sentences)), key=lambda i: -len(sentences[i].split()))
    return [order[start : start + together] for start in range(0, len(order), together)]


def _check(sentences: Sequence[str]) -> None:
    if isinstance(sentences, str):
        raise ValueError("A list of sentences is required. Received: one string. Put it in a list.")
    for sentence in sentences:
        if not isinstance(sentence, str):
            raise ValueError(f"Each sentence must be a string. Received: {sentence!r}.")


def decode_options(defaults: dict[str, Any], changes: str = "") -> DecodeHParams:
    """A problem's decoding defaults, changed by --decode_hparams.

    Raises:
        ValueError: an unknown field or a bad value.
    """
    return DecodeHParams(**defaults).override(changes)


def make_decoder(model: Transformer, options: DecodeHParams, hparams: HParams) -> Decoder:
    """A Decoder for this model; learned positions end at max_length."""
    return Decoder(model, options, hparams.jit_compile, hparams.max_length if hparams.pos == "emb" else None)
