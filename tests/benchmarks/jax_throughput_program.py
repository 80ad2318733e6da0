"""Run by test_jax_throughput.py: benchmarks/jax_throughput.py where TensorFlow cannot
be imported.

Usage: python jax_throughput_program.py LOGITS.npz LOSS.npz ARGUMENTS..., the
benchmark's own arguments last.
"""

from __future__ import annotations

import importlib.abc
import runpy
import sys
from pathlib import Path

import numpy as np

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "jax_throughput.py"


class NoTensorFlow(importlib.abc.MetaPathFinder):
    """Raises at each import of TensorFlow or of what needs it."""

    def find_spec(self, fullname, path=None, target=None):
        if fullname.split(".")[0].startswith("tensorflow"):
            raise ModuleNotFoundError(
                f"No module named {fullname!r}: this test does without it."
            )


def main(logits_file: str, loss_file: str, *arguments: str) -> None:
    sys.meta_path.insert(0, NoTensorFlow())
    benchmark = runpy.run_path(str(SCRIPT))
    import jax

    given = np.load(logits_file)
    loss, gradient = jax.value_and_grad(benchmark["smoothed_cross_entropy"])(
        given["logits"], given["targets"], 0.1
    )
    np.savez(loss_file, loss=loss, gradient=gradient)
    sys.argv = [str(SCRIPT), *arguments]
    benchmark["main"]()


if __name__ == "__main__":
    main(*sys.argv[1:])
