"""The command t2t-table3, on a toy language: rows are trained, resumed, measured, and
tabulated.
"""

import math
import signal
import statistics
from pathlib import Path

import pytest
import sacrebleu
from tiny_run import TinyRun, last_of_each, user_package

from t2tlite.bin import t2t_table3
from t2tlite.programs.runs import train as runs_train
from t2tlite.programs.runs.load import load, run_dataset
from t2tlite.programs.table3.table import read_result
from t2tlite.run_folder import RunFolder
from t2tlite.training.progress import Progress

SMALL = "hidden_size=16,filter_size=16,num_heads=2,train_steps=6"


@pytest.fixture(scope="module")
def tiny_run(tmp_path_factory):
    """The toy language and its data, made by --generate_data."""
    folder = tmp_path_factory.mktemp("table3_data")
    tiny_run = TinyRun(
        user_package(tmp_path_factory), folder / "data", folder / "none", "", ""
    )
    flags = "--rows=base", "--generate_data", "--num_processes=1"
    assert command(tiny_run, None, "--dry_run", *flags) == 0
    return tiny_run


def command(tiny_run, folder: Path | None, *more: str) -> int:
    """Calls t2t-table3 in this process; a flag given again in `more` counts."""
    return t2t_table3.main(
        last_of_each(
            f"--t2t_usr_dir={tiny_run.package}",
            "--problem=twenty_words",
            "--hparams_set=twenty_words_tiny",
            f"--hparams={SMALL}",
            f"--data_dir={tiny_run.data}",
            *([f"--output_dir={folder}"] if folder else []),
            *more,
        )
    )


@pytest.fixture(scope="module")
def swept(tiny_run, tmp_path_factory):
    """A sweep of two rows, the second stopped by SIGTERM at step 4, and the table at
    that time.
    """
    folder = tmp_path_factory.mktemp("table3") / "sweep"
    step = Progress.step

    def stop(self, number, result):
        step(self, number, result)
        if number == 3 and (folder / "base" / "decodes" / "dev.6.json").exists():
            signal.raise_signal(signal.SIGTERM)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Progress, "step", stop)
        assert command(tiny_run, folder, "--rows=hs256,base") == 128 + signal.SIGTERM
    half = (folder / "table3.md").read_text(encoding="utf-8")
    assert command(tiny_run, folder, "--rows=base,hs256") == 0
    return folder, half


def cells(text: str, row: str) -> list[str]:
    """The cells of a row of a table."""
    for line in text.splitlines():
        actual = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|") and row in actual[:2]:
            return actual
    raise AssertionError(f"no row {row}")


@pytest.mark.slow
def test_interrupted_sweep_has_its_table_so_far_and_resumes(swept):
    folder, half = swept
    assert cells(half, "base")[3:6] != ["", "", ""]
    assert "hs256" not in half.partition("Command")[0]
    assert read_result(RunFolder(folder / "hs256")).hparams.train_steps == 6
    # one plan of steps in the events: 1 to 4 before the signal, 5 and 6 after
    assert len(list((folder / "hs256").glob("events.*"))) == 2
    noted = (folder / "hs256" / "flags.txt").read_text()
    assert noted.startswith("# t2t-trainer\n--problem=twenty_words\n")


@pytest.mark.slow
def test_measured_twice_over(swept):
    """Perplexity by the decoder's scores, BLEU by sacrebleu itself on the translations
    kept.
    """
    folder = swept[0] / "base"
    actual = read_result(RunFolder(folder))
    model = load(folder)
    store = run_dataset(RunFolder(folder)).store("dev")
    log_probs = model.score(store.source_text(), store.target_text())
    loss = -sum(log_probs) / store.target_lengths.sum()
    assert actual.perplexity == pytest.approx(math.exp(loss), rel=1e-4)
    written = (folder / "decodes" / "dev.6.txt").read_text(encoding="utf-8")
    translations = written.removesuffix("\n").split("\n")
    bleu = sacrebleu.corpus_bleu(translations, [store.target_text()]).score
    assert actual.score == pytest.approx(bleu)
    assert translations == model.translate(store.source_text(), beam_size=4)
    assert "tok:13a" in actual.signature
    assert actual.parameters == model.engine.parameters
    assert actual.seconds > 0


@pytest.mark.slow
def test_finished_rows_are_not_run_again(tiny_run, swept, monkeypatch, capsys):
    """Even without their checkpoints."""
    monkeypatch.setattr(runs_train, "train_run", None)
    for checkpoint in (swept[0] / "hs256").glob("model.ckpt-*"):
        checkpoint.unlink()
    before = (swept[0] / "table3.md").read_bytes()
    assert command(tiny_run, swept[0], "--rows=base,hs256") == 0
    shown = capsys.readouterr()
    assert shown.err.count(" is finished.") == 2
    assert shown.out.encode() == (swept[0] / "table3.md").read_bytes() == before
    # unless they were trained on other pairs
    run = RunFolder(swept[0] / "base")
    record = run.path / "manifest.json"
    written = record.read_text()
    sha256 = run.manifest().splits["train"].shards[0].sha256
    record.write_text(written.replace(sha256, "0" * 64))
    with pytest.raises(TypeError, match="not callable"):
        command(tiny_run, swept[0], "--rows=base")
    record.write_text(written)


@pytest.mark.slow
def test_another_seed_has_its_folder(tiny_run, swept):
    assert command(tiny_run, swept[0], "--rows=hs256", "--seeds=2") == 0
    values = []
    for name in ("hs256", "hs256.seed2"):
        values.append(read_result(RunFolder(swept[0] / name)).perplexity)
    assert values[0] != values[1]
    mean = statistics.mean(values)
    spread = statistics.stdev(values)
    text = (swept[0] / "table3.md").read_text(encoding="utf-8")
    assert cells(text, "hs256")[4] == f"{mean:.2f} ± {spread:.2f} (2)"


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("--rows=l2", "Row l2 of Table 3 needs a multiple of 3 as num_hidden_layers"),
        ("--rows=", "--rows must be given."),
        ("--rows=base --seeds=1,one", "must be a whole number. Received: 'one'."),
        ("--output_dir=", "--output_dir must be given."),
        ("--train_steps=0", "train_steps must be at least 1. Received: 0."),
    ],
)
def test_refused(tiny_run, tmp_path, monkeypatch, capsys, flags, message):
    monkeypatch.chdir(tmp_path)
    assert command(tiny_run, tmp_path / "refused", *flags.split()) == 1
    assert not (tmp_path / "refused").exists()
    assert message in capsys.readouterr().err


def test_a_row_is_what_t2t_trainer_trains(tiny_run, tmp_path, monkeypatch):
    """Its changes are to the base that the flags make."""
    rows = []
    monkeypatch.setattr(
        t2t_table3, "_train_and_decode", lambda row, _: rows.append(row)
    )
    more = ("--rows=big,k256", "--seeds=1,7", "--train_steps=5", "--worker_gpu=0")
    assert command(tiny_run, tmp_path / "O", *more) == 0
    names = ["k256", "big", "k256.seed7", "big.seed7"]
    assert [row.output_dir for row in rows] == [str(tmp_path / "O" / n) for n in names]
    assert [row.random_seed for row in rows] == [1, 1, 7, 7]
    assert set(rows[0].hparams.split(",")) == {
        "hidden_size=16",
        "filter_size=16",
        "train_steps=5",
        "attention_key_channels=8",
    }
    big = rows[1]
    assert (big.problem, big.hparams_set) == ("twenty_words", "twenty_words_tiny")
    assert (big.worker_gpu, big.data_dir) == (0, str(tiny_run.data))
    assert {"filter_size=32", "num_heads=4", "train_steps=15"} <= set(
        big.hparams.split(",")
    )


def test_dry_run_trains_nothing_and_says_what_rows_cost(
    tiny_run, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    flags = "--rows=base,hs1024", "--dry_run", "--train_steps=3600"
    assert command(tiny_run, None, *flags) == 0
    shown = capsys.readouterr()
    base, wide = (cells(shown.out, row) for row in ("base", "hs1024"))
    assert wide[2] == "168"
    assert float(wide[1]) > float(base[1]) > 0
    assert float(wide[3]) > float(base[3]) > 0
    assert (base[4], wide[4]) == ("3,600", "3,600")
    assert float(base[5]) == pytest.approx(3600 * float(base[3]), rel=0.01)
    assert list(tmp_path.iterdir()) == []
