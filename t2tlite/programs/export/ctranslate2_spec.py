"""Converts the weights of a Transformer into a CTranslate2 model, without TensorFlow.

CTranslate2 computes the same Transformer. The weights compensate for its differences:

- Its decoder starts with the embedding of a token, ours with zeros. The start token is
  padding, whose row is set to zero. The softmax has a matrix of its own, in which
  padding keeps its trained row.
- It scales embeddings by sqrt(D), and adds a row of a table for each position: our
  sinusoids, learned positions or zeros. The source's rows include the target space.
- Its heads have one size for keys and values. The smaller ones are padded with zeros,
  which change no product.
"""

# D hidden size, H heads, K and U size of a key and of a value in one head, P size of a
# head in CTranslate2, I and O inputs and outputs of a matrix, V vocabulary

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import ml_dtypes
import numpy as np

from t2tlite.config import HParams
from t2tlite.decoding.engine import LONGEST_BUCKET
from t2tlite.files.atomic_file import copy_file
from t2tlite.programs.export.ctranslate2_engine import (
    EOS_TOKEN,
    PAD_TOKEN,
    import_ctranslate2,
    vocabulary_tokens,
)
from t2tlite.types import PAD
from t2tlite.vocabularies.text_encoder import TextEncoder

if TYPE_CHECKING:
    from ctranslate2 import specs
    from ctranslate2.specs.model_spec import NumpyVariable

# required by CTranslate2; padding for tensor2tensor's vocabularies, which have none
UNKNOWN_TOKEN = "<unk>"


def convert(
    hparams: HParams,
    weights: Mapping[str, np.ndarray],
    encoders: Sequence[TextEncoder],
    folder: Path,
    quantization: str,
) -> None:
    """Writes model.bin, config.json, CTranslate2's vocabularies and our vocabulary
    files into a folder.

    `weights` are those of our `Transformer` by their Keras path, `encoders` those of
    source and target. CTranslate2 must support the model and the quantization. Raises
    KeyError if a weight is missing.
    """
    spec = _Conversion(hparams, weights).spec()
    source, target = map(vocabulary_tokens, encoders)
    spec.register_source_vocabulary(source)
    spec.register_target_vocabulary(target)
    config = spec.config
    config.eos_token = EOS_TOKEN
    config.bos_token = PAD_TOKEN
    config.decoder_start_token = PAD_TOKEN
    config.unk_token = PAD_TOKEN
    if UNKNOWN_TOKEN in source and UNKNOWN_TOKEN in target:
        config.unk_token = UNKNOWN_TOKEN
    config.add_source_eos = True
    spec.validate()
    spec.optimize(quantization)
    spec.save(str(folder))
    for encoder in encoders:
        copy_file(encoder.path, folder / encoder.path.name)


def position_table(hparams: HParams) -> np.ndarray:
    """Position encodings that are not learned, as in layers/embedding.py: float32
    [LONGEST_BUCKET, D].
    """
    size = hparams.hidden_size
    if hparams.pos == "none":
        return np.zeros((LONGEST_BUCKET, size), np.float32)
    if hparams.pos == "timing":
        rates = 10000.0 ** (-np.arange(0, size, 2) / size)
    else:
        rates = np.exp(
            -np.arange(size // 2) * math.log(10000.0) / max(size // 2 - 1, 1)
        )
    positions: np.ndarray = np.arange(LONGEST_BUCKET, dtype=np.float32)
    angles = positions[:, None] * rates.astype(np.float32)  # [LONGEST_BUCKET, D / 2]
    both = np.sin(angles), np.cos(angles)
    if hparams.pos == "timing":
        return np.stack(both, -1).reshape(len(angles), size)
    return np.concatenate(both, -1)


class _Conversion:
    """Builds the specification of a model: without vocabularies, neither validated nor
    quantised.
    """

    def __init__(self, hparams: HParams, weights: Mapping[str, np.ndarray]) -> None:
        self._hparams = hparams
        self._weights = weights
        widest = max(hparams.hidden_size, hparams.key_channels, hparams.value_channels)
        self._head_size = widest // hparams.num_heads  # P

    def spec(self) -> specs.TransformerSpec:
        hparams = self._hparams
        specs = import_ctranslate2().specs
        regular = self._head_size * hparams.num_heads == hparams.hidden_size
        head_size = None if regular else self._head_size
        shape = {
            "num_heads": hparams.num_heads,
            "pre_norm": hparams.pre_norm,
            "head_dim": head_size,
        }
        encoder = specs.transformer_spec.TransformerEncoderSpec(
            hparams.encoder_layers, **shape
        )
        decoder = specs.transformer_spec.TransformerDecoderSpec(
            hparams.decoder_layers, **shape
        )

        shared = hparams.shared_embedding_and_softmax_weights
        matrices = {}  # [V, D] each
        for side in ("source", "target", "softmax"):
            name = "embedding" if shared else f"{side}_embedding"
            matrices[side] = self._array(f"{name}/weight")
        matrices["source"][PAD] = 0.0
        matrices["target"][PAD] = 0.0
        encoder.embeddings[0].weight = _weight(matrices["source"])
        decoder.embeddings.weight = _weight(matrices["target"])
        decoder.projection.weight = _weight(matrices["softmax"])
        encoder.position_encodings.encodings = _weight(self._positions("source"))
        decoder.position_encodings.encodings = _weight(self._positions("target"))

        for side, stack in (("encoder", encoder), ("decoder", decoder)):
            for i, layer in enumerate(stack.layer):
                path = f"transformer/{side}_{i}"
                self._set_attention(layer.self_attention, path, "self_attention")
                if side == "decoder":
                    self._set_attention(layer.attention, path, "cross_attention")
                self._set_feed_forward(layer.ffn, path)
            if hparams.pre_norm:
                self._set_norm(stack.layer_norm, f"transformer/{side}_norm")
        whole = specs.TransformerSpec(encoder, decoder)
        whole.config.layer_norm_epsilon = hparams.norm_epsilon
        return whole

    def _array(self, path: str) -> np.ndarray:
        """A copy of a weight, since CTranslate2 quantises in place."""
        return np.array(self._weights[path], np.float32)

    def _positions(self, side: str) -> np.ndarray:
        """The table of positions of a side, float32 [positions, D]."""
        if self._hparams.pos == "emb":
            table = self._array(f"{side}_positions/table")
        else:
            table = position_table(self._hparams)
        if side == "source" and self._hparams.use_target_space_embedding:
            table += self._array("transformer/target_space")
        return table

    def _set_attention(
        self, spec: specs.attention_spec.MultiHeadAttentionSpec, layer: str, name: str
    ) -> None:
        """Sets an attention layer. In self-attention, query, key and value are one
        matrix; in cross-attention, key and value are.
        """
        path = f"{layer}/{name}_residual"
        query = self._array(f"{path}/{name}/query/kernel")
        key_size = self._hparams.key_channels // self._hparams.num_heads
        # so that the scale is 1/sqrt(K) instead of 1/sqrt(P)
        query *= (self._head_size / key_size) ** 0.5
        query = self._widen(query).T  # [H * P, D]
        key = self._widen(self._array(f"{path}/{name}/key/kernel")).T
        value = self._widen(self._array(f"{path}/{name}/value/kernel")).T
        output = self._array(f"{path}/{name}/output_transform/kernel")
        if name == "self_attention":
            spec.linear[0].weight = _weight(np.concatenate([query, key, value]))
        else:
            spec.linear[0].weight = _weight(query)
            spec.linear[1].weight = _weight(np.concatenate([key, value]))
        spec.linear[-1].weight = _weight(self._widen(output.T))  # [D, H * P]
        self._set_norm(spec.layer_norm, f"{path}/norm")

    def _widen(self, kernel: np.ndarray) -> np.ndarray:
        """Pads each head with zeros: [I, H * K] -> [I, H * P]."""
        by_head = kernel.reshape(len(kernel), self._hparams.num_heads, -1)
        missing = self._head_size - by_head.shape[2]
        padded = np.pad(by_head, ((0, 0), (0, 0), (0, missing)))
        return padded.reshape(len(kernel), -1)

    def _set_feed_forward(
        self, spec: specs.transformer_spec.FeedForwardSpec, layer: str
    ) -> None:
        path = f"{layer}/feed_forward_residual"
        for linear, name in ((spec.linear_0, "inner"), (spec.linear_1, "outer")):
            # [O, I]
            linear.weight = _weight(self._array(f"{path}/feed_forward/{name}/kernel").T)
            linear.bias = _weight(self._array(f"{path}/feed_forward/{name}/bias"))
        self._set_norm(spec.layer_norm, f"{path}/norm")

    def _set_norm(self, spec: specs.common_spec.LayerNormSpec, path: str) -> None:
        spec.gamma = _weight(self._array(f"{path}/gamma"))
        spec.beta = _weight(self._array(f"{path}/beta"))


def _weight(array: np.ndarray) -> NumpyVariable:
    return _weight_type()(np.ascontiguousarray(array))


@functools.cache
def _weight_type() -> type[NumpyVariable]:
    """CTranslate2's type of weights, but rounding to bfloat16 without PyTorch, which
    CTranslate2's own needs.
    """
    numpy_variable = import_ctranslate2().specs.model_spec.NumpyVariable

    class BFloat16(numpy_variable):  # type: ignore[valid-type, misc]
        dtype = "bfloat16"  # the array has its bits, uint16

    class Weight(numpy_variable):  # type: ignore[valid-type, misc]
        def _to(self, dtype: str) -> NumpyVariable:
            if dtype != "bfloat16":
                return super()._to(dtype)
            return BFloat16(self.array.astype(ml_dtypes.bfloat16).view(np.uint16))

    return Weight
