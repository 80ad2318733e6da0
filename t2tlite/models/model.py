"""The base class of the models."""

import dataclasses
import random
from typing import Self

import keras
import numpy as np

from t2tlite.config import HParams
from t2tlite.types import Config


class Model(keras.Model):
    """A model that training, decoding and checkpoints use: a subclass has the methods
    of `t2tlite.types.Seq2SeqModel`, and makes its weights when it is built.

    Args:
        hparams: sizes and variants of the model.
        source_vocab_size: tokens of the source vocabulary, PAD and EOS included.
        target_vocab_size: tokens of the target vocabulary.
    """

    def __init__(
        self,
        hparams: HParams,
        source_vocab_size: int,
        target_vocab_size: int,
    ) -> None:
        super().__init__(name=hparams.model, dtype=hparams.dtype_policy, autocast=False)
        self.hparams = hparams
        self.source_vocab_size = source_vocab_size
        self.target_vocab_size = target_vocab_size

    @classmethod
    def from_hparams(
        cls,
        hparams: HParams,
        source_vocab_size: int,
        target_vocab_size: int,
        seed: int = 0,
    ) -> Self:
        """Makes a model and its weights, which `seed` determines.

        Keras's initializers draw their seeds with the module `random`, and dropout
        draws one with NumPy. Their states are left as they were: they may be the
        caller's.
        """
        state = random.getstate()
        numpy_state = np.random.get_state()
        random.seed(seed)
        try:
            model = cls(hparams, source_vocab_size, target_vocab_size)
            model.build()
        finally:
            random.setstate(state)
            np.random.set_state(numpy_state)
        return model

    @property
    def max_positions(self) -> int | None:
        """`HParams.max_positions`."""
        return self.hparams.max_positions

    def get_config(self) -> Config:
        return {
            "hparams": dataclasses.asdict(self.hparams),
            "source_vocab_size": self.source_vocab_size,
            "target_vocab_size": self.target_vocab_size,
        }

    @classmethod
    def from_config(cls, config: Config) -> Self:
        """The model of a config, with weights, so that their values can be loaded."""
        return cls.from_hparams(**{**config, "hparams": HParams(**config["hparams"])})
