"""The Keras model of a run, with the weights of a checkpoint."""

from __future__ import annotations

from t2tlite.decoding.tensorflow_engine import TensorFlowEngine
from t2tlite.models.transformer import Transformer, build_transformer
from t2tlite.run_folder import RunFolder
from t2tlite.training.checkpoints import check_size, restore_weights
from t2tlite.training.cost import count_parameters


def restored_model(folder: RunFolder, checkpoint: str) -> Transformer:
    """A run's model with the weights of a checkpoint; ValueError if that is damaged or
    of another model.
    """
    model = built_model(folder, checkpoint)
    restore_weights(model, checkpoint)
    return model


def open_keras(
    folder: RunFolder, checkpoint: str, jit_compile: bool
) -> TensorFlowEngine:
    """The engine that decodes with the Keras model. Raises as `restored_model`."""
    return TensorFlowEngine(restored_model(folder, checkpoint), jit_compile)


def built_model(folder: RunFolder, checkpoint: str) -> Transformer:
    """The model to restore a checkpoint into; ValueError if the checkpoint cannot have
    its weights.
    """
    hparams, sizes = (
        folder.hparams(),
        [encoder.vocab_size for encoder in folder.encoders()],
    )
    check_size(checkpoint, count_parameters(hparams, sizes))
    return build_transformer(hparams, *sizes)
