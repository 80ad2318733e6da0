"""--hparams and --decode_hparams, and hparams.json."""

import dataclasses

import pytest
from fuzzing import TEXTS, VERBATIM, damaged_json, survives
from hypothesis import given
from hypothesis import strategies as st

from t2tlite.config import DecodeHParams, HParams
from t2tlite.files.records import write_record
from t2tlite.run_folder import RunFolder

KINDS = (HParams, DecodeHParams)
NAMES = [field.name for kind in KINDS for field in dataclasses.fields(kind)]
VALUES = "0 1 -1 1_000 ٣ 1e3 1e999 nan -inf 0x10 true TRUE no emb [8] 'x' = 8.0".split(
    " "
)
GOOD = [
    "num_heads=4",
    " beam_size = 8 ,alpha=0.5",
    "jit_compile=TRUE",
    "pos=emb",
    "return_beams=2",
    "relu_dropout=0",
]
ASSIGNMENTS = st.tuples(
    st.one_of(st.sampled_from(NAMES), TEXTS),
    st.sampled_from(["=", " = ", "", "==", ":"]),
    st.one_of(
        st.sampled_from(VALUES + VERBATIM),
        TEXTS,
        st.integers().map(str),
        st.floats().map(str),
    ),
).map("".join)


@pytest.mark.parametrize("kind", KINDS)
@given(
    text=st.lists(st.one_of(st.sampled_from(GOOD), ASSIGNMENTS), max_size=3).map(
        ",".join
    )
)
def test_override(kind, text):
    changed = []
    if survives(lambda: changed.append(kind().override(text))):
        assert kind(**dataclasses.asdict(changed[0])) == changed[0]


@given(data=st.data())
def test_hparams_json(data, tmp_path):
    run = RunFolder(tmp_path)
    path = run.path / "hparams.json"
    write_record(path, dataclasses.asdict(HParams()))
    path.write_bytes(data.draw(damaged_json(path.read_bytes())))
    survives(run.hparams)
