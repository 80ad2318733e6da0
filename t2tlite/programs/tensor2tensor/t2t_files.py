"""The files of a model that tensor2tensor trained."""

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
HPARAMS = "hparams.json"
FLAGS = "flags_t2t.txt"


@dataclasses.dataclass(frozen=True)
class T2TFiles:
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
        for path in (self.hparams_path(), *self.vocabularies):
            check_file(path)

    def checkpoints(self) -> list[str]:
        """The checkpoints of the folder, or the named one, oldest first."""
        path = self.checkpoint.absolute()
        checkpoints = list_checkpoints(path) if path.is_dir() else []
        prefix = re.sub(r"\.(index|meta|data-\d+-of-\d+)$", "", str(path))
        if Path(f"{prefix}.index").is_file():
            checkpoints = [prefix]
        if not checkpoints:
            raise FileNotFoundError(
                "--t2t_checkpoint must be a folder with checkpoints model.ckpt-N, or"
                f" one of these. Received: {path}, which has no .index file."
            )
        return checkpoints

    def trained_in(self) -> Path:
        """The folder of the checkpoints."""
        return Path(self.checkpoints()[0]).parent

    def hparams_path(self) -> Path:
        """The model's hparams.json."""
        folder = self.trained_in()
        path = self.hparams_file or _find(HPARAMS, folder)
        if path is None:
            raise FileNotFoundError(
                f"The model's hparams.json is required. Received: none in {folder} nor"
                " above it. Name it with --t2t_hparams."
            )
        return path

    def recorded_problem(self) -> str:
        """The problem that tensor2tensor's trainer recorded beside the checkpoints or
        hparams.json; otherwise "imported".
        """
        path = _find(FLAGS, self.trained_in(), self.hparams_path().parent)
        if path is None:
            return "imported"
        text = path.read_text(encoding="utf-8", errors="replace")
        match = re.search(r"^\s*--problem=(.*?)\s*$", text, re.MULTILINE)
        return match[1] if match else "imported"


def _find(name: str, *folders: Path) -> Path | None:
    """A file in one of the folders or, since averages have their own folders, in the
    one above.
    """
    for folder in folders:
        for path in (folder / name, folder.parent / name):
            if path.is_file():
                return path
    return None
