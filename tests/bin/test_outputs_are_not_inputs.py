"""No command writes over a file that it reads."""

import gzip
import os
import shutil
import subprocess
import sys

import pytest
from corpora import datagen_flags, write_corpora
from tiny_task import contents

from t2tlite.bin import (
    t2t_attention,
    t2t_bleu,
    t2t_datagen,
    t2t_decoder,
    t2t_evalb,
    t2t_export,
    t2t_table3,
    t2t_trainer,
)

pytestmark = pytest.mark.usefixtures("loaded_once")
PART = "out.de.part"  # removed when the output is complete
OVERWRITES = "A command must not write over a file that it uses. Received: "


@pytest.fixture
def run(tiny_run, tmp_path):
    return shutil.copytree(tiny_run.run, tmp_path / "run")


@pytest.fixture
def refused(tmp_path, monkeypatch, capsys):
    """Runs a command that must end with status 1 and change no file; returns its
    message.
    """
    monkeypatch.chdir(tmp_path)

    def call(program, *argv):
        before = contents(tmp_path)
        capsys.readouterr()
        assert program.main([str(word) for word in argv]) == 1
        assert contents(tmp_path) == before
        out, err = capsys.readouterr()
        assert out == ""
        assert err.count("\n") == 1
        return err

    return call


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("new.en", "link.en"),
        ("new.en.gz", "run/../new.en.gz"),
        (PART, "out.de"),
        ("linked.part", "out.de"),
    ],
)
def test_decoded_text(run, refused, source, target):
    flag = "decode_from_file" if source == "new.en" else "score_file"
    folder = run.parent
    text = b"red cat sees dog\trot\n"
    for name in ("new.en", PART):
        (folder / name).write_bytes(text)
    (folder / "linked.part").hardlink_to(folder / PART)
    (folder / "new.en.gz").write_bytes(gzip.compress(text))
    (folder / "link.en").symlink_to("new.en")
    files = f"--{flag}={source}", f"--decode_to_file={target}"
    message = refused(t2t_decoder, f"--output_dir={run}", *files)
    assert OVERWRITES in message
    assert f"--decode_to_file={target}" in message
    assert f"the same file as --{flag}={source}." in message


@pytest.mark.parametrize(
    "shell",
    [
        "--decode_from_file=- --decode_to_file=new.en < new.en",
        "--decode_interactive --decode_to_file=new.en < new.en",
        "--decode_from_file=new.en >> new.en",
    ],
)
def test_redirected_text(run, tmp_path, shell):
    (tmp_path / "new.en").write_text("red cat sees dog\n", encoding="utf-8")
    program = f"{sys.executable} -m t2tlite.bin.t2t_decoder --output_dir={run} {shell}"
    done = subprocess.run(
        ["sh", "-c", program], cwd=tmp_path, stderr=subprocess.PIPE, check=False
    )
    assert done.returncode == 1
    assert OVERWRITES in done.stderr.decode()
    assert (tmp_path / "new.en").read_text(encoding="utf-8") == "red cat sees dog\n"


@pytest.mark.parametrize("name", ["hparams.json", "best/best.json", "CHECKPOINT"])
def test_files_of_the_run(run, refused, name):
    (run.parent / "in.txt").write_text("red cat sees dog\n", encoding="utf-8")
    (checkpoint,) = [path.name for path in run.glob("*-120.index")]
    name = name.replace("CHECKPOINT", checkpoint)
    flags = f"--output_dir={run}", "--decode_from_file=in.txt"
    message = refused(t2t_decoder, *flags, f"--decode_to_file=run/{name}")
    assert f"the same file as {run / name}, which is the run's." in message
    page = f"--html=run/{name}"
    assert OVERWRITES in refused(t2t_attention, flags[0], "--source=cat", page)


def test_two_outputs_of_a_split(run, tmp_path, refused):
    target = run / "decodes" / "test.120.src"
    target.parent.mkdir(exist_ok=True)
    flags = f"--output_dir={run}", "--split=test", f"--decode_to_file={target}"
    assert OVERWRITES in refused(t2t_decoder, *flags)


@pytest.mark.parametrize(
    ("program", "flags"),
    [
        (t2t_bleu, ("reference", "translation")),
        (t2t_evalb, ("predicted", "gold")),
    ],
)
def test_scores_appended_to_what_is_scored(tmp_path, program, flags):
    for name in ("scored", "other"):
        (tmp_path / name).write_text("(S (A a))\n", encoding="utf-8")
    name = program.__name__
    words = f"--{flags[0]}=scored --{flags[1]}=other >> scored"
    done = subprocess.run(
        ["sh", "-c", f"{sys.executable} -m {name} {words}"],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        check=False,
    )
    assert (done.returncode, OVERWRITES in done.stderr.decode()) == (1, True)
    assert (tmp_path / "scored").read_text(encoding="utf-8") == "(S (A a))\n"


@pytest.mark.parametrize("folder", [".", "link", "run/averaged/x"])
def test_an_export_over_the_run(run, refused, folder):
    """Also if the folder holds an export, which --overwrite would replace."""
    (run / "export.json").write_text("{}", encoding="utf-8")
    (run.parent / "export.json").write_text("{}", encoding="utf-8")
    (run.parent / "link").symlink_to("run")
    flags = f"--output_dir={run}", f"--export_dir={folder}", "--format=saved_model"
    message = refused(t2t_export, *flags, "--overwrite")
    assert "export_dir must be apart from the run's own files. Received: " in message


def test_a_run_in_the_folder_of_the_data(tmp_path, refused):
    for program, name in ((t2t_trainer, "D"), (t2t_trainer, "D/grammar_ende"),
                          (t2t_table3, "D/../D")):  # fmt: skip
        flags = "--problem=grammar_ende", "--hparams_set=transformer_tiny"
        folders = "--data_dir=D", f"--output_dir={name}"
        message = refused(program, *flags, *folders, "--generate_data")
        assert "--output_dir must be apart from the data." in message


@pytest.fixture
def corpus(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_corpora(tmp_path, train=400, dev=30)
    return [*datagen_flags("train", "dev"), "--data_dir=D"]


def test_data_over_its_raw_files(corpus, refused):
    os.mkdir("D")
    os.mkdir("D/parallel_text")
    shutil.copy("train.en", "D/parallel_text/vocab.model")
    flags = [
        flag.replace("=train.en", "=D/parallel_text/vocab.model") for flag in corpus
    ]
    assert flags != corpus
    assert OVERWRITES in refused(t2t_datagen, *flags)
    # a link from the data to a raw file
    os.remove("D/parallel_text/vocab.model")
    os.symlink("../../train.en", "D/parallel_text/vocab.model")
    assert OVERWRITES in refused(t2t_datagen, *corpus)


def test_data_over_its_vocabulary(corpus, refused):
    """The source's vocabulary would become the target's, and then be copied."""
    assert t2t_datagen.main(corpus) == 0
    os.mkdir("E")
    os.mkdir("E/parallel_text")
    for side in ("source", "target"):
        path = f"E/parallel_text/vocab.{side}.model"
        shutil.copy("D/parallel_text/vocab.model", path)
    corpus.remove("--data_dir=D")
    files = [f"E/parallel_text/vocab.{side}.model" for side in ("target", "source")]
    vocabulary = f"--vocab_file={','.join(files)}"
    message = refused(t2t_datagen, *corpus, "--data_dir=E", vocabulary)
    assert f"the same file as --vocab_file={files[1]}" in message
