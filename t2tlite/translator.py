"""A trained model with its vocabulary: text in, text out. `t2tlite.load` makes one."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from t2tlite.config import DecodeHParams, HParams
from t2tlite.data.text_encoder import SentencePieceEncoder
from t2tlite.decoding.decode import Decoder
from t2tlite.models.transformer import Transformer
from t2tlite.registry import did_you_mean
from t2tlite.training.checkpoints import step_of

MAX_SOURCE_TOKENS = 2048  # of a sentence to decode; far beyond what training sees


class Translation(NamedTuple):
    """One translation of a sentence."""

    text: str
    score: float  # log-probability / length penalty


class Translator:
    """A trained model with its vocabulary: text in, text out."""

    def __init__(
        self, model: Transformer, encoder: SentencePieceEncoder, hparams: HParams, manifest: dict[str, Any], path: str
    ) -> None:
        self.model = model
        self.encoder = encoder
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
        encoded = self._encode(sentences)
        sources = [ids if sentence.strip() else [] for sentence, ids in zip(sentences, encoded, strict=True)]
        found = self._decoder(options).decode(sources, done)
        return [[Translation(self._text(h.ids), h.score) for h in hypotheses] for hypotheses in found]

    def score(
        self,
        sources: Sequence[str],
        targets: Sequence[str],
        options: DecodeHParams | None = None,
        done: Callable[[int], None] = lambda count: None,
    ) -> list[float]:
        """The log-probability (natural) of each target, end mark included, given its source.

        Args:
            sources: without line breaks.
            targets: likewise, as many.
            options: of which only batch_size matters; by default the problem's.
            done: called with the number of pairs after each batch, for a progress bar.

        Raises:
            ValueError: not as many targets as sources, or one longer than the limit.
        """
        encoded = self._encode(sources), self._encode(targets)
        if len(sources) != len(targets):
            raise ValueError(f"Each source needs a target. Received: {len(sources)} sources, {len(targets)} targets.")
        return self._decoder(options or self.options()).score(*encoded, done)

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

    def _encode(self, sentences: Sequence[str]) -> list[list[int]]:
        if isinstance(sentences, str):
            raise ValueError("A list of sentences is required. Received: one string. Put it in a list.")
        for sentence in sentences:
            if not isinstance(sentence, str):
                raise ValueError(f"Each sentence must be a string. Received: {sentence!r}.")
        limit = MAX_SOURCE_TOKENS if self.hparams.pos != "emb" else self.hparams.max_length - 1
        encoded = self.encoder.encode_batch(sentences)
        for number, ids in enumerate(encoded, start=1):
            if len(ids) > limit:
                raise ValueError(
                    f"A sentence must have at most {limit:,} tokens. Received: line {number} with {len(ids):,} tokens, "
                    f"beginning {sentences[number - 1][:40]!r}. Split it, or leave it blank."
                )
        return encoded

    def _text(self, ids: list[int]) -> str:
        return self.encoder.decode(ids).replace("\n", " ")


def decode_options(defaults: dict[str, Any], changes: str = "") -> DecodeHParams:
    """A problem's decoding defaults, changed by --decode_hparams.

    Raises:
        ValueError: an unknown field or a bad value.
    """
    return DecodeHParams(**defaults).override(changes)


def make_decoder(model: Transformer, options: DecodeHParams, hparams: HParams) -> Decoder:
    """A Decoder for this model; learned positions end at max_length."""
    return Decoder(model, options, hparams.jit_compile, hparams.max_length if hparams.pos == "emb" else None)
