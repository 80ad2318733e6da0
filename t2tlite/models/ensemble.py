"""An ensemble: several models of one vocabulary that decode as one, in one search."""

# B batch, S source length, T target length, V vocabulary
# M hypotheses of a sentence, L capacity of a search in positions, N sentences that
# remain in the batch

import math
from collections.abc import Sequence

from keras import ops

from t2tlite.types import (
    AttentionWeights,
    DecodingCache,
    Seq2SeqModel,
    Tensor,
    Variable,
)


class Ensemble:
    """A `DecodingModel` in which the probability of each next token is the arithmetic
    mean of its probabilities in the models.

    The models may differ in their hparams. Their vocabularies must be the same. Each
    keeps its own cache.

    Args:
        models: the models, at least one.
    """

    def __init__(self, models: Sequence[Seq2SeqModel]) -> None:
        self.models = tuple(models)

    @property
    def max_positions(self) -> int | None:
        """The least of the models' limits; None if none has a limit."""
        limits = [model.max_positions for model in self.models]
        return min((limit for limit in limits if limit is not None), default=None)

    @property
    def trainable_variables(self) -> list[Variable]:
        variables: list[Variable] = []
        for model in self.models:
            variables += model.trainable_variables
        return variables

    @property
    def compute_dtype(self) -> str:
        """The type that all models compute in; "float32" if they differ, so that no
        model's weights are rounded to the type of another.
        """
        first, *others = {model.compute_dtype for model in self.models}
        return "float32" if others else first

    def count_params(self) -> int:
        return sum(model.count_params() for model in self.models)

    def __call__(self, inputs: Tensor, targets: Tensor) -> Tensor:
        """int32 [B, S] and [B, T] -> log-probabilities float32 [B, T, V] of each target
        token, which are logits too.
        """
        return mean_log_probs([model(inputs, targets) for model in self.models])

    def attention(self, inputs: Tensor, targets: Tensor) -> AttentionWeights:
        """The attention weights of the layers of all models, one model after the
        other.
        """
        together = AttentionWeights([], [], [])
        for model in self.models:
            weights = model.attention(inputs, targets)
            for layers, more in zip(together, weights, strict=True):
                layers.extend(more)
        return together

    def start_decoding(
        self,
        inputs: Tensor,
        beam_size: int,
        length: int | Tensor,
    ) -> DecodingCache:
        """The caches of all models for sources int32 [B, S]."""
        caches = []
        for model in self.models:
            caches.append(model.start_decoding(inputs, beam_size, length))
        return tuple(caches)

    def decode_step(
        self,
        tokens: Tensor,
        step: int | Tensor,
        ancestors: Tensor,
        cache: DecodingCache,
    ) -> tuple[Tensor, DecodingCache]:
        """Log-probabilities float32 [B, M, V] of the next token of each hypothesis, and
        the caches with this position filled. Arguments are those of
        `Transformer.decode_step`.
        """
        logits = []
        caches = []
        for model, own_cache in zip(self.models, cache, strict=True):
            output, filled = model.decode_step(tokens, step, ancestors, own_cache)
            logits.append(output)
            caches.append(filled)
        return mean_log_probs(logits), tuple(caches)

    def resize_cache(
        self,
        cache: DecodingCache,
        sentences: Tensor,
        length: Tensor,
    ) -> DecodingCache:
        """The caches of only some sentences, int32 [N], for `length` positions."""
        caches = []
        for model, own_cache in zip(self.models, cache, strict=True):
            caches.append(model.resize_cache(own_cache, sentences, length))
        return tuple(caches)


def mean_log_probs(logits: Sequence[Tensor]) -> Tensor:
    """The logarithm of the mean probability of each token: logits [..., V] of each
    model -> [..., V].

    log(mean(p)) = logsumexp(log p) - log(number of models), which does not underflow.
    """
    log_probs = [ops.log_softmax(each, axis=-1) for each in logits]
    total = ops.logsumexp(ops.stack(log_probs), axis=0)
    return total - math.log(len(logits))
