"""What a report is made of: TensorBoard's event files, charts and blocks of a
document.
"""

import pytest
import tensorflow as tf
from fuzzing import COSTLY, TEXTS, damaged_bytes, survives
from hypothesis import given
from hypothesis import strategies as st

from t2tlite.programs.report import document
from t2tlite.programs.report.run_report import Missing, read_metrics

STEPS = st.one_of(st.integers(0, 200), st.sampled_from([2**31, 2**53, 2**63 - 1, -1]))
NUMBERS = st.one_of(
    st.floats(),
    st.floats(0, 10),
    st.sampled_from([1e308, -1e308, 1e-308, 5e-324, 3.4e38]),
)
LINES = st.dictionaries(TEXTS, st.dictionaries(STEPS, NUMBERS), max_size=2)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """An event file as training writes it."""
    folder = tmp_path_factory.mktemp("events")
    with tf.summary.create_file_writer(str(folder)).as_default():
        for step in range(30):
            tf.summary.scalar("train/loss", 9.0 - step / 10, step=step)
        tf.summary.text("samples", ["source", "output"], step=30)
    (path,) = folder.iterdir()
    return path.read_bytes()


def read(folder):
    for values in read_metrics(folder, Missing()).values():
        assert all(type(value) is float for value in values.values())


@given(data=st.data())
def test_damaged_event_file(whole, data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("damaged", numbered=True)
    (folder / "events.out.tfevents.1").write_bytes(data.draw(damaged_bytes(whole)))
    assert survives(lambda: read(folder))


@COSTLY
@given(title=TEXTS, unit=TEXTS, lines=LINES)
def test_any_chart(title, unit, lines):
    assert survives(lambda: document.line_chart(title, unit, lines))


@given(text=TEXTS)
def test_any_text_in_a_document(text):
    def use() -> None:
        value = document.as_markdown(text)
        markdown = f"# {value}\n\n| {document.code(text)} |\n|---|\n\n"
        page = document.to_html(text, markdown + document.listing(text))
        assert "<script" not in page

    assert survives(use)
