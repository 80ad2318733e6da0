"""The command t2t-attention: what it writes where, and what it says of mistakes."""

import sys
from pathlib import Path

import numpy as np
import pytest

from t2tlite.bin import t2t_attention

PNG = b"\x89PNG\r\n\x1a\n"
SENTENCE = "red cat sees dog today"


pytestmark = pytest.mark.usefixtures("loaded_once")


@pytest.fixture
def flags(tiny_run) -> list[str]:
    return [f"--output_dir={tiny_run.run}", f"--source={SENTENCE}", "--verbosity=error"]


def test_attention_of_the_models_own_translation(model):
    actual = model.attention(SENTENCE)
    source, target = len(actual.source_pieces), len(actual.target_pieces)
    assert actual.target == model.translate([SENTENCE])[0]
    assert "".join(actual.source_pieces).replace("▁", " ").strip() == SENTENCE + "</s>"
    assert actual.target_pieces[-1] == "</s>"
    assert actual.queries("cross") == actual.target_pieces
    assert actual.keys("decoder") == ["<start>", *actual.target_pieces[:-1]]
    shapes = [
        [layer.shape for layer in stack]
        for stack in (actual.encoder, actual.decoder, actual.cross)
    ]
    assert shapes == [
        [(2, source, source)],
        [(2, target, target)],
        [(2, target, source)],
    ]
    assert {
        layer.dtype for layer in actual.encoder + actual.decoder + actual.cross
    } == {np.dtype(np.float32)}


def test_attention_of_a_given_translation(model):
    model_attention, given = (
        model.attention(SENTENCE),
        model.attention(SENTENCE, "hund sieht"),
    )
    assert given.target == "hund sieht"
    np.testing.assert_array_equal(model_attention.encoder[0], given.encoder[0])
    assert given.cross[0].shape != model_attention.cross[0].shape


def test_blank_source(model):
    with pytest.raises(
        ValueError,
        match=r"must have words for its attention to be shown\. Received: ' '",
    ):
        model.attention(" ")


def test_command_makes_page_and_picture_in_the_run(flags, model, tiny_run, capsys):
    assert t2t_attention.main(flags) == 0
    translation, picture, page = (
        line.split(maxsplit=1)[1] for line in capsys.readouterr().out.splitlines()
    )
    assert translation == model.translate([SENTENCE])[0]
    assert Path(picture).parent == Path(page).parent == tiny_run.run / "attention"
    assert Path(picture).read_bytes().startswith(PNG)
    assert Path(page).name.startswith("120-red-cat-sees-dog-today-")
    assert "<!doctype html>" in Path(page).read_text(encoding="utf-8")


def test_command_makes_only_what_is_named(flags, tiny_run, tmp_path, capsys):
    before = sorted((tiny_run.run / "attention").glob("*"))
    assert (
        t2t_attention.main(
            [*flags, "--word=cat", f"--picture={tmp_path}/new/cat.svg", "--heads=2"]
        )
        == 0
    )
    assert (
        t2t_attention.main(
            [*flags, "--target=katze", "--kind=cross", f"--html={tmp_path}/cross.html"]
        )
        == 0
    )
    assert "cat.svg" in capsys.readouterr().out
    assert sorted(path.name for path in tmp_path.rglob("*.*")) == [
        "cat.svg",
        "cross.html",
    ]
    assert sorted((tiny_run.run / "attention").glob("*")) == before


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (
            ["--kind=encoder,decodr"],
            "must be one of encoder, decoder, cross. Received: 'decodr'",
        ),
        (["--layers=9"], "A layer of the encoder must be from 1 to 1. Received: 9"),
        (
            ["--layers=0", "--html=x.html"],
            "A layer of the encoder must be from 1 to 1. Received: 0",
        ),
        (
            ["--layers=two"],
            "--layers must be numbers from 1 on, comma-separated. Received: 'two'",
        ),
        (["--heads=3"], "A head must be from 1 to 2. Received: 3"),
        (["--word=zebra"], "must be in the source or the target. Received: 'zebra'"),
        (
            ["--word=cat", "--kind=cross"],
            "The word must be in the sentence. Received: 'cat', and the sentence '",
        ),
        (
            ["--picture=cat"],
            "must end in .png or .svg (a page's in .html). Received: cat.",
        ),
        (
            ["--picture=cat.jpg"],
            "must end in .png or .svg (a page's in .html). Received: cat.jpg.",
        ),
        (["--source="], "--source must be given"),
        (["--checkpoint_path=nowhere"], "nowhere"),
    ],
)
def test_mistakes(flags, more, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert t2t_attention.main([*flags, "--target=hund sieht", *more]) == 1
    error = capsys.readouterr().err
    assert message in error
    assert "Traceback" not in error
    assert list(tmp_path.iterdir()) == []


def test_without_matplotlib(flags, tmp_path, capsys, monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    flags = [*flags, "--target=hund"]
    assert t2t_attention.main([*flags, f"--picture={tmp_path}/a.png"]) == 1
    assert "pip install 't2tlite[plots]'" in capsys.readouterr().err
    assert t2t_attention.main(flags) == 0
    out = capsys.readouterr().out
    assert "no picture: it needs matplotlib" in out
    assert "page " in out
