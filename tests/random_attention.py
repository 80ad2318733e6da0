"""Attention of made-up sentences with random weights, for tests of pages."""

import numpy as np

from t2tlite.programs.visualise import Attention

# What a sentence may hold that a page could take for something else.
AWKWARD = ["▁\"it's", "<", "&amp;", "</", "script", ">", "<!--", "▁$x$", "_^{", "\\", "▁", "▁שלום", "▁مرحبا", "猫",
           "\u202e", "\x07", "<0xE3>", "{{ data }}", "</s>"]  # fmt: skip


def attention_of(
    source: list[str], target: list[str], layers: int = 3, heads: int = 4
) -> Attention:
    """Random weights of one decoder layer fewer than encoder layers."""
    random = np.random.default_rng(3)

    def weights(
        count: int, queries: list[str], keys: list[str], causal: bool = False
    ) -> list[np.ndarray]:
        scores = np.exp(3 * random.normal(size=(count, heads, len(queries), len(keys))))
        scores = np.tril(scores) if causal else scores
        return list((scores / scores.sum(-1, keepdims=True)).astype(np.float32))

    stacks = weights(layers, source, source), weights(layers - 1, target, target, True)
    texts = (
        "".join(pieces[:-1]).replace("▁", " ").strip() for pieces in (source, target)
    )
    return Attention(
        source, target, *stacks, weights(layers - 1, target, source), *texts
    )
