"""What the tests of t2t-import share: the commands called, their files read, token
losses from logits.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy_softmax import log_softmax
from tensor2tensor_checkpoint import variables_of, write_checkpoint
from tiny_run import last_of_each

from t2tlite.bin import t2t_decoder, t2t_import
from t2tlite.programs.runs.translator import Translator
from t2tlite.tasks.task import Output

WSJ_VOCABULARY = "vocab.wsj_parsing.32768.subwords"


def imported(folder: Path, *flags: str) -> Path:
    """A run directory made by t2t-import."""
    assert t2t_import.main(last_of_each(*flags, f"--output_dir={folder}")) == 0
    return folder


def imported_parser(fixtures: Path, folder: Path) -> Path:
    """The run of a parser that tensor2tensor trained, of which the fixture has weights
    rather than a checkpoint.
    """
    trained = fixtures / "tensor2tensor" / "trained_wsj"
    path = write_checkpoint(
        folder / "model.ckpt-320", variables_of(np.load(trained / "model.npz"))
    )
    flags = [
        f"--t2t_checkpoint={path}",
        f"--t2t_vocab={trained / WSJ_VOCABULARY}",
        "--problem=wsj_parsing",
    ]
    return imported(folder / "run", *flags, f"--t2t_hparams={trained / 'hparams.json'}")


def decoded(run: Path, out: Path, *flags: str) -> list[str]:
    """The lines that t2t-decoder writes."""
    assert (
        t2t_decoder.main([f"--output_dir={run}", f"--decode_to_file={out}", *flags])
        == 0
    )
    return out.read_text(encoding="utf-8").split("\n")[:-1]


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").split("\n")[:-1]


def check_hypotheses(
    model: Translator, actual: list[list[Output]], data: Mapping[str, Any], mode: str
) -> None:
    """Texts and scores of n-best lists are those that tensor2tensor decoded with the
    same model, as a fixture has.
    """
    scores = data[f"decode/{mode}/scores"].reshape(len(actual), -1)
    outputs = data[f"decode/{mode}/outputs"].reshape(*scores.shape, -1)
    for hypotheses, ids, expected in zip(actual, outputs, scores, strict=True):
        assert [h.text for h in hypotheses] == [
            model.target_encoder.decode(row.tolist()) for row in ids
        ]
        np.testing.assert_allclose([h.score for h in hypotheses], expected, atol=1e-4)


def token_losses(
    logits: np.ndarray, targets: np.ndarray, smoothing: float = 0.0
) -> np.ndarray:
    """Cross-entropy of each target token as tensor2tensor computes it, [B, T]; 0 at
    padding.

    With smoothing every other token has the probability smoothing / (V - 1), and the
    entropy of that is taken off.
    """
    log_probs = log_softmax(logits)
    right = np.take_along_axis(log_probs, targets[..., None].astype(int), axis=-1)[
        ..., 0
    ]
    size = logits.shape[-1]
    low = smoothing / (size - 1)
    entropy = -(
        (1 - smoothing) * np.log(1 - smoothing)
        + (smoothing * np.log(low) if smoothing else 0.0)
    )
    return (-(1 - smoothing) * right - low * (log_probs.sum(-1) - right) - entropy) * (
        targets != 0
    )
