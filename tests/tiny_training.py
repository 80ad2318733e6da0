"""A tiny model, random pairs to train it on, and parts of batches."""

from pathlib import Path

import keras
import numpy as np

from t2tlite.config import HParams
from t2tlite.data.input_pipeline import Part
from t2tlite.data.token_store import TokenStore, write_shard
from t2tlite.models.transformer import Transformer

VOCAB, GLOBAL_TOKENS = 20, 96
HPARAMS = HParams(
    hidden_size=16,
    filter_size=32,
    num_heads=2,
    num_hidden_layers=1,
    max_length=16,
    batch_size=GLOBAL_TOKENS,
    layer_prepostprocess_dropout=0.0,
    learning_rate_warmup_steps=4,
    learning_rate_constant=0.05,
)


def make_model(hparams: HParams) -> Transformer:
    """A model with the same initial weights each time."""
    keras.utils.set_random_seed(1)
    return Transformer.from_hparams(hparams, VOCAB, VOCAB)


def part_of(
    inputs: np.ndarray, targets: np.ndarray, seed: tuple[int, int] = (0, 0)
) -> Part:
    """One micro-batch of ids [B, S] and [B, T], which are already padded, with the seed
    of its dropout.
    """
    tokens = np.float32(np.count_nonzero(targets))
    return Part(inputs[None], targets[None], tokens, np.array([seed], np.int32))


def random_store(folder: Path) -> TokenStore:
    """50 pairs of 2 to 12 tokens a side, EOS included."""
    random = np.random.default_rng(5)
    sources, targets = (
        [random.integers(2, VOCAB, random.integers(1, 12)).tolist() for _ in range(50)]
        for _ in "st"
    )
    write_shard(folder / "train.arrow", sources, targets, VOCAB)
    return TokenStore([folder / "train.arrow"])
