"""Whatever a value holds is text in Markdown and on the page, which needs nothing
else.
"""

import html
import re

import pytest
from markdown_it import MarkdownIt

from t2tlite.programs.report.document import as_markdown, code, listing, to_html

AWKWARD = [
    "<i>*x*</i> & _y_ snake_case **b** __b__ ~~s~~",
    "<script>alert(1)</script>",
    "&amp; &lt; &#42;",
    "a|b \\| \\* C:\\path\\",
    "[link](http://example.org) ![image](x.png) <http://example.org>",
    "`code` ``more``",
    "# no heading #",
    "$x$ http://example.org",
    "line one\nline two\r\n\r\n    four",
    "</details>",
    "--- | ---",
]


def shown(markup: str) -> str:
    """What a reader sees of HTML."""
    return html.unescape(re.sub(r"<[^>]*>", "", markup)).strip()


@pytest.mark.parametrize("text", AWKWARD)
def test_text_stays_text(text):
    line = re.sub(r"\s*[\r\n]+\s*", " ", text)
    value = as_markdown(text)
    table = f"| {value} | n |\n|---|---|\n| {value} | {code(text)} |"
    markdown = f"## {value}\n\nThe {value}\n\n1. The {value}\n\n{table}\n"
    page = MarkdownIt("commonmark").enable("table").render(markdown)
    tags = [tag for tag in re.findall(r"<(\w+)", page) if tag != "code"]
    assert tags == "h2 p ol li table thead tr th th tbody tr td td".split()
    elements = re.findall(
        r"<(?:h2|p|li|th|td)[^>]*>(.*?)</(?:h2|p|li|th|td)>", page, re.DOTALL
    )
    sentence = f"The {line}".strip()
    expected = [line, sentence, sentence, line, "n", line, line]
    assert [shown(element) for element in elements] == expected


@pytest.mark.parametrize("text", [*AWKWARD, "```\nx < y\n````\n*z*"])
def test_listings_keep_text_as_it_is(text):
    page = to_html("title", listing(text))
    (content,) = re.findall(r"<pre><code>(.*?)</code></pre>", page, re.DOTALL)
    assert html.unescape(content) == text.replace("\r\n", "\n") + "\n"


@pytest.mark.parametrize(
    ("value", "markdown"),
    [
        (1234567, "1,234,567"),
        (0.123456, "0.1235"),
        (12345.6, "12,346"),
        (-0.25, "-0.25"),
        (True, "True"),
        (None, ""),
    ],
)
def test_numbers(value, markdown):
    assert as_markdown(value) == markdown


def test_page_forbids_everything_but_its_own_style():
    page = to_html("T&T", "")
    assert "content=\"default-src 'none'; style-src 'unsafe-inline'\"" in page
    assert "<title>T&amp;T</title>" in page
