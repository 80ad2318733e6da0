"""Decodes token ids with CTranslate2, which is faster on CPUs than TensorFlow and
starts sooner.

Its beam search stops at another point than ours, when a sentence has a certain number
of finished hypotheses. Its log-probabilities are those of the model, so hypotheses are
ranked by our scores.
"""

from __future__ import annotations

import functools
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from t2tlite.config import DecodeHParams, HParams
from t2tlite.decoding.engine import CTRANSLATE2
from t2tlite.decoding.length_penalty import length_penalty
from t2tlite.decoding.token_decoder import (
    OutOfMemoryError,
    Sentence,
    TokenDecoder,
    TokenHypothesis,
)
from t2tlite.tokens import EOS, PAD
from t2tlite.types import AttentionWeights, Seq2SeqModel, Tensor
from t2tlite.vocabularies.text_encoder import TextEncoder

if TYPE_CHECKING:
    import ctranslate2

# in the vocabularies of CTranslate2's models; ours may differ
PAD_TOKEN, EOS_TOKEN = "<pad>", "</s>"
FLOAT32 = "float32"

# CTranslate2 stops at beam_size * PATIENCE finished hypotheses, we when no other can be
# better. With 1.5 all 500 translations of the demo's test set were the same, with 1 the
# same 497.
PATIENCE = 1.5

# CTranslate2 constrains and samples too, but with other log-probabilities and random
# numbers.
SUPPORTED = frozenset(
    {"beam_size", "alpha", "extra_length", "batch_size", "return_beams", "t2t_rules"}
)

# How weights can be stored. int8_X stores everything but matrices in X, int8 in a type
# that suits the device.
QUANTIZATIONS = (
    FLOAT32,
    "float16",
    "bfloat16",
    "int16",
    "int8",
    "int8_float32",
    "int8_float16",
    "int8_bfloat16",
)


def import_ctranslate2() -> ModuleType:
    """The package; ValueError with the command that installs it if it is missing."""
    try:
        import ctranslate2
    except ImportError as error:
        raise ValueError(
            f"CTranslate2 must be installed. Received: {error}. Install it with pip"
            " install 't2tlite[ctranslate2]'."
        ) from error
    return ctranslate2


def check_quantization(name: str) -> None:
    """Raises ValueError if there is no quantization of this name."""
    if name not in QUANTIZATIONS:
        raise ValueError(
            f"quantization must be one of {', '.join(QUANTIZATIONS)}. Received:"
            f" {name!r}."
        )


def check_expressible(hparams: HParams) -> None:
    """Raises ValueError if CTranslate2 cannot compute a model, naming the reason."""
    if hparams.self_attention_radius:
        raise ValueError(
            "CTranslate2 has no restricted self-attention: it needs"
            " self_attention_radius=0. Received: a model with"
            f" self_attention_radius={hparams.self_attention_radius}. Decode it with"
            " TensorFlow."
        )


def computable_types() -> tuple[str, set[str]]:
    """The device that CTranslate2 would use, and the quantizations that it computes
    in.
    """
    ctranslate2 = import_ctranslate2()
    device = "cuda" if ctranslate2.get_cuda_device_count() else "cpu"
    return device, set(ctranslate2.get_supported_compute_types(device))


def check_computable(quantization: str) -> None:
    """Raises ValueError if there is no such quantization, or this machine's device
    cannot compute in it.
    """
    check_quantization(quantization)
    device, computable = computable_types()
    if quantization not in computable:
        names = ", ".join(name for name in QUANTIZATIONS if name in computable)
        raise ValueError(
            f"quantization must be one that this machine's {device} computes in:"
            f" {names}. Received: {quantization!r}."
        )


def vocabulary_tokens(encoder: TextEncoder) -> list[str]:
    """CTranslate2's name of each id: its piece.

    Names are unique, so of equal pieces only the last has its own, which is the one
    that encoding yields.
    """
    names: dict[str, int] = {PAD_TOKEN: PAD, EOS_TOKEN: EOS}
    pieces = encoder.pieces(range(encoder.vocab_size))
    for i in range(encoder.vocab_size - 1, EOS, -1):
        names.setdefault(
            pieces[i] if pieces[i] and pieces[i] not in names else f"<id {i}>", i
        )
    return sorted(names, key=lambda name: names[name])


class CTranslate2Engine:
    """A loaded model directory of CTranslate2, with the vocabularies of source and
    target.

    It computes on a GPU if CTranslate2 sees one, otherwise on all cores of the CPU,
    which `threads` that decode at a time share; in float32, with the weights as stored,
    if the device cannot compute in the quantization. `load_keras` returns the Keras
    model, for attention.
    """

    name, supported = CTRANSLATE2, SUPPORTED

    def __init__(
        self,
        folder: Path,
        encoders: Sequence[TextEncoder],
        quantization: str,
        max_positions: int | None,
        parameters: int,
        load_keras: Callable[[], Seq2SeqModel],
        threads: int = 1,
    ) -> None:
        device, computable = computable_types()
        compute_type = quantization if quantization in computable else FLOAT32
        cores = (
            {"inter_threads": threads, "intra_threads": _cores_each(threads)}
            if device == "cpu"
            else {}
        )
        try:
            self._translator = import_ctranslate2().Translator(
                str(folder), device=device, compute_type=compute_type, **cores
            )
        except (RuntimeError, ValueError) as error:
            raise ValueError(
                f"{folder} cannot be loaded by CTranslate2: {error}. Delete it to have"
                " it made again."
            ) from error
        self.quantization, self.max_positions, self.parameters = (
            quantization,
            max_positions,
            parameters,
        )
        self._tokens = [vocabulary_tokens(encoder) for encoder in encoders]
        self._load_keras = functools.cache(load_keras)

    def decoder(self, options: DecodeHParams) -> TokenDecoder:
        return CTranslate2Decoder(
            self._translator, self._tokens, self.max_positions, options
        )

    def attention(self, inputs: Tensor, targets: Tensor) -> AttentionWeights:
        """Those of the Keras model, which is loaded when they are first asked for."""
        return self._load_keras().attention(inputs, targets)


def _cores_each(threads: int) -> int:
    """The cores of each of so many threads, or 0 if OMP_NUM_THREADS is set, which
    CTranslate2 reads itself.
    """
    if "OMP_NUM_THREADS" in os.environ:
        return 0
    cores = (
        len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count() or 1
    )
    return max(1, cores // threads)


class CTranslate2Decoder(TokenDecoder):
    """Decodes token ids with a `ctranslate2.Translator`; `tokens` are its tokens by id,
    of source and target.
    """

    def __init__(
        self,
        translator: ctranslate2.Translator,
        tokens: Sequence[list[str]],
        max_positions: int | None,
        options: DecodeHParams,
    ) -> None:
        super().__init__(options, max_positions)
        self._translator = translator
        self._source_tokens, self._target_tokens = tokens
        self._target_ids = {token: i for i, token in enumerate(self._target_tokens)}
        self._penalties = self._rules.penalties(options)
        self._alpha = options.alpha if self._penalties.any else 0.0

    def _decode_batch(self, sentences: list[Sentence]) -> list[list[TokenHypothesis]]:
        """Sentences that exceed their own limit are decoded again: CTranslate2 has one
        limit for a batch.
        """
        longest = max(sentence.max_length for sentence in sentences)
        n_best = self._search(sentences, longest)
        too_long: dict[int, list[int]] = defaultdict(list)  # by limit
        for i, (sentence, hypotheses) in enumerate(zip(sentences, n_best, strict=True)):
            if any(len(tokens) > sentence.max_length for tokens, _ in hypotheses):
                too_long[sentence.max_length].append(i)
        for limit, indices in too_long.items():
            again = self._search([sentences[i] for i in indices], limit)
            for i, hypotheses in zip(indices, again, strict=True):
                n_best[i] = hypotheses
        return [self._ranked(hypotheses) for hypotheses in n_best]

    def _search(
        self, sentences: list[Sentence], limit: int
    ) -> list[list[tuple[list[str], float]]]:
        """The tokens (with EOS if decoded) and the log-probability of each hypothesis
        of each sentence.
        """
        beam_size = self.options.beam_size
        # it divides log-probabilities by length ** alpha
        alpha = self.options.alpha if beam_size > 1 else 0.0
        sources = []
        for sentence in sentences:
            sources.append([self._source_tokens[i] for i in sentence.ids])
        try:
            results = self._translator.translate_batch(
                sources,
                beam_size=beam_size,
                num_hypotheses=beam_size,
                length_penalty=alpha,
                patience=PATIENCE,
                max_input_length=0,
                min_decoding_length=0,
                max_decoding_length=limit,
                return_end_token=True,
                return_scores=True,
            )
        except (MemoryError, RuntimeError) as error:
            if isinstance(error, MemoryError) or "out of memory" in str(error):
                raise OutOfMemoryError from error
            raise ValueError(f"CTranslate2 cannot decode a batch: {error}.") from error
        n_best = []
        for result in results:
            hypotheses = []
            for tokens, score in zip(result.hypotheses, result.scores, strict=True):
                hypotheses.append((tokens, score * len(tokens) ** alpha))
            n_best.append(hypotheses)
        return n_best

    def _ranked(
        self, hypotheses: list[tuple[list[str], float]]
    ) -> list[TokenHypothesis]:
        """The best hypotheses by our score: finished ones, or if there are none, the
        others.
        """
        finished = [
            (tokens, log_prob)
            for tokens, log_prob in hypotheses
            if tokens[-1] == EOS_TOKEN
        ]
        penalised = bool(finished) or self._penalties.unfinished
        ranked = []
        for tokens, log_prob in finished or hypotheses:
            penalty = length_penalty(len(tokens), self._alpha) if penalised else 1.0
            ids = [self._target_ids[token] for token in tokens]
            words = [i for i in ids if i not in (PAD, EOS)]
            ranked.append(TokenHypothesis(words, log_prob / penalty, log_prob))
        ranked.sort(key=lambda hypothesis: -hypothesis.score)
        return ranked[: self.options.return_beams]

    def _score_batch(
        self, sources: list[Sequence[int]], targets: list[Sequence[int]]
    ) -> Iterable[float]:
        source_tokens = []
        for source in sources:
            source_tokens.append([self._source_tokens[i] for i in source])
        target_tokens = []
        for target in targets:
            target_tokens.append([self._target_tokens[i] for i in target])
        results = self._translator.score_batch(
            source_tokens, target_tokens, max_input_length=0
        )
        return [float(np.sum(result.log_probs, dtype=np.float64)) for result in results]
