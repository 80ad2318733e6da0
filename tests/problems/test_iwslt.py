"""The IWSLT tasks, from files laid out as they are distributed."""

from pathlib import Path

import pytest
from problem_test import run_problem_test

from t2tlite import registry
from t2tlite.problems.translation import Iwslt14Deen

TEST_SETS = ("TED.dev2010", "TEDX.dev2012", "TED.tst2010", "TED.tst2011", "TED.tst2012")
HEADER = (
    "<url>http://www.ted.com/talks/{0}.html</url>\n<keywords>talks</keywords>\n"
    "<speaker>Al Gore</speaker>\n<talkid>1</talkid>\n<title>Al Gore: {0}</title>\n"
    "<description>About {0}.</description>\n"
)


def unpack_iwslt14(folder: Path, lines: list[tuple[str, str]]) -> Path:
    """What de-en.tgz unpacks to, with these training lines after a talk's header."""
    folder.mkdir(parents=True)
    for side, language in enumerate(("de", "en")):
        text = HEADER.format(("Klima", "climate")[side])
        text += "".join(f"{line[side]}\n" for line in lines)
        (folder / f"train.tags.de-en.{language}").write_text(text, encoding="utf-8")
        for name in TEST_SETS:
            path = folder / f"IWSLT14.{name}.de-en.{language}.xml"
            segment = f'<seg id="1"> {name}, it’s {language} &amp; so. </seg>'
            path.write_text(
                f'<?xml version="1.0"?>\n<mteval>\n<doc docid="1">\n{segment}\n</doc>\n'
                "</mteval>\n",
                encoding="utf-8",
            )
    return folder


def test_iwslt14_training_text(tmp_path: Path):
    lines = [
        ("Vielen Dank, Chris.", "Thank you so much, Chris."),
        ("", "No source."),
        ("Ja.", "This is more than one and a half times as long."),
        ("A " * 176, "A " * 176),
    ]
    unpack_iwslt14(tmp_path / "raw" / "de-en", lines)
    assert list(Iwslt14Deen().pairs("train", tmp_path)) == [
        ("al gore : klima", "al gore : climate"),
        ("about klima .", "about climate ."),
        ("vielen dank , chris .", "thank you so much , chris ."),
    ]


def test_iwslt14_every_23rd_pair_is_of_dev(tmp_path: Path):
    """Counted over the pairs that are kept; the header has two."""
    lines = [(f"wort {number}", f"word {number}") for number in range(3, 70)]
    lines.insert(5, ("", "left out"))
    unpack_iwslt14(tmp_path / "de-en", lines)
    dev = list(Iwslt14Deen().pairs("dev", tmp_path))
    assert dev == [(f"wort {n}", f"word {n}") for n in (23, 46, 69)]
    train = list(Iwslt14Deen().pairs("train", tmp_path))
    assert len(train) == 69 - 3
    assert not set(train) & set(dev)


def test_iwslt14_test_sets(tmp_path: Path):
    unpack_iwslt14(tmp_path / "de-en", [("a", "b")])
    pairs = list(Iwslt14Deen().pairs("test", tmp_path))
    for name, (source, target) in zip(TEST_SETS, pairs, strict=True):
        # Moses separates 's in English alone, and writes & and ' as entities
        assert target == f"{name.lower()} , it &apos;s en &amp; so ."
        assert source == f"{name.lower()} , it &apos; s de &amp; so ."


def test_iwslt14_test_sets_of_unequal_length(tmp_path: Path):
    folder = unpack_iwslt14(tmp_path / "de-en", [("a", "b")])
    target = folder / "IWSLT14.TED.tst2010.de-en.en.xml"
    target.write_text(2 * target.read_text("utf-8"), encoding="utf-8")
    message = r"tst2010\.de-en\.de\.xml with 1, .*tst2010\.de-en\.en\.xml with 2\."
    with pytest.raises(ValueError, match=message):
        list(Iwslt14Deen().pairs("test", tmp_path))


def test_iwslt15(tmp_path: Path):
    pairs = {}
    for split, stem in (("train", "train"), ("dev", "tst2012"), ("test", "tst2013")):
        pairs[split] = [(f"{stem} &apos; en", f"{stem} &apos; vi")]
        for text in pairs[split][0]:
            path = tmp_path / f"{stem}.{text[-2:]}"
            path.write_text(f"{text}\n", encoding="utf-8")
    run_problem_test(registry.get_problem("iwslt15_envi"), tmp_path, pairs, files=6)
