"""The Transformer of "Attention Is All You Need", section 3.

Read `Transformer.call` first: source and target ids to logits. `start_decoding` and `decode_step` do the same a
position at a time, with keys and values kept, for the M hypotheses that beam search holds of each sentence.
"""

# B batch, S source length, T target length, D hidden size, V vocabulary, H heads, K head size
# M hypotheses of a sentence, L positions in the cache

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from t2tlite.config import HParams
from t2tlite.layers.attention import MASKED, MultiHeadAttention, Record, causal_bias, padding_bias
from t2tlite.layers.dropout import Dropout, fold
from t2tlite.layers.embedding import Embedding, Positions
from t2tlite.layers.feed_forward import FeedForward
from t2tlite.layers.sublayer import Residual

ENCODER_SEED, DECODER_SEED = 1000, 2000  # dropout of layer i of a stack uses seeds from its base + 10 i


class EncoderLayer(keras.layers.Layer):
    """Self-attention, then feed-forward (Figure 1, left)."""

    def __init__(self, hparams: HParams, **kwargs: Any) -> None:
        super().__init__(autocast=False, **kwargs)
        self.self_attention = _attention(hparams, "self_attention", self.dtype_policy)
        self.self_attention_residual = _residual(hparams, "self_attention_residual", self.dtype_policy)
        self.feed_forward = _feed_forward(hparams, self.dtype_policy)
        self.feed_forward_residual = _residual(hparams, "feed_forward_residual", self.dtype_policy)

    def call(self, x: Any, bias: Any, seed: Any = None, record: Record = None) -> Any:
        """[B, S, D] -> [B, S, D]; `bias` [B, 1, 1, S] hides padding, `record` gets the attention weights."""

        def self_attention(y: Any) -> Any:
            return self.self_attention(y, y, bias, seed=fold(seed, 1), record=record)

        def feed_forward(y: Any) -> Any:
            return self.feed_forward(y, seed=fold(seed, 2))

        x = self.self_attention_residual(x, sublayer=self_attention, seed=fold(seed, 3))
        return self.feed_forward_residual(x, sublayer=feed_forward, seed=fold(seed, 4))


class DecoderLayer(keras.layers.Layer):
    """Masked self-attention, attention to the source, then feed-forward (Figure 1, right)."""

    def __init__(self, hparams: HParams, **kwargs: Any) -> None:
        super().__init__(autocast=False, **kwargs)
        self.self_attention = _attention(hparams, "self_attention", self.dtype_policy)
        self.self_attention_residual = _residual(hparams, "self_attention_residual", self.dtype_policy)
        self.cross_attention = _attention(hparams, "cross_attention", self.dtype_policy)
        self.cross_attention_residual = _residual(hparams, "cross_attention_residual", self.dtype_policy)
        self.feed_forward = _feed_forward(hparams, self.dtype_policy)
        self.feed_forward_residual = _residual(hparams, "feed_forward_residual", self.dtype_policy)

    def call(self, x: Any, bias: Any, memory: Any, memory_bias: Any, seed: Any = None, record: Record = None) -> Any:
        """[B, T, D] -> [B, T, D]; `memory` [B, S, D] is the encoder's output.

        `record` gets the weights of self-attention, then of cross-attention.
        """

        def self_attention(y: Any) -> Any:
            return self.self_attention(y, y, bias, seed=fold(seed, 1), record=record)

        def cross_attention(y: Any) -> Any:
            return self.cross_attention(y, memory, memory_bias, seed=fold(seed, 2), record=record)

        def feed_forward(y: Any) -> Any:
            return self.feed_forward(y, seed=fold(seed, 3))

        x = self.self_attention_residual(x, sublayer=self_attention, seed=fold(seed, 4))
        x = self.cross_attention_residual(x, sublayer=cross_attention, seed=fold(seed, 5))
        return self.feed_forward_residual(x, sublayer=feed_forward, seed=fold(seed, 6))

    def step(self, x: Any, cache: dict[str, Any], step: Any, bias: Any, memory_bias: Any) -> tuple[Any, dict[str, Any]]:
        """`call` for one position of M hypotheses, which take the place of the T positions.

        Args:
            x: [B, M, D].
            cache: "keys", "values": [B, H, L, M, K], what each slot held at each position so far; "memory_keys",
                "memory_values": [B, H, S, K].
            step: the position, counted from 0.
            bias: [B, 1, M, L * M]: which slots, at which positions, belong to a hypothesis.
            memory_bias: [B, 1, 1, S].

        Returns:
            [B, M, D], and the cache with this position filled.
        """
        cache = dict(cache)

        def self_attention(y: Any) -> Any:
            for name, new in zip(("keys", "values"), self.self_attention.keys_values(y), strict=True):  # [B, H, M, K]
                cache[name] = ops.slice_update(cache[name], (0, 0, step, 0, 0), new[:, :, None])
            return self.self_attention.attend(y, _merge_slots(cache["keys"]), _merge_slots(cache["values"]), bias)

        def cross_attention(y: Any) -> Any:
            return self.cross_attention.attend(y, cache["memory_keys"], cache["memory_values"], memory_bias)

        x = self.self_attention_residual(x, sublayer=self_attention)
        x = self.cross_attention_residual(x, sublayer=cross_attention)
        return self.feed_forward_residual(x, sublayer=self.feed_forward), cache


class Transformer(keras.Model):
    """Encoder and decoder stacks between shared embeddings.

    Args:
        hparams: the model's shape.
        source_vocab_size: tokens of the source, padding and end mark included.
        target_vocab_size: tokens of the target; must be the same where embeddings are shared.

    Raises:
        ValueError: shared embeddings of different vocabularies.
    """

    def __init__(self, hparams: HParams, source_vocab_size: int, target_vocab_size: int) -> None:
        super().__init__(name="transformer", dtype=hparams.dtype_policy, autocast=False)
        self.hparams = hparams
        shared = hparams.shared_embedding_and_softmax_weights
        if shared and source_vocab_size != target_vocab_size:
            raise ValueError(
                "Shared embeddings need one vocabulary for source and target. Received: vocabularies of "
                f"{source_vocab_size} and {target_vocab_size}. Set shared_embedding_and_softmax_weights=false."
            )

        def embedding(size: int, name: str) -> Embedding:
            return Embedding(size, hparams.hidden_size, name=name, dtype=self.dtype_policy)

        self.target_embedding = embedding(target_vocab_size, "embedding" if shared else "target_embedding")
        self.source_embedding = self.target_embedding if shared else embedding(source_vocab_size, "source_embedding")
        self.softmax_embedding = self.target_embedding if shared else embedding(target_vocab_size, "softmax_embedding")
        self.source_positions = self._positions("source_positions")
        self.target_positions = self._positions("target_positions")
        self.target_space = None
        if hparams.use_target_space_embedding:
            self.target_space = self.add_weight(name="target_space", shape=(hparams.hidden_size,), initializer="zeros")
        rate = hparams.layer_prepostprocess_dropout
        self.embedding_dropout = Dropout(rate, name="embedding_dropout", dtype=self.dtype_policy)
        self.encoder_layers = [
            EncoderLayer(hparams, name=f"encoder_{i}", dtype=self.dtype_policy) for i in range(hparams.encoder_layers)
        ]
        self.decoder_layers = [
            DecoderLayer(hparams, name=f"decoder_{i}", dtype=self.dtype_policy) for i in range(hparams.decoder_layers)
        ]
        self.encoder_norm = self.decoder_norm = None
        if hparams.pre_norm:  # the sum that leaves the last layer has not been normalised
            self.encoder_norm = self._norm("encoder_norm")
            self.decoder_norm = self._norm("decoder_norm")

    def build(self, input_shape: Any = None) -> None:
        """Nothing: each layer makes its own weights at its first call."""

    def call(self, inputs: Any, targets: Any, seed: Any = None) -> Any:
        """Logits of each target token given those before it, and the source.

        Args:
            inputs: int32 [B, S], source ids ending in the end mark, padded with 0.
            targets: int32 [B, T], likewise.
            seed: int32 [2] to train with dropout; None runs without.

        Returns:
            float32 [B, T, V].
        """
        memory, memory_bias = self.encode(inputs, seed)
        return self.decode(targets, memory, memory_bias, seed)

    def attention(self, inputs: Any, targets: Any) -> tuple[list[Any], list[Any], list[Any]]:
        """What every head looks at: the attention weights of `call`, without dropout.

        Args:
            inputs: int32 [B, S], as for `call`.
            targets: int32 [B, T], likewise.

        Returns:
            For each encoder layer float32 [B, H, S, S]; for each decoder layer self-attention [B, H, T, T], and
            cross-attention [B, H, T, S]. Queries run along the last axis but one. The decoder reads its target shifted
            right: position t reads target t - 1 (nothing at t = 0) and predicts target t.
        """
        encoder: list[Any] = []
        decoder: list[Any] = []  # each layer's self-attention, then its cross-attention
        memory, memory_bias = self.encode(inputs, record=encoder.append)
        self.decode(targets, memory, memory_bias, record=decoder.append)
        return encoder, decoder[0::2], decoder[1::2]

    def encode(self, inputs: Any, seed: Any = None, record: Record = None) -> tuple[Any, Any]:
        """int32 [B, S] -> the encoder's output [B, S, D], and the bias [B, 1, 1, S] that hides its padding."""
        bias = padding_bias(inputs)
        x = self.source_embedding(inputs)  # [B, S, D]
        if self.target_space is not None:
            x = x + ops.cast(self.target_space, x.dtype)
        x = self.embedding_dropout(self.source_positions(x), seed=fold(seed, ENCODER_SEED))
        for i, layer in enumerate(self.encoder_layers):
            x = layer(x, bias, seed=fold(seed, ENCODER_SEED + 10 * (i + 1)), record=record)
        return x if self.encoder_norm is None else self.encoder_norm(x), bias

    def decode(self, targets: Any, memory: Any, memory_bias: Any, seed: Any = None, record: Record = None) -> Any:
        """int32 [B, T] and the encoder's output -> float32 logits [B, T, V]."""
        x = self.target_embedding(targets)  # [B, T, D]
        x = ops.pad(x, ((0, 0), (1, 0), (0, 0)))[:, :-1]  # shifted right: position t sees the tokens before t
        x = self.embedding_dropout(self.target_positions(x), seed=fold(seed, DECODER_SEED))
        bias = causal_bias(ops.shape(x)[1])
        for i, layer in enumerate(self.decoder_layers):
            x = layer(x, bias, memory, memory_bias, seed=fold(seed, DECODER_SEED + 10 * (i + 1)), record=record)
        return self._logits(x)

    def start_decoding(self, inputs: Any, beam_size: int, length: Any) -> dict[str, Any]:
        """Encodes the source and makes room for `length` positions of `beam_size` hypotheses.

        Args:
            inputs: int32 [B, S].
            beam_size: M.
            length: L, the most positions that will be decoded.

        Returns:
            What `decode_step` takes: "layers", a cache for each decoder layer (see DecoderLayer.step), and
            "memory_bias" [B, 1, 1, S].
        """
        memory, memory_bias = self.encode(inputs)
        batch, heads = ops.shape(inputs)[0], self.hparams.num_heads
        caches = []
        for layer in self.decoder_layers:
            keys, values = layer.cross_attention.keys_values(memory)
            room = [
                ops.zeros((batch, heads, length, beam_size, channels // heads), dtype=self.compute_dtype)
                for channels in (self.hparams.key_channels, self.hparams.value_channels)
            ]
            caches.append({"keys": room[0], "values": room[1], "memory_keys": keys, "memory_values": values})
        return {"layers": caches, "memory_bias": memory_bias}

    def decode_step(self, tokens: Any, step: Any, ancestors: Any, cache: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """Logits of the next token of each hypothesis.

        A hypothesis is not copied when beam search reorders the beam. Instead `ancestors` says for each hypothesis
        which slot held it at each earlier position, and attention looks there only.

        Args:
            tokens: int32 [B, M], the token before this position; 0 at the first.
            step: the position, counted from 0.
            ancestors: float32 [B, M, L, M]; [b, m, l, s] is 1 where hypothesis m was in slot s at position l (at
                position `step`: m itself), otherwise 0.
            cache: as `start_decoding` made it.

        Returns:
            float32 logits [B, M, V], and the cache with this position filled.
        """
        beam = tokens.shape[1]
        bias = ops.reshape(1.0 - ancestors, (ops.shape(tokens)[0], 1, beam, -1)) * MASKED  # [B, 1, M, L * M]
        x = self.target_embedding(tokens)  # [B, M, D]
        x = ops.reshape(x, (-1, 1, self.hparams.hidden_size))  # each hypothesis has one position: [B * M, 1, D]
        x = ops.reshape(self.target_positions(x, start=step), (-1, beam, self.hparams.hidden_size))
        caches = []
        for layer, layer_cache in zip(self.decoder_layers, cache["layers"], strict=True):
            x, layer_cache = layer.step(x, layer_cache, step, bias, cache["memory_bias"])
            caches.append(layer_cache)
        return self._logits(x), {"layers": caches, "memory_bias": cache["memory_bias"]}

    def _logits(self, x: Any) -> Any:
        return self.softmax_embedding.logits(x if self.decoder_norm is None else self.decoder_norm(x))

    def _positions(self, name: str) -> Positions:
        hparams = self.hparams
        return Positions(hparams.pos, hparams.hidden_size, hparams.max_length, name=name, dtype=self.dtype_policy)

    def _norm(self, name: str) -> keras.layers.LayerNormalization:
        return keras.layers.LayerNormalization(epsilon=self.hparams.norm_epsilon, name=name, dtype=self.dtype_policy)


def build_transformer(hparams: HParams, source_vocab_size: int, target_vocab_size: int) -> Transformer:
    """A Transformer whose weights exist (Keras makes them at the first call)."""
    model = Transformer(hparams, source_vocab_size, target_vocab_size)
    ids = ops.ones((1, 2), dtype="int32")
    model(ids, ids)
    return model


def _attention(hparams: HParams, name: str, dtype: Any) -> MultiHeadAttention:
    return MultiHeadAttention(
        hparams.hidden_size,
        hparams.num_heads,
        hparams.key_channels,
        hparams.value_channels,
        hparams.attention_dropout,
        name=name,
        dtype=dtype,
    )


def _feed_forward(hparams: HParams, dtype: Any) -> FeedForward:
    return FeedForward(hparams.hidden_size, hparams.filter_size, hparams.relu_dropout, name="feed_forward", dtype=dtype)


def _residual(hparams: HParams, name: str, dtype: Any) -> Residual:
    return Residual(
        hparams.layer_prepostprocess_dropout, hparams.pre_norm, hparams.norm_epsilon, name=name, dtype=dtype
    )


def _merge_slots(cache: Any) -> Any:
    """[B, H, L, M, K] -> [B, H, L * M, K]."""
    batch, heads, size = ops.shape(cache)[0], cache.shape[1], cache.shape[4]
    return ops.reshape(cache, (batch, heads, -1, size))
