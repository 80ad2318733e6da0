"""The decoding options through the Python API: log-probabilities, sampling,
constraints, prefixes.
"""

import collections
import io
import itertools
import re
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import t2tlite
from t2tlite.decoding import constraints
from t2tlite.decoding.slots import FORBIDDEN
from t2tlite.metrics.comparison import paired_bootstrap
from t2tlite.metrics.corpus_metrics import compound_split_bleu, corpus_scores
from t2tlite.tasks.task import Output, open_task

SENTENCES = [
    "red cat sees dog",
    "",
    "horse bites bird",
    "fish likes mouse never",
    "blue dog hears white cat now",
    "bird seeks fish today",
    "mouse likes mouse",
]
RANDOM = {"sampling_method": "random", "sampling_temp": 2.0}


@pytest.mark.parametrize(
    "options",
    [
        {"return_beams": 4},
        {"return_beams": 4, "alpha": 0.0},
        {"return_beams": 3, "sampling_method": "random"},
        {"return_beams": 2, "min_length": 20, "no_repeat_ngram_size": 2},
        {"extra_length": 0, "min_length": 40},  # none of which ends
    ],
    ids=str,
)
def test_log_prob_is_that_of_the_text_and_score_is_penalised(model, options):
    """Where the text has the tokens that were decoded and these end: the model's score
    of the text.
    """
    options = model.options(**options)
    checked = 0
    n_best = model.decode(SENTENCES, options)
    assert n_best[1] == [Output("", 0.0, 0.0)]
    for sentence, outputs in zip(SENTENCES, n_best, strict=True):
        scores = [output.score for output in outputs]
        assert scores == sorted(scores, reverse=True)
        limit = len(model.source_encoder.encode(sentence)) + options.extra_length + 1
        for output in outputs if sentence else ():
            length = min(len(output.ids) + 1, limit)
            penalty = ((5 + length) / 6) ** options.alpha
            assert output.score == pytest.approx(output.log_prob / penalty, rel=1e-5)
            assert len(output.ids) >= min(options.min_length, limit)
            if options.no_repeat_ngram_size:
                pairs = list(itertools.pairwise(output.ids))
                assert len(set(pairs)) == len(pairs)
            ids = tuple(model.target_encoder.encode(output.text))
            if ids == output.ids and len(ids) < limit:
                [log_prob] = model.score([sentence], [output.text])
                assert output.log_prob == pytest.approx(log_prob, abs=1e-4)
                checked += 1
    assert checked >= 3 or options.extra_length == 0


def test_samples_depend_on_the_sentence_and_the_seed_alone(model):
    def texts(sentences, **more):
        options = model.options(**{**RANDOM, "return_beams": 3, **more})
        samples = []
        for outputs in model.decode(sentences, options):
            samples.append([output.text for output in outputs])
        return samples

    def check(actual, samples=3):
        """Batches of other sizes round otherwise, which decides a draw when its number
        lies that near a boundary.
        """
        others = 0
        for sentence, outputs, those in zip(SENTENCES, actual, expected, strict=False):
            assert len(outputs) == (samples if sentence else 1)
            others += len(set(outputs) - set(those))
        assert others <= 1

    expected = texts(SENTENCES)
    assert texts(SENTENCES) == expected
    check(texts(SENTENCES, batch_size=1))
    check(texts(SENTENCES[::-1])[::-1])
    check(texts(["cat " * 50, *SENTENCES])[1:])
    check(texts(SENTENCES[:1]))
    # more samples do not change the first
    check(texts(SENTENCES, return_beams=1), samples=1)
    assert texts(SENTENCES, sampling_seed=1) != expected
    # not the best again and again
    assert len({text for outputs in expected for text in outputs}) > 10


def test_low_temperature_and_top_1_are_greedy_search(model, eagerly):
    greedy = model.translate(SENTENCES, beam_size=1)
    for limit in ({"sampling_keep_top_k": 1}, {"sampling_temp": 1e-3}):
        random = model.translate(SENTENCES, sampling_method="random", **limit)
        assert random == greedy


@pytest.mark.parametrize("options", [{}, {"beam_size": 1}, RANDOM], ids=str)
def test_prefixes(model, options):
    prefix = ["katze blau", "", "", "fisch nie", "hund", " ", "maus mag maus"]
    actual = model.translate(SENTENCES, prefix=prefix, **options)
    free = model.translate(SENTENCES, **options)
    for i, start in enumerate(prefix):
        assert actual[i].startswith(start.strip())
        if not start.strip():
            assert actual[i] == free[i]
        [alone] = model.translate([SENTENCES[i]], prefix=[start], **options)
        assert alone == actual[i]
    if not options:
        assert model.translate(SENTENCES, prefix=free) == free
        assert model.translate(SENTENCES[0], prefix="katze blau") == actual[0]
        start = "katze hund " * 40
        longer = model.translate("cat", prefix=start, extra_length=3)
        assert longer.startswith("katze hund katze")
        assert len(longer.split()) >= 80


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sampling_temp": 0.5}, "sampling_temp=0.5 requires sampling_method=random."),
        ({"sampling_seed": 3}, "sampling_seed=3 requires sampling_method=random."),
        ({"min_length": -1}, "min_length must be at least 0. Received: -1."),
    ],
)
def test_refused(model, options, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        model.translate(["red cat"], **options)


def test_options_that_allow_no_translation(model, eagerly, monkeypatch):
    """As if the source had so many tokens that all of the vocabulary had been used."""
    monkeypatch.setattr(
        constraints,
        "forbid_repetition",
        lambda size, logits, *_: logits * 0 + FORBIDDEN,
    )
    with pytest.raises(
        ValueError,
        match=r"has no translation with min_length=0 and no_repeat_ngram_size=1",
    ):
        model.translate(["red cat"], no_repeat_ngram_size=1, extra_length=0)


class Table:
    """A table as pandas and others have it: iteration yields the names of columns."""

    shape = (2, 1)

    def __iter__(self):
        return iter(["en", "de"])

    def __len__(self):
        return 2

    def __repr__(self):
        return "    en\n0   red cat"


COLUMN = r"is required, such as table\['en'\]\. Received: "
REQUIRED = "A string or a list of strings " + COLUMN


@pytest.mark.parametrize(
    ("what", "message"),
    [
        (5, REQUIRED + "5"),
        (b"red cat", REQUIRED + "b'red cat', not yet decoded"),
        ({"red cat": "dog"}, REQUIRED),
        (Table(), COLUMN),
        ({"en": "red cat"}.values(), COLUMN),
        (np.array([["red cat"], ["dog"]]), COLUMN),
        ([{"translation": {"en": "red cat"}}], r"at index 0 must be one string"),
        (io.BytesIO(b"red cat\n"), r"at index 0 .*: b'red cat\\n', not yet decoded: "),
        (itertools.repeat(("red cat", "katze rot")), r"Received: \('red cat', 'kat"),
    ],
)
def test_what_is_not_text(model, what, message):
    with pytest.raises(ValueError, match=message):
        model.translate(what)


@pytest.mark.parametrize(
    "refuse",
    [
        lambda model, what: model.n_best(what),
        lambda model, what: model.translate(["red cat"], prefix=what),
        lambda model, what: model.score(["red cat"], what),
        lambda model, what: model.align(what, []),
        lambda model, what: corpus_scores(["katze rot"], what),
        lambda model, what: paired_bootstrap(["katze rot"], ["katze rot"], what),
        lambda model, what: compound_split_bleu(what, ["katze rot"]),
    ],
)
def test_every_door_refuses_a_table(model, refuse):
    with pytest.raises(ValueError, match="is required"):
        refuse(model, Table())


@pytest.mark.parametrize("what", [5, b"red cat", ["red cat"]], ids=repr)
def test_attention_is_of_one_sentence(model, what):
    received = rf"must be one string\. Received: {re.escape(repr(what))}[.,]"
    with pytest.raises(ValueError, match=f"source {received}"):
        model.attention(what)
    with pytest.raises(ValueError, match=f"target {received}"):
        model.attention("red cat", what)


@pytest.mark.parametrize("make", [iter, tuple, np.array, collections.deque])
def test_other_lists_of_strings_are_accepted(model, make):
    sentences = ["red cat sees dog", "", "dog"]
    targets = model.translate(sentences)
    assert model.translate(make(sentences)) == targets
    outputs = model.n_best(sentences)
    assert model.align(make(sentences), outputs) == model.align(sentences, outputs)
    scores = model.score(sentences, targets)
    assert model.score(make(sentences), make(targets)) == scores


@pytest.mark.parametrize(
    ("sentences", "n_best", "message"),
    [
        ("red cat", [], rf"A list of sentences {COLUMN}one string\."),
        (["red cat"], "rote katze", r"for 1 sentences\. Received: 'rote katze'\."),
        (["red cat"], [["rote katze"]], r"Received: \[\['rote katze'\]\]\."),
        (["red cat"], [Output("rote katze", -1.0, -1.0, (3, 4))], r"n_best must be"),
        (["red cat", "dog"], [[]], r"for 2 sentences\. Received: \[\[\]\]\."),
    ],
)
def test_what_cannot_be_aligned(model, sentences, n_best, message):
    with pytest.raises(ValueError, match=message):
        model.align(sentences, n_best)


def test_prefixes_that_do_not_fit(model):
    message = r"Each sentence needs a prefix, which may be empty\. Received: 2 and 1\."
    with pytest.raises(ValueError, match=message):
        model.translate(["red cat", "dog"], prefix=["katze"])
    with pytest.raises(ValueError, match=r"at most 2,048 tokens"):
        model.translate(["red cat"], prefix=["katze " * 2100])


def test_threads_build_searches_and_decode_at_a_time(tiny_run):
    model = t2tlite.load(tiny_run.run)
    options = [model.options(beam_size=size) for size in (2, 3, 2, 3)]
    with ThreadPoolExecutor(len(options)) as threads:
        together = list(
            threads.map(lambda each: model.decode(SENTENCES, each), options)
        )
    assert together == [model.decode(SENTENCES, chosen) for chosen in options]


@pytest.mark.parametrize("task", ["translation", "parsing"])
def test_more_samples_than_the_beam_is_wide(model, task):
    options = model.options(return_beams=9, extra_length=3, **RANDOM)
    (outputs,) = model.decode(["red cat sees dog"], options, task=open_task(task, {}))
    assert len(outputs) == 9
