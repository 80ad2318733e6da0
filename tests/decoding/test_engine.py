"""What engines and exports support: options that they do not know are refused."""

import dataclasses

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


@pytest.mark.parametrize("name", SUPPORTED)
@pytest.mark.parametrize(
    ("options", "features", "of_both", "received"),
    [
        ({"sampling_method": "random"}, [], True, "sampling_method=random"),
        ({"min_length": 3}, [], False, "min_length=3"),
        ({"no_repeat_ngram_size": 2}, [], False, "no_repeat_ngram_size=2"),
        ({}, [PREFIXES, ALIGNMENTS], True, "prefixes, alignments"),
    ],
)
def test_refused_by_name(name, options, features, of_both, received):
    chosen = DecodeHParams(**options)
    check_supported("It", EVERYTHING, chosen, *features)
    if not of_both and name != "ctranslate2":
        check_supported("It", SUPPORTED[name], chosen, *features)
        return
    message = rf"Received: {received}\. Leave .* the engine tensorflow\.$"
    with pytest.raises(ValueError, match=message):
        check_supported("It", SUPPORTED[name], chosen, *features)


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
