"""A small run folder of tensor2tensor's, its import, and an import that is refused."""

import re
from pathlib import Path

from numpy_transformer import SMALL, small_model
from tensor2tensor_checkpoint import write_model
from tiny_run import last_of_each
from tiny_task import contents

from t2tlite.bin import t2t_import

NO_INDEX = "There is no checkpoint at "


def write_theirs(folder: Path) -> Path:
    """`folder`/theirs, a run folder of tensor2tensor's with model.ckpt-7, and
    `folder`/vocab.subwords.
    """
    write_model(folder / "theirs", small_model()[1], SMALL, (41,))
    (folder / "theirs" / "vocab.0.subwords").rename(folder / "vocab.subwords")
    return folder / "theirs"


def given(theirs: Path, *more: str) -> list[str]:
    """The flags of its import; a flag given again in `more` counts."""
    folder = theirs.parent
    return last_of_each(
        f"--t2t_checkpoint={theirs}",
        f"--t2t_vocab={folder / 'vocab.subwords'}",
        f"--output_dir={folder / 'run'}",
        *more,
    )


def refused(theirs: Path, capsys, message: str, *more: str) -> None:
    """The command fails with the message and changes nothing, below the folder of all
    files.
    """
    before = contents(theirs.parent)
    capsys.readouterr()
    assert t2t_import.main(given(theirs, *more)) == 1
    output = capsys.readouterr()
    assert output.out == ""
    assert "Traceback" not in output.err
    assert output.err.count("t2tlite: ") == 1
    assert re.search(f"t2tlite: {message}", output.err, re.DOTALL), output.err
    assert contents(theirs.parent) == before
    assert not (theirs.parent / "run").exists() or "run/manifest.json" in before
