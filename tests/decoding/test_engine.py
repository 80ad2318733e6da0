"""What engines and exports support: options that they do not know are refused."""

import dataclasses
import re

import pytest

from t2tlite.config import DecodeHParams
from t2tlite.decoding.engine import ALIGNMENTS, EVERYTHING, PREFIXES, check_supported
from t2tlite.programs.export import ctranslate2_engine, saved_model

SUPPORTED = {
    "ctranslate2": ctranslate2_engine.SUPPORTED,
    "saved_model": saved_model.SUPPORTED,
}


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
