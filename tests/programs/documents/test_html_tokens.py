"""The tokens of HTML documents, compared with those of html5lib, which follows the
HTML standard too.
"""

from __future__ import annotations

import html
import itertools

from html5lib import HTMLParser
from html5lib._tokenizer import HTMLTokenizer
from html5lib.constants import tokenTypes
from hypothesis import example, given, settings
from hypothesis import strategies as st

from t2tlite.programs.documents.html_tokens import Kind, tokens

CHARACTERS = (tokenTypes["Characters"], tokenTypes["SpaceCharacters"])
RAW_STATES = {
    **dict.fromkeys(("style", "xmp", "iframe", "noembed", "noframes"), "rawtextState"),
    **dict.fromkeys(("title", "textarea"), "rcdataState"),
    "script": "scriptDataState",
    "plaintext": "plaintextState",
}


class Parser(HTMLParser):
    """A parser that keeps its tokenizer at HTML content."""

    def __init__(self):
        super().__init__()
        self.tree.openElements = []


def expected_tokens(document):
    """Tags, comments and text as html5lib's tokenizer finds them."""
    result = []
    tokenizer = HTMLTokenizer(document, parser=Parser())
    for token in tokenizer:
        kind = token["type"]
        if kind in CHARACTERS:
            result.append(("text", token["data"]))
        elif kind == tokenTypes["StartTag"]:
            attributes = {}
            for name, value in token["data"].items():
                attributes.setdefault(name, value)
            result.append(("start", token["name"], attributes, token["selfClosing"]))
            state = RAW_STATES.get(token["name"])
            if state is not None:
                tokenizer.state = getattr(tokenizer, state)
        elif kind == tokenTypes["EndTag"]:
            result.append(("end", token["name"]))
    return joined(result)


def received_tokens(document):
    """The same of the tokens, as far as browsers show them."""
    result = []
    for token in tokens(document):
        text = document[token.start : token.end]
        if token.kind is Kind.TEXT:
            result.append(("text", html.unescape(text)))
        elif token.kind is Kind.RAW:
            result.append(("text", text))
        elif token.kind is Kind.START:
            attributes = dict(token.attributes)
            result.append(("start", token.name, attributes, token.self_closing))
        elif token.kind is Kind.END:
            result.append(("end", token.name))
    return joined(result)


def joined(parts):
    """Neighbouring texts as one, where a comment may have been between them."""
    result = []
    for is_text, group in itertools.groupby(parts, key=lambda item: item[0] == "text"):
        if is_text:
            result.append(("text", "".join(text for _, text in group)))
        else:
            result += group
    return result


PIECES = st.sampled_from(
    [
        "<", ">", "/", "=", "'", '"', "-", "!", "?", " ", "\n", "\t", "\f", "a", "B", "x1",
        "<p", "<b>", "</b>", "</", "<a href=", "<!--", "-->", "--!>", "<!-->", "<!--->", "<!", "<?x", "</ >", "</>",
        "<!doctype html>", "<![CDATA[", "]]>", "<script>", "</script>", "</script ", "<SCRIPT", "<style>", "</style>",
        "<title>", "</title>", "<textarea>", "</textarea >", "<xmp>", "</xmp>", "<iframe>", "</iframe>",
        "<plaintext>", "&amp;", "&lt;", "it's", 'tall"', "<br/>", " / >", "é", "ſ", "<İ", "</ſcript>",
    ]
)  # fmt: skip


@settings(deadline=None, derandomize=True, max_examples=3000)
@given(st.lists(PIECES, max_size=12).map("".join))
@example("<p title=it's>The dog.</p>")
@example('<p title="5" tall">We cry.</p>')
@example("<!--><p>We cry.</p>")
@example("<!--a--!><p>We cry.</p>")
@example("<!--a <!--b--> c-->d")
@example("<script><!-- <script> </script> --> a</script>b")
@example("<script><!--><script></script>b")
@example("<a href=x/>b</a>")
@example("<a/=x /y==z =>b")
@example("a < b <3 <é> </é> c")
def test_markup_ends_where_html5lib_ends_it(document):
    assert received_tokens(document) == expected_tokens(document)


@settings(deadline=None, derandomize=True, max_examples=500)
@given(st.lists(st.one_of(PIECES, st.text(max_size=5))).map("".join))
def test_tokens_make_the_document(document):
    end = 0
    for token in tokens(document):
        assert token.start == end < token.end
        end = token.end
    assert end == len(document)
