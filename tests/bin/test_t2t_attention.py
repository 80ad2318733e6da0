"""The command t2t-attention: what it writes where, and what it says of mistakes."""

from pathlib import Path

import numpy as np
import pytest
from run_command import refusal
from tiny_run import last_of_each

from t2tlite.bin import t2t_attention

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
    for stack, shape in (
        (actual.encoder, (2, source, source)),
        (actual.decoder, (2, target, target)),
        (actual.cross, (2, target, source)),
    ):
        [layer] = stack
        assert (layer.shape, layer.dtype) == (shape, np.float32)


def test_attention_of_a_given_translation(model):
    translated, given = (
        model.attention(SENTENCE),
        model.attention(SENTENCE, "hund sieht"),
    )
    assert given.target == "hund sieht"
    np.testing.assert_array_equal(translated.encoder[0], given.encoder[0])
    assert given.cross[0].shape != translated.cross[0].shape
    with pytest.raises(ValueError, match=r"Attention needs words. Received: ' '"):
        model.attention(" ")


def test_command_makes_a_page_in_the_run(flags, model, tiny_run, capsys):
    assert t2t_attention.main(flags) == 0
    shown = {}
    for line in capsys.readouterr().out.splitlines():
        name, value = line.split(maxsplit=1)
        shown[name] = value
    assert list(shown) == ["translation", "page"]
    assert shown["translation"] == model.translate([SENTENCE])[0]
    path = Path(shown["page"])
    assert path.parent == tiny_run.run / "attention"
    assert path.name.startswith("120-red-cat-sees-dog-today-")
    assert "<!doctype html>" in path.read_text(encoding="utf-8")


def test_command_makes_the_page_that_is_named(flags, tiny_run, tmp_path, capsys):
    before = sorted((tiny_run.run / "attention").glob("*"))
    path = tmp_path / "new" / "cross.html"
    given = ["--target=katze", f"--html={path}"]
    assert t2t_attention.main([*flags, *given]) == 0
    assert capsys.readouterr().out == f"page         {path}\n"
    assert "katze" in path.read_text(encoding="utf-8")
    assert sorted((tiny_run.run / "attention").glob("*")) == before


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--picture=cat.svg"], "Unknown command line flag 'picture'"),
        (["--source="], "--source must be given"),
        (["--checkpoint_path=nowhere"], "nowhere"),
    ],
)
def test_mistakes(flags, more, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    given = last_of_each(*flags, "--target=hund sieht", *more)
    assert message in refusal(capsys, t2t_attention, *given)
    assert list(tmp_path.iterdir()) == []
