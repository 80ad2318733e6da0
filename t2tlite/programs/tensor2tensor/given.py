"""The files of tensor2tensor that are to be imported."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from pathlib import Path

from t2tlite.files.checkpoint_paths import list_checkpoints
from t2tlite.files.text_files import check_file

# in a run
VOCABULARY_NAMES = {
    1: ["vocab.subwords"],
    2: ["vocab.source.subwords", "vocab.target.subwords"],
}


@dataclasses.dataclass(frozen=True)
class Given:
    """What is to be imported; ValueError for a number of vocabularies that no model
    has.
    """

    checkpoint: Path  # model.ckpt-N, or a folder, all of whose checkpoints are imported
    vocabularies: Sequence[Path]  # the .subwords file, or the source's and the target's
    # by default hparams.json in the checkpoint's folder or the folder above
    hparams_file: Path | None = None
    # the row of the target space embedding; by default the one trained, or 0
    target_space: int | None = None
    # by default the one in flags_t2t.txt; the model of wsj_parsing is a parser
    problem: str | None = None

    def __post_init__(self) -> None:
        count = len(self.vocabularies)
        if count not in VOCABULARY_NAMES:
            raise ValueError(
                "--t2t_vocab must be one file, or source's and target's. Received:"
                f" {count} files."
            )

    def check(self) -> None:
        """Raises FileNotFoundError if a file is missing."""
        self.checkpoints()
        self.hparams_path()
        for path in self.vocabularies:
            check_file(path)

    def checkpoints(self) -> list[str]:
        """The checkpoints of the folder, or the named one, oldest first."""
        return _checkpoints(self.checkpoint.absolute())

    def hparams_path(self) -> Path:
        """The model's hparams.json."""
        trained_in = Path(self.checkpoints()[0]).parent
        path = self.hparams_file or beside("hparams.json", trained_in)
        if path is None:
            raise FileNotFoundError(
                f"The model's hparams.json is required. Received: none in {trained_in}"
                " nor above it. Name it with --t2t_hparams: t2t-trainer wrote it into"
                " its --output_dir."
            )
        return path


def _checkpoints(given: Path) -> list[str]:
    """The checkpoints of a folder, or the named one, oldest first."""
    prefix = re.sub(r"\.(index|meta|data-\d+-of-\d+)$", "", str(given))
    if Path(f"{prefix}.index").is_file() and not given.is_dir():
        return [prefix]
    beside = list_checkpoints(given if given.is_dir() else given.parent)
    if given.is_dir() and beside:
        return beside
    problem = (
        ", which has no model.ckpt-N.index."
        if given.is_dir()
        else f"; there is no {prefix}.index."
    )
    if beside:
        problem += f" Its folder has {', '.join(Path(path).name for path in beside)}."
    raise FileNotFoundError(
        "--t2t_checkpoint must be a folder with checkpoints model.ckpt-N, or one of"
        f" these. Received: {given}{problem}"
    )


def beside(name: str, *folders: Path) -> Path | None:
    """A file in the folder of a checkpoint or, since averages have their own folders,
    in the one above.
    """
    paths = (where / name for folder in folders for where in (folder, folder.parent))
    return next(filter(Path.is_file, paths), None)
