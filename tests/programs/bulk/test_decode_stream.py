"""Lines that are decoded to standard output or a device as they come."""

import os

import pytest
from bulk_cases import LINES, SENTENCES, write

from t2tlite.programs.bulk import decode_file, part
from t2tlite.programs.bulk.decode_file import decode_stream
from t2tlite.programs.runs.translator import Translator


@pytest.fixture(autouse=True)
def windows_of_three(monkeypatch):
    monkeypatch.setattr(decode_file, "PROMPT_WINDOW", 3)


@pytest.fixture
def source(tmp_path):
    return write(tmp_path / "in.txt", LINES)


class AllArrived:
    """A ReadAhead that has read everything."""

    def __init__(self, items):
        self._items = iter(list(items))

    def __iter__(self):
        return self._items

    def ready(self):
        return True


def test_large_pipe_is_decoded_in_windows(
    open_job, model, tmp_path, capsys, calls, monkeypatch
):
    monkeypatch.setattr(part.text_files, "ReadAhead", AllArrived)
    read, feed = os.pipe()
    os.write(feed, "".join(f"{line}\n" for line in SENTENCES[:5]).encode())
    os.close(feed)
    decode_stream(open_job(), f"/dev/fd/{read}")
    os.close(read)
    assert calls.windows == [3, 2]
    assert capsys.readouterr().out.splitlines() == model.translate(
        SENTENCES[:5], beam_size=2
    )


def test_standard_output_gets_each_window_at_once(
    open_job, model, source, capsys, monkeypatch
):
    shown, original = [], Translator.decode

    def decode(self, sentences, *rest):
        shown.append(capsys.readouterr().out.splitlines())
        return original(self, sentences, *rest)

    best = model.translate(LINES, beam_size=2)
    monkeypatch.setattr(Translator, "decode", decode)
    summary = decode_stream(open_job(), source)
    assert shown == [[], best[:3], best[3:6], best[6:9]]
    assert capsys.readouterr().out.splitlines() == best[9:]
    assert summary.startswith("11 sentences in ")
    assert [path.name for path in source.parent.iterdir()] == ["in.txt"]
