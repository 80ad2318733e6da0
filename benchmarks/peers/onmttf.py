"""OpenNMT-tf's Transformer in the size of a job."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import opennmt
from program import CORES, Job

NAME = f"OpenNMT-tf {opennmt.__version__}"


def make_model(
    job: Job, pre_norm: bool = False, **params: Any
) -> opennmt.models.Transformer:
    """A model with random weights; `params` are those of OpenNMT-tf's configuration."""
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(CORES)
    model = opennmt.models.Transformer(
        num_layers=job.num_layers,
        num_units=job.hidden_size,
        num_heads=job.num_heads,
        ffn_inner_dim=job.filter_size,
        share_embeddings=opennmt.models.EmbeddingsSharingLevel.ALL,
        pre_norm=pre_norm,
    )
    # and one for the unknown
    tokens = [
        "<blank>",
        "<s>",
        "</s>",
        *(f"token{i}" for i in range(3, job.vocab_size - 1)),
    ]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "vocabulary")
        path.write_text("".join(f"{token}\n" for token in tokens))
        model.initialize(
            {"source_vocabulary": str(path), "target_vocabulary": str(path)},
            params=params,
        )
    return model
