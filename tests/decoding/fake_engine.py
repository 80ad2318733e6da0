"""An engine without a model, which records the batches that it gets."""

import numpy as np

from t2tlite.decoding.engine import EVERYTHING, Engine, TokenHypothesis


class FakeEngine(Engine):
    """Decodes every sentence as the empty one; attention weights are zeros."""

    name = "fake"
    supported = EVERYTHING

    def __init__(self) -> None:
        super().__init__("", None, 0)
        self.decoded = []  # the batches of sentences
        self.limits = []  # their lengths' limits
        self.attended = []  # the numbers of pairs

    def attention(self, inputs, targets):
        raise NotImplementedError

    def _decode_batch(self, sentences, limits, options):
        self.decoded.append(sentences)
        self.limits.append(limits.tolist())
        return [[TokenHypothesis([], 0.0, 0.0)] for _ in sentences]

    def _score_batch(self, sources, targets):
        return [0.0] * len(sources)

    def _attend_batch(self, sources, targets):
        self.attended.append(len(sources))
        return np.zeros((len(sources), 9, 9), np.float32)
