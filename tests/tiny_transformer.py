"""A tiny Transformer far from where training starts, and ids for it, for tests of the
model and its files.
"""

import keras
import numpy as np

from t2tlite.config import HParams
from t2tlite.models.transformer import Transformer

# B batch, S source length, T target length

SIZE = "hidden_size=16,filter_size=24,num_heads=2,max_length=32"
PRE_NORM = "layer_preprocess_sequence=n,layer_postprocess_sequence=da"
PRE_NORM_AND_EMB = f"pos=emb,use_target_space_embedding=true,{PRE_NORM}"
UNSHARED = "shared_embedding_and_softmax_weights=false"
VOCAB, OTHER_SOURCE_VOCAB = 11, 13
# [B, S]
SOURCES = np.array(
    [[5, 9, 3, 7, 1, 0], [8, 1, 0, 0, 0, 0], [4, 4, 10, 6, 2, 1]], np.int32
)
# [B, T]
TARGETS = np.array(
    [[6, 2, 9, 1, 0, 0, 0], [3, 8, 5, 10, 7, 2, 1], [9, 4, 4, 4, 1, 0, 0]], np.int32
)


def make_transformer(changes: str, layers: int = 1) -> Transformer:
    """A model in which no weight is at its initial zero or one."""
    hparams = HParams().override(f"{SIZE},num_hidden_layers={layers},{changes}")
    source_vocab = (
        VOCAB if hparams.shared_embedding_and_softmax_weights else OTHER_SOURCE_VOCAB
    )
    keras.utils.set_random_seed(1)
    model = Transformer.from_hparams(hparams, source_vocab, VOCAB)
    random = np.random.default_rng(1)
    for variable in model.weights:
        variable.assign_add(0.2 * random.normal(size=variable.shape).astype(np.float32))
    return model
