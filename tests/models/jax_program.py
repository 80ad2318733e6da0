"""What test_jax.py computes with TensorFlow; run under KERAS_BACKEND=jax, the same and
more with JAX.

Usage: python jax_program.py MODEL.keras IDS.npz RESULTS.npz
"""

from __future__ import annotations

import sys
from functools import partial
from typing import Any

import keras
import numpy as np

from t2tlite.decoding.beam_search import beam_search
from t2tlite.decoding.constraints import conjunction
from t2tlite.decoding.sampling import sample
from t2tlite.decoding.slots import BeamResult
from t2tlite.layers.embedding import Embedding
from t2tlite.models.transformer import Transformer

BEAM_SIZE, LENGTH, ALPHA = 3, 8, 0.6
SAMPLING = {"temperature": 1.3, "keep_top_k": 8}
PREFIXES = np.array([[7, 7, 0, 0, 0, 0, 0, 0], [0] * 8, [3] + [0] * 7], np.int32)
MAX_LENGTHS = np.full(len(PREFIXES), LENGTH, np.int32)
UNIFORMS = np.random.default_rng(4).random((3, BEAM_SIZE, LENGTH)).astype(np.float32)
SEEDS = [(7, 1), (7, 1), (7, 2), (-5, 2**31 - 1)]


def search(
    model: Transformer, sources: Any, max_lengths: Any, constrain: Any = None
) -> BeamResult:
    """A beam search for sources [B, S], of results with these maximum lengths, [B]."""
    return beam_search(
        model.decode_step,
        partial(model.start_decoding, sources, BEAM_SIZE),
        max_lengths=max_lengths,
        beam_size=BEAM_SIZE,
        length=LENGTH,
        alpha=ALPHA,
        n_best=BEAM_SIZE,
        constrain=constrain,
    )


def constrained(
    model: Transformer, sources: Any, max_lengths: Any, prefixes: Any, uniforms: Any
) -> tuple[BeamResult, BeamResult]:
    """A beam search and samples with prefixes [B, L] and other constraints; uniforms
    are [B, M, L].
    """
    constrain = conjunction(3, 1, prefixes)
    samples = sample(
        model.decode_step,
        model.start_decoding(sources, BEAM_SIZE, LENGTH),
        max_lengths=max_lengths,
        uniforms=uniforms,
        alpha=ALPHA,
        constrain=constrain,
        **SAMPLING,
    )
    return search(model, sources, max_lengths, constrain), samples


def main(model_file: str, ids_file: str, results_file: str) -> None:
    import jax  # which TensorFlow's tests need not have

    model = keras.saving.load_model(model_file)
    names = "sources", "targets", "prefixes", "uniforms"
    with np.load(ids_file) as ids:
        sources, targets, prefixes, uniforms = (
            jax.numpy.asarray(ids[name]) for name in names
        )
    max_lengths = jax.numpy.full(len(sources), LENGTH, "int32")
    seeds = [jax.numpy.asarray(seed, "int32") for seed in SEEDS]
    embedding = Embedding(3, 4, dtype="mixed_bfloat16")

    @jax.jit
    def logits(sources, targets, seed):
        return model(sources, targets, seed=seed)

    @jax.jit
    @jax.grad
    def embedding_gradient(weight, ids):
        with keras.StatelessScope(state_mapping=[(embedding.weight, weight)]):
            return jax.numpy.sum(embedding(ids).astype("float32"))

    best = jax.jit(partial(search, model))(sources, max_lengths)
    compiled = jax.jit(partial(constrained, model))
    constrained_best, samples = compiled(sources, max_lengths, prefixes, uniforms)
    np.savez(
        results_file,
        backend=keras.config.backend(),
        loaded_tensorflow="tensorflow" in sys.modules,
        logits=logits(sources, targets, None),
        dropped=[logits(sources, targets, seed) for seed in seeds],
        embedding_gradient=embedding_gradient(
            embedding.weight.value, jax.numpy.full((1, 1000), 2)
        ),
        ids=best.ids,
        scores=best.scores,
        log_probs=best.log_probs,
        constrained_ids=constrained_best.ids,
        constrained_log_probs=constrained_best.log_probs,
        sampled_ids=samples.ids,
        sampled_log_probs=samples.log_probs,
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
