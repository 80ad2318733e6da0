"""Converts the weights of a Transformer to those of a MarianMTModel of Hugging Face
Transformers, in NumPy.

A MarianMTModel is the paper's post-norm Transformer. The weights make up for its
differences:

- Its positions have all sines before all cosines. So the channels of every layer's
  input and output are put into this order, which changes no product.
- Its decoder starts with the embedding of the padding token, ours with zeros. Padding
  is a token of its own behind the vocabulary, with a row of zeros, and a bias that
  excludes it from the softmax.
- Its layer normalisation has the epsilon 1e-5. To normalise s x with s^2 times the
  epsilon is to normalise x, so channels are scaled by s wherever a sublayer writes
  them, and matrices that read them by 1 / s. Only the first sublayer of each stack,
  which adds to the embeddings, keeps the other epsilon.
- Its projections of attention have biases, which are zeros.
- Source and target have as many ids; the missing ones are excluded likewise.
"""

# D hidden size, V vocabulary with padding, I and O inputs and outputs of a matrix

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from t2tlite.config import HParams

EPSILON = 1e-5  # of its layer normalisation
LEAST_EPSILON = 1e-7  # in float32 a smaller one is the same as none
EXCLUDED = -3e4  # bias of a token that is never decoded; float16 has it

# the embeddings and the matrix of the softmax: names there and here
SHARED = {"model.shared": "embedding"}
SEPARATE = {
    "model.encoder.embed_tokens": "source_embedding",
    "model.decoder.embed_tokens": "target_embedding",
    "lm_head": "softmax_embedding",
}
# the attention sublayers of each stack and their linear layers: names there and here
ATTENTION = {
    "q_proj": "query",
    "k_proj": "key",
    "v_proj": "value",
    "out_proj": "output_transform",
}
SUBLAYERS = {
    "encoder": {"self_attn": "self_attention"},
    "decoder": {"self_attn": "self_attention", "encoder_attn": "cross_attention"},
}


def check_expressible(hparams: HParams) -> None:
    """Raises ValueError that names what a MarianMTModel cannot compute."""
    size = hparams.hidden_size
    required = {
        "layer_preprocess_sequence": "none",
        "pos": "timing",
        "self_attention_radius": 0,
        "use_target_space_embedding": False,
        "key_channels": size,
        "value_channels": size,
    }
    received = []
    for name, value in required.items():
        if getattr(hparams, name) != value:
            received.append(f"{name}={getattr(hparams, name)} instead of {value}")
    if hparams.norm_epsilon > EPSILON:
        received.append(f"norm_epsilon={hparams.norm_epsilon} instead of {EPSILON}")
    if received:
        raise ValueError(
            "A MarianMTModel is the paper's Transformer: post-norm, with sinusoid"
            " positions, full self-attention, heads that together are as wide as the"
            f" model, and an epsilon of at most {EPSILON}. Received: a model with"
            f" {', '.join(received)}. Export it with format=ctranslate2."
        )


def marian_weights(
    hparams: HParams, weights: Mapping[str, np.ndarray], vocab_size: int
) -> dict[str, np.ndarray]:
    """The state of a MarianMTModel with V = `vocab_size`, float32.

    `weights` are those of our `Transformer` by their Keras path; the model must be
    expressible.
    """
    return _Conversion(hparams, weights).state(vocab_size)


class _Conversion:
    def __init__(self, hparams: HParams, weights: Mapping[str, np.ndarray]) -> None:
        self._hparams = hparams
        self._weights = weights
        channels: np.ndarray = np.arange(hparams.hidden_size)
        self._order = np.concatenate([channels[::2], channels[1::2]])
        self._scale = (EPSILON / max(hparams.norm_epsilon, LEAST_EPSILON)) ** 0.5
        self._state: dict[str, np.ndarray] = {}

    def state(self, vocab_size: int) -> dict[str, np.ndarray]:
        hparams = self._hparams
        tables = SHARED if hparams.shared_embedding_and_softmax_weights else SEPARATE
        for name, ours in tables.items():
            rows = self._weights[f"{ours}/weight"]
            missing = vocab_size - len(rows)
            table = np.pad(rows[:, self._order], ((0, missing), (0, 0)))
            self._set(f"{name}.weight", table)  # [V, D]
        bias = np.zeros((1, vocab_size))
        bias[:, len(rows) :] = EXCLUDED  # the last table is the target's
        self._set("final_logits_bias", bias)
        depths = {"encoder": hparams.encoder_layers, "decoder": hparams.decoder_layers}
        for side, depth in depths.items():
            for i in range(depth):
                self._set_layer(side, i)
        # logits are computed of it
        last = f"model.decoder.layers.{depth - 1}.final_layer_norm"
        self._state[f"{last}.weight"] /= self._scale
        self._state[f"{last}.bias"] /= self._scale
        return self._state

    def _set(self, name: str, array: np.ndarray) -> None:
        self._state[name] = np.ascontiguousarray(array, np.float32)

    def _set_layer(self, side: str, i: int) -> None:
        name = f"model.{side}.layers.{i}"
        ours = f"transformer/{side}_{i}"
        for sublayer, our_name in SUBLAYERS[side].items():
            # the first sublayer reads embeddings, which have no scale
            scale = 1.0 if i == 0 and sublayer == "self_attn" else self._scale
            residual = f"{ours}/{our_name}_residual"
            for linear, our_linear in ATTENTION.items():
                self._set_linear(
                    f"{name}.{sublayer}.{linear}",
                    f"{residual}/{our_name}/{our_linear}",
                    scale,
                    writes=linear == "out_proj",
                )
            self._set_norm(f"{name}.{sublayer}_layer_norm", residual)
        residual = f"{ours}/feed_forward_residual"
        ours = f"{residual}/feed_forward"
        self._set_linear(f"{name}.fc1", f"{ours}/inner", self._scale, writes=False)
        self._set_linear(f"{name}.fc2", f"{ours}/outer", self._scale, writes=True)
        self._set_norm(f"{name}.final_layer_norm", residual)

    def _set_linear(self, name: str, ours: str, scale: float, writes: bool) -> None:
        """Sets a matrix [O, I] and its bias [O], which read or write the channels."""
        kernel = self._weights[f"{ours}/kernel"].T
        bias = self._weights.get(f"{ours}/bias", np.zeros(len(kernel)))
        if writes:
            kernel = kernel[self._order] * scale
            bias = bias[self._order] * scale
        else:
            kernel = kernel[:, self._order] / scale
        self._set(f"{name}.weight", kernel)
        self._set(f"{name}.bias", bias)

    def _set_norm(self, name: str, residual: str) -> None:
        gamma = self._weights[f"{residual}/norm/gamma"]
        beta = self._weights[f"{residual}/norm/beta"]
        self._set(f"{name}.weight", gamma[self._order] * self._scale)
        self._set(f"{name}.bias", beta[self._order] * self._scale)
