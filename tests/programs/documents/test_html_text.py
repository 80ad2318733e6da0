"""HTML as people have it: where its text ends, what stays untouched, and where markup
goes.
"""

import time

import pytest
from html_trees import backwards, reordered, translated

from t2tlite.programs.documents.html_text import HtmlText


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
    assert HtmlText(document).texts == texts
    assert translated(document, reordered(list)) == shouted


@pytest.mark.parametrize(
    ("reference", "character"),
    [(f"&#{'9' * 5000};", "\ufffd"), (f"&#{'0' * 5000}233;", "é"), (f"&#x{'0' * 5000}E9;", "é"),
     ("&#x110000;", "\ufffd"), ("&#xD800;", "\ufffd"), ("&#10000000;", "\ufffd")],
    ids="long zeros hexadecimal above surrogate eight".split(),
)  # fmt: skip
def test_every_character_reference_of_html_is_read(reference, character):
    html = HtmlText(f'<p title="x{reference}">cat {reference} dog</p>')
    assert html.texts == [f"x{character}", f"cat {character} dog"]


def test_every_tag_separates_where_none_is_inline():
    document = "<p>Hi <b>you</b>\nthere</p>"
    assert HtmlText(document, inline=False).texts == ["Hi", "you", "there"]
    shouted = translated(document, reordered(list), inline=False)
    assert shouted == "<p>HI <b>YOU</b>\nTHERE</p>"


@pytest.mark.parametrize(
    "piece",
    ["<a ", "<a '", "<a \"<a '", "<!--", "<script>", "<a<", "&amp", "<a ''\"\"", "<a =/", "<?", "</ ", "<!-",
     "<script><!--<script>", "<title></titl", "<svg>", "<svg><p>", "<math><mi>", "<p>a", "</p>", "<li><p>a", "<td>a",
     "<b><p>a</b>", "<a>a", "<i>a</i>", "<code>a", "<code>a</code> ", "<code></code>a", "<b translate=no>",
     "<b translate=no><i translate=yes>a", "<pre>a\n", "&nbsp;", " &nbsp; ", "a<img>", "<b><i>a</i> b</b>", "<button>"],
)  # fmt: skip
def test_hostile_documents_take_no_time(piece):
    started = time.process_time()
    translated(piece * 4000, reordered(list))
    assert time.process_time() - started < 5


INDENTED = """<ul>
\t<li>
\t\tThe guests will <b>not
        turn</b> off the computer,
\t\tbut he&nbsp;will. He
  cries.
\t</li>
</ul>"""


def test_white_space_is_one_space_but_around_blocks():
    assert HtmlText(INDENTED).texts == [
        "The guests will not turn off the computer, but he will. He cries."
    ]
    assert translated(INDENTED, reordered(list)) == (
        "<ul>\n\t<li>\n\t\tTHE GUESTS WILL <b>NOT TURN</b> OFF THE COMPUTER, BUT HE"
        " WILL. HE CRIES.\n\t</li>\n</ul>"
    )


@pytest.mark.parametrize(
    ("document", "texts"),
    [
        ('<nav><a href="1">The dog</a><a href="2">The bird</a></nav>', ["The dog", "The bird"]),
        ("<p><span>We cry.</span><span>The dog sees.</span></p>", ["We cry.", "The dog sees."]),
        ("<b><a>The dog</a></b><!-- --><i></i><a>The bird</a>", ["The dog", "The bird"]),
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
        ("<pre>\n  two  words\n\tmore &amp; x</pre>", ["two words", "more & x"]),
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
        ("<p id=it's>We cry</p>\n<p title=\"5\" tall\">We cry</p>",
         "<p id=it's>CRY WE</p>\n<p title=\"5\" tall\">CRY WE</p>"),
        ("<!--><p>We cry</p><!--a--!><p>We cry</p>", "<!--><p>CRY WE</p><!--a--!><p>CRY WE</p>"),
        ('<p><span class="h-card" translate="no"><a href="x">@<span>user</span></a></span> We cry</p>',
         '<p><span class="h-card" translate="no"><a href="x">@<span>user</span></a></span> CRY WE</p>'),
        ('<p>We see <span translate="no"><a>@<span>user</span></a></span> there</p>',
         '<p><span translate="no"><a>@<span>user</span></a></span> THERE SEE WE</p>'),
        ("<p>We <a><span class=invisible>http://</span><span>t2t.org</span><span class=invisible>/a</span></a></p>",
         "<p><a><span class=invisible></span><span></span><span class=invisible></span>HTTP://T2T.ORG/A</a> WE</p>"),
        ("A <b>We </b><code>x</code>", "<b>WE</b> A <code>x</code>"),
        ("Use <code>ls  -l</code>, then go", "GO THEN USE <code>ls  -l</code>,"),
        ("We use <code>ls</code>.", "USE <code>ls</code>. WE"),
        ("We <code>x</code> <kbd>y</kbd> cry", "<code>x</code> <kbd>y</kbd> CRY WE"),
        ("We <math><mi>a b</mi></math> cry <ruby>漢<rt>kan</rt></ruby>",
         "<math><mi>a b</mi></math> CRY WE <ruby>漢<rt>kan</rt></ruby>"),
        ("<p>We cry <span class='a notranslate'>x y <i translate>z a</i></span> too now</p>",
         "<p>CRY WE <span class='a notranslate'>x y <i translate>A Z</i></span> NOW TOO</p>"),
        ("<p translate=no>a b<p>a b<ul><li translate=NO>a b<li>a b</ul>",
         "<p translate=no>a b<p>B A<ul><li translate=NO>a b<li>B A</ul>"),
        ("<table translate=no title='a b'><td>a b</div>c d<td translate=yes title='a b'>c d</table>e f",
         "<table translate=no title='a b'><td>a b</div>c d<td translate=yes title=\"B A\">D C</table>F E"),
        ("<div translate=no><b>x<p>a b</b>c d</p>e f</div>g h", "<div translate=no><b>x<p>a b</b>c d</p>e f</div>H G"),
        ("<code>a b</code> <samp>c d</samp> <var>e f</var> g h", "<code>a b</code> <samp>c d</samp> <var>e f</var> H G"),
        ("<p>a b <code/>c d</p><p>e f</p>", "<p>D <code/> C B A</p><p>F E</p>"),
        ("<svg><title>a b</title><a>e</a></svg><p>c d</p>", "<svg><title>a b</title><a>e</a></svg><p>D C</p>"),
        ("<script>a b<!--</script><style>a b</style>a b", "<script>a b<!--</script><style>a b</style>B A"),
        ("<p>&nbsp; a&nbsp;b <i>***</i> &nbsp;</p>", "<p>&nbsp; <i>***</i> B A &nbsp;</p>"),
        ("<p>😀 a b. 😀</p><p>* * *</p>", "<p>😀 B. A 😀</p><p>* * *</p>"),
        ("<p><b>12:30</b> <i>25 €</i></p>We cry", "<p><b>12:30</b> <i>25 €</i></p>CRY WE"),
        ("We cry. <a>12:30.</a> We cry. <a>😀</a>", "CRY. WE <a>12:30.</a> CRY. WE <a>😀</a>"),
        ("<a>1</a> <a>2</a> <a>Go on</a>", "<a>1</a> <a>2</a> <a>ON GO</a>"),
        ("<b>a &amp; &lt;b&gt;</b>", "<b>&lt;B&gt; &amp; A</b>"),
        ("<pre> a  b\n  <b>c d\ne</b> f</pre>", "<pre> B A\n  <b>D C\nE</b> F</pre>"),
    ],
)  # fmt: skip
def test_markup_around_and_within_a_translation(document, expected):
    assert translated(document, reordered(backwards)) == expected


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ("We <img src=a.b ALT = 'The \"cat\"' title=\"It's\"/> cry",
         '<img src=a.b ALT="&quot;CAT&quot; THE" title="IT&#x27;S"/> CRY WE'),
        ("We <code>x</code> <img alt=cat> cry", "<code>x</code> <img alt=\"CAT\"> CRY WE"),
        ("<p aria-label='a b' title='12:30' alt title=''>c d", "<p aria-label=\"B A\" title='12:30' alt title=''>D C"),
        ("<optgroup label='a b'><option value=a>c d", "<optgroup label=\"B A\"><option value=a>D C"),
        ("<input type=SUBMIT value='a b'><input value='a b' placeholder='a b'><button type=submit value=a>a b</button>",
         '<input type=SUBMIT value="B A"><input value=\'a b\' placeholder="B A"><button type=submit value=a>B A</button>'),
        ("<code title='a b'>x</code><p translate=no title='a b'><i title='a b'>x</i><p>c d",
         "<code title='a b'>x</code><p translate=no title='a b'><i title='a b'>x</i><p>D C"),
        ("<script>'<a title=\"a b\">'</script><!-- <a title='a b'> -->a b",
         "<script>'<a title=\"a b\">'</script><!-- <a title='a b'> -->B A"),
        ("<html lang=en dir=ltr title='a b'><p lang=en>a b<html>", '<html lang="de" dir=ltr title="B A"><p lang=en>B A<html>'),
    ],
)  # fmt: skip
def test_attributes_that_users_see_are_translated(document, expected):
    assert translated(document, reordered(backwards), language="de") == expected
