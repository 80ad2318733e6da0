"""The command t2t-decoder: files, splits, what is typed, and scores."""

import bz2
import gzip
import lzma
import re

import numpy as np
import pytest
from run_command import refusal, run_command, said
from tiny_run import change_manifest

from t2tlite.bin import t2t_bleu, t2t_decoder
from t2tlite.data.dataset import open_dataset
from t2tlite.run_folder import RunFolder

pytestmark = pytest.mark.usefixtures("loaded_once")


@pytest.fixture
def decode(tiny_run, capsys):
    """decode(*flags): what the command prints."""
    run = f"--output_dir={tiny_run.run}"
    return lambda *flags: said(capsys, t2t_decoder, run, *flags)


def write(path, text):
    path.write_bytes(text.encode())
    return path


def test_file_to_file_keeps_every_line_in_its_place(decode, tmp_path):
    text = (
        "\n  \nred cat sees dog\n\t\ndog hears fish often\r\n\r\n\nblue fish likes"
        " mouse\nhorse bites bird\n\n"
    )
    source, target = write(tmp_path / "in.txt", text), tmp_path / "new" / "out.txt"
    flags = f"--decode_from_file={source}", f"--decode_to_file={target}"
    out, err = decode(*flags)
    lines = ["", "", "katze rot hund sieht", "", "hund oft fisch hoert", "", ""]
    lines += ["fisch blau maus mag", "pferd vogel beisst", ""]
    assert target.read_bytes() == "".join(f"{line}\n" for line in lines).encode()
    assert out == ""
    speed = r"10 sentences in \d+\.\d s, [\d,.]+ sentences/s, [\d,]+ target tokens/s"
    assert re.search(speed, err)
    source.write_bytes(b"")
    decode(*flags)
    assert target.read_bytes() == b""


@pytest.mark.parametrize(
    ("ending", "module"), [(".gz", gzip), (".xz", lzma), (".bz2", bz2)]
)
def test_compressed_input_and_output(decode, tmp_path, ending, module):
    source, target = tmp_path / f"in{ending}", tmp_path / f"out{ending}"
    source.write_bytes(module.compress(b"red cat sees dog\n\nhorse bites bird"))
    flags = f"--decode_from_file={source}", "--decode_hparams=beam_size=1"
    expected = "katze rot hund sieht\n\npferd vogel beisst\n"
    assert decode(*flags).out == expected
    decode(*flags, f"--decode_to_file={target}")
    assert module.decompress(target.read_bytes()).decode() == expected


def test_glossary(decode, tmp_path):
    source = write(tmp_path / "in.txt", "red cat sees dog\n\nhorse bites bird\n")
    flag = f"--decode_from_file={source}"
    free = decode(flag).out.splitlines()
    glossary = write(tmp_path / "terms.tsv", "cat\tKatzenklo vogel\nlion\tmaus\n")
    flags = flag, f"--glossary={glossary}"
    assert "\nterms" in decode(*flags, f"--decode_to_file={tmp_path / 'out.txt'}").err
    decoded = decode(*flags)
    assert decoded.err == "terms of the glossary: 1 of 1\n"
    first, *others = decoded.out.splitlines()
    assert "Katzenklo vogel" in first
    assert others == free[1:]


def test_n_best(decode, model, tmp_path):
    source = write(tmp_path / "in.txt", "\nred cat sees dog\n")
    flags = f"--decode_from_file={source}", "--decode_hparams=return_beams=3"
    lines = [line.split(" ||| ") for line in decode(*flags).out.splitlines()]
    assert [line[0] for line in lines] == ["0", "1", "1", "1"]
    assert lines[0][1:] == ["", "log_prob= 0.000000", "0.000000"]
    assert lines[1][1] == "katze rot hund sieht"
    assert len({line[1] for line in lines[1:]}) == 3
    scores = [float(line[3]) for line in lines[1:]]
    assert scores == sorted(scores, reverse=True)
    # log-probability / ((5 + tokens) / 6) ** 0.6, the EOS a token
    tokens = len(model.source_encoder.encode("katze rot hund sieht")) + 1
    [expected] = model.score(["red cat sees dog"], ["katze rot hund sieht"])
    log_prob = float(lines[1][2].removeprefix("log_prob= "))
    assert log_prob == pytest.approx(expected, abs=1e-4)
    score = expected / ((5 + tokens) / 6) ** 0.6
    assert scores[0] == pytest.approx(score, abs=1e-4)


def test_split_is_scored_and_shown(tiny_run, decode, capsys):
    shown = decode("--split=dev").out
    pattern = r"(?m)^BLEU (\S+) \(chrF2 (\S+), TER (\S+)\) on dev \(40 sentences\)\n"
    scored = re.search(pattern, shown)
    record = RunFolder(tiny_run.run).decode_record("dev.120")
    names = ("BLEU", "chrF2", "TER")
    assert tuple(f"{record.scores[name]:.2f}" for name in names) == scored.groups()
    signatures = [f"{name}|{rest}" for name, rest in record.signatures.items()]
    assert shown[scored.end() :].splitlines()[:3] == signatures
    for name, signature in zip(names, signatures, strict=True):
        assert signature.startswith(f"{name}|nrefs:1|")
    assert re.search(r"(?m)^40 sentences in .* target tokens/s$", shown)
    written = tiny_run.run / "decodes" / "dev.120.txt"
    reference = written.with_suffix(".ref")
    checkpoint = f"{tiny_run.run}/model.ckpt-120"
    where = f"checkpoint {checkpoint}, translations {written}, references {reference}"
    assert shown.endswith(f"Run {tiny_run.run}, {where}\n")
    assert len(written.read_text().splitlines()) == 40
    store = open_dataset(tiny_run.data).store("dev")
    assert written.with_suffix(".src").read_text().splitlines() == store.source_text()
    assert reference.read_text().splitlines() == store.target_text()
    files = f"--translation={written}", f"--reference={reference}"
    assert f" = {scored[1]} " in said(capsys, t2t_bleu, *files).out


def test_run_copied_elsewhere_and_data_gone(
    tiny_run, tiny_run_copy, eagerly, tmp_path, capsys
):
    change_manifest(tiny_run_copy, data_dir=str(tmp_path / "gone"))
    run = f"--output_dir={tiny_run_copy}"
    source = write(tmp_path / "in.txt", "red cat sees dog\n")
    out = said(capsys, t2t_decoder, run, f"--decode_from_file={source}").out
    assert out == "katze rot hund sieht\n"
    err = refusal(capsys, t2t_decoder, run, "--split=test")
    assert f"There is no finished data of twenty_words in {tmp_path}/gone." in err
    assert "Or give --data_dir, where the data is now." in err
    run_command(t2t_decoder, run, "--split=test", f"--data_dir={tiny_run.data}")
    written = f"{tiny_run_copy}/decodes/test.120"
    where = f"translations {written}.txt, references {written}.ref\n"
    assert where in capsys.readouterr().out


def test_scores_equal_the_logits(decode, model, tmp_path):
    pairs = {
        "red cat sees dog": "katze rot hund sieht",
        "horse bites bird": "vogel",
        "fish likes cat": "",
    }
    lines = [f"{source}\t{target}\n" for source, target in pairs.items()]
    file = write(tmp_path / "pairs.tsv", "".join(lines))
    flags = f"--score_file={file}", "--decode_hparams=batch_size=8"
    expected = []
    for pair in pairs.items():
        ids = [[*model.source_encoder.encode(text), 1, 0] for text in pair]
        inputs, targets = (np.array([side], np.int32) for side in ids)
        logits = np.array(model.engine.model(inputs, targets), np.float64)[0]
        log_probs = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
        tokens = targets[0][targets[0] > 0]
        log_prob = log_probs[np.arange(len(tokens)), tokens].sum()
        expected.append([log_prob, log_prob / ((5 + len(tokens)) / 6) ** 0.6])
    rows = decode(*flags).out.splitlines()
    shown = [list(map(float, row.split("\t"))) for row in rows]
    np.testing.assert_allclose(shown, expected, atol=2e-5)
    assert shown[0][0] > -1 > shown[1][0]  # the right translation, and a wrong one
