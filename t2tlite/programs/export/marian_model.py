"""The format marian: a MarianMTModel of Hugging Face Transformers, with the files of
its tokenizer.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import sentencepiece

from t2tlite.config import DecodeHParams, HParams
from t2tlite.decoding.engine import check_supported
from t2tlite.decoding.rules import length_penalty
from t2tlite.decoding.text_decoder import TextDecoder
from t2tlite.files.atomic_file import copy_file
from t2tlite.programs.export.ctranslate2_engine import (
    EOS_TOKEN,
    FLOAT32,
    PAD_TOKEN,
    vocabulary_tokens,
)
from t2tlite.programs.export.marian_weights import check_expressible, marian_weights
from t2tlite.programs.export.plan import ExportFormat, ExportPlan
from t2tlite.programs.export.verification import NBest, keras_model
from t2tlite.tasks.task import Hypothesis
from t2tlite.types import EOS, PAD
from t2tlite.vocabularies.text_encoder import TextEncoder

SUPPORTED = frozenset(
    {"beam_size", "alpha", "extra_length", "batch_size", "return_beams"}
)
# positions of source and target; a greater table makes loading slow
MAX_POSITIONS = 1024
# Transformers divides by n ** length_penalty, we by ((5 + n) / 6) ** alpha. With this
# ratio both change equally with n at 20 tokens: n / (n + 5).
PENALTY_RATIO = 0.8

USAGE = """\
This folder is a MarianMTModel of Hugging Face Transformers. `pip install transformers
sentencepiece sacremoses torch`, and in this folder:

```python
from transformers import MarianMTModel, MarianTokenizer

tokenizer = MarianTokenizer.from_pretrained(".")
model = MarianMTModel.from_pretrained(".")
batch = tokenizer(["A sentence.", "Another one."], padding=True, return_tensors="pt")
limit = batch.input_ids.shape[1] + {extra_length}
for ids in model.generate(**batch, max_new_tokens=limit):
    print(tokenizer.decode(ids, skip_special_tokens=True))
```

Transformers' length penalty is length ** length_penalty, t2tlite's is
((5 + length) / 6) ** alpha: some beam-search translations differ unless it is 0.
"""


def import_transformers() -> ModuleType:
    """The package; ValueError with the command that installs it and PyTorch if one is
    missing.
    """
    try:
        import torch  # noqa: F401 (Transformers has no models without it)
        import transformers
    except ImportError as error:
        raise ValueError(
            "Transformers and PyTorch must be installed, which verify the export."
            f" Received: {error}. Install them with pip install 't2tlite[marian]'."
        ) from error
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    return transformers


class MarianFormat(ExportFormat):
    """Writes the folder that `MarianMTModel.from_pretrained` opens."""

    name = "marian"

    def check(self, plan: ExportPlan) -> None:
        super().check(plan)
        check_expressible(plan.hparams)
        check_sentencepiece(self.name, plan)
        check_supported("format=marian", SUPPORTED, plan.decoding)
        import_transformers()

    def write(self, model: TextDecoder, folder: Path, plan: ExportPlan) -> str:
        from safetensors.numpy import save  # comes with Transformers

        keras = keras_model(model)
        weights = {}
        for variable in keras.trainable_variables:
            weights[variable.path] = variable.numpy()
        # padding is the last id, behind both vocabularies
        size = max(encoder.vocab_size for encoder in model.encoders) + 1
        state = marian_weights(keras.hparams, weights, size)
        content = save(state, metadata={"format": "pt"})
        (folder / "model.safetensors").write_bytes(content)
        special = {
            "pad_token_id": size - 1,
            "decoder_start_token_id": size - 1,
            "eos_token_id": EOS,
        }
        search = {
            "num_beams": plan.decoding.beam_size,
            "length_penalty": plan.decoding.alpha * PENALTY_RATIO,
            "early_stopping": False,
            "do_sample": False,
            "max_new_tokens": MAX_POSITIONS - 1,
        }
        _write_json(folder / "config.json", _config(keras.hparams, size) | special)
        _write_json(folder / "generation_config.json", search | special)
        _write_tokenizer(model.encoders, plan.manifest.language_pair, folder, size)
        return USAGE.format(extra_length=plan.decoding.extra_length)

    def open(self, model: TextDecoder, folder: Path, plan: ExportPlan) -> _OpenedMarian:
        return _OpenedMarian(folder, plan.decoding)

    def verify(
        self,
        model: TextDecoder,
        folder: Path,
        plan: ExportPlan,
        sentences: list[str],
    ) -> str:
        """Compares the folder with the model: exactly, unless that computes in 16
        bits.
        """
        exact = keras_model(model).compute_dtype == FLOAT32
        return self.verify_translations(model, folder, plan, sentences, exact)


class _OpenedMarian:
    """A MarianMTModel and its tokenizer, which decode sentence by sentence."""

    def __init__(self, folder: Path, options: DecodeHParams) -> None:
        transformers = import_transformers()
        self._tokenizer = transformers.MarianTokenizer.from_pretrained(folder)
        self._model = transformers.MarianMTModel.from_pretrained(folder).eval()
        self._options = options

    def decode(self, sentences: Sequence[str]) -> NBest:
        """The best hypothesis of each sentence."""
        n_best = []
        for sentence in sentences:
            source = self._tokenizer(sentence, return_tensors="pt")
            [ids] = self._model.generate(
                **source,
                num_beams=self._options.beam_size,
                max_new_tokens=source.input_ids.shape[1] + self._options.extra_length,
            )
            target = ids[None, 1:]  # without the start token
            text = self._tokenizer.decode(ids, skip_special_tokens=True)
            log_prob = self._log_prob(source, target)
            penalty = length_penalty(target.shape[1], self._options.alpha)
            n_best.append([Hypothesis(text, log_prob / penalty, log_prob)])
        return n_best

    def score(self, sources: Sequence[str], targets: Sequence[str]) -> list[float]:
        """The log-probability of each target given its source."""
        log_probs = []
        for source, target in zip(sources, targets, strict=True):
            source_ids = self._tokenizer(source, return_tensors="pt")
            target_ids = self._tokenizer(text_target=target, return_tensors="pt")
            log_probs.append(self._log_prob(source_ids, target_ids.input_ids))
        return log_probs

    def _log_prob(self, source: Any, target: Any) -> float:
        """The log-probability of target ids [1, T], EOS included."""
        import torch

        with torch.inference_mode():
            logits = self._model(**source, labels=target).logits  # [1, T, V]
            log_probs = logits.double().log_softmax(-1)
            chosen = log_probs.gather(2, target[:, :, None])
        return float(chosen.sum())


def check_sentencepiece(name: str, plan: ExportPlan) -> None:
    """Raises ValueError unless all vocabularies of a run are SentencePiece models."""
    for vocabulary in plan.manifest.vocabularies:
        if vocabulary.type != "sentencepiece":
            raise ValueError(
                f"format={name} needs vocabularies of SentencePiece. Received:"
                f" {vocabulary.file}, one of {vocabulary.type}. Export the run with"
                " format=ctranslate2."
            )


def _config(hparams: HParams, vocab_size: int) -> dict[str, Any]:
    """The content of config.json, without special tokens."""
    shared = hparams.shared_embedding_and_softmax_weights
    return {
        "architectures": ["MarianMTModel"],
        "model_type": "marian",
        "vocab_size": vocab_size,
        "decoder_vocab_size": vocab_size,
        "share_encoder_decoder_embeddings": shared,
        "tie_word_embeddings": shared,
        "scale_embedding": True,
        "d_model": hparams.hidden_size,
        "encoder_layers": hparams.encoder_layers,
        "decoder_layers": hparams.decoder_layers,
        "encoder_ffn_dim": hparams.filter_size,
        "decoder_ffn_dim": hparams.filter_size,
        "encoder_attention_heads": hparams.num_heads,
        "decoder_attention_heads": hparams.num_heads,
        "activation_function": "relu",
        "max_position_embeddings": MAX_POSITIONS,
        "bos_token_id": None,
        "forced_eos_token_id": None,
    }


def _write_tokenizer(
    encoders: Sequence[TextEncoder],
    languages: tuple[str, str],
    folder: Path,
    vocab_size: int,
) -> None:
    source, target = encoders
    copy_file(source.path, folder / "source.spm")
    copy_file(target.path, folder / "target.spm")
    _write_json(folder / "vocab.json", _token_ids(source, vocab_size))
    if source is not target:
        _write_json(folder / "target_vocab.json", _token_ids(target, vocab_size))
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(source.path))
    config = {
        "tokenizer_class": "MarianTokenizer",
        "source_lang": languages[0] or None,
        "target_lang": languages[1] or None,
        "unk_token": pieces.id_to_piece(pieces.unk_id()),
        "eos_token": EOS_TOKEN,
        "pad_token": PAD_TOKEN,
        "model_max_length": MAX_POSITIONS,
        "separate_vocabs": source is not target,
        "clean_up_tokenization_spaces": False,
        "split_special_tokens": True,  # "</s>" in a text is not EOS
    }
    _write_json(folder / "tokenizer_config.json", config)


def _token_ids(encoder: TextEncoder, vocab_size: int) -> dict[str, int]:
    """The id of each token. The padding token is the last, and not ours."""
    tokens = vocabulary_tokens(encoder)
    tokens[PAD] = f"<id {PAD}>"
    ids = {token: i for i, token in enumerate(tokens)}
    ids[PAD_TOKEN] = vocab_size - 1
    return ids


def _write_json(path: Path, content: dict[str, Any]) -> None:
    text = json.dumps(content, ensure_ascii=False, indent=2)
    path.write_text(text + "\n", encoding="utf-8")
