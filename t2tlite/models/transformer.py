"""The Transformer of "Attention Is All You Need", section 3.

Read `Transformer.call` first: source and target ids to logits. `start_decoding` and
`decode_step` do the same a position at a time, with cached keys and values, for the M
hypotheses that beam search holds of each sentence.
"""

# B batch, S source length, T target length, D hidden size, V vocabulary, H heads, K
# head size M hypotheses of a sentence, L capacity of a search in positions, C capacity
# of the cache: L, or the last r of them

from __future__ import annotations

import dataclasses

import keras
from keras import ops

from t2tlite.config import HParams
from t2tlite.layers.attention import MASKED, Record, causal_mask, padding_mask
from t2tlite.layers.embedding import Embedding, Positions
from t2tlite.layers.kv_cache import cache_slot, empty_cache, resize
from t2tlite.layers.sublayer import Dropout, LayerNormalization, fold
from t2tlite.models.transformer_layers import DecoderLayer, EncoderLayer
from t2tlite.types import (
    AttentionWeights,
    Config,
    DecodingCache,
    LayerCache,
    Seed,
    Tensor,
)

# dropout of layer i of a stack uses seeds from its base + 10 i
ENCODER_SEED, DECODER_SEED = 1000, 2000


@keras.saving.register_keras_serializable("t2tlite")
class Transformer(keras.Model):
    """Encoder and decoder stacks between shared embeddings.

    Args:
        hparams: the model's shape.
        source_vocab_size: tokens of the source's vocabulary, PAD and EOS included.
        target_vocab_size: tokens of the target's; must be the same if embeddings are
            shared.

    Raises:
        ValueError: embeddings are shared and the vocabularies differ in size.
    """

    def __init__(
        self, hparams: HParams, source_vocab_size: int, target_vocab_size: int
    ) -> None:
        super().__init__(name="transformer", dtype=hparams.dtype_policy, autocast=False)
        self.hparams = hparams
        shared = hparams.shared_embedding_and_softmax_weights
        if shared and source_vocab_size != target_vocab_size:
            raise ValueError(
                "Shared embeddings need one vocabulary for source and target."
                f" Received: vocabularies of {source_vocab_size} and"
                f" {target_vocab_size}. Set shared_embedding_and_softmax_weights=false."
            )

        dtype, size = self.dtype_policy, hparams.hidden_size
        self.target_embedding = self.source_embedding = self.softmax_embedding = (
            Embedding(
                target_vocab_size,
                size,
                name="embedding" if shared else "target_embedding",
                dtype=dtype,
            )
        )
        if not shared:
            self.source_embedding = Embedding(
                source_vocab_size, size, name="source_embedding", dtype=dtype
            )
            self.softmax_embedding = Embedding(
                target_vocab_size, size, name="softmax_embedding", dtype=dtype
            )
        positions = hparams.pos, size, hparams.max_positions
        self.source_positions = Positions(
            *positions, name="source_positions", dtype=dtype
        )
        self.target_positions = Positions(
            *positions, name="target_positions", dtype=dtype
        )
        self.target_space = None
        if hparams.use_target_space_embedding:
            self.target_space = self.add_weight(
                name="target_space", shape=(size,), initializer="zeros"
            )
        rate = hparams.layer_prepostprocess_dropout
        self.embedding_dropout = Dropout(rate, name="embedding_dropout", dtype=dtype)
        encoder_names = [f"encoder_{i}" for i in range(hparams.encoder_layers)]
        decoder_names = [f"decoder_{i}" for i in range(hparams.decoder_layers)]
        self.encoder_layers = [
            EncoderLayer(hparams, name=name, dtype=dtype) for name in encoder_names
        ]
        self.decoder_layers = [
            DecoderLayer(hparams, name=name, dtype=dtype) for name in decoder_names
        ]
        self.encoder_norm = self.decoder_norm = None
        # the sum that leaves the last layer has not been normalised
        if hparams.pre_norm:
            norm, epsilon = LayerNormalization, hparams.norm_epsilon
            self.encoder_norm = norm(epsilon=epsilon, name="encoder_norm", dtype=dtype)
            self.decoder_norm = norm(epsilon=epsilon, name="decoder_norm", dtype=dtype)

    def build(self, input_shape: object = None) -> None:
        """Makes all weights."""
        for layer in (*self.encoder_layers, *self.decoder_layers):
            layer.build()
        for norm in filter(None, (self.encoder_norm, self.decoder_norm)):
            norm.build((None, self.hparams.hidden_size))

    def call(self, inputs: Tensor, targets: Tensor, seed: Seed = None) -> Tensor:
        """Logits float32 [B, T, V] of each target token, given those before it and the
        source (teacher forcing).

        Args:
            inputs: int32 [B, S], source ids ending in EOS, padded with PAD.
            targets: int32 [B, T], likewise.
            seed: int32 [2] to train with dropout, or None to run without.
        """
        return self.decode(targets, *self.encode(inputs, seed), seed)

    def attention(self, inputs: Tensor, targets: Tensor) -> AttentionWeights:
        """The attention weights of every head in `call`, without dropout, for the same
        inputs and targets.

        The last axis runs over keys, the one before it over queries. The decoder reads
        its target shifted right: position t reads target t - 1 (nothing at t = 0) and
        predicts target t.
        """
        encoder: list[Tensor] = []
        # each layer's self-attention, then its cross-attention
        decoder: list[Tensor] = []
        self.decode(
            targets, *self.encode(inputs, record=encoder.append), record=decoder.append
        )
        return AttentionWeights(encoder, decoder[0::2], decoder[1::2])

    def encode(
        self, inputs: Tensor, seed: Seed = None, record: Record | None = None
    ) -> tuple[Tensor, Tensor]:
        """int32 [B, S] -> the encoder's output [B, S, D], and the padding mask [B, 1,
        1, S].
        """
        bias = padding_mask(inputs)
        x = self.source_embedding(inputs)  # [B, S, D]
        if self.target_space is not None:
            x = x + ops.cast(self.target_space, x.dtype)
        x = self.embedding_dropout(
            self.source_positions(x), seed=fold(seed, ENCODER_SEED)
        )
        for i, layer in enumerate(self.encoder_layers):
            layer_seed = fold(seed, ENCODER_SEED + 10 * (i + 1))
            x = layer(x, bias, seed=layer_seed, record=record)
        return x if self.encoder_norm is None else self.encoder_norm(x), bias

    def decode(
        self,
        targets: Tensor,
        memory: Tensor,
        memory_bias: Tensor,
        seed: Seed = None,
        record: Record | None = None,
    ) -> Tensor:
        """int32 [B, T] and the encoder's output -> float32 logits [B, T, V]."""
        x = self.target_embedding(targets)  # [B, T, D]
        # shifted right: position t sees the tokens before t
        x = ops.pad(x, ((0, 0), (1, 0), (0, 0)))[:, :-1]
        x = self.embedding_dropout(
            self.target_positions(x), seed=fold(seed, DECODER_SEED)
        )
        # its layers mask what comes later, at less cost than [T, T]
        if self.hparams.self_attention_radius:
            bias = ops.zeros(ops.shape(targets))[:, None, None, :]
        else:
            bias = causal_mask(ops.shape(x)[1])
        for i, layer in enumerate(self.decoder_layers):
            layer_seed = fold(seed, DECODER_SEED + 10 * (i + 1))
            x = layer(x, bias, memory, memory_bias, seed=layer_seed, record=record)
        return self._logits(x)

    def start_decoding(
        self, inputs: Tensor, beam_size: int, length: int | Tensor
    ) -> DecodingCache:
        """Encodes the source, and makes a cache for `length` positions of `beam_size`
        hypotheses.

        Args:
            inputs: int32 [B, S].
            beam_size: M.
            length: L, the maximum length of what is decoded, unless `resize_cache`
                raises it.
        """
        memory, memory_bias = self.encode(inputs)
        batch, heads, capacity = (
            ops.shape(inputs)[0],
            self.hparams.num_heads,
            self._capacity(length),
        )
        caches = []
        for layer in self.decoder_layers:
            keys, values = (
                empty_cache(
                    heads,
                    batch,
                    capacity,
                    beam_size,
                    channels // heads,
                    self.compute_dtype,
                )
                for channels in (self.hparams.key_channels, self.hparams.value_channels)
            )
            # [B, H, S, K], [B, H, S, U]
            memory_keys, memory_values = layer.cross_attention.keys_values(memory)
            cache = LayerCache(
                keys=keys,
                values=values,
                memory_keys=ops.swapaxes(memory_keys, 0, 1),
                memory_values=ops.swapaxes(memory_values, 0, 1),
                joint_kernel=layer.self_attention.joint_kernel(),
                query_kernel=layer.cross_attention.query_kernel(),
                feed_forward=layer.feed_forward.transposed_kernels(),
            )
            caches.append(cache)
        return DecodingCache(tuple(caches), memory_bias[:, 0])

    def decode_step(
        self,
        tokens: Tensor,
        step: int | Tensor,
        ancestors: Tensor,
        cache: DecodingCache,
    ) -> tuple[Tensor, DecodingCache]:
        """Logits float32 [B, M, V] of the next token of each hypothesis, and the cache
        with this position filled.

        A hypothesis is not copied when beam search reorders the beam. Instead
        `ancestors` says for each hypothesis which slot it was in at each earlier
        position, and it attends to those slots only.

        Args:
            tokens: int32 [B, M], the token before this position; PAD at the first.
            step: the position, counted from 0.
            ancestors: float32 [B, M, L, M]; [b, m, l, s] is 1 if hypothesis m was in
                slot s at position l (at position `step`: m itself), else 0.
            cache: as `start_decoding` or the step before returned it.
        """
        beam = tokens.shape[1]
        if self.hparams.self_attention_radius:
            ancestors = ops.take(
                ancestors,
                _cached_positions(step, cache, ops.shape(ancestors)[2]),
                axis=2,
            )
        # [B, M, C * M]
        bias = ops.reshape(1.0 - ancestors, (ops.shape(tokens)[0], beam, -1)) * MASKED
        x = self.target_embedding(ops.reshape(tokens, (-1, 1)))  # [B * M, 1, D]
        x = ops.reshape(
            self.target_positions(x, start=step), (-1, self.hparams.hidden_size)
        )
        caches, slot = [], cache_slot(cache.layers[0].keys, step)
        for layer, layer_cache in zip(self.decoder_layers, cache.layers, strict=True):
            x, layer_cache = layer.step(x, layer_cache, slot, bias, cache.memory_bias)
            caches.append(layer_cache)
        logits = self._logits(x)  # [B * M, V]
        logits = ops.reshape(logits, (-1, beam, logits.shape[1]))
        return logits, DecodingCache(tuple(caches), cache.memory_bias)

    def resize_cache(
        self, cache: DecodingCache, sentences: Tensor, length: Tensor
    ) -> DecodingCache:
        """The cache of only some sentences of the batch, for a greater length.

        Args:
            cache: as `start_decoding` or `decode_step` returned it.
            sentences: int32 [N], which sentences.
            length: L, at least that of the cache so far.
        """
        capacity = self._capacity(length)
        layers = [
            layer._replace(
                keys=resize(layer.keys, sentences, capacity),
                values=resize(layer.values, sentences, capacity),
                memory_keys=ops.take(layer.memory_keys, sentences, axis=1),
                memory_values=ops.take(layer.memory_values, sentences, axis=1),
            )
            for layer in cache.layers
        ]
        return DecodingCache(
            tuple(layers), ops.take(cache.memory_bias, sentences, axis=0)
        )

    def get_config(self) -> Config:
        return {
            "hparams": dataclasses.asdict(self.hparams),
            "source_vocab_size": self.source_embedding.vocab_size,
            "target_vocab_size": self.target_embedding.vocab_size,
        }

    @classmethod
    def from_config(cls, config: Config) -> Transformer:
        """The model of a config, with its weights made so that they can be loaded."""
        hparams = HParams(**config["hparams"])
        return build_transformer(
            hparams, config["source_vocab_size"], config["target_vocab_size"]
        )

    def _capacity(self, length: int | Tensor) -> int | Tensor:
        """The capacity C of a cache for `length` positions."""
        return ops.shape(
            ops.arange(length)[: self.hparams.self_attention_radius or None]
        )[0]

    def _logits(self, x: Tensor) -> Tensor:
        return self.softmax_embedding.logits(
            x if self.decoder_norm is None else self.decoder_norm(x)
        )


def _cached_positions(
    step: int | Tensor, cache: DecodingCache, length: int | Tensor
) -> Tensor:
    """Which of L positions is in each slot of the cache at `step`: int32 [C]; position
    p is in slot p % C.

    An empty slot gets a position later than `step`, of which no hypothesis has an
    ancestor.
    """
    capacity = ops.shape(cache.layers[0].keys)[2]
    return (step - (step - ops.arange(capacity)) % capacity) % length


def build_transformer(
    hparams: HParams, source_vocab_size: int, target_vocab_size: int
) -> Transformer:
    """A Transformer whose weights exist."""
    model = Transformer(hparams, source_vocab_size, target_vocab_size)
    model.build()
    return model
