"""Documents: whatever text holds is text in Markdown and on the page, and what the page
is made of.
"""

from __future__ import annotations

import html
import re

import pytest
from chromium import opened
from markdown_it import MarkdownIt

from t2tlite.programs.report.document import (
    Code,
    drawings,
    folded,
    heading,
    listing,
    numbered,
    paragraph,
    table,
    to_html,
    to_markdown,
)

AWKWARD = [
    "<i>*x*</i> & _y_ snake_case **b** __b__ ~~s~~",
    "<script>alert(1)</script>",
    "&amp; &lt; &#42;",
    "a|b \\| \\* C:\\path\\",
    "[link](http://example.org) ![image](x.png) <http://example.org>",
    "`code` ``more``",
    "# no heading #",
    "- no item",
    "+ no item",
    "> no quotation",
    "=== no heading",
    "12. no item",
    "3) no item",
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
    line = re.sub(r"[\r\n]+", " ", text)
    blocks = [
        heading(text, 2),
        paragraph(text),
        numbered([text, text]),
        table([text, "n"], [[text, "1"]], text),
        paragraph("see ", Code(text)),
    ]
    page = MarkdownIt("commonmark").enable("table").render("\n\n".join(blocks))
    tags = re.findall(r"<(\w+)", page)
    code = ["code"] if "`" not in text else []
    assert tags == [
        *"h2 p ol li li p table thead tr th th tbody tr td td p".split(),
        *code,
    ]
    elements = re.findall(
        r"<(?:h2|p|li|th|td)[^>]*>(.*?)</(?:h2|p|li|th|td)>", page, re.DOTALL
    )
    assert [shown(element) for element in elements] == [
        *(line, line, line, line, f"{line}:", line, "n", line, "1", f"see {line}"),
    ]


@pytest.mark.parametrize("text", [*AWKWARD, "```\nx < y\n````\n*z*"])
def test_listings_and_folded_blocks_keep_text_as_it_is(text):
    page = to_html("title", [folded(text.split("\n")[0], listing(text))])
    body = page[page.index("<body>") :]
    (content,) = re.findall(r"<pre><code>(.*?)</code></pre>", body, re.DOTALL)
    assert html.unescape(content) == text.replace("\r\n", "\n") + "\n"
    (summary,) = re.findall("<summary>(.*?)</summary>", body)
    assert html.unescape(summary) == text.split("\n")[0]
    assert body.count("<details>") == body.count("</details>") == 1


def test_code_in_a_table_may_hold_bars():
    markdown = table(["hash"], [[Code("p|q")]])
    assert markdown.splitlines()[-1] == r"| `p\|q` |"
    assert '<td style="text-align:left"><code>p|q</code></td>' in to_html(
        "t", [markdown]
    )


def test_numbers_are_aligned_on_the_right():
    header = ["text", "count", "size", "score", "code", "some"]
    rows = [
        ["a", "1,000", "1.5 MB", "-0.25", Code("1"), ""],
        ["1", "2", "12.0 s", "1e-05", Code("2"), "7"],
    ]
    markdown = table([*header, "none"], [[*row, ""] for row in rows])
    rule = markdown.splitlines()[1].strip("|").split("|")
    assert [cell.endswith(":") for cell in rule] == [
        False,
        True,
        True,
        True,
        False,
        True,
        False,
    ]
    page = to_html("t", [markdown])
    assert '<td style="text-align:right">1.5 MB</td>' in page
    assert '<td style="text-align:left">a</td>' in page


def test_drawings_are_on_the_page_only():
    svgs = ["<svg><path d='M0\n\n1'/></svg>", "<svg/>"]
    blocks = [heading("Title", 1), drawings(svgs, ["one <", "two"]), paragraph("end")]
    assert to_markdown(blocks) == "# Title\n\nend\n"
    page = to_html("T&T", blocks)
    assert (
        "<figure><figcaption>one &lt;</figcaption><svg><path d='M0  1'/></svg></figure>"
        in page
    )
    assert "<figure><figcaption>two</figcaption><svg/></figure>" in page
    assert "<title>T&amp;T</title>" in page
    assert "<h1>Title</h1>" in page


def test_page_forbids_everything_but_its_own_style():
    assert "content=\"default-src 'none'; style-src 'unsafe-inline'\"" in to_html(
        "title", []
    )


def test_long_names_wrap_on_a_phone(tmp_path):
    name = "a_name_without_a_space" * 8
    blocks = [
        heading(name, 2),
        paragraph(name, Code(name)),
        folded(name, paragraph(name)),
        table(["a", "b"], [[name, Code(name)]]),
    ]
    (tmp_path / "page.html").write_text(to_html(name, [heading(name, 1), *blocks]))
    with opened((tmp_path / "page.html").as_uri()) as page:
        page.set_viewport_size({"width": 390, "height": 844})
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
