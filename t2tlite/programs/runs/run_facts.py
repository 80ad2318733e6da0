"""What a run records about its checkpoints, for `repr` of a loaded model."""

from __future__ import annotations

import contextlib
from pathlib import Path

from t2tlite.decoding.model_facts import ModelFacts
from t2tlite.files.checkpoint_paths import step_of
from t2tlite.run_folder import RunFolder


def model_facts(folder: RunFolder, checkpoint: str) -> ModelFacts:
    """The facts about a checkpoint. Damaged evaluations are ignored here; training reports them."""
    evaluations = []
    if Path(checkpoint).parent.resolve() != folder.averaged_folder.resolve():  # an average was not evaluated
        with contextlib.suppress(ValueError):
            evaluations = folder.evaluations()
    metrics = next((found.metrics for found in evaluations if found.step == step_of(checkpoint)), {})
    return ModelFacts(str(folder), folder.flags().get("hparams_set", ""), metrics)
