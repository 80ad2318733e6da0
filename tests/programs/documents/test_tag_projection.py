"""Inline tags follow the words they enclose; alignments and expectations are written by
hand.
"""

import pytest

from t2tlite.programs.documents.html_text import HtmlText
from t2tlite.programs.documents.sentences import split_text


def translated(document: str, *sentences: tuple[str, str]) -> str:
    """The document with its sentences translated: each is its translation, and its
    alignment as Pharaoh writes it.
    """
    html = HtmlText(document)
    remaining = iter(
        (target, [tuple(map(int, pair.split("-"))) for pair in alignment.split()])
        for target, alignment in sentences
    )
    splits = [split_text(text) for text in html.texts]
    result = html.translated(
        (split, [next(remaining) for _ in split.segments]) for split in splits
    )
    assert next(remaining, None) is None
    return result


@pytest.mark.parametrize(
    ("document", "target", "alignment", "expected"),
    [
        pytest.param(
            "<p>The cat <b>sleeps</b>.</p>", "Die Katze schläft.", "0-0 1-1 2-2",
            "<p>Die Katze <b>schläft</b>.</p>", id="full stop stays outside",
        ),
        pytest.param(
            "The cat <b>sleeps.</b>", "Die Katze schläft.", "0-0 1-1 2-2",
            "Die Katze <b>schläft.</b>", id="full stop stays inside",
        ),
        pytest.param(
            "<p><b>The cat sleeps.</b></p>", "Die Katze schläft.", "0-0 1-1 2-2",
            "<p><b>Die Katze schläft.</b></p>", id="whole sentence",
        ),
        pytest.param(
            "I <b>have seen</b> the dog.", "Ich habe den Hund gesehen.", "0-0 1-1 3-2 4-3 2-4",
            "Ich <b>habe den Hund gesehen</b>.", id="words apart",
        ),
        pytest.param(
            "I stay since I <b>have seen</b> it.", "Ich bleibe, da ich es gesehen habe.", "0-0 1-1 2-2 3-3 6-4 5-5 4-6",
            "Ich bleibe, da ich es <b>gesehen habe</b>.", id="full stop of the sentence",
        ),
        pytest.param(
            "the <i>red</i> cat", "le chat rouge", "0-0 2-1 1-2", "le chat <i>rouge</i>", id="reordered",
        ),
        pytest.param(
            "<a href='x?a=1&amp;b=2' class=\"c > d\">The <b>red</b> cat</a> sleeps.", "Le chat rouge dort.",
            "0-0 2-1 1-2 3-3", "<a href='x?a=1&amp;b=2' class=\"c > d\">Le chat <b>rouge</b></a> dort.",
            id="nested, with attributes",
        ),
        pytest.param(
            "<i>A</i> <b>B C</b> D", "b a d c", "1-0 0-1 3-2 2-3", "<b>b</b> <i>a</i> d c", id="one among another's",
        ),
        pytest.param(
            "<i>A B</i> <b>C D E</b>", "a c b d e", "0-0 2-1 1-2 3-3 4-4", "<i>a</i> c b <b>d e</b>", id="mixed neighbours",
        ),
        pytest.param(
            "the <img src=x>red cat", "le chat rouge", "0-0 2-1 1-2", "le chat <img src=x> rouge", id="empty tag",
        ),
        pytest.param("the <b></b>red cat", "le chat rouge", "0-0 2-1 1-2", "le chat <b></b>rouge", id="no words"),
        pytest.param("<a>the cat <img></a> sleeps", "die Katze schläft", "0-0 1-1 2-2",
                     "<a>die Katze <img></a> schläft", id="empty tag stays in its parent"),
        pytest.param("the cat<img>", "die Katze", "0-0 1-1", "die Katze<img>", id="empty tag at the end"),
        pytest.param("the <b>red cat", "le chat rouge", "0-0 2-1 1-2", "le <b>chat rouge", id="unclosed"),
        pytest.param("the red</b> cat", "le chat rouge", "0-0 2-1 1-2", "le </b>chat rouge", id="unopened"),
        pytest.param("<b>the <i>red</b> cat", "le chat rouge", "0-0 2-1 1-2", "<b>le chat <i>rouge</b>",
                     id="unclosed in another"),
        pytest.param("A <b>does</b> B", "a b", "0-0 2-1", "a <b></b>b", id="word without a counterpart"),
        pytest.param("Tom <b>&amp;</b> J&eacute;r&ocirc;me &lt; x", "Tom & Jérôme < x", "0-0 1-1 2-2 3-3 4-4",
                     "Tom <b>&amp;</b> Jérôme &lt; x", id="character references"),
        pytest.param("<p>\n  The <b> cat </b>\n sleeps\n</p>", "die Katze  schläft", "0-0 1-1 2-2",
                     "<p>\n  die <b>Katze</b>  schläft\n</p>", id="white space around stays"),
        pytest.param("The un<b>believ</b>able cat", "Die unfassbare Katze", "0-0 1-1 2-2",
                     "Die <b>unfassbare</b> Katze", id="part of a word"),
        pytest.param("the cat<b>, the dog</b>", "die Katze, der Hund", "0-0 1-1 2-2 3-3",
                     "die Katze, <b>der Hund</b>", id="comma at the beginning"),
        pytest.param('Say "<b>yes</b>"!', '"Ja" sagen!', "1-0 0-1", '"<b>Ja</b>" sagen!', id="quotation marks"),
        pytest.param("the <!-- <b> -->red cat<script>a<b</script>", "le chat rouge", "0-0 2-1 1-2",
                     "le chat <!-- <b> -->rouge<script>a<b</script>", id="comment and script"),
        pytest.param("see <x id='1'/>the cat", "die Katze sehen", "1-0 2-1 0-2", "<x id='1'/>die Katze sehen",
                     id="closed at once"),
        pytest.param("see <a href=t2t.org/>cats</a> now", "jetzt Katzen sehen", "2-0 1-1 0-2",
                     "jetzt <a href=t2t.org/>Katzen</a> sehen", id="address that ends in a slash"),
        pytest.param("the <B>cat</b >", "die Katze", "0-0 1-1", "die <B>Katze</b >", id="capitals"),
        pytest.param("the <b>cat</b>", "die Katze", "", "die Katze<b></b>", id="no alignment"),
    ],
)  # fmt: skip
def test_tags_follow_their_words(document, target, alignment, expected):
    assert translated(document, (target, alignment)) == expected


def test_tag_around_two_sentences_opens_and_closes_once():
    document = "One <b>day. The red</b> cat <i>sleeps. No</i>"
    sentences = (
        ("Eines Tages.", "0-0 1-1"),
        ("Le chat rouge dort.", "0-0 2-1 1-2 3-3"),
        ("Nein", "0-0"),
    )
    expected = "Eines <b>Tages. Le chat rouge</b> <i>dort. Nein</i>"
    assert translated(document, *sentences) == expected


def test_blocks_are_translated_apart():
    document = "<ul><li>A <b>b</b><li>C</ul><a href=x><h1>D</h1></a><b>E<br>F</b>"
    sentences = [
        (letters, " ".join(f"{i}-{i}" for i in range(len(letters.split()))))
        for letters in ("1 2", *"3456")
    ]
    expected = "<ul><li>1 <b>2</b><li>3</ul><a href=x><h1>4</h1></a><b>5<br>6</b>"
    assert translated(document, *sentences) == expected


def test_translation_without_words_has_all_tags():
    assert translated("<b>the</b> cat <i>sleeps", ("", "")) == "<b></b><i>"
