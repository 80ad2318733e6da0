"""Every file of runs and data, damaged, and each command that reads it."""

import contextlib
import dataclasses
import importlib
import io
import itertools
import shutil
from pathlib import Path

import pytest
from fuzzing import COSTLY, LINES, damaged_bytes, damaged_json, run_command, survives
from hypothesis import given
from hypothesis import strategies as st
from refused_import import write_theirs

from t2tlite.bin import t2t_decoder
from t2tlite.bin.command import Command
from t2tlite.data import encode_shards
from t2tlite.programs.bulk import decode_file, decode_split
from t2tlite.programs.runs import train
from t2tlite.programs.runs.translator import Translator
from t2tlite.run_folder import RunFolder

# In the folder of a case are run/, data/, unfinished/ (data), sweep/ (of t2t-table3) and
# theirs/ (tensor2tensor's run). PACKAGE stands for the user's package, NEW for the flags
# of data that is made, + for a space.
NEW = "--problem=twenty_words --t2t_usr_dir=PACKAGE"
# name, command, flags
COMMANDS = """
report t2t_report --output_dir=run --t2t_usr_dir=PACKAGE
decode t2t_decoder --output_dir=run --decode_from_file=in.txt --decode_to_file=out.txt
resumed_decode t2t_decoder --output_dir=run --decode_from_file=lines.txt --decode_to_file=resumed.txt
split t2t_decoder --output_dir=run --split=test --data_dir=data
resumed_split t2t_decoder --output_dir=run --split=test --data_dir=data --decode_to_file=split.txt
score t2t_decoder --output_dir=run --score_file=pairs.tsv --decode_to_file=out.txt
attention t2t_attention --output_dir=run --source=red+cat --html=out.html
average t2t_avg_checkpoints --output_dir=run --n=1
train t2t_trainer NEW --data_dir=data --hparams_set=twenty_words_tiny --output_dir=run
warm_start t2t_trainer NEW --data_dir=data --warm_start_from=run --output_dir=run2 --train_steps=1
datagen t2t_datagen NEW --data_dir=data --num_processes=1
resumed_datagen t2t_datagen NEW --data_dir=unfinished --num_processes=1 --train_size=40
table3 t2t_table3 NEW --data_dir=data --hparams_set=twenty_words_tiny --output_dir=sweep --rows=base
import t2t_import --t2t_checkpoint=theirs --t2t_vocab=vocab.subwords --output_dir=imported
"""
FLAGS = {}
for line in COMMANDS.strip().splitlines():
    name, module, flags = line.split(" ", 2)
    main = importlib.import_module(f"t2tlite.bin.{module}").main
    FLAGS[name] = main, flags.replace("NEW", NEW)


def table(text: str) -> dict[str, list[str]]:
    """File, or a pattern that one matches -> the commands that read it."""
    rows = [line.split() for line in text.strip().splitlines()]
    return {file: commands for file, *commands in rows}


# A new kind of record is a new line here.
JSON_FILES = table("""
run/hparams.json report decode average attention train warm_start
run/manifest.json report decode split average attention score train warm_start
run/environment.json report
run/training.json train
run/evaluations.json report train
run/cost.json report train
run/best/best.json report train
run/decodes/test.120.json report
data/twenty_words/manifest.json split report train datagen table3
unfinished/twenty_words/unfinished.json resumed_datagen
sweep/base/decodes/dev.120.json table3
sweep/base/evaluations.json table3
sweep/base/cost.json table3
sweep/base/training.json table3
sweep/base/hparams.json table3
sweep/base/manifest.json table3
theirs/hparams.json import
""")
OTHER_FILES = table("""
resumed.txt.part resumed_decode
split.txt.part resumed_split
run/flags.txt report
run/decodes/test.120.txt report
run/model.ckpt-120.index report decode train
run/model.ckpt-120.data-00000-of-00001 decode
run/vocab.model decode train
data/twenty_words/test-00000.arrow split report
theirs/model.ckpt-7.index import
vocab.subwords import
""")
# shows what it can, and says what is damaged
ALWAYS_SUCCEED = ("report",)
QUICK = {
    ("resumed.txt.part", "resumed_decode"),
    ("run/manifest.json", "report"),
    ("run/decodes/test.120.json", "report"),
    ("sweep/base/decodes/dev.120.json", "table3"),
}


def cases(files: dict[str, list[str]]) -> list:
    """(file, command) for each; `make test` leaves most of them out, since the commands
    take long.
    """
    parameters = []
    for file, commands in files.items():
        for command in commands:
            marks = () if (file, command) in QUICK else pytest.mark.slow
            case = pytest.param(file, command, marks=marks, id=f"{command}-{file}")
            parameters.append(case)
    return parameters


@pytest.fixture(scope="module", autouse=True)
def several_windows():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decode_file, "FILE_WINDOW", 2)
        patch.setattr(decode_split, "SPLIT_WINDOW", 30)
        yield


@pytest.fixture(scope="module")
def template(tiny_run, tmp_path_factory):
    """A folder of everything that the commands above read, whole."""
    folder = tmp_path_factory.mktemp("template")
    shutil.copytree(
        tiny_run.run,
        folder / "run",
        ignore=shutil.ignore_patterns("events.*", "model.ckpt-?0.*", "best", "decodes"),
    )
    (folder / "run" / "best").mkdir()
    shutil.copy(tiny_run.run / "best" / "best.json", folder / "run" / "best")
    shutil.copytree(tiny_run.data, folder / "data")
    (folder / "in.txt").write_text("red cat sees dog\n")
    (folder / "pairs.tsv").write_text("red cat\tkatze rot\n")
    write_theirs(folder)
    assert (
        quietly(t2t_decoder.main, [f"--output_dir={folder / 'run'}", "--split=test"])
        == 0
    )
    write_row(folder)
    interrupt_datagen(tiny_run, folder)
    (folder / "lines.txt").write_text("red cat sees dog\n\nfish likes mouse\n")
    interrupt_decoder(folder, "resumed_decode")
    interrupt_decoder(folder, "resumed_split")
    return folder


def write_row(folder: Path) -> None:
    """`folder`/sweep/base: the records of the run, as a finished row of Table 3."""
    row = RunFolder(folder / "sweep" / "base")
    row.path.mkdir(parents=True)
    for name in ("hparams", "manifest", "evaluations", "cost", "training"):
        shutil.copy(folder / "run" / f"{name}.json", row.path)
    hparams = "hparams_set=twenty_words_tiny"
    flags = "problem=twenty_words", hparams, "random_seed=1"
    row.write_flags(["t2t-trainer", *[f"--{flag}" for flag in flags]])
    decoded = next(iter(RunFolder(folder / "run").decode_records()[0]))
    record = dataclasses.replace(decoded, split="dev", name="dev.120")
    row.write_decode_record(record)


def interrupt_datagen(tiny_run, folder: Path) -> None:
    """`folder`/unfinished: data whose making was interrupted."""

    def stop(*_: object) -> None:
        raise OSError("stopped")

    main, text = FLAGS["resumed_datagen"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encode_shards, "encode_here", stop)
        patch.chdir(folder)
        assert (
            quietly(main, text.replace("PACKAGE", str(tiny_run.package)).split()) == 1
        )


def interrupt_decoder(folder: Path, command: str) -> None:
    """`folder`/*.part: the output of the first window."""
    decode, windows = Translator.decode, itertools.count()

    def stop(self: Translator, *arguments: object) -> list:
        if next(windows):
            raise OSError("stopped")
        return decode(self, *arguments)

    main, text = FLAGS[command]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Translator, "decode", stop)
        patch.chdir(folder)
        assert quietly(main, text.split()) == 1


def path_of(folder: Path, file: str) -> Path:
    """The only file that matches a key of JSON_FILES or OTHER_FILES."""
    (path,) = folder.glob(file)
    return path


def refuse_to_train(*_: object) -> None:
    RunFolder("none").hparams()  # raises, as a command would


def quietly(main: Command, argv: list[str]) -> int:
    with (
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
    ):
        return main(argv)


@pytest.fixture
def case(tiny_run, template, tmp_path):
    """case(file, content, command): the command in a copy of the template in which the
    file has that content.
    """
    folders = itertools.count()

    def run(file: str, content: bytes, command: str) -> bool:
        folder = Path(shutil.copytree(template, tmp_path / str(next(folders))))
        path_of(folder, file).write_bytes(content)
        main, text = FLAGS[command]
        text = text.replace("PACKAGE", str(tiny_run.package))
        words = [word.replace("+", " ") for word in text.split()]
        with (
            pytest.MonkeyPatch.context() as patch,
            contextlib.redirect_stdout(io.StringIO()) as out,
        ):
            patch.chdir(folder)
            # a row whose records are wrong would be trained again, for too long
            if command == "table3":
                patch.setattr(train, "train_run", refuse_to_train)
            with contextlib.redirect_stderr(out):
                succeeded = run_command(main, *words)
        shutil.rmtree(folder)
        return succeeded

    return run


@pytest.mark.slow
def test_the_commands_succeed_with_whole_files(template, case):
    for file, commands in {**JSON_FILES, **OTHER_FILES}.items():
        for command in commands[:1]:
            content = path_of(template, file).read_bytes()
            assert case(file, content, command), (file, command)


def test_every_record_is_fuzzed(template):
    fuzzed = {path_of(template, file) for file in JSON_FILES}
    assert set(template.rglob("*.json")) == fuzzed


@pytest.mark.parametrize(("file", "command"), cases(JSON_FILES))
@COSTLY
@given(data=st.data())
def test_damaged_json(template, case, file, command, data):
    content = data.draw(damaged_json(path_of(template, file).read_bytes()))
    assert case(file, content, command) or command not in ALWAYS_SUCCEED


@pytest.mark.parametrize(("file", "command"), cases(OTHER_FILES))
@COSTLY
@given(data=st.data())
def test_damaged_files(template, case, file, command, data):
    content = data.draw(damaged_bytes(path_of(template, file).read_bytes()))
    assert case(file, content, command) or command not in ALWAYS_SUCCEED


@COSTLY
@given(sentences=st.lists(LINES, max_size=3), beam_size=st.integers(1, 3))
def test_any_sentences_decoded(model, eagerly, sentences, beam_size):
    def use() -> None:
        options = model.options(
            beam_size=beam_size, return_beams=beam_size, extra_length=3
        )
        n_best = model.decode(sentences, options)
        assert len(n_best) == len(sentences)
        for outputs in n_best:
            assert 1 <= len(outputs) <= beam_size
            assert not any("\n" in output.text for output in outputs)
        model.score(sentences, sentences[::-1])
        for sentence in sentences:
            model.attention(sentence, sentence)

    survives(use)
