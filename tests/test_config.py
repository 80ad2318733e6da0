"""Hyperparameters: checked values, overrides from the command line, JSON."""

import dataclasses
import json
import re

import pytest

from t2tlite import checked_fields
from t2tlite.checked_fields import facts_of
from t2tlite.config import MODEL_FIELDS, DecodeHParams, HParams
from t2tlite.training.loop_config import LoopConfig

# What tensor2tensor's fixture file parses: a, b, c, d as here, and lists e and f, which
# t2tlite does not have.
Toy = dataclasses.make_dataclass(
    "HParams",
    [("a", int, 1), ("b", float, 0.5), ("c", str, "x"), ("d", bool, True)],
    bases=(checked_fields.CheckedFields,),
    frozen=True,
)

NO_SUCH_FIELD = r"hparams has no field '{}'\. "
# Specification -> our message. Those that tensor2tensor takes and we refuse:
NEWLY_REFUSED = {
    # it reads an empty text
    "c=": r"c takes plain text, without quotes or brackets\. Received: ''\.",
    "e=[3,4,5]": NO_SUCH_FIELD.format("e"),  # no field is a list
    "e=[]": NO_SUCH_FIELD.format("e"),
}
# Those that it refuses as well:
REFUSED_BY_BOTH = {
    "d=yes": r"d must be true or false\. Received: 'yes'\.",
    "e=7": NO_SUCH_FIELD.format("e"),
    "e[1]=9": NO_SUCH_FIELD.format(r"e\[1\]"),
    "a=1.5": r"a must be a whole number\. Received: '1\.5'\.",
    "a=x": r"a must be a whole number\. Received: 'x'\.",
    "a=": r"a must be a whole number\. Received: ''\.",
    "a=[1,2]": r"a must be a whole number\. Received: '\[1'\.",
    "a=1,a=2": r"A field can be set once\. Received: 'a' twice in 'a=1,a=2'\.",
    "zz=1": NO_SUCH_FIELD.format("zz") + r"Known: a, b, c, d\.",
    "f=3": NO_SUCH_FIELD.format("f"),
    "learning_rate=": NO_SUCH_FIELD.format("learning_rate"),
    'c="q,r"': r"c takes plain text, without quotes or brackets\. Received: '\"q'\.",
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
    accepted = {
        spec: values for spec, values in readings.items() if spec not in REFUSED
    }
    assert len(accepted) >= 13
    for spec, values in accepted.items():
        ours = dataclasses.asdict(Toy().override(spec))
        theirs = {name: values[name] for name in ours}
        assert ours == theirs, spec
        assert {name: type(value) for name, value in ours.items()} == {
            "a": int,
            "b": float,
            "c": str,
            "d": bool,
        }, spec


def test_refused_specifications_are_tensor2tensors(readings):
    assert {spec for spec, values in readings.items() if values is None} == set(
        REFUSED_BY_BOTH
    )
    assert all(readings[spec] is not None for spec in NEWLY_REFUSED)


@pytest.mark.parametrize(("spec", "message"), REFUSED.items())
def test_refused_specifications(spec, message):
    with pytest.raises(ValueError, match=message):
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
        "jit_compile": (True, False),
        "learning_rate_constant": (2.0, 1.0),
    }
    assert type(after.learning_rate_constant) is float


@pytest.mark.parametrize("text", ["", " ", ",", " , ,"])
def test_override_with_nothing(text):
    assert HParams().override(text) == HParams()


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("true", True),
        ("True", True),
        ("1", True),
        ("false", False),
        ("FALSE", False),
        ("0", False),
    ],
)
def test_override_booleans(value, expected):
    assert HParams().override(
        f"shared_embedding_and_softmax_weights={value}"
    ).shared_embedding_and_softmax_weights is (expected)


def test_field_keeps_its_type_after_a_whole_number():
    hparams = dataclasses.replace(HParams(), learning_rate_constant=2)
    assert hparams.override("learning_rate_constant=1.5").learning_rate_constant == 1.5


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "hiden_size=512",
            r"hparams has no field 'hiden_size'\. Did you mean 'hidden_size'.*\?",
        ),
        (
            "qqqq=1",
            (
                r"hparams has no field 'qqqq'\. Known: accumulate_steps, .*embedding,"
                r" weight_decay\."
            ),
        ),
        (
            "num_heads",
            r"Each change must be field=value\. Received: 'num_heads' in 'num_heads'\.",
        ),
        (
            "num_heads=4,=5",
            r"Each change must be field=value\. Received: '=5' in 'num_heads=4,=5'\.",
        ),
        ("batch_size=1e4", r"batch_size must be a whole number\. Received: '1e4'\."),
        ("relu_dropout=none", r"relu_dropout must be a number\. Received: 'none'\."),
        ("jit_compile=", r"jit_compile must be true or false\. Received: ''\."),
        (
            "pos='emb'",
            r"pos takes plain text, without quotes or brackets\. Received: \"'emb'\"\.",
        ),
        (
            "hidden_size==512",
            r"hidden_size must be a whole number\. Received: '=512'\.",
        ),
        # fields that do not go together
        (
            "hidden_size=511,num_heads=7",
            r"hidden_size must be even for sinusoid positions\. Received: 511\.",
        ),
        (
            "num_heads=3",
            (
                r"The attention key channels must be a multiple of num_heads\."
                r" Received: 512 channels, num_heads=3"
            ),
        ),
        (
            "attention_key_channels=100",
            (
                r"key channels .*Received: 100 channels, num_heads=8\. Set"
                r" attention_key_channels"
            ),
        ),
        (
            "attention_value_channels=100",
            r"The attention value channels .* Set attention_value_channels",
        ),
        (
            "layer_preprocess_sequence=n",
            r"A sublayer normalises once: .* Received: n with dan\.",
        ),
        (
            "layer_postprocess_sequence=da",
            r"A sublayer normalises once: .* Received: none with da\.",
        ),
        (
            "batch_size=255",
            (
                r"batch_size must be at least max_length.*batch_size=255,"
                r" max_length=256\. Lower max_length"
            ),
        ),
        (
            "global_batch_tokens=255",
            r"global_batch_tokens must be at least max_length, .*=255, max_length=256",
        ),
        (
            "corpus_weights=1:0",
            (
                r"corpus_weights must be whole numbers from 1 to 9,999.* 1:4\."
                r" Received: '1:0'\."
            ),
        ),
        (
            "corpus_weights=-1:2",
            (
                r"whole numbers from 1 .* Received: '-1:2'\. Leave it out to weigh all"
                r" pairs alike\."
            ),
        ),
        ("corpus_weights=1:2.5", r"whole numbers from 1 .* Received: '1:2\.5'\."),
        ("corpus_weights=1:", r"whole numbers from 1 .* Received: '1:'\."),
        ("corpus_weights=one", r"whole numbers from 1 .* Received: 'one'\."),
        ("corpus_weights=10000:1", r"whole numbers from 1 .* Received: '10000:1'\."),
        # ranges
        ("hidden_size=0", r"hidden_size must be at least 2\. Received: 0\."),
        (
            "label_smoothing=1",
            (
                r"label_smoothing must be at least 0\.0 and at most 0\.99\. Received:"
                r" 1\.0\."
            ),
        ),
        (
            "pos=learned",
            (
                r"pos must be one of timing, timing_halves, emb, none\. Received:"
                r" 'learned'\."
            ),
        ),
        (
            "learning_rate_constant=inf",
            r"learning_rate_constant must be a finite number\. Received: inf\.",
        ),
        (
            "learning_rate_constant=nan",
            r"learning_rate_constant must be at least 1e-09\. Received: nan\.",
        ),
    ],
)
def test_override_refuses(text, message):
    with pytest.raises(ValueError, match=message):
        HParams().override(text)


def test_decode_hparams_have_limits_and_a_flag_of_their_own():
    assert DecodeHParams().override("beam_size=8,alpha=1,return_beams=8").diff(
        DecodeHParams()
    ) == {
        "beam_size": (8, 4),
        "alpha": (1.0, 0.6),
        "return_beams": (8, 1),
    }
    for text, message in (
        (
            "beamsize=4",
            r"decode_hparams has no field 'beamsize'\. Did you mean 'beam_size'",
        ),
        (
            "beam_size=0",
            r"beam_size must be at least 1 and at most 1024\. Received: 0\.",
        ),
        (
            "return_beams=5",
            (
                r"must be at most beam_size\. .*return_beams=5, beam_size=4\. Raise"
                r" beam_size\."
            ),
        ),
    ):
        with pytest.raises(ValueError, match=message):
            DecodeHParams().override(text)


@pytest.mark.parametrize(
    "settings",
    [HParams(), DecodeHParams(), LoopConfig(train_steps=1)],
    ids=lambda s: type(s).__name__,
)
def test_every_field_has_its_range_checked(settings):
    for field in dataclasses.fields(settings):
        facts = facts_of(field)
        if facts.kind is bool or (facts.kind is str and not facts.choices):
            continue
        if facts.choices:
            outside, message = (
                ["other"],
                f"must be one of {', '.join(facts.choices)}. Received: 'other'.",
            )
        else:
            high = [] if facts.high is None else [facts.kind(facts.high + 1)]
            outside, message = (
                [
                    facts.kind(facts.low - 1),
                    *high,
                ],
                f"must be {facts.range}. Received: ",
            )
        for value in outside:
            with pytest.raises(ValueError, match=f"^{field.name} {re.escape(message)}"):
                dataclasses.replace(settings, **{field.name: value})


@pytest.mark.parametrize(
    "text",
    [
        "hidden_size=511,num_heads=7,pos=emb",
        "attention_key_channels=128",
        "layer_preprocess_sequence=n,layer_postprocess_sequence=da",
        "batch_size=256",
    ],
)
def test_fields_that_go_together(text):
    HParams().override(text)


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
    base = HParams()
    assert (
        base.encoder_layers,
        base.decoder_layers,
        base.key_channels,
        base.value_channels,
    ) == (6, 6, 512, 512)
    other = base.override(
        "num_decoder_layers=2,attention_key_channels=128,attention_value_channels=256"
    )
    assert (
        other.encoder_layers,
        other.decoder_layers,
        other.key_channels,
        other.value_channels,
    ) == (6, 2, 128, 256)
    assert not base.pre_norm
    assert base.override(
        "layer_preprocess_sequence=n,layer_postprocess_sequence=da"
    ).pre_norm


@pytest.mark.parametrize("kind", [HParams, DecodeHParams])
def test_frozen_and_comparable(kind):
    hparams = kind()
    with pytest.raises(
        dataclasses.FrozenInstanceError, match="cannot assign to field 'batch_size'"
    ):
        hparams.batch_size = 1
    assert hparams == kind()
    assert hash(hparams) == hash(kind())
    assert hparams != hparams.override("batch_size=999")


@pytest.mark.parametrize(
    "hparams",
    [
        HParams(),
        HParams().override("hidden_size=256,optimizer_adam_epsilon=1e-9,pos=emb"),
        DecodeHParams(),
    ],
)
def test_values_round_trip(hparams):
    assert type(hparams).of(dataclasses.asdict(hparams)) == hparams


def test_a_field_without_a_value_keeps_its_default():
    expected = HParams().override("num_heads=4")
    assert HParams.of({"num_heads": 4, "relu_dropout": 0}) == expected
    assert HParams.of({}) == HParams()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            '{"num_head": 4}',
            r"hparams has no field 'num_head'\. Did you mean 'num_heads'",
        ),
        ('{"num_heads": "4"}', r"num_heads must be of type int\. Received: '4'\."),
        ('{"num_heads": 4.0}', r"num_heads must be of type int\. Received: 4\.0\."),
        ('{"num_heads": true}', r"num_heads must be of type int\. Received: True\."),
        ('{"num_heads": null}', r"num_heads must be of type int\. Received: None\."),
        (
            '{"relu_dropout": false}',
            r"relu_dropout must be of type float\. Received: False\.",
        ),
        ('{"jit_compile": 1}', r"jit_compile must be of type bool\. Received: 1\."),
        ('{"pos": 3}', r"pos must be of type str\. Received: 3\."),
        (
            '{"optimizer_adam_epsilon": Infinity}',
            r"optimizer_adam_epsilon must be a finite number\. Received: inf\.",
        ),
        (
            '{"relu_dropout": NaN}',
            r"relu_dropout must be at least 0\.0 and at most 0\.99\. Received: nan\.",
        ),
        ('{"num_heads": 0}', r"num_heads must be at least 1\. Received: 0\."),
        (
            f'{{"num_heads": {2**31}}}',
            (
                r"num_heads must be a number of at most 2,147,483,647\. Received:"
                r" 2147483648\."
            ),
        ),
        (
            f'{{"norm_epsilon": {10**400}}}',
            r"norm_epsilon must be a number of at most 2,147,483,647\. Received: 1000",
        ),
    ],
)
def test_values_refused(text, message):
    with pytest.raises(ValueError, match=message):
        HParams.of(json.loads(text))


def test_fields_that_change_the_model():
    assert {
        "hidden_size",
        "num_decoder_layers",
        "pos",
        "norm_epsilon",
        "self_attention_radius",
    } <= set(MODEL_FIELDS)
    # What may change while a model trains on:
    assert {
        "layer_prepostprocess_dropout",
        "batch_size",
        "train_steps",
        "dtype_policy",
    }.isdisjoint(MODEL_FIELDS)
