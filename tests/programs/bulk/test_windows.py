"""How inputs are cut into windows, and that windows are independent of each other."""

from __future__ import annotations

import itertools

from t2tlite.config import DecodeHParams
from t2tlite.decoding.source_text import NO_FILE, Origin
from t2tlite.programs.bulk.jobs import DecodeJob

SENTENCES = ["red cat sees dog", "", "fish likes mouse", "black horse bites bird today", "dog hears dog often", "cat"]


def windows(job, lines, **options):
    """The windows of three lines, decoded."""
    return (job.decode(*window) for window in job.cut(lines, NO_FILE, 3, **options))


def test_windows_are_read_as_needed(tiny_run, load):
    model = load(tiny_run.run, None)
    endless = itertools.chain(SENTENCES, itertools.repeat("cat"))
    job = DecodeJob(model, model.options())
    decoded = list(itertools.islice(windows(job, endless), 2))
    assert [line for window in decoded for line in job.lines(window)] == model.translate(SENTENCES)
    assert next(endless) == "cat"


def test_window_can_be_decoded_by_itself(tiny_run, load):
    model = load(tiny_run.run, None)
    job = DecodeJob(model, model.options(return_beams=2))
    whole = list(windows(job, [*SENTENCES, *SENTENCES]))
    alone = job.decode(SENTENCES[:3], Origin("in.txt", 6))
    assert job.lines(alone) == job.lines(whole[2])
    assert job.lines(alone)[0].startswith("6 ||| katze rot hund sieht ||| log_prob= -")


def test_counts_are_those_of_the_best_outputs(tiny_run, load):
    model = load(tiny_run.run, None)
    job = DecodeJob(model, model.options(return_beams=2))
    window = job.decode(SENTENCES[:3], NO_FILE)
    tokens = sum(
        len(ids) + 1 for ids in model.target_encoder.encode_batch([outputs[0].text for outputs in window.n_best])
    )
    assert job.counts(window) == {"sentences": 3, "tokens": tokens}


def test_batches_of_sentences_keep_one_window(tiny_run, load):
    sizes = {}
    for rules in (False, True):
        job = DecodeJob(load(tiny_run.run, None), DecodeHParams(t2t_rules=rules))
        for one_by_one in (False, True):
            cut = job.cut(SENTENCES[:5], NO_FILE, 3, one_by_one=one_by_one)
            sizes[rules, one_by_one] = [len(window) for window, _ in cut]
    assert sizes == {(False, False): [3, 2], (False, True): [3, 2], (True, False): [5], (True, True): [1] * 5}
