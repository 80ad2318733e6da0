"""Sentence pairs of translation memories."""

import gzip
from pathlib import Path

import pytest

from t2tlite.data.tmx import read_tmx

HEADER = '<header creationtool="test" segtype="sentence" srclang="en-US"/>'


def unit(**texts: str) -> str:
    variants = []
    for language, text in texts.items():
        code = language.replace("_", "-")
        variants.append(f'<tuv xml:lang="{code}"><seg>{text}</seg></tuv>')
    return f"<tu>{''.join(variants)}</tu>\n"


def tmx(*units: str, declaration: str = "", lang: str = "xml:lang") -> str:
    text = (
        f'{declaration}<tmx version="1.4">{HEADER}<body>{"".join(units)}</body></tmx>'
    )
    return text.replace("xml:lang", lang)


def read(
    path: Path, text: str | bytes, source: str = "en", target: str = "de"
) -> list[tuple[str, str]]:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return list(read_tmx(path, source, target))


def test_two_languages(tmp_path: Path) -> None:
    path = tmp_path / "two.tmx"
    text = tmx(
        unit(en_US="A &amp; B", de_DE="A und B"),
        unit(de_DE="eins", en_US="one"),
        unit(en_US="untranslated"),
        unit(en_US="", de_DE="leer"),
    )
    pairs = [("A & B", "A und B"), ("one", "eins"), ("", "leer")]
    for code in ("en", "EN_us", "en-US"):  # without a region too
        assert read(path, text, code) == pairs
    assert read(path, text, "de", "en") == [pair[::-1] for pair in pairs]
    # TMX 1.1
    assert read(path, tmx(unit(en="a", de="b"), lang="lang")) == [("a", "b")]


def test_languages_are_chosen(tmp_path: Path) -> None:
    path = tmp_path / "many.tmx"
    text = tmx(
        unit(en_GB="colour", en_US="color", de="Farbe", fr="couleur"),
        unit(en_GB="lift", fr="ascenseur"),
    )
    assert read(path, text, "en-US", "de") == [("color", "Farbe")]
    pairs = [("colour", "couleur"), ("lift", "ascenseur")]
    assert read(path, text, "en", "fr-CA") == pairs
    text_of_scripts = tmx(unit(en="x", zh_TW="a", zh_Hans="b"))
    for code, expected in (("zh-CN", "b"), ("zh", "b"), ("zh_hant", "a")):
        assert read(path, text_of_scripts, "en", code) == [("x", expected)]
    # one variant is not a pair
    text_of_one = tmx(unit(pt_BR="um"), unit(pt_BR="dois", pt="dous"))
    assert read(path, text_of_one, "pt", "pt-BR") == [("dous", "dois")]
    for source, target in (("en", "pt"), ("", "")):
        message = (
            rf"many\.tmx must have .*='{source}' and --target_language='{target}'\."
            r" Received: en-GB, en-US, de, fr\.$"
        )
        with pytest.raises(ValueError, match=message):
            read(path, text, source, target)
    with pytest.raises(ValueError, match=r"_language='de'\. Received: none\.$"):
        read(path, tmx())


@pytest.mark.parametrize(
    ("segment", "text"),
    [
        ('<bpt i="1">&lt;b&gt;</bpt>Save<ept i="1">&lt;/b&gt;</ept> it', "Save it"),
        ('see <hi type="bold">all <hi>of</hi></hi> it', "see all of it"),
        ('a<ph>{0}<sub>alt text</sub></ph>b<it pos="begin">&lt;i&gt;</it>', "ab"),
        ("<ut>{\\b</ut>old", "old"),
        ("  one\n   line\r\n\nand&#13;this ", "one line and this"),
        ("a\u2028b\u00a0c", "a b\u00a0c"),
        ("<![CDATA[x < y]]> &#x41;", "x < y A"),
    ],
)  # fmt: skip
def test_segments_are_text_on_one_line(tmp_path: Path, segment: str, text: str) -> None:
    assert read(tmp_path / "x.tmx", tmx(unit(en=segment, de="."))) == [(text, ".")]


@pytest.mark.parametrize(
    ("codec", "declared"),
    [
        ("utf-8-sig", "utf-8"),
        ("utf-16", "UTF-16"),
        ("iso-8859-1", "ISO-8859-1"),
        ("windows-1252", "windows-1252"),
    ],
)  # fmt: skip
def test_encodings(tmp_path: Path, codec: str, declared: str) -> None:
    declaration = f'<?xml version="1.0" encoding="{declared}"?>\n<!DOCTYPE tmx SYSTEM "tmx14.dtd">'
    data = tmx(unit(en="size", de="Größe"), declaration=declaration).encode(codec)
    assert read(tmp_path / "x.tmx", data) == [("size", "Größe")]
    assert read(tmp_path / "x.tmx.gz", gzip.compress(data)) == [("size", "Größe")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (tmx(unit(en="&file;", de="."), declaration='<!DOCTYPE tmx [<!ENTITY file SYSTEM "/etc/passwd">]>'), "undefined entity"),
        (tmx(unit(en="a&nbsp;b"), declaration='<!DOCTYPE tmx SYSTEM "tmx14.dtd">'), "undefined entity"),
        (tmx(unit(en="a"))[: -9], ".*line 2"),
        ("one line of text\n", "syntax error: line 1"),
        ("", "no element found"),
        ('<?xml version="1.0" encoding="Shift_JIS"?><tmx/>', ""),
        ('<?xml version="1.0" encoding="nonsense"?><tmx/>', ""),
    ],
)  # fmt: skip
def test_what_is_not_tmx_is_refused(tmp_path: Path, text: str, message: str) -> None:
    match = rf"x\.tmx must be TMX in UTF-8, without a DTD: .*{message}"
    with pytest.raises(ValueError, match=match):
        read(tmp_path / "x.tmx", text)


def test_damaged_compressed_data(tmp_path: Path) -> None:
    whole = gzip.compress(tmx(unit(en="a", de="b")).encode())
    with pytest.raises(ValueError, match=r"gzip data must be complete.*x\.tmx\.gz"):
        read(tmp_path / "x.tmx.gz", whole[:-9])
