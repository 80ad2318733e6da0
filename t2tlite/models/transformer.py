"""The Transformer of "Attention Is All You Need", section 3.

Read `Transformer.call` first: it turns source and target ids into logits.
`start_decoding` and `decode_step` compute the same logits one position at a time, with
cached keys and values, for the M hypotheses of each sentence in beam search.
"""

# B batch, S source length, T target length, D hidden size, V vocabulary
# M hypotheses of a sentence, L capacity of a search in positions
# C capacity of the cache in positions: L, or r with restricted self-attention

from typing import NamedTuple

import keras
from keras import ops

from t2tlite.config import HParams
from t2tlite.layers.attention import MASKED, Record, padding_mask
from t2tlite.layers.embedding import Embedding, Positions
from t2tlite.layers.kv_cache import cache_slot
from t2tlite.layers.sublayer import Dropout, LayerNormalization, fold
from t2tlite.models.model import Model
from t2tlite.models.transformer_layers import DecoderLayer, EncoderLayer, LayerCache
from t2tlite.registry import register_model
from t2tlite.types import AttentionWeights, Seed, Tensor

# Seeds of dropout: the base for the embeddings, base + 10 (i + 1) for layer i.
ENCODER_SEED, DECODER_SEED = 1000, 2000


class TransformerCache(NamedTuple):
    """What the decoder keeps between positions."""

    layers: tuple[LayerCache, ...]
    memory_bias: Tensor  # float32 [B, 1, S], the padding mask of the source
    output: tuple[Tensor, ...]  # `Embedding.step_kernel`


@register_model
@keras.saving.register_keras_serializable("t2tlite")
class Transformer(Model):
    """The encoder and decoder stacks of Figure 1, between embeddings and logits.

    Args:
        hparams: sizes and variants of the model.
        source_vocab_size: tokens of the source vocabulary, PAD and EOS included.
        target_vocab_size: tokens of the target vocabulary; the same number if
            embeddings are shared (section 3.4).

    Raises:
        ValueError: embeddings are shared and the vocabularies differ in size.
    """

    def __init__(
        self,
        hparams: HParams,
        source_vocab_size: int,
        target_vocab_size: int,
    ) -> None:
        super().__init__(hparams, source_vocab_size, target_vocab_size)
        shared = hparams.shared_embedding_and_softmax_weights
        if shared and source_vocab_size != target_vocab_size:
            raise ValueError(
                "Shared embeddings need one vocabulary. Received: sizes"
                f" {source_vocab_size} and {target_vocab_size}."
            )

        size = hparams.hidden_size
        common = {"dtype": self.dtype_policy}
        self.target_embedding = Embedding(
            target_vocab_size,
            size,
            name="embedding" if shared else "target_embedding",
            **common,
        )
        self.source_embedding = self.target_embedding
        self.softmax_embedding = self.target_embedding
        if not shared:
            self.source_embedding = Embedding(
                source_vocab_size, size, name="source_embedding", **common
            )
            self.softmax_embedding = Embedding(
                target_vocab_size, size, name="softmax_embedding", **common
            )
        positions = (hparams.pos, size, hparams.max_positions)
        self.source_positions = Positions(*positions, name="source_positions", **common)
        self.target_positions = Positions(*positions, name="target_positions", **common)
        self.target_space = None
        if hparams.use_target_space_embedding:
            self.target_space = self.add_weight(
                name="target_space", shape=(size,), initializer="zeros"
            )
        rate = hparams.layer_prepostprocess_dropout
        self.embedding_dropout = Dropout(rate, name="embedding_dropout", **common)
        self.encoder_layers = []
        for i in range(hparams.encoder_layers):
            layer = EncoderLayer(hparams, name=f"encoder_{i}", **common)
            self.encoder_layers.append(layer)
        self.decoder_layers = []
        for i in range(hparams.decoder_layers):
            layer = DecoderLayer(hparams, name=f"decoder_{i}", **common)
            self.decoder_layers.append(layer)
        # with post-norm, the output of the last layer is normalised already
        norm = keras.layers.Identity
        if hparams.pre_norm:
            norm = LayerNormalization
            common["epsilon"] = hparams.norm_epsilon
        self.encoder_norm = norm(name="encoder_norm", **common)
        self.decoder_norm = norm(name="decoder_norm", **common)

    def build(self, input_shape: object = None) -> None:
        """Creates all weights."""
        for layer in (*self.encoder_layers, *self.decoder_layers):
            layer.build()
        for norm in (self.encoder_norm, self.decoder_norm):
            norm.build((None, self.hparams.hidden_size))

    def call(self, inputs: Tensor, targets: Tensor, seed: Seed = None) -> Tensor:
        """Logits float32 [B, T, V] of each target token, given the source and the
        target tokens before it (teacher forcing).

        Args:
            inputs: int32 [B, S], source ids that end in EOS, padded with PAD.
            targets: int32 [B, T], target ids, likewise.
            seed: int32 [2] to train with dropout, or None to run without.
        """
        memory, memory_bias = self.encode(inputs, seed)
        return self.decode(targets, memory, memory_bias, seed)

    def attention(self, inputs: Tensor, targets: Tensor) -> AttentionWeights:
        """The attention weights of every head in `call`, without dropout, for the same
        inputs and targets.

        The last axis is that of the keys, the axis before it that of the queries. The
        decoder reads its target shifted right: position t reads target t - 1 (nothing
        at t = 0) and predicts target t.
        """
        encoder: list[Tensor] = []
        # each layer's self-attention, then its cross-attention
        decoder: list[Tensor] = []
        memory, memory_bias = self.encode(inputs, record=encoder.append)
        self.decode(targets, memory, memory_bias, record=decoder.append)
        return AttentionWeights(encoder, decoder[0::2], decoder[1::2])

    def encode(
        self,
        inputs: Tensor,
        seed: Seed = None,
        record: Record | None = None,
    ) -> tuple[Tensor, Tensor]:
        """int32 [B, S] -> the encoder's output [B, S, D] and the padding mask [B, 1, 1,
        S] (section 3.1, Encoder).
        """
        bias = padding_mask(inputs)
        x = self.source_embedding(inputs)  # [B, S, D]
        if self.target_space is not None:
            x = x + ops.cast(self.target_space, x.dtype)
        x = self.source_positions(x)
        x = self.embedding_dropout(x, seed=fold(seed, ENCODER_SEED))
        for i, layer in enumerate(self.encoder_layers):
            layer_seed = fold(seed, ENCODER_SEED + 10 * (i + 1))
            x = layer(x, bias, seed=layer_seed, record=record)
        return self.encoder_norm(x), bias

    def decode(
        self,
        targets: Tensor,
        memory: Tensor,
        memory_bias: Tensor,
        seed: Seed = None,
        record: Record | None = None,
    ) -> Tensor:
        """int32 [B, T] and the encoder's output -> float32 logits [B, T, V] (section
        3.1, Decoder).
        """
        x = self.target_embedding(targets)  # [B, T, D]
        # shifted right: position t reads token t - 1
        x = ops.pad(x, ((0, 0), (1, 0), (0, 0)))[:, :-1]
        x = self.target_positions(x)
        x = self.embedding_dropout(x, seed=fold(seed, DECODER_SEED))
        for i, layer in enumerate(self.decoder_layers):
            layer_seed = fold(seed, DECODER_SEED + 10 * (i + 1))
            x = layer(x, memory, memory_bias, seed=layer_seed, record=record)
        return self._logits(x)

    def start_decoding(
        self,
        inputs: Tensor,
        beam_size: int,
        length: int | Tensor,
    ) -> TransformerCache:
        """Encodes the source, and makes a cache for `length` positions of `beam_size`
        hypotheses.

        Args:
            inputs: int32 [B, S].
            beam_size: M.
            length: L, the maximum length of an output, unless `resize_cache` raises it.
        """
        memory, memory_bias = self.encode(inputs)
        capacity = self._capacity(length)
        caches = []
        for layer in self.decoder_layers:
            caches.append(layer.start(memory, capacity, beam_size))
        rows = inputs.shape[0] and inputs.shape[0] * beam_size
        output = self.softmax_embedding.step_kernel(rows)
        return TransformerCache(tuple(caches), memory_bias[:, 0], output)

    def decode_step(
        self,
        tokens: Tensor,
        step: int | Tensor,
        ancestors: Tensor,
        cache: TransformerCache,
    ) -> tuple[Tensor, TransformerCache]:
        """Logits float32 [B, M, V] of the next token of each hypothesis, and the cache
        with this position filled.

        Beam search reorders hypotheses without copying their keys and values. Instead
        `ancestors` gives the slot of each hypothesis at each earlier position, and a
        hypothesis attends to these slots only.

        Args:
            tokens: int32 [B, M], the token before this position; PAD at the first.
            step: the position, counted from 0.
            ancestors: float32 [B, M, L, M]; [b, m, l, s] is 1 if hypothesis m was in
                slot s at position l, else 0. At position `step`, s = m.
            cache: the result of `start_decoding` or of the step before.
        """
        batch = ops.shape(tokens)[0]
        beam = tokens.shape[1]
        if self.hparams.self_attention_radius:
            positions = _cached_positions(step, cache, ops.shape(ancestors)[2])
            ancestors = ops.take(ancestors, positions, axis=2)  # [B, M, C, M]
        bias = ops.reshape(1.0 - ancestors, (batch, beam, -1)) * MASKED  # [B, M, C * M]
        x = self.target_embedding(ops.reshape(tokens, (-1, 1)))  # [B * M, 1, D]
        x = self.target_positions(x, start=step)
        x = ops.reshape(x, (-1, self.hparams.hidden_size))  # [B * M, D]
        slot = cache_slot(cache.layers[0].self_attention.keys, step)
        caches = []
        for layer, layer_cache in zip(self.decoder_layers, cache.layers, strict=True):
            x, layer_cache = layer.step(x, layer_cache, slot, bias, cache.memory_bias)
            caches.append(layer_cache)
        logits = self._logits(x, cache.output)  # [B * M, V]
        logits = ops.reshape(logits, (-1, beam, logits.shape[1]))
        return logits, cache._replace(layers=tuple(caches))

    def resize_cache(
        self,
        cache: TransformerCache,
        sentences: Tensor,
        length: Tensor,
    ) -> TransformerCache:
        """Keeps only some sentences of the batch, and makes room for more positions.

        Args:
            cache: the result of `start_decoding` or `decode_step`.
            sentences: int32 [N], the indices of the sentences to keep.
            length: the new L, at least the old one.
        """
        capacity = self._capacity(length)
        caches = []
        for layer, layer_cache in zip(self.decoder_layers, cache.layers, strict=True):
            caches.append(layer.resize(layer_cache, sentences, capacity))
        memory_bias = ops.take(cache.memory_bias, sentences, axis=0)
        return cache._replace(layers=tuple(caches), memory_bias=memory_bias)

    def _capacity(self, length: int | Tensor) -> int | Tensor:
        """The capacity C of a cache for `length` positions: an int if `length` is."""
        radius = self.hparams.self_attention_radius
        if not radius:
            return length
        if isinstance(length, int):
            return min(length, radius)
        return ops.minimum(length, radius)

    def _logits(self, x: Tensor, kernel: tuple[Tensor, ...] = ()) -> Tensor:
        """The decoder's output [..., D] -> float32 [..., V]."""
        return self.softmax_embedding.logits(self.decoder_norm(x), kernel)


def _cached_positions(
    step: int | Tensor,
    cache: TransformerCache,
    length: int | Tensor,
) -> Tensor:
    """The position, of L, in each slot of the cache at `step`: int32 [C]. Position p is
    in slot p % C.

    An empty slot gets a position after `step`, at which no hypothesis has an ancestor.
    """
    capacity = ops.shape(cache.layers[0].self_attention.keys)[2]
    return (step - (step - ops.arange(capacity, dtype="int32")) % capacity) % length
