"""Where markup ends in HTML documents, compared with html5lib, which follows the HTML
standard too.
"""

import itertools
import re

from html5lib import HTMLParser
from html5lib._tokenizer import HTMLTokenizer
from html5lib.constants import tokenTypes
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from t2tlite.programs.documents.html_tree import (
    MARKUP,
    TEXT,
    read_attributes,
    read_tree,
    unescape,
)

CHARACTERS = (tokenTypes["Characters"], tokenTypes["SpaceCharacters"])
RAW_STATES = {
    **dict.fromkeys(("style", "xmp", "iframe", "noembed", "noframes"), "rawtextState"),
    **dict.fromkeys(("title", "textarea"), "rcdataState"),
    "script": "scriptDataState",
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
            result.append(start(token["name"], dict(token["data"])))
            state = RAW_STATES.get(token["name"])
            if state is not None:
                tokenizer.state = getattr(tokenizer, state)
        elif kind == tokenTypes["EndTag"]:
            result.append(("end", token["name"]))
    return joined(result)


def received_tokens(document):
    """The same of the nodes, as far as browsers show them."""
    return joined(tokens_of(read_tree(document)))


def tokens_of(nodes):
    for node in nodes:
        tag = MARKUP.match(node.source)
        if node.name == TEXT:
            yield "text", unescape(node.source)
        elif tag and tag["end"] and tag["name"]:
            yield "end", node.name
        elif tag and tag["name"]:
            yield start(node.name, read_attributes(tag["attributes"]))
            yield from raw_text(node.name, node.source[tag.end() :])
            yield from tokens_of(node.children)
            if node.end:
                yield "end", node.name


def raw_text(name, source):
    """The content of an element without markup inside, and its end tag."""
    end_tags = list(
        re.finditer(f"(?ai)</{re.escape(name)}(?=[\\t\\n\\f\\r />])", source)
    )
    end_tag = end_tags[-1].start() if end_tags else len(source)
    if source:
        yield "text", source[:end_tag]
    end = MARKUP.match(source, end_tag)
    if end and end["name"]:
        yield "end", name


def start(name, attributes):
    return "start", name, tuple(attributes.items())


def joined(parts):
    """Neighbouring texts as one, where a comment may have been between them."""
    result = []
    for is_text, group in itertools.groupby(parts, key=lambda item: item[0] == "text"):
        if is_text:
            text = "".join(text for _, text in group)
            result += [("text", text)] if text else []
        else:
            result += group
    return result


PIECES = st.sampled_from(
    [
        "<", ">", "/", "=", "'", '"', "-", "!", "?", " ", "\n", "\t", "\f", "a", "B", "x1",
        "<p", "<b>", "</b>", "</", "<a href=", "<!--", "-->", "--!>", "<!-->", "<!--->", "<!", "<?x", "</ >", "</>",
        "<!doctype html>", "<![CDATA[", "]]>", "<script>", "</script>", "</script ", "<SCRIPT", "<style>", "</style>",
        "<title>", "</title>", "<textarea>", "</textarea >", "<xmp>", "</xmp>", "<iframe>", "</iframe>", "&amp;", "&lt;", "it's", 'tall"', "<br/>", " / >", "é", "ſ", "</ſcript>",
    ]
)  # fmt: skip


@settings(deadline=None, derandomize=True, max_examples=2000)
@given(st.lists(PIECES, max_size=12).map("".join))
@example("<p title=it's>The dog.</p>")
@example('<p title="5" tall">We cry.</p>')
@example("<!--><p>We cry.</p>")
@example("<!--a--!><p>We cry.</p>")
@example("<!--a <!--b--> c-->d")
@example("<a href=x/>b</a>")
@example("<a/=x /y==z =>b")
@example("a < b <3 <é> </é> c")
def test_markup_ends_where_html5lib_ends_it(document):
    # a script in a comment of another script may hold an end tag
    assume(not re.search("<script.*<!--", document, re.DOTALL | re.IGNORECASE))
    assert received_tokens(document) == expected_tokens(document)


@settings(deadline=None, derandomize=True, max_examples=500)
@given(st.lists(st.one_of(PIECES, st.text(max_size=5))).map("".join))
def test_the_sources_of_the_nodes_are_the_document(document):
    sources = [source for node in read_tree(document) for source in node.sources()]
    assert "".join(sources) == document
