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
from t2tlite.decoding import tensorflow_engine
from t2tlite.decoding.constraints import FORBIDDEN
from t2tlite.metrics.bleu import compound_split_bleu
from t2tlite.metrics.corpus_metrics import corpus_scores, paired_bootstrap
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
    for sentence, outputs in zip(
        SENTENCES, model.decode(SENTENCES, options), strict=True
    ):
        if not sentence:
            assert [
                (hypothesis.text, hypothesis.score, hypothesis.log_prob, hypothesis.ids)
                for hypothesis in outputs
            ] == [("", 0.0, 0.0, ())]
            continue
        assert [hypothesis.score for hypothesis in outputs] == sorted(
            (hypothesis.score for hypothesis in outputs), reverse=True
        )
        limit = len(model.source_encoder.encode(sentence)) + options.extra_length + 1
        for hypothesis in outputs:
            length = min(len(hypothesis.ids) + 1, limit)
            assert hypothesis.score == pytest.approx(
                hypothesis.log_prob / ((5 + length) / 6) ** options.alpha, rel=1e-5
            )
            assert len(hypothesis.ids) >= min(options.min_length, limit)
            if options.no_repeat_ngram_size:
                pairs = list(itertools.pairwise(hypothesis.ids))
                assert len(set(pairs)) == len(pairs)
            if (
                tuple(model.target_encoder.encode(hypothesis.text)) == hypothesis.ids
                and len(hypothesis.ids) < limit
            ):
                assert hypothesis.log_prob == pytest.approx(
                    model.score([sentence], [hypothesis.text])[0], abs=1e-4
                )
                checked += 1
    assert checked >= 3 or options.extra_length == 0


def test_samples_depend_on_the_sentence_and_the_seed_alone(model):
    def texts(sentences, **more):
        options = model.options(**{**RANDOM, "return_beams": 3, **more})
        return [
            [hypothesis.text for hypothesis in outputs]
            for outputs in model.decode(sentences, options)
        ]

    def check(actual, samples=3):
        """Batches of other sizes round otherwise, which decides a draw when its number
        lies that near a boundary.
        """
        together = list(zip(SENTENCES, actual, expected, strict=False))
        assert [len(outputs) for _, outputs, _ in together] == [
            samples if sentence else 1 for sentence, *_ in together
        ]
        assert (
            sum(len(set(outputs) - set(those)) for _, outputs, those in together) <= 1
        )

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
    assert (
        model.translate(SENTENCES, sampling_method="random", sampling_keep_top_k=1)
        == greedy
    )
    assert (
        model.translate(SENTENCES, sampling_method="random", sampling_top_p=1e-6)
        == greedy
    )


@pytest.mark.parametrize("options", [{}, {"beam_size": 1}, RANDOM], ids=str)
def test_prefixes(model, options):
    prefix = ["katze blau", "", "", "fisch nie", "hund", " ", "maus mag maus"]
    actual = model.translate(SENTENCES, prefix=prefix, **options)
    assert all(
        text.startswith(start.strip())
        for text, start in zip(actual, prefix, strict=True)
    )
    free = model.translate(SENTENCES, **options)
    assert [actual[i] for i in (1, 2, 5)] == [free[i] for i in (1, 2, 5)]
    alone = [
        model.translate([s], prefix=[p], **options)[0]
        for s, p in zip(SENTENCES, prefix, strict=True)
    ]
    assert alone == actual
    if not options:
        assert model.translate(SENTENCES, prefix=free) == free
        assert model.translate(SENTENCES[0], prefix="katze blau") == actual[0]
        longer = model.translate(["cat"], prefix=["katze hund " * 40], extra_length=3)[
            0
        ]
        assert longer.startswith("katze hund katze")
        assert len(longer.split()) >= 80


def test_the_best_after_a_prefix_is_what_scoring_says(model):
    """Of all sentences of the language that begin with the prefix, none is more
    probable.
    """
    nouns, verbs = ["katze", "hund", "maus", "vogel"], ["sieht", "hoert", "mag"]
    texts = [
        f"katze rot {noun} {verb}" for noun, verb in itertools.product(nouns, verbs)
    ]
    scores = model.score(["red cat sees dog"] * len(texts), texts)
    (outputs,) = model.decode(
        ["red cat sees dog"],
        model.options(alpha=0.0, beam_size=16),
        prefix=["katze rot"],
    )
    assert outputs[0].log_prob >= max(scores) - 1e-4
    assert outputs[0].text == texts[scores.index(max(scores))]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sampling_temp": 0.5}, "requires sampling_method=random. Received: sampling"),
        ({"sampling_seed": 3}, "sampling_seed requires sampling_method=random."),
        ({"min_length": -1}, "min_length must be at least 0. Received: -1."),
    ],
)
def test_refused(model, options, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        model.translate(["red cat"], **options)


def test_options_that_allow_no_translation(model, eagerly, monkeypatch):
    """As if the source had so many tokens that all of the vocabulary had been used."""
    monkeypatch.setattr(
        tensorflow_engine,
        "no_repeat_ngram",
        lambda size, logits, *_: logits * 0 + FORBIDDEN,
    )
    with pytest.raises(
        ValueError,
        match=r"The options must allow a translation .*: min_length=0, no_repeat_ngram",
    ):
        model.translate(["red cat"], no_repeat_ngram_size=1, extra_length=0)


NOT_TEXT = [
    5,
    1.5,
    None,
    True,
    b"red cat",
    bytearray(b"red cat"),
    {"red cat": "dog"},
    {"red cat"},
]


@pytest.mark.parametrize("what", NOT_TEXT, ids=repr)
def test_what_is_not_text(model, what):
    message = (
        r"A string or a list of strings is required\. Received:"
        rf" {re.escape(repr(what))}[.,]"
    )
    for refuse in (
        model.translate,
        model.n_best,
        lambda text: model.score(text, text),
        lambda text: model.score(["red cat"], text),
    ):
        with pytest.raises(ValueError, match=message):
            refuse(what)


class Table:
    """A table as pandas and others have it: iteration yields the names of columns."""

    shape = (2, 1)

    def __init__(self, **columns):
        self.columns = columns

    def __iter__(self):
        return iter(self.columns)

    def __len__(self):
        return 2

    def __repr__(self):
        return "    en\n0   red cat"


NOT_A_LIST_OF_TEXTS = [
    Table(en=["red cat", "dog"]),
    {"en": "red cat"}.keys(),
    {"en": "red cat"}.items(),
    {"en": "red cat"}.values(),
    frozenset(["red cat"]),
    np.array([["red cat"], ["dog"]]),
    np.array("red cat"),
]


@pytest.mark.parametrize(
    "what", NOT_A_LIST_OF_TEXTS, ids=lambda what: type(what).__name__
)
def test_what_iteration_does_not_give_the_texts_of(model, what):
    """A table yields the names of its columns, a mapping its keys."""
    message = r"is required\. Received: .*, as in table\['en'\], or make a list"
    doors = [
        model.translate,
        model.n_best,
        lambda texts: model.translate(["red cat"], prefix=texts),
        lambda texts: model.score(["red cat"], texts),
        lambda texts: model.score(texts, ["katze rot"]),
        lambda texts: model.decode(texts, model.options()),
        lambda texts: model.align(texts, []),
        lambda texts: corpus_scores(texts, ["katze rot"]),
        lambda texts: corpus_scores(["katze rot"], texts),
        lambda texts: paired_bootstrap(["katze rot"], ["katze rot"], texts),
        lambda texts: compound_split_bleu(texts, ["katze rot"]),
    ]
    for door in doors:
        with pytest.raises(ValueError, match=message):
            door(what)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (
            [{"id": "1", "translation": {"en": "red cat", "de": "katze rot"}}],
            r"at index 0\.",
        ),
        (iter([{"en": "red cat"}]), r"at index 0\."),
        (io.BytesIO(b"red cat\n"), r"b'red cat\\n', not yet decoded: .* at index 0\."),
        (itertools.repeat(("red cat", "katze rot")), r"Received: \('red cat', 'kat"),
    ],
)
def test_the_expression_of_a_text_is_named(model, rows, message):
    with pytest.raises(ValueError, match=f"must be a string.*{message}"):
        model.translate(rows)


@pytest.mark.parametrize("what", [*NOT_TEXT[:2], *NOT_TEXT[4:], ["red cat"]], ids=repr)
def test_attention_is_of_one_sentence(model, what):
    received = rf"must be one string\. Received: {re.escape(repr(what))}[.,]"
    with pytest.raises(ValueError, match=f"source {received}"):
        model.attention(what)
    with pytest.raises(ValueError, match=f"target {received}"):
        model.attention("red cat", what)


@pytest.mark.parametrize(
    "make",
    [iter, tuple, np.array, collections.deque, lambda texts: (each for each in texts)],
)
def test_other_lists_of_strings_are_accepted(model, make):
    sentences = ["red cat sees dog", "", "dog"]
    assert model.translate(make(sentences)) == model.translate(sentences)
    targets = model.translate(sentences)
    outputs = model.n_best(sentences)
    assert model.decode(make(sentences), model.options(return_beams=4)) == outputs
    assert model.align(make(sentences), outputs) == model.align(sentences, outputs)
    assert model.score(make(sentences), make(targets)) == model.score(
        sentences, targets
    )


@pytest.mark.parametrize(
    ("sentences", "n_best", "message"),
    [
        ("red cat", [], r"A list of sentences is required\. Received: one string\."),
        (None, [], r"A list of sentences is required\. Received: None\."),
        ([b"red cat"], [[]], r"Each sentence must be a string\. Received: b'red cat'"),
        (["red cat"], "rote katze", r"for each of .* Received: 'rote katze'\."),
        (["red cat"], ["rote katze"], r"Received: \['rote katze'\]\."),
        (["red cat"], [["rote katze"]], r"Received: \[\['rote katze'\]\]\. Use n_best"),
        (["red cat"], [None], r"Received: \[None\]\."),
        (["red cat"], [Output("rote katze", -1.0, -1.0, (3, 4))], r"n_best must be"),
        (["red cat", "dog"], [[]], r"of the 2 sentences\. Received: \[\[\]\]\."),
    ],
)
def test_what_cannot_be_aligned(model, sentences, n_best, message):
    with pytest.raises(ValueError, match=message):
        model.align(sentences, n_best)


@pytest.mark.parametrize("options", [None, {}, {"beam_size": 2}, "beam_size=2"])
def test_what_are_not_options(model, options):
    with pytest.raises(ValueError, match=r"options must be DecodeHParams, which .*\."):
        model.decode(["red cat"], options)


def test_prefixes_that_do_not_fit(model):
    with pytest.raises(
        ValueError,
        match=(
            r"Each sentence needs a prefix, which may be empty\. Received: 2 sentences,"
            r" 1 pre"
        ),
    ):
        model.translate(["red cat", "dog"], prefix=["katze"])
    with pytest.raises(ValueError, match=r"at most 2,048 tokens"):
        model.translate(["red cat"], prefix=["katze " * 2100])


def test_threads_build_searches_and_decode_at_a_time(tiny_run):
    model = t2tlite.load(tiny_run.run)
    options = [model.options(beam_size=size) for size in (2, 3, 2, 3)]
    with ThreadPoolExecutor(len(options)) as threads:
        together = list(
            threads.map(lambda chosen: model.decode(SENTENCES, chosen), options)
        )
    assert together == [model.decode(SENTENCES, chosen) for chosen in options]


@pytest.mark.parametrize("task", ["translation", "parsing"])
def test_more_samples_than_the_beam_is_wide(model, task):
    options = model.options(return_beams=9, extra_length=3, **RANDOM)
    (outputs,) = model.decode(["red cat sees dog"], options, task=open_task(task, {}))
    assert len(outputs) == 9
