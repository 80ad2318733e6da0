"""Options that an engine or a format does not know are refused."""

import pytest
from fake_engine import FakeEngine

from t2tlite.config import DecodeHParams
from t2tlite.decoding.engine import (
    ALIGNMENTS,
    EVERYTHING,
    PREFIXES,
    Sentence,
    check_supported,
)
from t2tlite.programs.export.formats import FORMATS


@pytest.mark.parametrize("name", ["ctranslate2", "saved_model"])
@pytest.mark.parametrize(
    ("options", "features", "received"),
    [
        ({"sampling_method": "random"}, [], "sampling_method=random"),
        ({}, [PREFIXES, ALIGNMENTS], "prefixes, alignments"),
    ],
)
def test_what_a_format_does_not_know_is_refused(name, options, features, received):
    supported = FORMATS[name].supported
    check_supported("It", supported, DecodeHParams(beam_size=8, t2t_rules=True))
    message = rf"^It supports alpha, .*Received: {received}\. .* use tensorflow"
    with pytest.raises(ValueError, match=message):
        check_supported("It", supported, DecodeHParams(**options), *features)
    chosen = {"min_length": 3, "no_repeat_ngram_size": 2, "sampling_method": "random"}
    check_supported("It", EVERYTHING, DecodeHParams(**chosen), PREFIXES, ALIGNMENTS)


class Plain(FakeEngine):
    """Supports nothing but a beam."""

    name = "plain"
    supported = frozenset({"beam_size"})


@pytest.mark.parametrize(
    ("sentence", "options", "received"),
    [
        (Sentence([5]), {"alpha": 1.0}, "alpha=1.0"),
        (Sentence([5], [6]), {}, "prefixes"),
    ],
)
def test_an_engine_refuses_before_it_computes(sentence, options, received):
    engine = Plain()
    message = rf"^The engine plain supports beam_size\. Received: {received}\. Leave"
    with pytest.raises(ValueError, match=message):
        engine.decode([sentence], DecodeHParams(**options))
    with pytest.raises(ValueError, match=r"Received: alignments\."):
        list(engine.cross_attention([[5]], [[6]], DecodeHParams()))
    assert engine.decoded == engine.attended == []


def test_blank_sentences_and_empty_prefixes_need_no_support():
    engine = Plain()
    n_best = engine.decode([Sentence([]), Sentence([5])], DecodeHParams(beam_size=2))
    assert [hypotheses[0].ids for hypotheses in n_best] == [[], []]
    assert engine.decoded == [[Sentence([5])]]
