"""Where t2t-import may not write, what it leaves where it cannot, and what the run that
it made is no good for.
"""

from __future__ import annotations

import json
import re
import shutil

import pytest
from imported_model import imported
from numpy_transformer import POST_NORM, SMALL, check_logits, small_model
from refused_import import given, refused
from tensor2tensor_checkpoint import write_checkpoint
from tiny_run import train, trainer_flags
from tiny_task import contents

import t2tlite
from t2tlite.bin import t2t_decoder, t2t_import, t2t_trainer

resource = pytest.importorskip("resource", reason="not on Windows")

ANOTHER = r"--output_dir must be new, or hold .* Received: \S*, which holds "


def test_tensor2tensors_own_folder(theirs, capsys):
    refused(
        theirs,
        capsys,
        ANOTHER + r"files of another program\.",
        f"--output_dir={theirs}",
    )
    average = write_checkpoint(theirs / "average" / "model.ckpt-7", small_model()[1])
    for path in theirs.glob("model.*"):
        path.unlink()
    more = [f"--t2t_checkpoint={average}", f"--output_dir={theirs}"]
    refused(theirs, capsys, ANOTHER + r"files of another program\.", *more)


def test_a_run_that_was_trained(tiny_run, theirs, capsys):
    shutil.copytree(tiny_run.run, theirs.parent / "run")
    refused(
        theirs,
        capsys,
        ANOTHER + r"a run that was not imported\.",
    )


def test_an_imported_run_of_another_model(theirs, capsys):
    """Which the shapes of variables need not show."""
    assert t2t_import.main(given(theirs)) == 0
    for changes, names in (
        ({"num_heads": 4}, r"num_heads \("),
        ({"pos": "none", **POST_NORM}, r"pos \(.*layer_pre"),
    ):
        (theirs / "hparams.json").write_text(json.dumps(SMALL | changes))
        refused(theirs, capsys, ANOTHER + f"another model, which differs in {names}")
    (theirs / "hparams.json").write_text(json.dumps(SMALL))
    refused(
        theirs,
        capsys,
        ANOTHER + r"another model, which differs in target_space \(",
        "--target_space_id=1",
    )
    vocabulary = theirs.parent / "vocab.subwords"
    vocabulary.write_text(vocabulary.read_text().replace("'word3_'", "'other_'"))
    refused(theirs, capsys, ANOTHER + r"another model, which differs in vocabulary \(")


def test_other_weights_of_the_same_step(theirs, capsys):
    assert t2t_import.main(given(theirs)) == 0
    other = {name: value + 1 for name, value in small_model()[1].items()}
    write_checkpoint(theirs / "model.ckpt-6", other)
    write_checkpoint(theirs / "model.ckpt-7", other)
    message = (
        r"A run has one checkpoint of a step\. Received: \S*/run/model\.ckpt-7 with"
        r" other weights\."
    )
    refused(theirs, capsys, message)


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
        r"t2tlite: model\.ckpt-7 must fit on the disk of \S*/run\. Received: \S*; File"
        r" too large\. Free some space; the same command"
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
        f"The run in {run} was imported and has no data. Make some with its vocabulary,"
        " t2t-datagen --vocab_file="
    )
    assert (
        f"{message}{run}/vocab.subwords, and give --data_dir."
        in capsys.readouterr().err
    )


def test_no_training_in_the_same_folder(tiny_run, theirs, capsys):
    assert t2t_import.main(given(theirs)) == 0
    run = theirs.parent / "run"
    before = contents(run)
    message = (
        f"Received: {run}, imported without one. Use another --output_dir with"
        f" --warm_start_from={run}."
    )
    assert train(tiny_run, run) == 1
    assert message in capsys.readouterr().err
    flags = [flag for flag in trainer_flags(tiny_run, run) if "hparams_set" not in flag]
    assert t2t_trainer.main([*flags, f"--warm_start_from={run}"]) == 1
    assert message in capsys.readouterr().err
    assert contents(run) == before
