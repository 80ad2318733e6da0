"""HTML: tags, comments, scripts and style sheets stay, text is taken out and put in."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from t2tlite.programs.documents.html_text import HtmlText
from t2tlite.programs.documents.sentences import split_text


def filled(html: HtmlText, translate: Callable[[str], str]) -> str:
    """The document with sentences translated word by word."""
    translations = []
    for split in map(split_text, html.texts):
        sentences = [segment.sentence for segment in split.segments]
        alignments = [
            [(i, i) for i in range(len(sentence.split()))] for sentence in sentences
        ]
        translations.append(
            (split, list(zip(map(translate, sentences), alignments, strict=True)))
        )
    return html.translated(iter(translations))


@pytest.mark.parametrize(
    ("document", "texts", "shouted"),
    [
        ("<p class='a>b'>Hi <b>you</b>!</p>", ["Hi you!"], "<p class='a>b'>HI <b>YOU</b>!</p>"),
        ("<script>if (a < b) c()</script>x", ["x"], "<script>if (a < b) c()</script>X"),
        ("<STYLE>p > a {}</style >x <!-- no > -->y", ["x y"], "<STYLE>p > a {}</style >X <!-- no > -->Y"),
        ("Tom &amp; J&eacute;r&#244;me", ["Tom & Jérôme"], "TOM &amp; JÉRÔME"),
        ("a < b and <br/> c", ["a < b and", "c"], "A &lt; B AND <br/> C"),
        ("<!DOCTYPE html>\n<title>x</title>", ["x"], "<!DOCTYPE html>\n<title>X</title>"),
        ("no markup", ["no markup"], "NO MARKUP"),
        ("<p>&nbsp;</p> <i>...</i>", [], "<p>&nbsp;</p> <i>...</i>"),
        ("<p>two\nlines</p>\n<pre>two\nlines</pre>", ["two lines", "two", "lines"],
         "<p>TWO LINES</p>\n<pre>TWO\nLINES</pre>"),
        ("<a>dog</a>&#8203;<a>cat</a> x", ["dog", "cat x"], "<a>DOG</a>&#8203;<a>CAT</a> X"),
        ("<a>dog&shy;</a><a>\u200bcat</a> x", ["dog", "cat x"], "<a>DOG</a><a>CAT</a> X"),
        ("<i>We cry.</i>&zwnj;<a>You</a>", ["We cry.", "You"], "<i>WE CRY.</i>&zwnj;<a>YOU</a>"),
        ("a <b>d&shy;og</b>\ufeff c", ["a dog c"], "A <b>DOG</b> C"),
        ("a&NonBreakingSpace;<b>b</b>&nbspc", ["a b c"], "A <b>B</b> C"),
    ],
)  # fmt: skip
def test_text_is_translated_and_markup_is_not(document, texts, shouted):
    result = HtmlText(document)
    assert result.texts == texts
    assert filled(result, str.upper) == shouted


def test_every_tag_separates_where_none_is_inline():
    result = HtmlText("<p>Hi <b>you</b>\nthere</p>", inline=False)
    assert result.texts == ["Hi", "you", "there"]
    assert filled(result, str.upper) == "<p>HI <b>YOU</b>\nTHERE</p>"


@settings(deadline=None, derandomize=True)
@given(st.text(alphabet="<>\"'/!-aA& ;\n", max_size=60))
def test_any_document_keeps_its_markup(document):
    result = HtmlText(document)
    again = HtmlText(filled(result, str))
    assert [" ".join(text.split()) for text in again.texts] == [
        " ".join(text.split()) for text in result.texts
    ]


@pytest.mark.parametrize(
    "piece",
    ["<a ", "<a '", "<a \"<a '", "<!--", "<script>", "<a<", "&amp", "<a ''\"\"", "<a =/", "<?", "</ ", "<!-",
     "<script><!--<script>", "<title></titl", "<svg>", "<svg><p>", "<math><mi>", "<p>a", "</p>", "<li><p>a", "<td>a",
     "<b><p>a</b>", "<a>a", "<i>a</i>", "<code>a", "<code>a</code> ", "<code></code>a", "<b translate=no>",
     "<b translate=no><i translate=yes>a", "<pre>a\n", "&nbsp;", " &nbsp; ", "a<img>", "<b><i>a</i> b</b>", "<button>"],
)  # fmt: skip
def test_a_document_that_is_no_document_takes_no_time(piece):
    started = time.process_time()
    filled(HtmlText(piece * 4000), str)
    assert time.process_time() - started < 5
