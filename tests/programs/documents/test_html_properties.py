"""Whatever the translator does, markup comes back once and nested as before, around all
of the translated text, in linear time.
"""

import re
import sys
from collections import Counter

import pytest
from html_trees import (
    UNTOUCHED_CONTENT,
    backwards,
    letters,
    parents,
    reordered,
    translated,
    trees,
    written,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from t2tlite.programs.documents.html_text import HtmlText

TAG = re.compile(r"<[^<>]*>")
WORDS = st.lists(st.sampled_from(["wort", "(a)", "b.", "-", "z!?", '"c"']), max_size=9)


@st.composite
def translators(draw):
    """A translator without any relation to the sentence: words and alignments drawn at
    random.
    """
    words = draw(st.lists(WORDS, min_size=1, max_size=4))
    links = draw(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=12))
    calls = iter(range(10**9))

    def translate(sentence):
        target = words[next(calls) % len(words)]
        count = len(sentence.split())
        alignment = []
        for source, place in links:
            if source < count and place < len(target):
                alignment.append((source, place))
        return " ".join(target), alignment

    return translate


@settings(deadline=None, derandomize=True, max_examples=400)
@given(trees(), translators(), st.booleans())
def test_every_tag_comes_back_once_and_nested_as_before(nodes, translate, inline):
    document = written(nodes)
    result = translated(document, translate, inline)
    assert parents(result) == parents(document)
    assert result.count(UNTOUCHED_CONTENT) == document.count(UNTOUCHED_CONTENT)


@settings(deadline=None, derandomize=True, max_examples=200)
@given(trees(), st.sampled_from([list, backwards]), st.booleans())
def test_every_letter_comes_back(nodes, order, inline):
    document = written(nodes)
    result = translated(document, reordered(order), inline)
    assert parents(result) == parents(document)
    assert sorted(letters(result)) == sorted(letters(document))
    if order is list and "<img" not in document:
        assert letters(result) == letters(document)


@settings(deadline=None, derandomize=True, max_examples=300)
@given(trees(st.sampled_from(["dog", "We", "x1"]), ["b", "i", "span", "div"], 1))
def test_words_that_stay_give_the_document_back(nodes):
    """With tags around whole words, and a space between any two."""
    document = written(nodes, " ")
    assert translated(document, unchanged) == document


def unchanged(sentence):
    return sentence, [(index, index) for index in range(len(sentence.split()))]


@settings(deadline=None, derandomize=True, max_examples=200)
@given(trees(), st.data())
def test_any_white_space_gives_the_same_texts(nodes, data):
    document = written(nodes)
    spaces = st.sampled_from([" ", "\n", "\t\t", "\r\n    ", "&nbsp; ", "\f"])
    respaced = re.sub(r"\s+(?![^<>]*>)", lambda _: data.draw(spaces), document)
    assert HtmlText(respaced).texts == HtmlText(document).texts
    for text in HtmlText(respaced).texts:
        assert text == " ".join(text.split())


PIECES = st.sampled_from(
    ["<b>", "</b>", "<i>", "</i>", "<a>", "</a>", "<p>", "</p>", "<td>", "<img>",
     "<code>", "</code>", "<svg>", "<!-- -->", "word", " ", ".", " A", "&amp;"]
)  # fmt: skip


@settings(deadline=None, derandomize=True, max_examples=300)
@given(st.lists(PIECES, max_size=30).map("".join), translators())
def test_malformed_markup_comes_back_once(document, translate):
    result = translated(document, translate)
    assert Counter(TAG.findall(result)) == Counter(TAG.findall(document))


@settings(deadline=None, derandomize=True, max_examples=200)
@given(st.text(alphabet="<>\"'/!-aA& ;\n", max_size=60))
def test_any_text_is_read_as_it_was_when_it_comes_back(document):
    result = translated(document, unchanged)
    assert HtmlText(result).texts == HtmlText(document).texts


@pytest.mark.parametrize(
    "document",
    [lambda n: "<a>" * n + "w", lambda n: "w" + "</a>" * n, lambda n: "<a>w " * n, lambda n: "<a>w</a> " * n,
     lambda n: "<img>w " * n, lambda n: "<a>w " * n + "</a>" * n, lambda n: "w " + "<a></a>" * n,
     lambda n: "<a><b>w</a> " * n, lambda n: "<a/>. A" * n,
     lambda n: "".join(f"<a{i}>" for i in range(n)) + "w" + "".join(f"</a{i}>" for i in range(n))],
    ids=lambda document: document(1),
)  # fmt: skip
def test_steps_are_proportional_to_the_number_of_tags(document):
    few, many = (lines_executed(document(n), backwards) for n in (200, 2000))
    assert many < 11 * few


def lines_executed(document, order):
    """How many lines of Python read a document and put its tags into its
    translation.
    """
    count = 0

    def trace(frame, event, argument):
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        translated(document, reordered(order))
    finally:
        sys.settrace(before)
    return count
