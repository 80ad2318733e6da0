"""Hyperparameters: checked values, overrides from the command line, JSON."""

import dataclasses
import json
import re
import typing

import numpy as np
import pytest

from t2tlite import checked_fields, config
from t2tlite.checked_fields import Facts, facts_of
from t2tlite.config import DecodeHParams, HParams
from t2tlite.training.loop_config import LoopConfig, LoopOptions

# What tensor2tensor's fixture file parses: a, b, c, d as here, and lists e and f, which
# t2tlite does not have.
Toy = dataclasses.make_dataclass(
    "HParams",
    [("a", int, 1), ("b", float, 0.5), ("c", str, "x"), ("d", bool, True)],
    bases=(checked_fields.CheckedFields,),
    frozen=True,
)

NO_SUCH_FIELD = "hparams has no field '{}'. "
PLAIN_TEXT = "c must be text without quotes or brackets. Received: {!r}."
NO_CHANGES = "Changes must be field=value,... and each field once. Received: {!r} in "
# Specification -> our message. Those that tensor2tensor takes and we refuse:
NEWLY_REFUSED = {
    "c=": PLAIN_TEXT.format(""),  # it reads an empty text
    "e=[3,4,5]": NO_CHANGES.format("4"),  # no field is a list
    "e=[]": NO_SUCH_FIELD.format("e"),
}
# Those that it refuses as well:
REFUSED_BY_BOTH = {
    "d=yes": "d must be true or false. Received: 'yes'.",
    "e=7": NO_SUCH_FIELD.format("e"),
    "e[1]=9": NO_SUCH_FIELD.format("e[1]"),
    "a=1.5": "a must be a whole number. Received: '1.5'.",
    "a=x": "a must be a whole number. Received: 'x'.",
    "a=": "a must be a whole number. Received: ''.",
    "a=[1,2]": NO_CHANGES.format("2]"),
    "a=1,a=2": NO_CHANGES.format("a=2"),
    "zz=1": NO_SUCH_FIELD.format("zz") + "Known: a, b, c, d.",
    "f=3": NO_SUCH_FIELD.format("f"),
    "learning_rate=": NO_SUCH_FIELD.format("learning_rate"),
    'c="q,r"': NO_CHANGES.format('r"'),
}
# Not in the fixture:
OTHERS = {
    "b=none": "b must be a number. Received: 'none'.",
    "a": NO_CHANGES.format("a"),
    "a=4,=5": NO_CHANGES.format("=5"),
    "a==5": "a must be a whole number. Received: '=5'.",
    "d=": "d must be true or false. Received: ''.",
    "c='q'": PLAIN_TEXT.format("'q'"),
    "b=inf": "b must be at most 1e+300. Received: inf.",
}
REFUSED = NEWLY_REFUSED | REFUSED_BY_BOTH


@pytest.fixture(scope="module")
def readings(fixtures):
    """tensor2tensor's reading of each specification: a dict of values, or None where it
    refuses.
    """
    entries = json.loads(
        (fixtures / "tensor2tensor" / "hparams_parse.json").read_text()
    )
    return {entry["spec"]: entry.get("values") for entry in entries}


def test_reads_what_tensor2tensor_reads(readings):
    accepted = {name: read for name, read in readings.items() if name not in REFUSED}
    assert len(accepted) >= 13
    for spec, values in accepted.items():
        ours = dataclasses.asdict(Toy().override(spec))
        assert ours == {name: values[name] for name in ours}, spec
        kinds = [type(value) for value in ours.values()]
        assert kinds == [int, float, str, bool], spec
    refused = {spec for spec, values in readings.items() if values is None}
    assert refused == set(REFUSED_BY_BOTH)
    assert NEWLY_REFUSED.keys() < readings.keys()


@pytest.mark.parametrize(("spec", "message"), (REFUSED | OTHERS).items())
def test_refused_specifications(spec, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        Toy().override(spec)


def test_override_changes_only_what_it_names():
    before = HParams()
    after = before.override(
        "hidden_size=256, pos=emb"
        " ,jit_compile=TRUE,relu_dropout=0,learning_rate_constant=2,"
    )
    assert before == HParams()
    assert after.diff(before) == {
        "hidden_size": (256, 512),
        "pos": ("emb", "timing"),
        "jit_compile": (True, "auto"),
        "learning_rate_constant": (2.0, 1.0),
    }
    assert type(after.learning_rate_constant) is float
    assert after.override("jit_compile=auto").jit_compile == "auto"


@pytest.mark.parametrize("text", ["", " , ,"])
def test_override_with_nothing(text):
    assert HParams().override(text) == HParams()


def test_override_booleans():
    for value in ("true", "True", "1"):
        assert Toy(d=False).override(f"d={value}").d is True
    assert Toy().override("d=FALSE") == Toy().override("d=0") == Toy(d=False)


WEIGHTS = r"corpus_weights must be like 1:4, each from 1 to 9999"
MIN_BATCH = "batch_size and global_batch_tokens must be at least max_length"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hiden_size=512", r"hparams has no field 'hiden_size'\. Did you mean 'hidden_size'.*\?"),
        ("qqqq=1", r"no field 'qqqq'\. Known: accumulate_steps, .*embedding, weight_decay\."),
        # fields that do not go together
        ("hidden_size=511,num_heads=7", r"hidden_size must be even with this pos\. Received: 511\."),
        ("num_heads=3", r"attention_key_channels must be a multiple of num_heads\. Received: 512 and 3"),
        ("attention_value_channels=100", "attention_value_channels must be .* Received: 100 and 8"),
        ("layer_preprocess_sequence=n", "must be none and dan, or n and da"),
        ("layer_postprocess_sequence=da", "must be none and dan, or n and da"),
        ("batch_size=255", MIN_BATCH + r"\. Received: 255, 0, 256\."),
        ("global_batch_tokens=255", MIN_BATCH + r"\. Received: 4096, 255, 256\."),
        ("corpus_weights=1:0", WEIGHTS + r"\. Received: '1:0'\."),
        ("corpus_weights=1:2.5", WEIGHTS),
        ("corpus_weights=1:", WEIGHTS),
        ("corpus_weights=10000:1", WEIGHTS),
        # ranges
        ("hidden_size=0", r"hidden_size must be at least 2\. Received: 0\."),
        ("label_smoothing=1", r"label_smoothing must be at least 0\.0 and at most 0\.99\. Received: 1\.0\."),
        ("pos=learned", r"pos must be one of timing, timing_halves, emb, none\. Received: 'learned'\."),
        ("learning_rate_constant=nan", r"learning_rate_constant must be at least 1e-09\. Received: nan\."),
    ],
)  # fmt: skip
def test_override_refuses(text, message):
    with pytest.raises(ValueError, match=message):
        HParams().override(text)


def test_numbers_of_numpy_are_numbers():
    options = DecodeHParams(
        beam_size=np.int64(3), alpha=np.float32(0.5), t2t_rules=np.True_
    )
    assert options == DecodeHParams(beam_size=3, alpha=0.5, t2t_rules=True)
    assert {type(value) for value in vars(options).values()} == {int, float, bool, str}
    assert DecodeHParams(alpha=np.int32(1), extra_length=np.array(8)).alpha == 1
    with pytest.raises(
        ValueError, match=r"beam_size must be of type int\. Received: 2"
    ):
        DecodeHParams(beam_size=np.float64(2.0))
    with pytest.raises(ValueError, match=r"beam_size must be at least 1"):
        DecodeHParams(beam_size=np.int64(0))


def values_outside(facts: Facts) -> list[object]:
    """Values just outside the range of a field."""
    if facts.choices:
        return ["other"]
    values: list[object] = []
    if facts.low is not None:
        values.append(facts.kind(facts.low - 1))
    if facts.high is not None:
        values.append(facts.kind(facts.high + 1))
    return values


@pytest.mark.parametrize(
    "settings",
    [HParams(), DecodeHParams(), LoopConfig(train_steps=1)],
    ids=lambda s: type(s).__name__,
)
def test_every_field_has_its_range_checked(settings):
    for field in dataclasses.fields(settings):
        facts = facts_of(field)
        values = values_outside(facts)
        assert facts.meaning, field.name
        assert values or facts.kind in (bool, str), f"{field.name} has no range"
        for value in values:
            expected = str(facts.choices[0] if facts.choices else facts.low)
            with pytest.raises(
                ValueError, match=f"^{field.name} must be .*{re.escape(expected)}"
            ):
                dataclasses.replace(settings, **{field.name: value})


def test_a_global_batch_is_shared_by_the_replicas():
    hparams = HParams(global_batch_tokens=25_000, batch_size=4_096)
    steps = {
        replicas: hparams.for_replicas(replicas).accumulate_steps
        for replicas in (1, 3, 8, 100)
    }
    # 6 x 4,096 < 25,000 <= 7 x 4,096; 2 x 3 x 4,096 < 25,000
    assert steps == {1: 7, 3: 3, 8: 1, 100: 1}
    assert {
        hparams.for_replicas(replicas).batch_tokens(replicas) for replicas in steps
    } == {25_000}
    assert HParams(accumulate_steps=5).for_replicas(3) == HParams(accumulate_steps=5)
    assert HParams(accumulate_steps=5, batch_size=1_000).batch_tokens(3) == 15_000


def test_what_zero_stands_for():
    hparams = HParams().override("num_decoder_layers=2,attention_key_channels=128")
    assert (hparams.encoder_layers, hparams.decoder_layers) == (6, 2)
    assert (hparams.key_channels, hparams.value_channels) == (128, 512)


TOO_LARGE = r"must be at most 2147483647\. Received: 2147483648"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"num_heads": "4"}', r"num_heads must be of type int\. Received: '4'\."),
        ('{"num_heads": 4.0}', r"num_heads must be of type int\. Received: 4\.0\."),
        ('{"num_heads": true}', r"num_heads must be of type int\. Received: True\."),
        ('{"relu_dropout": false}', r"relu_dropout must be of type float\. Received: False\."),
        ('{"jit_compile": 1}', r"jit_compile must be of type bool or auto\. Received: 1\."),
        ('{"optimizer_adam_epsilon": Infinity}', r"optimizer_adam_epsilon must be at most 1e\+300"),
        ('{"relu_dropout": NaN}', r"relu_dropout must be at least 0\.0 and at most 0\.99\. Received: nan\."),
        (f'{{"num_heads": {2**31}}}', f"num_heads {TOO_LARGE}"),
        (f'{{"norm_epsilon": {10**400}}}', r"norm_epsilon must be at most 1e\+300\. Received: 1000"),
    ],
)  # fmt: skip
def test_values_refused(text, message):
    with pytest.raises(ValueError, match=message):
        HParams(**json.loads(text))


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        (config.DecodeOptions, DecodeHParams),
        (config.LoopArguments, LoopOptions),
    ],
)
def test_keyword_arguments_are_the_fields(kind, settings):
    kinds = {each.name: facts_of(each).kind for each in dataclasses.fields(settings)}
    assert typing.get_type_hints(kind) == kinds
