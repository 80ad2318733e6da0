"""HTML as people have it: where its text ends, what stays untouched, and that markup
comes back once, nested as before, whatever the translator does.
"""

from __future__ import annotations

import itertools
import re
from html import unescape

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from t2tlite.programs.documents.html_text import HtmlText
from t2tlite.programs.documents.sentences import split_text


def translated(document, reorder=list, inline=True):
    """The document with each sentence's words in capitals, reordered and aligned."""
    html = HtmlText(document, inline)
    translations = []
    for split in map(split_text, html.texts):
        sentences = []
        for _, sentence in split.segments:
            words = sentence.upper().split()
            order = reorder(range(len(words)))
            text = " ".join(words[source] for source in order)
            alignment = [(source, target) for target, source in enumerate(order)]
            sentences.append((text, alignment))
        translations.append((split, sentences))
    return html.translated(iter(translations))


def backwards(indices):
    return list(reversed(indices))


def every_second(indices):
    return list(indices)[::2]


def nothing(indices):
    return []


INDENTED = """<ul>
\t<li>
\t\tThe guests will <b>not
        turn</b> off the computer,
\t\tbut he&nbsp;will. He
  cries.
\t</li>
</ul>"""


def test_white_space_is_one_space_for_the_model():
    assert HtmlText(INDENTED).texts == [
        "The guests will not turn off the computer, but he will. He cries."
    ]


def test_white_space_around_a_translation_stays():
    assert translated(INDENTED) == (
        "<ul>\n\t<li>\n\t\tTHE GUESTS WILL <b>NOT TURN</b> OFF THE COMPUTER, BUT HE"
        " WILL. HE CRIES.\n\t</li>\n</ul>"
    )


@pytest.mark.parametrize(
    ("document", "texts"),
    [
        ('<nav><a href="1">The dog</a><a href="2">The bird</a></nav>', ["The dog", "The bird"]),
        ("<p><span>We cry.</span><span>The dog sees.</span></p>", ["We cry.", "The dog sees."]),
        ("<b><a>The dog</a></b><!-- --><i></i><a>The bird</a>", ["The dog", "The bird"]),
        ("<span>We cry.</span>The dog sees.", ["We cry.", "The dog sees."]),
        ("<b>We cry.</b><b>The dog sees.</b>", ["We cry.", "The dog sees."]),
        ("See <a>the dog</a><a>the bird</a> now", ["See the dog", "the bird now"]),
        ("<a>首页</a><a>关于</a>", ["首页", "关于"]),
        ("<a>Home</a> <a>About us</a> | <b><a>The dog</a></b>", ["Home", "About us", "The dog"]),
        ("See <a>Home</a> <a>About us</a>", ["See Home About us"]),
        ("<a><i>The</i> <b>dog</b></a>", ["The dog"]),
        ("<b>H</b>ello, <b>H</b><i>ello</i>", ["Hello, Hello"]),
        ("<a>dog</a>s un<span>believ</span>able", ["dogs unbelievable"]),
        ("H<sub>2</sub>O super<wbr>califragilistic", ["H2O supercalifragilistic"]),
        ("<span>We </span><span>cry</span><span>.</span>", ["We cry."]),
        ("<span>$3.</span><span>99</span> U.<b>S.</b>", ["$3.99 U.S."]),
        ("<span>我喜欢</span><span>猫</span>", ["我喜欢猫"]),
        ("The dog<img>The bird", ["The dog The bird"]),
        ("<label>Name</label><input>dog", ["Name dog"]),
        ("<p>A<br>B<p>C<table><tr><td>D<td>E</table>", ["A", "B", "C", "D", "E"]),
        ("<pre>\n  two  words\n\tmore &amp; &#10;x</pre>", ["two words", "more &", "x"]),
        ("<textarea>a\n<b> c</textarea><title>d\ne</title>", ["a", "<b> c", "d e"]),
        ("<noscript>We cry.</noscript><template>No.</template>", ["We cry.", "No."]),
        ("<p>We</p> <!-- cry --!> dog <?x> a </ > b", ["We", "dog a b"]),
        ("<![CDATA[ a ]]> b <svg><![CDATA[ > ]]></svg>", ["b"]),
        ("a <b title='x", ["a"]),
    ],
)  # fmt: skip
def test_text_is_cut_where_it_is_shown_apart(document, texts):
    assert HtmlText(document).texts == texts


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ('<nav><a href="1">The dog</a><a href="2">The bird</a></nav>',
         '<nav><a href="1">DOG THE</a><a href="2">BIRD THE</a></nav>'),
        ("<p><a>We cry</a> |\n · <a>a b</a> <!-- c --></p>", "<p><a>CRY WE</a> |\n · <a>B A</a> <!-- c --></p>"),
        ("<p title=it's>We cry</p>\n<p title=\"5\" tall\">We cry</p>",
         "<p title=it's>CRY WE</p>\n<p title=\"5\" tall\">CRY WE</p>"),
        ("<!--><p>We cry</p><!--a--!><p>We cry</p>", "<!--><p>CRY WE</p><!--a--!><p>CRY WE</p>"),
        ('<p><span class="h-card" translate="no"><a href="x">@<span>user</span></a></span> We cry</p>',
         '<p><span class="h-card" translate="no"><a href="x">@<span>user</span></a></span> CRY WE</p>'),
        ('<p>We see <span translate="no"><a>@<span>user</span></a></span> there</p>',
         '<p><span translate="no"><a>@<span>user</span></a></span> THERE SEE WE</p>'),
        ("Use <code>ls  -l</code>, then go", "GO THEN USE <code>ls  -l</code>,"),
        ("We use <code>ls</code>.", "USE <code>ls</code>. WE"),
        ("We<code>x</code><kbd>y</kbd>cry", "<code>x</code><kbd>y</kbd>CRY WE"),
        ("We <code>x</code> <kbd>y</kbd> cry", "<code>x</code> <kbd>y</kbd> CRY WE"),
        ("We <math><mi>a b</mi></math> cry <ruby>漢<rt>kan</rt></ruby>",
         "<math><mi>a b</mi></math> CRY WE <ruby>漢<rt>kan</rt></ruby>"),
        ('<div translate="no">Keep <b translate="yes">We cry</b> <code>a</code></div> We cry',
         '<div translate="no">Keep <b translate="yes">CRY WE</b> <code>a</code></div> CRY WE'),
        ("<p>We cry <span class='a notranslate'>x y <i translate=yes>the dog</i></span> too now</p>",
         "<p>CRY WE <span class='a notranslate'>x y <i translate=yes>DOG THE</i></span> NOW TOO</p>"),
        ("<p translate=no>a b<p>a b<ul><li translate=NO>a b<li>a b</ul>",
         "<p translate=no>a b<p>B A<ul><li translate=NO>a b<li>B A</ul>"),
        ("<table translate=no><tr><td>a b</div>c d</table>e f", "<table translate=no><tr><td>a b</div>c d</table>F E"),
        ("<div translate=no><b>x<p>a b</b>c d</p>e f</div>g h", "<div translate=no><b>x<p>a b</b>c d</p>e f</div>H G"),
        ("<code translate=yes>a b</code> <samp>c d</samp> <var>e f</var> g h",
         "H <samp>c d</samp> <var>e f</var> G <code translate=yes>B A</code>"),
        ("<p>a b <code/>c d</p><p>e f</p>", "<p>D <code/>C B A</p><p>F E</p>"),
        ("<svg><title>a b</title><p>c d</p>", "<svg><title>a b</title><p>D C</p>"),
        ("<script>a b<!--<script></script>--></script><style>a b</style>a b",
         "<script>a b<!--<script></script>--></script><style>a b</style>B A"),
        ("<p>&nbsp; a&nbsp;b <i>***</i> &nbsp;</p>", "<p>&nbsp; <i>***</i> B A &nbsp;</p>"),
        ("<p>😀 a b. 😀</p><p>* * *</p>", "<p>😀 B. A 😀</p><p>* * *</p>"),
        ("<b>a &amp; &lt;b&gt;</b>", "<b>&lt;B&gt; &amp; A</b>"),
        ("<pre> a  b\n  <b>c d\ne</b> f</pre>", "<pre> B A\n  <b>D C\nF E</b></pre>"),
    ],
)  # fmt: skip
def test_markup_around_and_within_a_translation(document, expected):
    assert translated(document, backwards) == expected


NAMES = ["a", "b", "i", "span", "code", "div", "p", "ul"]
INLINE = ["a", "b", "i", "span", "code"]
UNTOUCHED_CONTENT = "x &amp; <b>y</b>  <i title='>'>z.\n</i>"
TEXTS = st.sampled_from(
    ["dog", "We cry. ", ", ", " ", "\n  ", "&lt;", "bird, ", " The", "<img>", "😀", "."]
)
TREES = st.recursive(
    TEXTS,
    lambda inner: st.tuples(st.sampled_from(NAMES), st.lists(inner, max_size=4)),
    max_leaves=30,
)


def written(tree, numbers):
    """A tree as HTML, whose elements have numbers."""
    if isinstance(tree, str):
        return tree.replace("<img>", f"<img id={next(numbers)}>")
    name, children = tree
    number = next(numbers)
    if name == "code":
        return f"<code id={number}>{UNTOUCHED_CONTENT}</code>"
    name = "div" if name in ("p", "ul") and len(children) > 2 else name
    content = "".join(written(child, numbers) for child in children)
    return f"<{name} id={number}>{content}</{name}>"


def parents(document):
    """Of each element the number of the one around it; fails if tags are not nested."""
    document = document.replace(UNTOUCHED_CONTENT, "")
    result = {}
    opened = []
    for closing, name, number in re.findall(r"<(/?)(\w+)(?: id=(\d+))?>", document):
        if closing:
            assert opened.pop()[0] == name
        else:
            assert number not in result
            result[number] = opened[-1][1] if opened else None
            if name != "img":
                opened.append((name, number))
    assert not opened
    return result


def letters(document):
    """The letters and digits that are translated, and the punctuation."""
    text = re.sub(r"<code.*?</code>|<[^>]*>", "", document, flags=re.DOTALL)
    return sorted(unescape(text).replace(" ", "").replace("\n", "").upper())


@settings(deadline=None, derandomize=True, max_examples=400)
@given(
    st.lists(TREES, max_size=5),
    st.sampled_from([list, backwards, every_second, nothing]),
    st.booleans(),
)
def test_every_tag_comes_back_once_and_nested_as_before(trees, reorder, inline):
    numbers = itertools.count()
    document = "".join(written(tree, numbers) for tree in trees)
    result = translated(document, reorder, inline)
    assert parents(result) == parents(document)
    assert result.count(UNTOUCHED_CONTENT) == document.count(UNTOUCHED_CONTENT)
    if reorder in (list, backwards):
        assert letters(result) == letters(document)


@settings(deadline=None, derandomize=True, max_examples=200)
@given(st.lists(TREES, max_size=5), st.data())
def test_any_white_space_gives_the_same_texts(trees, data):
    numbers = itertools.count()
    document = "".join(written(tree, numbers) for tree in trees)
    spaces = st.sampled_from([" ", "\n", "\t\t", "\r\n    ", "&nbsp; ", "\f"])
    respaced = re.sub(r"\s+(?![^<>]*>)", lambda _: data.draw(spaces), document)
    assert HtmlText(respaced).texts == HtmlText(document).texts
    for text in HtmlText(respaced).texts:
        assert text == " ".join(text.split())
