"""A language model that is a table, for tests that compare a search with every sequence
there is.
"""

import itertools

import numpy as np
import tensorflow as tf
from numpy_softmax import log_softmax

from t2tlite.decoding.beam_search import beam_search
from t2tlite.decoding.slots import NEVER

# B batch, M hypotheses of a sentence, L maximum length, V vocabulary

VOCAB, LENGTH, EOS = 5, 4, 1
# 2 M candidates hold every continuation of the 4^3 hypotheses alive before the last
# position
BEAM = 160


class TableModel:
    """A language model that is a table: random logits for each sentence and each
    prefix.

    It finds a hypothesis' prefix as the Transformer does: from what each slot held at
    each position, and `ancestors`.
    """

    def __init__(self, sentences: int, seed: int = 1, eos_bonus: float = 0.0) -> None:
        random = np.random.default_rng(seed)
        self.table = random.normal(
            scale=1.5, size=(sentences, LENGTH, VOCAB ** (LENGTH - 1), VOCAB)
        )
        self.table[..., EOS] += eos_bonus

    def logits(self, sentence: int, prefix: tuple[int, ...]) -> np.ndarray:
        number = sum(token * VOCAB**i for i, token in enumerate(prefix))
        return self.table[sentence, len(prefix), number]

    def steps(self, sentences: list[int]):
        """What beam_search takes, for these sentences."""

        def decode_step(tokens, step, ancestors, slots):
            # slots [B, L, M]
            slots, step, tokens = np.array(slots), int(step), np.asarray(tokens)
            slots[:, step] = tokens
            history = np.einsum("bmls,bls->bml", np.asarray(ancestors), slots)
            history = history[:, :, 1 : step + 1].astype(int)
            logits = []
            for sentence, prefixes in zip(sentences, history, strict=True):
                logits.append([self.logits(sentence, tuple(row)) for row in prefixes])
            return tf.constant(np.array(logits), tf.float32), tf.constant(slots)

        return decode_step

    def search(
        self,
        sentences: list[int],
        max_lengths: list[int],
        beam: int,
        alpha: float,
        n_best: int = 1,
        **options,
    ):
        result = beam_search(
            self.steps(sentences),
            lambda length: np.zeros((len(sentences), length, beam), np.int32),
            max_lengths=np.array(max_lengths, np.int32),
            beam_size=beam,
            length=LENGTH,
            alpha=alpha,
            n_best=n_best,
            **options,
        )
        return tuple(map(np.asarray, result))

    def log_prob(self, sentence: int, tokens: tuple[int, ...]) -> float:
        total = 0.0
        for i, token in enumerate(tokens):
            total += log_softmax(self.logits(sentence, tokens[:i]))[token]
        return total

    def exhaustive(
        self, sentence: int, max_length: int, alpha: float
    ) -> list[tuple[float, tuple[int, ...]]]:
        """Every sequence that ends within `max_length` tokens, with its score, best
        first.
        """
        others = [token for token in range(VOCAB) if token != EOS]
        scored = []
        for length in range(1, max_length + 1):
            for body in itertools.product(others, repeat=length - 1):
                tokens = (*body, EOS)
                penalty = ((5 + length) / 6) ** alpha
                scored.append((self.log_prob(sentence, tokens) / penalty, tokens))
        return sorted(scored, reverse=True)

    def check(self, result, sentence: int, expected, complete: bool = True) -> None:
        """Asserts that the n-best list of a sentence begins with these scores and
        tokens; if it is complete, its further slots are empty.
        """
        ids, scores, log_probs = (values[sentence] for values in result)
        count = len(expected)
        assert count
        assert ids[:count].tolist() == [padded(tokens) for _, tokens in expected]
        of_tokens = [self.log_prob(sentence, tokens) for _, tokens in expected]
        np.testing.assert_allclose(log_probs[:count], of_tokens, rtol=1e-5)
        expected_scores = [score for score, _ in expected]
        np.testing.assert_allclose(scores[:count], expected_scores, rtol=1e-5)
        if complete:
            assert (scores[count:] == np.float32(NEVER)).all()
            assert (log_probs[count:] == np.float32(NEVER)).all()


def padded(tokens: tuple[int, ...], length: int = LENGTH) -> list[int]:
    return [*tokens, *[0] * (length - len(tokens))]
