"""The rule by which vocabularies read text: Unicode's own facts, and the same result in
Python, in SentencePiece and in TensorFlow.
"""

import itertools
import unicodedata

import pytest
import sentencepiece
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sample_texts import NASTY, SENTENCES, random_texts

from t2tlite.decoding.text_decoder import most_tokens
from t2tlite.vocabularies.normalisation import (
    NFC,
    NFKC,
    NONE,
    is_blank,
    normalise,
    words,
)
from t2tlite.vocabularies.sentencepiece_encoder import (
    SentencePieceEncoder,
    train_sentencepiece,
)
from t2tlite.vocabularies.subword_encoder import SubwordEncoder

# Cases with their results under nfc: Unicode's charts and, for joiners, the spelling of
# the languages.
CASES = {
    "no-break space": ("a\u00a0b", "a b"),
    "narrow no-break space": ("12\u202f%", "12 %"),
    "ideographic space": ("a\u3000b", "a b"),
    "next line": ("a\x85b", "a b"),
    "separators of fields": ("a\x1c\x1d\x1e\x1fb", "a b"),
    "separators of lines": ("a\u2028b\u2029c", "a b c"),
    "tab": ("\ta\tb", "a b"),
    "form feed": ("a\x0cb", "a b"),
    "runs": ("  a \u00a0 \t b  ", "a b"),
    "line break": ("a\r\nb\n", "a b"),
    "zero-width space": ("a\u200bb", "ab"),
    "zero-width character between spaces": ("a \u200b b", "a b"),
    "zero-width character at the end": ("a \u2060", "a"),
    "soft hyphen": ("a\u00adb", "ab"),
    "byte order mark": ("\ufeffa\ufeffb", "ab"),
    "marks of direction": ("\u200ea\u200f\u202ab\u202c\u2066c\u2069\u061c", "abc"),
    "Mongolian vowel separator": ("a\u180eb", "ab"),
    "decomposed umlaut": ("u\u0308ber", "\u00fcber"),
    "two marks of Vietnamese": ("e\u0302\u0323", "\u1ec7"),
    "in the other order": ("e\u0323\u0302", "\u1ec7"),
    "one of them composed": ("\u00ea\u0323", "\u1ec7"),
    "Angstrom sign": ("\u212b", "\u00c5"),
    "Ohm sign": ("\u2126", "\u03a9"),
    "Kelvin sign": ("\u212a", "K"),
    "Hangul": ("\u1112\u1161\u11ab\u1100\u116e\u11a8", "한국"),
    "compatibility ideograph": ("\uf900", "\u8c48"),
    "excluded from composition": ("\u0958", "\u0915\u093c"),
    "marks out of order": ("q\u0307\u0323", "q\u0323\u0307"),
    "full-width": ("\uff21\uff0e", "\uff21\uff0e"),
    "ligature": ("\ufb01", "\ufb01"),
    "superscript": ("x\u00b2", "x\u00b2"),
    "half-width katakana": ("\uff76\uff9e", "\uff76\uff9e"),
    "non-joiner of Persian": ("\u0645\u06cc\u200c\u0631\u0648\u0645",) * 2,
    "joiners of Hindi": ("\u0915\u094d\u200d\u0937 \u0915\u094d\u200c\u0937",) * 2,
    "non-joiner behind a composed letter": (
        "\u0627\u0653\u200c\u0628",
        "\u0622\u200c\u0628",
    ),
    "joiners elsewhere": ("a\u200cb\u200dc \u200d", "abc"),
    "two joiners": ("\u06cc\u200c\u200c\u0631", "\u06cc\u200c\u0631"),
    "family of emoji": ("\U0001f468\u200d\U0001f469\u200d\U0001f467",) * 2,
    "heart on fire": ("\u2764\ufe0f\u200d\U0001f525",) * 2,
    "case": ("STRASSE Straße İ", "STRASSE Straße İ"),
    "control characters": ("a\x00\x07\x1b\x7fb", "a\x00\x07\x1b\x7fb"),
    "the character that SentencePiece writes for a space": ("a\u2581b", "a b"),
}
WITH_NFKC = {
    "full-width": ("\uff21\uff0e", "A."),
    "ligature": ("\ufb01", "fi"),
    "superscript": ("x\u00b2", "x2"),
    "half-width katakana": ("\uff76\uff9e", "ガ"),
    "no-break space": ("a\u00a0b", "a b"),
    "spacing accent": ("a\u00b4b", "a \u0301b"),
    "soft hyphen": ("a\u00adb", "ab"),
    "decomposed umlaut": ("u\u0308ber", "\u00fcber"),
}
SPELT = "".join(f"{character}\n" for character in "\\_u;0123456789")
BLANK = ["", " ", "\t\u00a0\u3000", "\u200b", " \ufeff \u00ad\u200d", "\u2060\u200c"]

# What texts are drawn from: what the rule is about, and anything.
SPECIAL = sorted({c for text, _ in CASES.values() for c in text} | set("ab<BT> \u0301"))
DECOMPOSED = [
    unicodedata.normalize("NFD", c)
    for c in map(chr, range(0x30000))
    if unicodedata.normalize("NFC", c) == c != unicodedata.normalize("NFD", c)
]
TEXTS = st.lists(
    st.one_of(
        st.sampled_from(SPECIAL),
        st.sampled_from(DECOMPOSED),
        st.characters(exclude_categories=["Cs"]),
    ),
    max_size=12,
).map("".join)


@pytest.fixture(scope="module")
def encoders(tmp_path_factory):
    """A vocabulary of each rule."""
    folder = tmp_path_factory.mktemp("vocabularies")
    made = {}
    for rule in (NFC, NFKC):
        train_sentencepiece(SENTENCES, 300, folder / f"{rule}.model", ["<BT>"], rule)
        made[rule] = SentencePieceEncoder(folder / f"{rule}.model")
    return made


def spaces_and_invisibles(text):
    """Steps 2 and 3 of the rule for text without joiners, from Unicode's categories:
    Cf are characters of format.
    """
    kept = [c for c in text if unicodedata.category(c) != "Cf" and c != "\u034f"]
    return " ".join("".join(kept).split())


@pytest.mark.parametrize(("text", "expected"), CASES.values(), ids=CASES)
def test_nfc(encoders, text, expected):
    assert normalise(text) == expected
    assert encoders[NFC].normalise(text) == expected
    assert encoders[NFC].encode(text) == encoders[NFC].encode(expected)
    assert encoders[NFC].decode(encoders[NFC].encode(text)) == expected
    assert normalise(text, NONE) == text


@pytest.mark.parametrize(("text", "expected"), WITH_NFKC.values(), ids=WITH_NFKC)
def test_nfkc(encoders, text, expected):
    assert normalise(text, NFKC) == encoders[NFKC].normalise(text) == expected


# of format, but seen: Arabic number signs and Egyptian joiners; those of shorthand and
# music, and tags, stay as they are
SEEN = {*range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD}
STAY = {*range(0x13430, 0x13440), *range(0x1BCA0, 0x1BCA4), *range(0x1D173, 0x1D17B),
        *range(0xE0000, 0xE0080), 0x2065, 0x2581}  # fmt: skip


@pytest.mark.parametrize("rule", [NFC, NFKC])
def test_every_character(encoders, rule):
    """Between two letters that compose with nothing."""
    wrong = []
    for code in range(0x110000):
        character = chr(code)
        if 0xD800 <= code <= 0xDFFF or code in SEEN | STAY:
            continue
        if unicodedata.category(character) == "Cn":
            continue
        text = f"q{character}7"
        composed = unicodedata.normalize(rule.upper(), text)
        if encoders[rule].normalise(text) != spaces_and_invisibles(composed):
            wrong.append(hex(code))
    assert wrong == []


@pytest.mark.parametrize("rule", [NFC, NFKC])
@given(text=TEXTS)
@example(text="x\u0344")
@example(text="\u180e\u200c\u0628\u061c\u200c")
@example(text="\u2581<BT> \u200b<BT>")
@settings(max_examples=500)
def test_the_model_has_the_rule(encoders, rule, text):
    encoder = encoders[rule]
    normal = encoder.normalise(text)
    assert normal == normalise(text, rule)
    # what a zero-width character has kept apart would be composed
    if unicodedata.is_normalized(rule.upper(), normal):
        assert encoder.encode(text) == encoder.encode(normal)
    assert encoder.is_blank(text) == is_blank(text)
    assert (not encoder.encode(text)) == is_blank(text)


def test_a_graph_has_the_rule(encoders):
    tf = pytest.importorskip("tensorflow")
    from t2tlite.programs.export.graph import SentencePieceText

    texts = []
    for text in [*random_texts(), *NASTY, *dict(CASES.values())]:
        # Python and TensorFlow may know different versions of Unicode
        known = [c for c in text if unicodedata.category(c) != "Cn"]
        texts.append("".join(known))
    for encoder in encoders.values():
        ids = SentencePieceText(encoder).encode(tf.constant(texts)).to_list()
        assert [row[:-1] for row in ids] == encoder.encode_batch(texts)


def test_the_file_has_the_rule_for_other_programs(encoders):
    """SentencePiece alone: every character of Unicode, however it is decomposed, and
    marks in another order than the canonical one where Unicode composes them all.
    """
    encoder = encoders[NFC]
    other = sentencepiece.SentencePieceProcessor(model_file=str(encoder.path))
    texts = [text for text, _ in CASES.values() if text != "q\u0307\u0323"]
    for spelling in DECOMPOSED:
        base, *marks = spelling
        texts += [f"x{spelling}y", f"  {spelling}\u00a0{spelling}\u200b"]
        for order in itertools.permutations(marks):
            text = base + "".join(order)
            if unicodedata.normalize("NFD", text) == spelling:
                texts.append(text)
    for text in texts:
        assert other.encode(text) == encoder.encode(text), ascii(text)


def test_user_symbols_survive(encoders):
    encoder = encoders[NFC]
    for text in (
        "\ufeff<BT>\u00a0\u200bthe\tcat",
        " <BT> the cat ",
        "<\u00adBT>\u3000the \u200b cat",
        "<BT>\u2028the cat",
    ):
        assert encoder.pieces(encoder.encode(text)) == ["▁<BT>", "▁the", "▁cat"]


def test_symbols_are_normalised_too(tmp_path):
    path = tmp_path / "v.model"
    train_sentencepiece(SENTENCES, 300, path, ["<de\u0301>", "<d\u00e9>"])
    encoder = SentencePieceEncoder(path)
    for symbol in ("<de\u0301>", "<d\u00e9>"):
        assert encoder.pieces(encoder.encode(symbol)) == ["▁<d\u00e9>"]


@pytest.mark.parametrize("text", BLANK, ids=ascii)
def test_blank(encoders, text):
    assert is_blank(text)
    assert encoders[NFC].encode(text) == []
    assert words(text) == []


def test_a_vocabulary_without_the_rule_keeps_text(tmp_path):
    train_sentencepiece(SENTENCES, 300, tmp_path / "v.model", normalization=NONE)
    encoder = SentencePieceEncoder(tmp_path / "v.model")
    assert encoder.normalization == NONE
    for text, _ in CASES.values():
        assert encoder.decode(encoder.encode(text)) == text.replace("\u2581", " ")


def test_texts_that_are_equal_train_equal_models(tmp_path):
    """Learning sees text as encoding does."""
    hostile = []
    for sentence in SENTENCES:
        decomposed = unicodedata.normalize("NFD", sentence)
        hostile.append("\ufeff " + decomposed.replace(" ", "\u00a0\u200b "))
    train_sentencepiece(SENTENCES, 300, tmp_path / "a.model")
    train_sentencepiece(hostile, 300, tmp_path / "b.model")
    assert (tmp_path / "a.model").read_bytes() == (tmp_path / "b.model").read_bytes()


def test_the_bound_of_lengths_is_of_normalised_text(encoders, tmp_path):
    """One character of 3 bytes is 18 Arabic letters under NFKC; a character that subwords
    lack is spelt as its number.
    """
    (tmp_path / "v.subwords").write_text("<pad>_\n<EOS>_\na_\n" + SPELT)
    for encoder, text in (
        (encoders[NFKC], "\ufdfa" * 20),
        (SubwordEncoder(tmp_path / "v.subwords"), "~" * 20),
    ):
        tokens = len(encoder.encode(text))
        assert 4 * len(text) < tokens <= most_tokens(text)
