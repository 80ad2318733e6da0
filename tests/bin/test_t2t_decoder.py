"""The command t2t-decoder: files, splits, what is typed, and scores."""

import builtins
import bz2
import gzip
import lzma
import re
import subprocess
import sys

import numpy as np
import pytest
from run_command import run_command
from tiny_run import change_manifest, last_of_each

from t2tlite.bin import t2t_bleu, t2t_decoder
from t2tlite.data.dataset import open_dataset
from t2tlite.run_folder import RunFolder

pytestmark = pytest.mark.usefixtures("loaded_once")


def decode(tiny_run, *more):
    return t2t_decoder.main(last_of_each(f"--output_dir={tiny_run.run}", *more))


def write(path, text):
    path.write_bytes(text.encode())
    return path


def test_file_to_file_keeps_every_line_in_its_place(tiny_run, tmp_path, capsys):
    text = (
        "\n  \nred cat sees dog\n\t\ndog hears fish often\r\n\r\n\nblue fish likes"
        " mouse\nhorse bites bird\n\n"
    )
    source, target = write(tmp_path / "in.txt", text), tmp_path / "new" / "out.txt"
    status = decode(
        tiny_run, f"--decode_from_file={source}", f"--decode_to_file={target}"
    )
    assert status == 0
    lines = ["", "", "katze rot hund sieht", "", "hund oft fisch hoert", "", ""]
    lines += ["fisch blau maus mag", "pferd vogel beisst", ""]
    assert target.read_bytes() == "".join(f"{line}\n" for line in lines).encode()
    output = capsys.readouterr()
    assert output.out == ""
    assert f"Creating the folder {tmp_path}/new." in output.err
    assert re.search(
        r"10 sentences in \d+\.\d s, [\d,.]+ sentences/s, [\d,]+ target tokens/s",
        output.err,
    )


def test_terminal_greedy_and_gzip(tiny_run, tmp_path, capsys):
    source = tmp_path / "in.txt.gz"
    source.write_bytes(gzip.compress(b"red cat sees dog\n\nhorse bites bird"))
    status = decode(
        tiny_run, f"--decode_from_file={source}", "--decode_hparams=beam_size=1"
    )
    assert status == 0
    assert capsys.readouterr().out == "katze rot hund sieht\n\npferd vogel beisst\n"


@pytest.mark.parametrize(
    ("ending", "module"), [(".gz", gzip), (".xz", lzma), (".bz2", bz2)]
)
def test_compressed_input_and_output(tiny_run, tmp_path, ending, module):
    source = tmp_path / f"in{ending}"
    source.write_bytes(module.compress(b"red cat sees dog\n"))
    target = tmp_path / f"out{ending}"
    flags = [f"--decode_from_file={source}", f"--decode_to_file={target}"]
    assert decode(tiny_run, *flags, "--decode_hparams=beam_size=1") == 0
    assert module.decompress(target.read_bytes()) == b"katze rot hund sieht\n"


def test_n_best(tiny_run, model, tmp_path, capsys):
    source = write(tmp_path / "in.txt", "\nred cat sees dog\n")
    status = decode(
        tiny_run, f"--decode_from_file={source}", "--decode_hparams=return_beams=3"
    )
    assert status == 0
    lines = [line.split(" ||| ") for line in capsys.readouterr().out.splitlines()]
    assert [line[0] for line in lines] == ["0", "1", "1", "1"]
    assert lines[0][1:] == ["", "log_prob= 0.000000", "0.000000"]
    assert lines[1][1] == "katze rot hund sieht"
    assert len({line[1] for line in lines[1:]}) == 3
    scores = [float(line[3]) for line in lines[1:]]
    assert scores == sorted(scores, reverse=True)
    # log-probability / ((5 + tokens) / 6) ** 0.6, the EOS a token
    tokens = len(model.source_encoder.encode("katze rot hund sieht")) + 1
    log_probability = model.score(["red cat sees dog"], ["katze rot hund sieht"])[0]
    assert float(lines[1][2].removeprefix("log_prob= ")) == pytest.approx(
        log_probability, abs=1e-5
    )
    assert scores[0] == pytest.approx(
        log_probability / ((5 + tokens) / 6) ** 0.6, abs=1e-5
    )


def test_empty_file(tiny_run, tmp_path):
    source, target = write(tmp_path / "in.txt", ""), tmp_path / "out.txt"
    status = decode(
        tiny_run, f"--decode_from_file={source}", f"--decode_to_file={target}"
    )
    assert status == 0
    assert target.read_bytes() == b""


def test_split_is_scored_and_shown(tiny_run, capsys):
    assert decode(tiny_run, "--split=dev") == 0
    shown = capsys.readouterr().out
    for what in ("source ", "translation ", "reference "):
        assert len(re.findall(rf"^{what} +\w", shown, re.MULTILINE)) == 5
    scored = re.search(
        r"^BLEU (\S+) \(chrF2 (\S+), TER (\S+)\) on dev \(40 sentences\)\n",
        shown,
        re.MULTILINE,
    )
    record = next(
        record
        for record in RunFolder(tiny_run.run).decode_records()[0]
        if record.name == "dev.120"
    )
    assert [f"{record.scores[name]:.2f}" for name in ("BLEU", "chrF2", "TER")] == list(
        scored.groups()
    )
    signatures = [
        f"{name}|{signature}" for name, signature in record.signatures.items()
    ]
    assert [line.split("|")[:2] for line in signatures] == [
        [name, "nrefs:1"] for name in ("BLEU", "chrF2", "TER")
    ]
    assert shown[scored.end() :].splitlines()[:3] == signatures
    assert re.search(r"^40 sentences in .* target tokens/s$", shown, re.MULTILINE)
    written = tiny_run.run / "decodes" / "dev.120.txt"
    reference = written.with_suffix(".ref")
    checkpoint = f"{tiny_run.run}/model.ckpt-120"
    where = f"checkpoint {checkpoint}, translations {written}, references {reference}"
    assert shown.endswith(f"Run {tiny_run.run}, {where}\n")
    assert len(written.read_text().splitlines()) == 40
    store = open_dataset(tiny_run.data).store("dev")
    assert written.with_suffix(".src").read_text().splitlines() == store.source_text()
    assert reference.read_text().splitlines() == store.target_text()
    assert t2t_bleu.main([f"--translation={written}", f"--reference={reference}"]) == 0
    assert f" = {scored[1]} " in capsys.readouterr().out


def test_run_copied_elsewhere_and_data_gone(
    tiny_run, tiny_run_copy, eagerly, tmp_path, capsys
):
    change_manifest(tiny_run_copy, data_dir=str(tmp_path / "gone"))
    source = write(tmp_path / "in.txt", "red cat sees dog\n")
    run_command(
        t2t_decoder, f"--output_dir={tiny_run_copy}", f"--decode_from_file={source}"
    )
    assert capsys.readouterr().out == "katze rot hund sieht\n"
    assert t2t_decoder.main([f"--output_dir={tiny_run_copy}", "--split=test"]) == 1
    stderr = capsys.readouterr().err
    assert f"There is no finished data of twenty_words in {tmp_path}/gone." in stderr
    assert "Or give --data_dir, where the data of this run is now." in stderr
    run_command(
        t2t_decoder,
        f"--output_dir={tiny_run_copy}",
        "--split=test",
        f"--data_dir={tiny_run.data}",
    )
    assert (
        f"translations {tiny_run_copy}/decodes/test.120.txt, references"
        f" {tiny_run_copy}/decodes/test.120.ref\n" in capsys.readouterr().out
    )


def typed(monkeypatch, *lines):
    """Answers `input` with lines, then with the end of the file, as at a terminal."""
    rest = iter(lines)
    for stream in (sys.stdin, sys.stdout):
        monkeypatch.setattr(stream, "isatty", lambda: True, raising=False)

    def answer(prompt):
        try:
            return next(rest)
        except StopIteration:
            raise EOFError from None

    monkeypatch.setattr(builtins, "input", answer)


def test_interactive(tiny_run, monkeypatch, capsys):
    typed(monkeypatch, "red cat sees dog", "cat " * 2100, "horse bites bird")
    assert decode(tiny_run, "--decode_interactive") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Type a sentence; an empty line or Ctrl-D ends."
    assert re.fullmatch(
        r"score +-\d\.\d{3}  log_prob +-\d\.\d{3}  katze rot hund sieht", lines[1]
    )
    assert "A sentence must have at most 2,048 tokens." in lines[2]
    assert lines[3].endswith("  pferd vogel beisst")


def test_interactive_ends_at_an_empty_line(tiny_run, monkeypatch, capsys):
    typed(monkeypatch, "", "red cat sees dog")
    assert decode(tiny_run, "--decode_interactive") == 0
    assert len(capsys.readouterr().out.splitlines()) == 1


def test_scores_equal_the_logits(tiny_run, model, tmp_path, capsys):
    pairs = [
        ("red cat sees dog", "katze rot hund sieht"),
        ("horse bites bird", "vogel"),
        ("fish likes cat", ""),
    ]
    file = write(
        tmp_path / "pairs.tsv",
        "".join(f"{source}\t{target}\n" for source, target in pairs),
    )
    status = decode(tiny_run, f"--score_file={file}", "--decode_hparams=batch_size=8")
    assert status == 0
    expected = []
    for source, target in pairs:
        pair = (model.source_encoder.encode(text) for text in (source, target))
        inputs, targets = (np.array([[*ids, 1, 0]], np.int32) for ids in pair)
        logits = np.array(model.engine.model(inputs, targets), np.float64)[0]
        log_probabilities = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
        expected.append(
            sum(
                row[token]
                for row, token in zip(log_probabilities, targets[0], strict=True)
                if token
            )
        )
    lines = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    shown, scores = (
        [float(value) for value in column] for column in zip(*lines, strict=True)
    )
    np.testing.assert_allclose(shown, expected, atol=2e-5)
    lengths = [len(model.target_encoder.encode(target)) + 1 for _, target in pairs]
    penalised = [
        value / ((5 + length) / 6) ** 0.6
        for value, length in zip(expected, lengths, strict=True)
    ]
    np.testing.assert_allclose(scores, penalised, atol=2e-5)
    assert shown[0] > -1 > shown[1]  # the right translation, and a wrong one


@pytest.mark.slow
def test_terminal_shows_nothing_of_tensorflow(tiny_run, tmp_path):
    source = write(tmp_path / "in.txt", "red cat sees dog\n")
    command = [
        sys.executable,
        "-m",
        "t2tlite.bin.t2t_decoder",
        f"--output_dir={tiny_run.run}",
    ]
    done = subprocess.run(
        [*command, f"--decode_from_file={source}"],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "katze rot hund sieht\n"
    for noise in ("oneDNN", "cudart", "cuInit", "InitializeLog", "WARNING", "Warning"):
        assert noise not in done.stderr
