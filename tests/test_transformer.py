"""The Transformer agrees with itself: what it may see, and step-by-step decoding with the full forward pass."""

from __future__ import annotations

import keras
import numpy as np
import pytest

from t2tlite.config import HParams
from t2tlite.models.transformer import build_transformer

# B batch, T target length, V vocabulary, M hypotheses of a sentence, L positions

SIZE = "hidden_size=16,filter_size=24,num_heads=2,num_hidden_layers=2,max_length=32,layer_prepostprocess_dropout=0"
PRE_NORM = "layer_preprocess_sequence=n,layer_postprocess_sequence=da"
VARIANTS = {
    "paper": "",
    "pre_norm": PRE_NORM,
    "narrow_keys": "attention_key_channels=6,attention_value_channels=20",
    "learned_positions": f"pos=emb,{PRE_NORM},use_target_space_embedding=true",
    "halves": "pos=timing_halves,num_encoder_layers=1,num_decoder_layers=3",
    "unshared": "shared_embedding_and_softmax_weights=false,pos=none,attention_value_channels=8",
}
SOURCE_VOCAB, TARGET_VOCAB = 13, 11


def make(changes: str, seed: int = 1):
    """A tiny model in which no weight is at its initial zero or one."""
    hparams = HParams().override(SIZE)
    for part in filter(None, changes.split(",")):
        hparams = (
            hparams.override(PRE_NORM) if part in PRE_NORM and not hparams.pre_norm else hparams
        )  # both fields at once
        hparams = hparams if part in PRE_NORM else hparams.override(part)
    shared = hparams.shared_embedding_and_softmax_weights
    keras.utils.set_random_seed(seed)
    model = build_transformer(hparams, TARGET_VOCAB if shared else SOURCE_VOCAB, TARGET_VOCAB)
    random = np.random.default_rng(seed)
    for variable in model.variables:
        variable.assign_add(0.3 * random.normal(size=variable.shape).astype(np.float32))
    return model
