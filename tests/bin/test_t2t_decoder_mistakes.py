"""What t2t-decoder refuses, and how it says so."""

import re

import pytest
from run_command import refusal, said

from t2tlite.bin import t2t_decoder

pytestmark = pytest.mark.usefixtures("loaded_once")


def write(path, text):
    path.write_bytes(text.encode())
    return path


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("", "One of --decode_from_file, --split, --decode_interactive, --score_file must be given. Received: none."),
        ("--split=test --score_file=x", "must be given. Received: split and score_file."),
        # flags that do not go together
        ("--decode_from_file={} --alignments",
         "--alignments goes with --output_format=jsonl."),
        ("--score_file={} --output_format=nbest", "--output_format=nbest goes with --decode_from_file or "),
        ("--score_file={} --prefixes", "--prefixes goes with --decode_from_file or --decode_interactive."),
        ("--split=dev --output_format=jsonl", "--output_format goes with --decode_from_file or --decode_interactive or --score_file."),
        ("--split=dev --decode_to_file=-", "--decode_to_file=- goes with --decode_from_file or "),
        ("--split=dev --raw_text", "--raw_text goes with --decode_from_file or --decode_interactive."),
        ("--decode_interactive --raw_text --prefixes", "--raw_text does not go with --prefixes."),
        ("--decode_from_file={} --decode_to_file=- --beam_runner=DirectRunner", "--decode_to_file must be given."),
        ("--split=dev --beam_runner=DirectRunner", "--beam_runner goes with --decode_from_file."),
        ("--split=dev --glossary={}", "--glossary goes with --decode_from_file or --decode_interactive."),
        ("--decode_interactive --glossary=-", "--glossary needs another file than the input."),
        ("--decode_from_file=- --glossary=-", "--glossary needs another file than the input."),
        ("--decode_interactive --glossary={}", "Received: {}, line 1: 'cat'."),
        ("--decode_interactive --glossary={} --engine=ctranslate2", "The engine ctranslate2 supports alpha, batch_size, beam_size,"
         " extra_length, return_beams, t2t_rules. Received: glossary. Leave it out, or use tensorflow."),
        ("--split=dev --quantization=int8", "quantization goes with engine=ctranslate2."),
        # values
        ("--split=tset", "A split to decode must be dev or test. Received: tset."),
        ("--split=train", "must be dev or test. Received: train. Use --decode_from_file"),
        ("--split=dev --problem=scan", "--problem must be the run's, twenty_words. Received: scan."),
        ("--split=test --decode_hparams=beamsize=3", "decode_hparams has no field 'beamsize'."),
        ("--split=test --decode_hparams=beam_size=0", "beam_size must be at least 1"),
        ("--split=test --decode_hparams=return_beams=9", "return_beams must be at most beam_size."),
        ("--split=dev --engine=onnx", "engine must be one of tensorflow, ctranslate2. Received: 'onnx'."),
        ("--split=dev --engine=ctranslate2 --quantization=int4", "must be one of float32, int8, float16. Received: 'int4'."),
        ("--decode_from_file={} --output_format=xml", "output_format must be one of text, nbest, jsonl. Received: "),
        # files
        ("--decode_from_file=absent.txt", "Received: absent.txt, which does not exist."),
        ("--score_file=absent.tsv", "Received: absent.tsv, which does not exist."),
        ("--split=test --decode_to_file=.", ". cannot be used: Is a directory."),
        ("--split=test --checkpoint_path=absent", "absent, with model.ckpt-N.index and its data file"),
        ("--decode_from_file={} --prefixes",
         "source TAB prefix, or a source. Received: {}, line 2: 'cat\\ta\\tb'"),
    ],
)  # fmt: skip
def test_refused(tiny_run, tmp_path, capsys, flags, message):
    source = write(tmp_path / "in.txt", "cat\ncat\ta\tb\n")
    run = f"--output_dir={tiny_run.run}"
    stderr = refusal(capsys, t2t_decoder, run, *flags.format(source).split())
    assert message.format(source) in stderr


def test_damaged_checkpoint(tiny_run_copy, eagerly, tmp_path, capsys):
    data = tiny_run_copy / "model.ckpt-120.data-00000-of-00001"
    data.write_bytes(data.read_bytes()[:100])
    source = write(tmp_path / "in.txt", "red cat sees dog\n")
    command = [f"--output_dir={tiny_run_copy}", f"--decode_from_file={source}"]
    stderr = refusal(capsys, t2t_decoder, *command)
    assert f"{tiny_run_copy}/model.ckpt-120 cannot be restored: " in stderr
    shown = said(capsys, t2t_decoder, *command, "--checkpoint_path=best")
    assert shown.out == "katze rot hund sieht\n"


BAD_PAIR = r"Each line must be source TAB target\. Received: FILE, line 2: "


@pytest.mark.parametrize(
    ("flag", "content", "message"),
    [
        ("decode_from_file", "a\nk\udcf6pf\n", r"FILE, line 2: text must be UTF-8\."),
        ("score_file", "cat\tkatze\nno tab here\n", BAD_PAIR + r"'no tab here'\."),
        ("score_file", "cat\tk\na\tb\tc\n", BAD_PAIR + r"'a\\tb\\tc'\."),
        ("score_file", "cat\tkatze\n\n", BAD_PAIR + r"''\."),
    ],
    ids=["not UTF-8", "no tab", "two tabs", "blank"],
)
def test_bad_line_is_named_and_leaves_the_old_output(
    tiny_run, tmp_path, capsys, flag, content, message
):
    source, target = tmp_path / "in.txt", write(tmp_path / "out.txt", "old\n")
    source.write_bytes(content.encode(errors="surrogateescape"))
    flags = f"--{flag}={source}", f"--decode_to_file={target}"
    stderr = refusal(capsys, t2t_decoder, f"--output_dir={tiny_run.run}", *flags)
    assert re.search(message.replace("FILE", str(source)), stderr)
    assert target.read_text() == "old\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.txt", "out.txt"]


@pytest.mark.parametrize("to_file", [True, False])
def test_a_line_that_is_too_long_counts_as_blank(tiny_run, tmp_path, capfd, to_file):
    lines = ["red cat sees dog", "cat " * 2100, "horse bites bird"]
    source = write(tmp_path / "in.txt", "\n".join(lines))
    target = tmp_path / "out.txt"
    flags = [f"--output_dir={tiny_run.run}", f"--decode_from_file={source}"]
    flags += [f"--decode_to_file={target}"] if to_file else []
    out, err = said(capfd, t2t_decoder, *flags)
    translated = target.read_text() if to_file else out
    assert translated == "katze rot hund sieht\n\npferd vogel beisst\n"
    assert err.count("It counts as blank.") == 1
    assert f"at most 2,048 tokens. Received: {source}, line 2 with 2," in err


def test_a_pair_that_is_too_long_has_no_score(tiny_run, tmp_path, capfd):
    source = write(tmp_path / "in.txt", "cat\tkatze\ncat\t" + "katze " * 2100)
    flags = f"--output_dir={tiny_run.run}", f"--score_file={source}"
    out, err = said(capfd, t2t_decoder, *flags)
    assert out.splitlines()[1:] == ["nan\tnan"]
    assert "line 2 with 2," in err
