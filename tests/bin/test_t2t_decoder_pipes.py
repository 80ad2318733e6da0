"""t2t-decoder in a pipe: lines come and go one by one, and nothing else is written."""

import json
import os
import subprocess
import sys
import threading

import pytest

from t2tlite.bin import t2t_decoder
from t2tlite.programs.runs.translator import Translator

pytestmark = pytest.mark.usefixtures("loaded_once")

SENTENCES = ["red cat sees dog", "", "horse bites bird", "fish likes mouse"]
TRANSLATIONS = ["katze rot hund sieht", "", "pferd vogel beisst", "fisch maus mag"]


@pytest.fixture
def standard_input():
    """The other end of a pipe that is standard input."""
    kept, (read, write) = os.dup(0), os.pipe()
    os.dup2(read, 0)
    os.close(read)
    with open(write, "w", encoding="utf-8", buffering=1) as file:
        yield file
    os.dup2(kept, 0)
    os.close(kept)


@pytest.fixture
def windows(monkeypatch):
    """The sentences that are decoded together."""
    seen, original = [], Translator.decode

    def recorded(self, sentences, *rest, **more):
        seen.append(list(sentences))
        return original(self, sentences, *rest, **more)

    monkeypatch.setattr(Translator, "decode", recorded)
    return seen


@pytest.mark.parametrize(
    "mode",
    [
        ["--decode_from_file=-"],
        ["--decode_from_file=-", "--decode_to_file=-"],
        ["--decode_interactive"],
    ],
)
def test_standard_input_to_standard_output(tiny_run, standard_input, capfd, mode):
    lines = [line.encode() for line in SENTENCES]
    assert stream(tiny_run.run, standard_input, lines, *mode) == 0
    output = capfd.readouterr()
    assert output.out.splitlines() == TRANSLATIONS
    assert output.err == ""


@pytest.mark.parametrize("mode", ["--decode_from_file=-", "--decode_interactive"])
@pytest.mark.parametrize("rules", [False, True])
def test_each_line_is_answered_before_the_next_is_sent(
    tiny_run, load, standard_input, windows, mode, rules
):
    """But not where a translation depends on what is decoded with it, unless each line
    is to be decoded by itself.
    """
    read, write = os.pipe()
    status = []
    command = [f"--output_dir={tiny_run.run}", mode]
    command.append(f"--decode_to_file=/dev/fd/{write}")
    command += ["--decode_hparams=t2t_rules=true"] if rules else []
    thread = threading.Thread(target=lambda: status.append(t2t_decoder.main(command)))
    load(tiny_run.run, None)
    # SIGTERM is for the main thread alone
    with pytest.MonkeyPatch.context() as patch, open(read, encoding="utf-8") as answers:
        patch.setattr("signal.signal", lambda number, handler: None)
        thread.start()
        whole = rules and mode == "--decode_from_file=-"
        lines = []
        for line in SENTENCES:
            standard_input.write(f"{line}\n")
            if not whole:
                lines.append(answers.readline())
        standard_input.close()
        thread.join(timeout=120)
        os.close(write)
        lines += answers
    assert status == [0]
    assert [line.removesuffix("\n") for line in lines] == TRANSLATIONS
    assert windows == ([SENTENCES] if whole else [[line] for line in SENTENCES])


LONG = b"cat " * 2100
FAULTS = {
    "at most 2,048 tokens. Received: standard input, line 2 with 2,": LONG,
    "standard input, line 2: text must be UTF-8. ": b"k\xf6pfe",
    "standard input, line 2: text must be UTF-8. Received: byte 0xed": b"\xed\xa0\x80",
}
PAIR_FAULTS = {
    "at most 2,048 tokens. Received: standard input, line 2 with 2,": b"cat\t" + LONG,
    "source TAB target. Received: standard input, line 2: 'cat'": b"cat",
    "source TAB target. Received: standard input, line 2: 'a\\tb\\tc'": b"a\tb\tc",
    "standard input, line 2: text must be UTF-8. ": b"k\xf6pfe\tx",
}


def stream(run, standard_input, lines, *flags):
    """The status of t2t-decoder on bytes that come through a pipe."""

    def write():
        standard_input.buffer.write(b"".join(line + b"\n" for line in lines))
        standard_input.close()

    threading.Thread(target=write).start()
    return t2t_decoder.main([f"--output_dir={run}", *flags])


@pytest.mark.parametrize("flag", ["--decode_from_file=-", "--decode_interactive"])
@pytest.mark.parametrize("message", FAULTS)
def test_a_bad_line_of_a_pipe_is_blank(tiny_run, standard_input, capfd, flag, message):
    lines = [b"red cat sees dog", FAULTS[message], b"horse bites bird"]
    assert stream(tiny_run.run, standard_input, lines, flag) == 0
    output = capfd.readouterr()
    assert output.out == "katze rot hund sieht\n\npferd vogel beisst\n"
    assert message in output.err
    assert output.err.endswith(" It counts as blank.\n")
    assert output.err.count("\n") == 1


@pytest.mark.parametrize("message", PAIR_FAULTS)
@pytest.mark.parametrize("kind", ["text", "jsonl"])
def test_a_bad_pair_has_no_score(tiny_run, standard_input, capfd, message, kind):
    pair = b"horse bites bird\tpferd vogel beisst"
    flags = "--score_file=-", f"--output_format={kind}"
    lines = [pair, PAIR_FAULTS[message], pair]
    assert stream(tiny_run.run, standard_input, lines, *flags) == 0
    output = capfd.readouterr()
    before, bad, after = output.out.splitlines()
    assert before == after
    if kind == "jsonl":
        empty = {"source": "", "target": "", "log_prob": None, "score": None}
        assert json.loads(bad) == empty
    else:
        assert bad == "nan\tnan"
    assert message in output.err
    assert output.err.count("\n") == 1


def decoder(run, flag):
    """t2t-decoder as a process of its own."""
    program = [sys.executable, "-m", "t2tlite.bin.t2t_decoder", f"--output_dir={run}"]
    pipe = subprocess.PIPE
    return subprocess.Popen(
        [*program, flag], text=True, bufsize=1, stdin=pipe, stdout=pipe, stderr=pipe
    )


@pytest.mark.slow
def test_other_program_talks_to_t2t_decoder(tiny_run):
    with decoder(tiny_run.run, "--decode_interactive") as process:
        for sentence, translation in zip(SENTENCES, TRANSLATIONS, strict=True):
            process.stdin.write(f"{sentence}\n")
            assert process.stdout.readline() == f"{translation}\n"
        out, err = process.communicate(timeout=120)
        assert (process.returncode, out, err) == (0, "", "")
