"""What is known about a trained model besides its weights and its problem, in one readable line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class ModelFacts(NamedTuple):
    """Where a model comes from and how good it was."""

    run: str = ""  # the run directory
    hparams_set: str = ""  # "" if it is not recorded
    metrics: Mapping[str, float] = {}  # on dev, of the checkpoint's step; empty if they are not recorded

    def sentence(self, problem: str, parameters: int, step: int) -> str:
        """All facts on one line; unknown ones are left out."""
        metrics = ", ".join(f"{name} {value:.4g}" for name, value in self.metrics.items())
        parts = [
            f"problem {problem}",
            self.hparams_set and f"hparams set {self.hparams_set}",
            f"{parameters:,} parameters",
            f"step {step:,}" + (f" (dev: {metrics})" if metrics else ""),
            self.run and f"run {self.run}",
        ]
        return ", ".join(filter(None, parts))


NO_FACTS = ModelFacts()
