"""Text is split into sentences and put together again without the loss of a
character.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from t2tlite.programs.serving.sentence_splitter import split_text


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("Hello there.  How are you?", ["Hello there.", "How are you?"]),
        ("One\ntwo\r\n\r\nthree", ["One", "two", "three"]),
        (
            "Dr. Smith met J. R. Miller. They left.",
            ["Dr. Smith met J. R. Miller.", "They left."],
        ),
        (
            "Das war am 3. Mai, z.B. in Ulm. Danach nicht.",
            ["Das war am 3. Mai, z.B. in Ulm.", "Danach nicht."],
        ),
        ('He said: "Go!" Then he left.', ['He said: "Go!"', "Then he left."]),
        (
            "It costs 3.50 euros... and more. Yes!",
            ["It costs 3.50 euros... and more.", "Yes!"],
        ),
        ("See e.g. Paris.", ["See e.g. Paris."]),
        ("In 1999. In 2000.", ["In 1999.", "In 2000."]),
        ("猫は寝る。犬は寝ない。", ["猫は寝る。", "犬は寝ない。"]),
        ("¿Qué? ¡No! Sí.", ["¿Qué?", "¡No!", "Sí."]),
        ("", []),
        (" \n\t ", []),
    ],
)
def test_sentences_end_where_a_reader_ends_them(text, sentences):
    assert [segment.sentence for segment in split_text(text).segments] == sentences


WHITE_SPACE = st.sampled_from(
    [
        " ",
        "  ",
        "\n",
        "\r\n",
        "\t",
        "\u00a0",
        "\u2028",
        "\x85",
        "\x1c",
        "\u3000",
        ". ",
        "! ",
        "。",
    ]
)


@settings(deadline=None, derandomize=True)
@given(st.lists(st.one_of(st.text(max_size=8), WHITE_SPACE)).map("".join))
def test_any_text_is_put_together_again(text):
    result = split_text(text)
    assert result.join([segment.sentence for segment in result.segments]) == text
    for before, sentence in result.segments:
        assert before == "" or before.isspace()
        assert sentence
        assert sentence == sentence.strip()
        assert len(sentence.splitlines()) == 1
    assert result.after == "" or result.after.isspace()
