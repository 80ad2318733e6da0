"""What engines and exports support: options that they do not know are refused."""

import dataclasses
import re

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
from t2tlite.programs.export.export import FORMATS

SUPPORTED = {name: FORMATS[name].supported for name in ("ctranslate2", "saved_model")}


@dataclasses.dataclass(frozen=True)
class NewHParams(DecodeHParams):
    """A field that was added later, and that nobody has heard of."""

    diversity: float = 0.0


@pytest.mark.parametrize("supported", SUPPORTED.values(), ids=SUPPORTED)
def test_new_option_is_refused_unless_it_is_at_its_default(supported):
    check_supported("It", supported, NewHParams(beam_size=8, t2t_rules=True))
    with pytest.raises(
        ValueError,
        match=(
            r"^It supports alpha, .*\. Received: diversity=0\.5\. Leave out what it"
            r" does"
        ),
    ):
        check_supported("It", supported, NewHParams(diversity=0.5))


@pytest.mark.parametrize(
    ("names", "options", "received"),
    [
        (SUPPORTED, {"sampling_method": "random"}, "sampling_method=random"),
        (
            SUPPORTED,
            {"sampling_method": "random", "sampling_seed": 3},
            "sampling_method=random, sampling_seed=3",
        ),
        (["ctranslate2"], {"min_length": 3}, "min_length=3"),
        (["ctranslate2"], {"no_repeat_ngram_size": 2}, "no_repeat_ngram_size=2"),
    ],
)
def test_options_are_refused_by_name(names, options, received):
    for name, supported in SUPPORTED.items():
        if name not in names:
            check_supported("It", supported, DecodeHParams(**options))
            continue
        with pytest.raises(ValueError, match=re.escape(f"Received: {received}. Leave")):
            check_supported("It", supported, DecodeHParams(**options))


def test_prefixes_and_alignments_are_refused_by_name():
    check_supported("It", EVERYTHING, DecodeHParams(min_length=3), PREFIXES, ALIGNMENTS)
    with pytest.raises(
        ValueError,
        match=r"Received: prefixes, alignments\. .* the engine tensorflow\.$",
    ):
        check_supported(
            "It", SUPPORTED["ctranslate2"], DecodeHParams(), PREFIXES, ALIGNMENTS
        )


class Plain(FakeEngine):
    """Supports nothing but a beam."""

    name = "plain"
    supported = frozenset({"beam_size"})


@pytest.mark.parametrize(
    ("use", "received"),
    [
        (
            lambda engine: engine.decode([Sentence([5])], DecodeHParams(alpha=1.0)),
            "alpha=1.0",
        ),
        (
            lambda engine: engine.decode([Sentence([5], [6])], DecodeHParams()),
            "prefixes",
        ),
        (
            lambda engine: engine.score([[5]], [[6]], DecodeHParams(min_length=2)),
            "min_length=2",
        ),
        (
            lambda engine: engine.cross_attention([[5]], [[6]], DecodeHParams()),
            "alignments",
        ),
    ],
    ids=["options", "prefixes", "score", "cross_attention"],
)
def test_an_engine_refuses_before_it_computes(use, received):
    engine = Plain()
    message = rf"^The engine plain supports beam_size\. Received: {received}\. Leave"
    with pytest.raises(ValueError, match=message):
        use(engine)
    assert engine.decoded == engine.attended == []


def test_blank_sentences_and_empty_prefixes_need_no_support():
    engine = Plain()
    n_best = engine.decode([Sentence([]), Sentence([5])], DecodeHParams(beam_size=2))
    assert [hypotheses[0].ids for hypotheses in n_best] == [[], []]
    assert engine.decoded == [[Sentence([5])]]
