"""Text is split into sentences and put together again without the loss of a
character.
"""

import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from t2tlite.programs.documents.sentences import split_text

LIMIT_S = 3  # of CPU time, for what took 5 to 44 seconds, and takes about 0.05


@pytest.mark.parametrize(
    "sentences",
    [
        ["Dr. Smith met J. R. Miller.", "They left."],
        ['He said: "Go!"', "Then he left."],
        ["It costs 3.50 euros... and more.", "Yes!"],
        ["See e.g. Paris."],
        ["In 1999.", "In 2000."],
        ["¿Qué?", "¡No!", "Sí."],
        [],
        ["The U.S. President visited Rome."],
        ["We met on Jan. 5 in Rome."],
        ["Acme Corp. Chairman Paul Miller left."],
        ["1. We cry.", "2. We laugh."],
        ["IV. We cry."],
        ["a) We cry."],
        ["Wait...", "Then go."],
        ["“Go.”", "“No.”", "‘Yes.’", "Well."],
        ["He left (at 5 p.m.).", "She stayed."],
        ["We cry.\u200b", "We laugh.\u200f"],
        ["\ufeffWe cry.", "\u200fWe laugh."],
        ["1.\u200b We cry."],
        ["See example.Com now."],
    ],
)
def test_sentences_end_where_a_reader_ends_them(sentences):
    split = split_text(" ".join(sentences))
    assert [segment.sentence for segment in split.segments] == sentences


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("Hello there.  How are you?", ["Hello there.", "How are you?"]),
        ("One\ntwo\r\n\r\nthree", ["One", "two", "three"]),
        ("猫は寝る。犬は寝ない。", ["猫は寝る。", "犬は寝ない。"]),
        (" \n\t ", []),
        ("We cry.\u00a0We laugh.\u3000Yes.", ["We cry.", "We laugh.", "Yes."]),
        ("We cry.\u200b\u200b\u00a0We laugh.", ["We cry.\u200b\u200b", "We laugh."]),
        ("\u2022\u200b We cry.", ["We cry."]),
    ],
)
def test_any_white_space_is_between_sentences(text, sentences):
    assert [segment.sentence for segment in split_text(text).segments] == sentences


@pytest.mark.parametrize(
    ("language", "sentences"),
    [
        ("de", ["Das war am 3. Mai, z.B. in Ulm.", "Danach nicht."]),
        ("de", ["Er kam 300 v. Chr. Geburt."]),
        ("de", ["Im Okt. 2020 war es so."]),
        ("de_AT", ["Nr. 5, z. B. heute.", "Ja."]),
        ("de", ["Im 19. Jahrhundert.", "Ja."]),
        ("de", ["„Geh!“", "Dann ging er."]),
        ("de", ["Das war 2010.", "Danach nicht."]),
        ("fr", ["M. Dupont est là.", "Il dort."]),
        ("fr", ["Tu viens ?", "Oui !"]),
        ("fr", ["Il est né en 300 av. J.-C.", "Il est mort."]),
        ("hi", ["मैं जाता हूँ।", "तुम आओ।"]),
        ("ja", ["行く？", "はい！"]),
        ("zh-Hans", ["你好。", "再见！"]),
    ],
)
def test_sentences_end_by_the_rules_of_their_language(language, sentences):
    space = "" if language in ("ja", "zh-Hans") else " "
    split = split_text(space.join(sentences), language)
    assert [segment.sentence for segment in split.segments] == sentences


@pytest.mark.parametrize(
    ("text", "segments", "after"),
    [
        ("=====\nWe cry.\n* * *\nYes. 😀\n\u200b", [("=====\n", "We cry."), ("\n* * *\n", "Yes.")], " 😀\n\u200b"),
        ("We cry. 👍🏽 We laugh.", [("", "We cry."), (" 👍🏽 ", "We laugh.")], ""),
        ("We cry.❤\ufe0f", [("", "We cry.")], "❤\ufe0f"),
        ("* We cry.\n- No.", [("* ", "We cry."), ("\n- ", "No.")], ""),
        ("-5 degrees", [("", "-5 degrees")], ""),
        ("1\ufe0f\u20e3", [], "1\ufe0f\u20e3"),
        ("🇩🇪 👨‍👩‍👧 …", [], "🇩🇪 👨‍👩‍👧 …"),
        ("\u0301\u0301 _ ー", [("", "\u0301\u0301 _ ー")], ""),
        ("\u0301 \u3164 _", [], "\u0301 \u3164 _"),
        ("1. We cry.\n12:30, 25.000 €\n+49 30 1234", [("", "1. We cry.")], "\n12:30, 25.000 €\n+49 30 1234"),
        ("https://a.b/c?d=Ж a.b@c-d.org\nwww.a.b", [], "https://a.b/c?d=Ж a.b@c-d.org\nwww.a.b"),
        ("看https://a.b看", [("", "看https://a.b看")], ""),
        ("Go to a.b@c.d.", [("", "Go to a.b@c.d.")], ""),
        ("5 km. 7–8! 7 of 8.", [("", "5 km."), (" 7–8! ", "7 of 8.")], ""),
        ("٣ ५. ½", [], "٣ ५. ½"),
    ],
)  # fmt: skip
def test_text_without_a_letter_is_not_in_a_sentence(text, segments, after):
    split = split_text(text)
    assert [tuple(segment) for segment in split.segments] == segments
    assert split.after == after


def test_numbers_are_sentences_where_they_are_to_be_decoded():
    split = split_text("1 2 3\n* * *", numbers=True)
    assert [tuple(segment) for segment in split.segments] == [("", "1 2 3")]


WHITE_SPACE = st.sampled_from(
    [" ", "  ", "\n", "\r\n", "\t", "\u00a0", "\u2028", "\x85", "\x1c", "\u3000",
     ". ", "! ", "。", "😀", "1. ", "* ", ".) ", "(", "“", "A", "a"]
)  # fmt: skip
LANGUAGES = st.sampled_from("en de fr es pt it nl ru el ja zh ar hi hy th xx".split())


@settings(deadline=None, derandomize=True, max_examples=500)
@given(st.lists(st.one_of(st.text(max_size=8), WHITE_SPACE)).map("".join), LANGUAGES)
@example("Ela viu o J.\u00a0A. Santos.", "pt")
@example("\u00a0A.\u00a0B", "pt")
def test_any_text_is_put_together_again(text, language):
    result = split_text(text, language)
    assert result.join([segment.sentence for segment in result.segments]) == text
    for before, sentence in result.segments:
        assert not any(map(str.isalpha, before.replace("\u3164", "")))
        assert any(map(str.isalnum, sentence))
        assert sentence == sentence.strip()
        assert len(sentence.splitlines()) == 1
    assert not any(map(str.isalpha, result.after.replace("\u3164", "")))


def test_a_long_line_is_split_as_a_short_one():
    """Longer than what sentencex reads at once."""
    sentences = ["Dr. Smith met J. R. Miller (at 5 p.m.).", "They left the U.S. soon."]
    split = split_text(" ".join(sentences * 200))
    assert [segment.sentence for segment in split.segments] == sentences * 200


@pytest.mark.parametrize(
    "piece",
    [". ", "1. ", "\n", "a\n", '."', "- ", "‹", "「a。", "!(", "a. “", "a😀", "\u00a0", "a\u200b"],
)  # fmt: skip
def test_sentences_of_hostile_text_are_found_in_linear_time(piece):
    text = (piece * 200_000)[:200_000]
    started = time.process_time()
    split = split_text(text)
    assert split.join([segment.sentence for segment in split.segments]) == text
    assert time.process_time() - started < LIMIT_S
