"""The command t2t-bleu."""

from __future__ import annotations

from pathlib import Path

import pytest

from t2tlite.bin import t2t_bleu


@pytest.fixture
def files(tmp_path: Path):
    """Writes a translation file and a reference file, and returns the flags that name them."""

    def write(translation: str | bytes, reference: str | bytes) -> list[str]:
        flags = []
        for name, content in (("translation", translation), ("reference", reference)):
            path = tmp_path / f"{name}.txt"
            path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
            flags.append(f"--{name}={path}")
        return flags

    return write


def test_prints_sacrebleus_score_with_its_signature(fixtures, capsys):
    folder = fixtures / "bleu"
    argv = [f"--translation={folder}/grammar_ende.hyp", f"--reference={folder}/grammar_ende.ref"]
    assert t2t_bleu.main(argv) == 0
    out = capsys.readouterr().out
    assert out.startswith("BLEU|nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:")
    assert " = 55.88 " in out  # these three as in expected.json
    assert out.count("\n") == 1
    assert t2t_bleu.main([*argv, "--tokenize=intl", "--lowercase", "--compound_split"]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert "case:lc" in first
    assert " = 64.62 " in first
    assert second.startswith("compound-split BLEU, tokenised; compare only with the paper's scores|")
    assert t2t_bleu.main([*argv, "--compound_split"]) == 0
    assert " = 55.97 83.2/62.8/49.4/39.3 " in capsys.readouterr().out.splitlines()[1]


def test_prints_sacrebleus_figure_with_its_signature(shared, capsys):
    folder = shared / "data" / "bleu"
    argv = [f"--translation={folder}/newstest2017.uedin-nmt.4722.en-de.txt", f"--reference={folder}/reference.txt"]
    assert t2t_bleu.main(argv) == 0
    out = capsys.readouterr().out
    assert out.startswith("BLEU|nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:")
    assert " = 28.30 " in out  # published for this system
    assert out.count("\n") == 1

    assert t2t_bleu.main([*argv, "--tokenize=intl", "--lowercase", "--compound_split"]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert "case:lc" in first
    assert "tok:intl" in first
    assert " = 29.14 " in first  # tensor2tensor's uncased figure
    assert second.startswith("compound-split BLEU, tokenised; compare only with the paper's scores|")
    assert " = 28.47 59.9/34.1/22.0/14.6 " in second  # get_ende_bleu.sh
    assert "hyp_len = 64499 ref_len = 62148" in second


def test_only_newlines_end_lines(files, capsys):
    text = "one\u2028two three four five\nsix\x0cseven\x85eight nine ten eleven\n"
    assert t2t_bleu.main(files(text, text.removesuffix("\n"))) == 0
    assert " = 100.00 " in capsys.readouterr().out


def test_other_lengths(files, capsys):
    assert t2t_bleu.main(files("a\nb\n", "a\nb\nc\n")) == 1
    message = capsys.readouterr().err
    assert "translation.txt with 2" in message
    assert "reference.txt with 3" in message
    assert "Traceback" not in message


@pytest.mark.parametrize(
    ("translation", "reference", "name"), [("", "a\n", "translation.txt"), ("a\n", "", "reference.txt")]
)
def test_empty_file(files, capsys, translation, reference, name):
    assert t2t_bleu.main(files(translation, reference)) == 1
    message = capsys.readouterr().err
    assert name in message
    assert "empty" in message


def test_text_that_is_not_utf8(files, capsys):
    assert t2t_bleu.main(files("gut\nschön\n", "gut\nschön\n".encode("latin-1"))) == 1
    message = capsys.readouterr().err
    assert "reference.txt" in message
    assert "2" in message.split("reference.txt")[1]
    assert "UTF-8" in message


def test_missing_file(files, tmp_path, capsys):
    flags = files("a\n", "a\n")
    (tmp_path / "reference.txt").unlink()
    assert t2t_bleu.main(flags) == 1
    assert "reference.txt" in capsys.readouterr().err


def test_flags_must_be_given(files, capsys):
    assert t2t_bleu.main(files("a\n", "a\n")[:1]) == 1
    assert "--reference must be given" in capsys.readouterr().err


def test_unknown_tokenizer(files, capsys):
    assert t2t_bleu.main([*files("a\n", "a\n"), "--tokenize=14a"]) == 1
    assert "tokenize must be one of 13a" in capsys.readouterr().err


def test_help_teaches(capsys):
    assert t2t_bleu.main(["--help"]) == 0
    out = capsys.readouterr().out
    assert "t2t-bleu --translation=out.de --reference=newstest2014.de" in out
    assert "--[no]compound_split" in out
