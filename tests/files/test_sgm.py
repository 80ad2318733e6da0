"""Segments of .sgm files, read where text is read."""

import gzip
from pathlib import Path

import pytest

from t2tlite.files.text_files import read_lines, read_parallel, read_segments


def read(path: Path, text: str) -> list[str]:
    path.write_text(text, encoding="utf-8")
    return list(read_lines(path))


def test_segments(tmp_path: Path) -> None:
    text = (
        '<srcset setid="x" srclang="any">\n<doc docid="1">\n<hl>\n<seg id="1"> A'
        ' &quot;B&quot; &#38; C </seg>\n</hl>\n<seg id="2">AT&T &lt;b&gt; &amp;lt;'
        ' &notanentity; R&copy x < y</seg>\r\n<SEG ID=3></SEG>\n<seg id="4">one</seg>'
        ' <seg id="5">two&#10;lines</seg>\n</doc>\n</srcset>\n'
    )
    assert read(tmp_path / "x.sgm", text) == [
        'A "B" & C',
        "AT&T <b> &lt; &notanentity; R&copy x < y",
        "",
        "one",
        "two lines",
    ]


def test_broken_segments_name_file_and_line(tmp_path: Path) -> None:
    path = tmp_path / "x.sgm"
    for broken in (
        '<seg id="2">no end',
        "no start</seg>",
        '<seg id="2">a <seg id="3">b</seg>',
    ):
        text = f'<doc>\n<seg id="1">good</seg>\n{broken}\n</doc>\n'
        with pytest.raises(
            ValueError, match=r"x\.sgm, line 3: each <seg> must end on its line"
        ):
            read(path, text)
    with pytest.raises(ValueError, match=r"<seg> elements, .*x\.sgm with 0\."):
        read(tmp_path / "x.sgm", "plain text\n")
    path.write_bytes(b'<seg id="1">\xe4</seg>\n')
    with pytest.raises(ValueError, match=r"x\.sgm, line 1: text must be UTF-8"):
        list(read_lines(path))


def test_text_and_segments_are_read_together(tmp_path: Path) -> None:
    source = tmp_path / "dev.EN.SGM.gz"
    source.write_bytes(gzip.compress(b'<seg id="1">A &amp; B</seg>\n<seg>C</seg>\n'))
    target = tmp_path / "dev.de"
    target.write_text("A und B\nC\n")
    pairs = [("A & B", "A und B"), ("C", "C")]
    assert list(read_parallel([source], [target])) == pairs
    target.write_text("A und B\n")
    with pytest.raises(ValueError, match=r"SGM\.gz with 2, .*dev\.de with 1\."):
        list(read_parallel([source], [target]))


def test_segments_under_any_name(tmp_path: Path) -> None:
    path = tmp_path / "tst2010.xml"
    path.write_text('<?xml version="1.0"?>\n<seg id="1"> A </seg>\n')
    assert list(read_segments(path)) == ["A"]
    text = f"&#{5000 * '1'};"  # more digits than Python reads
    assert read(tmp_path / "x.sgm", f"<seg>{text}</seg>\n") == [text]


@pytest.mark.parametrize("name", ["memory.tmx", "project.XLIFF", "de.po", "test.xml"])
def test_other_formats_are_refused_by_name(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"a\n")
    message = rf"{name} must have a sentence on each line; see --train_tmx\."
    with pytest.raises(ValueError, match=message):
        next(read_lines(tmp_path / name))
