"""Where t2t-import may not write, what it leaves where it cannot, and what the run that
it made is no good for.
"""

import re
import shutil

import pytest
from imported_model import imported
from numpy_transformer import SMALL, check_logits, small_model
from refused_import import given, refused
from tensor2tensor_checkpoint import write_checkpoint
from tiny_run import trainer_flags
from tiny_task import contents

import t2tlite
from t2tlite.bin import t2t_decoder, t2t_import, t2t_trainer

resource = pytest.importorskip("resource", reason="not on Windows")

NOT_NEW = r"--output_dir must be a new folder\. Received: \S*, which has a model\."


def test_tensor2tensors_own_folder(theirs, capsys):
    refused(theirs, capsys, NOT_NEW, f"--output_dir={theirs}")
    average = write_checkpoint(theirs / "average" / "model.ckpt-7", small_model()[1])
    for path in theirs.glob("model.*"):
        path.unlink()
    more = [f"--t2t_checkpoint={average}", f"--output_dir={theirs}"]
    refused(theirs, capsys, NOT_NEW, *more)


def test_a_run_is_not_changed(tiny_run, theirs, capsys):
    shutil.copytree(tiny_run.run, theirs.parent / "run")
    refused(theirs, capsys, NOT_NEW)


def test_an_import_is_not_repeated_once_it_is_complete(theirs, capsys):
    assert t2t_import.main(given(theirs)) == 0
    refused(theirs, capsys, NOT_NEW)
    for path in (theirs.parent / "run").glob("model.*"):
        path.unlink()  # as if it was interrupted before they were moved there
    assert t2t_import.main(given(theirs)) == 0


def test_a_full_disk(theirs, capsys):
    """Simulated by a limit to the size of files. With room again, the same command
    resumes.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (16_000, hard))
    try:
        status = t2t_import.main(given(theirs))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    output = capsys.readouterr()
    assert (status, output.out) == (1, "")
    message = (
        r"t2tlite: The checkpoints must fit on the disk of \S*/run\. Received: \S*; File"
        r" too large\. The same command"
    )
    assert re.search(message, output.err), output.err
    check_logits(
        t2tlite.load(imported(theirs.parent / "run", *given(theirs))).engine.model,
        small_model()[1],
        SMALL,
    )
    assert not list((theirs.parent / "run").glob("*temp*"))


def test_no_data_to_decode(theirs, capsys):
    assert t2t_import.main(given(theirs)) == 0
    run = theirs.parent / "run"
    assert t2t_decoder.main([f"--output_dir={run}", "--split=dev"]) == 1
    message = (
        f"{run}, an imported run, needs --data_dir. Make data with t2t-datagen"
        f" --vocab_file={run}/vocab.subwords."
    )
    assert message in capsys.readouterr().err


def test_no_training_in_the_same_folder(tiny_run, theirs, capsys):
    assert t2t_import.main(given(theirs)) == 0
    run = theirs.parent / "run"
    before = contents(run)
    message = (
        f"{run}, an imported run, has no optimizer. Use another --output_dir, with"
        f" --warm_start_from={run}."
    )
    flags = [flag for flag in trainer_flags(tiny_run, run) if "hparams_set" not in flag]
    for given_flags in ([f"--output_dir={run}"], [*flags, f"--warm_start_from={run}"]):
        assert t2t_trainer.main(given_flags) == 1
        assert message in capsys.readouterr().err
    assert contents(run) == before
