"""How inputs are cut into windows, and that windows are independent of each other."""

from __future__ import annotations

import itertools

from t2tlite.config import DecodeHParams
from t2tlite.decoding.source_text import NO_FILE, Origin
from t2tlite.programs.bulk.jobs import DecodeJob, Window

SENTENCES = [
    "red cat sees dog",
    "",
    "fish likes mouse",
    "black horse bites bird today",
    "dog hears dog often",
    "cat",
]


def windows(job, lines, **options):
    """The windows of three lines, decoded."""
    return (job.run(window) for window in job.cut(lines, NO_FILE, 3, **options))


def test_windows_are_read_as_needed(tiny_run, load):
    model = load(tiny_run.run, None)
    endless = itertools.chain(SENTENCES, itertools.repeat("cat"))
    job = DecodeJob(model, model.options())
    decoded = list(itertools.islice(windows(job, endless), 2))
    assert [line for output in decoded for line in output.lines] == model.translate(
        SENTENCES
    )
    assert next(endless) == "cat"


def test_window_can_be_decoded_by_itself(tiny_run, load):
    model = load(tiny_run.run, None)
    job = DecodeJob(model, model.options(return_beams=2))
    whole = list(windows(job, [*SENTENCES, *SENTENCES]))
    alone = job.run(Window(SENTENCES[:3], Origin("in.txt", 6)))
    assert alone == whole[2]
    assert alone.lines[0].startswith("6 ||| katze rot hund sieht ||| log_prob= -")


def test_counts_are_those_of_the_best_outputs(tiny_run, load):
    model = load(tiny_run.run, None)
    job = DecodeJob(model, model.options(return_beams=2))
    best = [outputs[0].text for outputs in model.n_best(SENTENCES[:3], 2)]
    tokens = sum(len(ids) + 1 for ids in model.target_encoder.encode_batch(best))
    assert job.run(Window(SENTENCES[:3])).counts == {"sentences": 3, "tokens": tokens}


def test_batches_of_sentences_keep_one_window(tiny_run, load):
    sizes = {}
    for rules in (False, True):
        job = DecodeJob(load(tiny_run.run, None), DecodeHParams(t2t_rules=rules))
        for one_by_one in (False, True):
            cut = job.cut(SENTENCES[:5], NO_FILE, 3, one_by_one=one_by_one)
            sizes[rules, one_by_one] = [len(window.lines) for window in cut]
    assert sizes == {
        (False, False): [3, 2],
        (False, True): [3, 2],
        (True, False): [5],
        (True, True): [1] * 5,
    }
