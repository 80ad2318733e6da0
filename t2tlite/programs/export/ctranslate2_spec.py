"""Converts the weights of a Transformer into a CTranslate2 model.

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

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from t2tlite.config import LONGEST_BUCKET, HParams
from t2tlite.files.atomic_file import copy_file
from t2tlite.programs.export.ctranslate2_engine import (
    EOS_TOKEN,
    PAD_TOKEN,
    import_ctranslate2,
    vocabulary_tokens,
)
from t2tlite.types import PAD
from t2tlite.vocabularies.text_encoder import TextEncoder

# required by CTranslate2; padding for tensor2tensor's vocabularies, which have none
UNKNOWN_TOKEN = "<unk>"
# attention layers: CTranslate2's names -> ours
ATTENTION = {"self_attention": "self_attention", "attention": "cross_attention"}


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


class _Conversion:
    """Builds the specification of a model: without vocabularies, neither validated nor
    quantised.
    """

    def __init__(self, hparams: HParams, weights: Mapping[str, np.ndarray]) -> None:
        self._hparams = hparams
        self._weights = weights
        widest = max(hparams.hidden_size, hparams.key_channels, hparams.value_channels)
        self._head_size = widest // hparams.num_heads  # P

    def spec(self) -> Any:
        """CTranslate2's TransformerSpec."""
        hparams = self._hparams
        specs = import_ctranslate2().specs
        regular = self._head_size * hparams.num_heads == hparams.hidden_size
        shape = {
            "num_heads": hparams.num_heads,
            "pre_norm": hparams.pre_norm,
            "head_dim": None if regular else self._head_size,
        }
        parts = specs.transformer_spec
        encoder = parts.TransformerEncoderSpec(hparams.encoder_layers, **shape)
        decoder = parts.TransformerDecoderSpec(hparams.decoder_layers, **shape)
        encoder.embeddings[0].weight = self._embedding("source")
        decoder.embeddings.weight = self._embedding("target")
        decoder.projection.weight = self._table("softmax")
        encoder.position_encodings.encodings = self._positions("source")
        decoder.position_encodings.encodings = self._positions("target")
        for side, stack in (("encoder", encoder), ("decoder", decoder)):
            for i, layer in enumerate(stack.layer):
                self._set_layer(layer, f"transformer/{side}_{i}")
            if hparams.pre_norm:
                self._set_norm(stack.layer_norm, f"transformer/{side}_norm")
        whole = specs.TransformerSpec(encoder, decoder)
        whole.config.layer_norm_epsilon = hparams.norm_epsilon
        return whole

    def _array(self, path: str) -> np.ndarray:
        """A copy of a weight, since CTranslate2 quantises in place."""
        return np.array(self._weights[path], np.float32)

    def _table(self, side: str) -> np.ndarray:
        """The matrix of an embedding or of the softmax, [V, D]."""
        if self._hparams.shared_embedding_and_softmax_weights:
            return self._array("embedding/weight")
        return self._array(f"{side}_embedding/weight")

    def _embedding(self, side: str) -> np.ndarray:
        table = self._table(side)
        table[PAD] = 0.0
        return table

    def _positions(self, side: str) -> np.ndarray:
        """The table of positions of a side, float32 [positions, D]."""
        from t2tlite.layers.embedding import SINUSOIDS  # loads TensorFlow

        hparams = self._hparams
        if hparams.pos == "emb":
            table = self._array(f"{side}_positions/table")
        elif hparams.pos == "none":
            table = np.zeros((LONGEST_BUCKET, hparams.hidden_size), np.float32)
        else:
            sinusoids = SINUSOIDS[hparams.pos]
            positions: np.ndarray = np.arange(LONGEST_BUCKET, dtype=np.float32)
            table = np.array(sinusoids(positions, hparams.hidden_size))
        if side == "source" and hparams.use_target_space_embedding:
            table = table + self._array("transformer/target_space")
        return table

    def _set_layer(self, layer: Any, path: str) -> None:
        for theirs, ours in ATTENTION.items():
            sublayer = getattr(layer, theirs, None)  # the encoder has no "attention"
            if sublayer is not None:
                residual = f"{path}/{ours}_residual"
                self._set_norm(sublayer.layer_norm, f"{residual}/norm")
                self._set_attention(sublayer, f"{residual}/{ours}")
        residual = f"{path}/feed_forward_residual"
        self._set_norm(layer.ffn.layer_norm, f"{residual}/norm")
        self._set_dense(layer.ffn.linear_0, f"{residual}/feed_forward/inner")
        self._set_dense(layer.ffn.linear_1, f"{residual}/feed_forward/outer")

    def _set_attention(self, spec: Any, path: str) -> None:
        """Sets an attention layer. In self-attention, query, key and value are one
        matrix; in cross-attention, key and value are.
        """
        key_size = self._hparams.key_channels // self._hparams.num_heads
        query = self._widened(self._array(f"{path}/query/kernel"))  # [H * P, D]
        # so that the scale is 1/sqrt(K) instead of 1/sqrt(P)
        query *= (self._head_size / key_size) ** 0.5
        key = self._widened(self._array(f"{path}/key/kernel"))
        value = self._widened(self._array(f"{path}/value/kernel"))
        output = self._widened(self._array(f"{path}/output_transform/kernel").T)
        if len(spec.linear) == 2:
            spec.linear[0].weight = np.concatenate([query, key, value])
        else:
            spec.linear[0].weight = query
            spec.linear[1].weight = np.concatenate([key, value])
        spec.linear[-1].weight = output.T

    def _widened(self, kernel: np.ndarray) -> np.ndarray:
        """Pads each head with zeros: [I, H * K] -> [H * P, I]."""
        by_head = kernel.reshape(len(kernel), self._hparams.num_heads, -1)
        missing = self._head_size - by_head.shape[2]
        padded = np.pad(by_head, ((0, 0), (0, 0), (0, missing)))
        return padded.reshape(len(kernel), -1).T

    def _set_dense(self, spec: Any, path: str) -> None:
        spec.weight = self._array(f"{path}/kernel").T  # [O, I]
        spec.bias = self._array(f"{path}/bias")

    def _set_norm(self, spec: Any, path: str) -> None:
        spec.gamma = self._array(f"{path}/gamma")
        spec.beta = self._array(f"{path}/beta")
