"""How inputs are cut into windows, and that windows are independent of each other."""

from __future__ import annotations

import copy
import itertools
import re
from types import SimpleNamespace

import pytest
from bulk_cases import SENTENCES

from t2tlite.decoding.text_decoder import NO_FILE, Origin
from t2tlite.programs.bulk.jobs import DecodeJob, LineFormat, ScoreJob
from t2tlite.programs.bulk.part import Window, cut


def windows(job, lines):
    """The windows of three lines, decoded."""
    return map(job.run, cut(lines, NO_FILE, 3))


def test_windows_are_read_as_needed(model):
    endless = itertools.chain(SENTENCES, itertools.repeat("cat"))
    job = DecodeJob(model, model.options())
    decoded = list(itertools.islice(windows(job, endless), 2))
    written = [*job.lines(decoded[0]), *job.lines(decoded[1])]
    assert written == model.translate(SENTENCES)
    assert next(endless) == "cat"


def test_window_can_be_decoded_by_itself(model):
    job = DecodeJob(model, model.options(return_beams=2))
    whole = list(windows(job, [*SENTENCES, *SENTENCES]))
    alone = job.run(Window(SENTENCES[:3], Origin("in.txt", 6)))
    lines = list(job.lines(alone, 6))
    assert lines == list(job.lines(whole[2], 6))
    assert lines[0].startswith("6 ||| katze rot hund sieht ||| log_prob= -")


def test_counts_are_those_of_the_best_outputs(model):
    job = DecodeJob(model, model.options(return_beams=2))
    best = [outputs[0].text for outputs in model.n_best(SENTENCES[:3], 2)]
    tokens = sum(len(ids) + 1 for ids in model.target_encoder.encode_batch(best))
    counts = job.run(Window(SENTENCES[:3])).counts
    assert counts.pop("milliseconds") >= 0
    assert counts == {"sentences": 3, "tokens": tokens, "unknown": 0}


def test_windows_have_all_lines_and_a_quarter_more_at_most():
    lines = [f"line {number}" for number in range(5000)]
    windows = list(cut(lines, Origin("in.txt"), 64))
    assert [line for window in windows for line in window.lines] == lines
    before = 0
    for window in windows:
        assert window.origin == Origin("in.txt", before)
        before += len(window.lines)
    sizes = [len(window.lines) for window in windows[:-1]]
    assert 64 <= min(sizes) < max(sizes) <= 80
    repeated = cut(["line 1"] * 1000, NO_FILE, 64)
    assert len(list(repeated)) == 13  # 1000 / 80


def test_key_is_of_everything_that_the_output_depends_on(model):
    options = model.options()
    first, later = (Window(SENTENCES, Origin("in.txt", before)) for before in (0, 6))
    job = DecodeJob(model, options)
    other_checkpoint = copy.copy(model)
    other_checkpoint.checkpoint = model.checkpoint.replace("-120", "-80")
    other_engine = copy.copy(model)
    other_engine.engine = SimpleNamespace(name="ctranslate2", quantization="int8")
    keys = [
        job.key(first),
        job.key(Window(["another", *SENTENCES[1:]])),
        ScoreJob(model, options).key(first),
        DecodeJob(model, model.options(beam_size=2)).key(first),
        DecodeJob(model, options, LineFormat("jsonl", alignments=True)).key(first),
        DecodeJob(other_checkpoint, options).key(first),
        DecodeJob(other_engine, options).key(first),
    ]
    assert len(set(keys)) == len(keys)
    assert all(re.fullmatch("[0-9a-f]{32}", key) for key in keys)
    assert job.key(later) == keys[0]
    assert DecodeJob(model, options).key(first) == keys[0]
    assert DecodeJob(model, options, LineFormat("jsonl")).key(first) == keys[0]


def test_raw_text_is_for_a_parser(model):
    with pytest.raises(ValueError, match="Only a model of a parsing problem parses"):
        DecodeJob(model, model.options(), LineFormat(raw_text=True))
