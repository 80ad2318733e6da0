"""The CTranslate2 engine, which is faster on CPUs than TensorFlow and starts sooner.

Its beam search does not stop where ours does, but when a sentence has a certain number
of finished hypotheses. Its log-probabilities are those of the model, so hypotheses are
ranked by our scores.
"""

import functools
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from t2tlite.checked_fields import checked
from t2tlite.config import DecodeHParams, HParams
from t2tlite.decoding.engine import (
    CTRANSLATE2,
    Engine,
    Ids,
    OutOfMemoryError,
    Sentence,
    TokenHypothesis,
)
from t2tlite.decoding.rules import length_penalty, rules_of
from t2tlite.machine import cores_each
from t2tlite.types import EOS, PAD, AttentionWeights, Seq2SeqModel, Tensor
from t2tlite.vocabularies.text_encoder import TextEncoder

# in the vocabularies of CTranslate2's models; ours may differ
PAD_TOKEN = "<pad>"
EOS_TOKEN = "</s>"
FLOAT32 = "float32"
AUTO = "auto"  # the fastest type that the device computes in

# CTranslate2 stops at beam_size * PATIENCE finished hypotheses, TensorFlow when no
# other can be better. Of the demo's 500 test sentences, all have the same translation
# with 1.5, and 497 with 1.
PATIENCE = 1.5

QUANTIZATIONS = (FLOAT32, "int8", "float16")  # how weights can be stored


def import_ctranslate2() -> ModuleType:
    """The package; ValueError with the command that installs it if it is missing."""
    try:
        import ctranslate2
    except ImportError as error:
        raise ValueError(
            f"CTranslate2 is required ({error}): pip install 't2tlite[ctranslate2]'."
        ) from error
    return ctranslate2


def check_expressible(hparams: HParams) -> None:
    """Raises ValueError if CTranslate2 cannot compute a model, naming the reason."""
    if hparams.model != "transformer" or hparams.self_attention_radius:
        raise ValueError(
            "CTranslate2 needs model=transformer and self_attention_radius=0. Received:"
            f" {hparams.model} and {hparams.self_attention_radius}."
        )


def computable_types() -> tuple[str, set[str]]:
    """The device that CTranslate2 would use, and the quantizations that it computes
    in.
    """
    ctranslate2 = import_ctranslate2()
    device = "cuda" if ctranslate2.get_cuda_device_count() else "cpu"
    return device, set(ctranslate2.get_supported_compute_types(device))


def check_computable(quantization: str) -> None:
    """Raises ValueError if this machine's device cannot compute in a quantization."""
    device, computable = computable_types()
    names = [name for name in QUANTIZATIONS if name in computable]
    checked(f"quantization on this {device}", str, quantization, choices=names)


def vocabulary_tokens(encoder: TextEncoder) -> list[str]:
    """CTranslate2's name of each id: its piece.

    Names are unique: of equal pieces only the last, which is the one that encoding
    yields, keeps its name.
    """
    names: dict[str, int] = {PAD_TOKEN: PAD, EOS_TOKEN: EOS}
    pieces = encoder.pieces(range(encoder.vocab_size))
    for i in range(encoder.vocab_size - 1, EOS, -1):
        piece = pieces[i]
        is_free = piece and piece not in names
        names.setdefault(piece if is_free else f"<id {i}>", i)
    return sorted(names, key=names.__getitem__)


def open_translator(folder: Path, quantization: str, threads: int = 1) -> Any:
    """Loads a model directory of CTranslate2, as a ctranslate2.Translator.

    It computes on a GPU if CTranslate2 sees one, otherwise on all cores of the CPU,
    which `threads` that decode at a time share; in float32 if the device cannot compute
    in the quantization, or in AUTO. Raises ValueError if the directory is damaged.
    """
    device, computable = computable_types()
    types = computable | {AUTO}
    cores = {}
    if device == "cpu":
        # CTranslate2 reads this variable itself, if it gets 0
        each = 0 if "OMP_NUM_THREADS" in os.environ else cores_each(threads)
        cores = {"inter_threads": threads, "intra_threads": each}
    try:
        return import_ctranslate2().Translator(
            str(folder),
            device=device,
            compute_type=quantization if quantization in types else FLOAT32,
            **cores,
        )
    except (RuntimeError, ValueError) as error:
        raise ValueError(
            f"CTranslate2 cannot load {folder}, which is made again if deleted: {error}"
        ) from error


class CTranslate2Engine(Engine):
    """Computes with a loaded model of CTranslate2.

    `encoders` are the vocabularies of source and target. `load_keras` returns the Keras
    model, which computes attention.
    """

    name = CTRANSLATE2
    # CTranslate2 constrains and samples too, but with other log-probabilities and
    # random numbers.
    supported = frozenset(
        "beam_size alpha extra_length batch_size return_beams t2t_rules".split()
    )

    def __init__(
        self,
        translator: Any,
        encoders: Sequence[TextEncoder],
        quantization: str,
        max_positions: int | None,
        parameters: int,
        load_keras: Callable[[], Seq2SeqModel],
    ) -> None:
        super().__init__(quantization, max_positions, parameters)
        self._translator = translator
        source, target = encoders
        self._source_tokens = vocabulary_tokens(source)
        self._target_tokens = vocabulary_tokens(target)
        self._target_ids = {token: i for i, token in enumerate(self._target_tokens)}
        self._load_keras = functools.cache(load_keras)

    def attention(self, inputs: Tensor, targets: Tensor) -> AttentionWeights:
        """Those of the Keras model, which is loaded at the first call."""
        return self._load_keras().attention(inputs, targets)

    def _decode_batch(
        self, sentences: list[Sentence], limits: np.ndarray, options: DecodeHParams
    ) -> list[list[TokenHypothesis]]:
        """Sentences that exceed their own limit are decoded again: CTranslate2 has one
        limit for a batch.
        """
        n_best = self._search(sentences, int(limits.max()), options)
        too_long: dict[int, list[int]] = defaultdict(list)  # by limit
        for i, hypotheses in enumerate(n_best):
            longest = max(len(tokens) for tokens, _ in hypotheses)
            if longest > limits[i]:
                too_long[int(limits[i])].append(i)
        for limit, indices in too_long.items():
            batch = [sentences[i] for i in indices]
            again = self._search(batch, limit, options)
            for i, hypotheses in zip(indices, again, strict=True):
                n_best[i] = hypotheses
        return [self._ranked(hypotheses, options) for hypotheses in n_best]

    def _search(
        self, sentences: list[Sentence], limit: int, options: DecodeHParams
    ) -> list[list[tuple[list[str], float]]]:
        """The hypotheses of each sentence, of at most `limit` tokens: the tokens, with
        the EOS if it was decoded, and their log-probability.
        """
        # scores are log-probabilities divided by length ** alpha
        alpha = options.alpha if options.beam_size > 1 else 0.0
        sources = [sentence.ids for sentence in sentences]
        try:
            results = self._translator.translate_batch(
                _named(sources, self._source_tokens),
                beam_size=options.beam_size,
                num_hypotheses=options.beam_size,
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
        self, hypotheses: list[tuple[list[str], float]], options: DecodeHParams
    ) -> list[TokenHypothesis]:
        """The best hypotheses by our score: finished ones, or if there are none, the
        others.
        """
        rules = rules_of(options)
        alpha = options.alpha if rules.penalises(options) else 0.0
        finished = [each for each in hypotheses if each[0][-1] == EOS_TOKEN]
        penalised = bool(finished) or rules.penalises_unfinished
        ranked = []
        for tokens, log_prob in finished or hypotheses:
            penalty = length_penalty(len(tokens), alpha) if penalised else 1.0
            ids = []
            for token in tokens:
                if token not in (PAD_TOKEN, EOS_TOKEN):
                    ids.append(self._target_ids[token])
            ranked.append(TokenHypothesis(ids, log_prob / penalty, log_prob))
        ranked.sort(key=lambda hypothesis: -hypothesis.score)
        return ranked[: options.return_beams]

    def _score_batch(self, sources: list[Ids], targets: list[Ids]) -> Iterable[float]:
        results = self._translator.score_batch(
            _named(sources, self._source_tokens),
            _named(targets, self._target_tokens),
            max_input_length=0,
        )
        return [float(np.sum(result.log_probs, dtype=np.float64)) for result in results]


def _named(rows: Sequence[Ids], tokens: Sequence[str]) -> list[list[str]]:
    """Rows of ids as CTranslate2's tokens."""
    named = []
    for row in rows:
        named.append([tokens[i] for i in row])
    return named
