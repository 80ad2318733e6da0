"""Run by test_jax.py under KERAS_BACKEND=jax: computes with a model what TensorFlow is to compute likewise.

Usage: python jax_program.py MODEL.keras IDS.npz RESULTS.npz
"""

from __future__ import annotations

import functools
import sys

import jax
import keras
import numpy as np

import t2tlite.models.transformer  # noqa: F401  (Keras finds the model's class by its name)
from t2tlite.decoding.beam_search import beam_search
from t2tlite.decoding.constraints import all_of, forced_prefix, min_length, no_repeat_ngram
from t2tlite.decoding.sampling import sample
from t2tlite.layers.embedding import Embedding
from t2tlite.layers.sublayer import Dropout

BEAM_SIZE, LENGTH, ALPHA = 3, 8, 0.6
SAMPLING = {"temperature": 1.3, "keep_top_k": 8, "top_p": 0.9}
RATE = 0.3
SEEDS = [(7, 1), (7, 1), (7, 2), (-5, 2**31 - 1)]


def main(model_file: str, ids_file: str, results_file: str) -> None:
    model = keras.saving.load_model(model_file)
    ids = np.load(ids_file)
    sources, targets = jax.numpy.asarray(ids["sources"]), jax.numpy.asarray(ids["targets"])
    max_lengths = jax.numpy.full(len(sources), LENGTH, "int32")

    @jax.jit
    def logits(sources, targets, seed):
        return model(sources, targets, seed=seed)

    @jax.jit
    def search(sources, max_lengths):
        start_decoding = functools.partial(model.start_decoding, sources, BEAM_SIZE)
        return beam_search(
            model.decode_step,
            start_decoding,
            max_lengths=max_lengths,
            beam_size=BEAM_SIZE,
            length=LENGTH,
            alpha=ALPHA,
            n_best=BEAM_SIZE,
        )

    @jax.jit
    def constrained(sources, max_lengths, prefixes, uniforms):
        constrain = functools.partial(
            forced_prefix,
            prefixes,
            functools.partial(all_of, [functools.partial(no_repeat_ngram, 1), functools.partial(min_length, 3)]),
        )
        how = {"max_lengths": max_lengths, "alpha": ALPHA, "constrain": constrain}
        start_decoding = functools.partial(model.start_decoding, sources, BEAM_SIZE)
        best = beam_search(
            model.decode_step, start_decoding, beam_size=BEAM_SIZE, length=LENGTH, n_best=BEAM_SIZE, **how
        )
        return best, sample(model.decode_step, start_decoding(LENGTH), uniforms=uniforms, **SAMPLING, **how)

    embedding = Embedding(3, 4, dtype="mixed_bfloat16")

    @jax.jit
    @jax.grad
    def embedding_gradient(weight, ids):
        with keras.StatelessScope(state_mapping=[(embedding.weight, weight)]):
            return jax.numpy.sum(embedding(ids).astype("float32"))

    seeds = [jax.numpy.asarray(seed, "int32") for seed in SEEDS]
    best, drawn = constrained(sources, max_lengths, *map(jax.numpy.asarray, (ids["prefixes"], ids["uniforms"])))
    found_ids, scores, log_probs = search(sources, max_lengths)
    np.savez(
        results_file,
        backend=keras.config.backend(),
        loaded_tensorflow="tensorflow" in sys.modules,
        logits=logits(sources, targets, None),
        dropped=[logits(sources, targets, seed) for seed in seeds],
        ones=[Dropout(RATE)(jax.numpy.ones((200, 500)), seed=seed) for seed in seeds],
        embedding_gradient=embedding_gradient(embedding.weight.value, jax.numpy.full((1, 1000), 2)),
        ids=found_ids,
        scores=scores,
        log_probs=log_probs,
        constrained_ids=best.ids,
        constrained_log_probs=best.log_probs,
        sampled_ids=drawn.ids,
        sampled_log_probs=drawn.log_probs,
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
