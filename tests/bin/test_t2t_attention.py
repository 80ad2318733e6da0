"""The command t2t-attention, its page in a real browser, and its pictures."""

from __future__ import annotations

import html
import json
import re
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest
from chromium import dump_dom
from tiny_run import tiny_run

import t2tlite
from t2tlite import visualise
from t2tlite.bin import t2t_attention
from t2tlite.visualise import Attention
from t2tlite.visualise.attention import kinds_with, word_positions

PNG = b"\x89PNG\r\n\x1a\n"
SENTENCE = "red cat sees dog today"
AWKWARD = ["▁\"it's", "<", "&amp;", "</", "script", ">", "<!--", "▁$x$", "_^{", "\\", "▁", "▁שלום", "▁مرحبا", "猫",
           "\u202e", "\x07", "<0xE3>", "DATA_GOES_HERE", "</s>"]  # fmt: skip


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    return tiny_run(tmp_path_factory).run


@pytest.fixture
def flags(run) -> list[str]:
    return [f"--output_dir={run}", f"--source={SENTENCE}", "--verbosity=error"]


def attention_of(source: list[str], target: list[str], layers: int = 3, heads: int = 4) -> Attention:
    """Random weights: one decoder layer fewer than encoder layers."""
    random = np.random.default_rng(3)

    def weights(count: int, queries: list[str], keys: list[str], causal: bool = False) -> list[np.ndarray]:
        scores = np.exp(3 * random.normal(size=(count, heads, len(queries), len(keys))))
        scores = np.tril(scores) if causal else scores
        return list((scores / scores.sum(-1, keepdims=True)).astype(np.float32))

    stacks = weights(layers, source, source), weights(layers - 1, target, target, True)
    texts = ("".join(pieces[:-1]).replace("▁", " ").strip() for pieces in (source, target))
    return Attention(source, target, *stacks, weights(layers - 1, target, source), *texts)


@pytest.fixture(scope="module")
def attention() -> Attention:
    return attention_of(["▁The", "▁cat", "▁mak", "ing", "▁it", "</s>"], ["▁Die", "▁Katz", "e", "▁macht", "</s>"])


# from a trained run


def test_attention_of_the_models_own_translation(run):
    model = t2tlite.load(run)
    found = model.attention(SENTENCE)
    source, target = len(found.source_pieces), len(found.target_pieces)
    assert found.target == model.translate([SENTENCE])[0]
    assert "".join(found.source_pieces).replace("▁", " ").strip() == SENTENCE + "</s>"
    assert found.target_pieces[-1] == "</s>"
    assert found.queries("cross") == found.target_pieces
    assert found.keys("decoder") == ["<start>", *found.target_pieces[:-1]]
    shapes = [[layer.shape for layer in stack] for stack in (found.encoder, found.decoder, found.cross)]
    assert shapes == [[(2, source, source)], [(2, target, target)], [(2, target, source)]]
    assert {layer.dtype for layer in found.encoder + found.decoder + found.cross} == {np.dtype(np.float32)}


def test_attention_of_a_given_translation(run):
    model = t2tlite.load(run)
    own, given = model.attention(SENTENCE), model.attention(SENTENCE, "hund sieht")
    assert given.target == "hund sieht"
    np.testing.assert_array_equal(own.encoder[0], given.encoder[0])
    assert given.cross[0].shape != own.cross[0].shape


def test_blank_source(run):
    with pytest.raises(ValueError, match=r"must have words for its attention to be shown\. Received: ' '"):
        t2tlite.load(run).attention(" ")


def test_command_makes_page_and_picture_in_the_run(flags, run, capsys):
    assert t2t_attention.main(flags) == 0
    translation, picture, page = (line.split(maxsplit=1)[1] for line in capsys.readouterr().out.splitlines())
    assert translation == t2tlite.load(run).translate([SENTENCE])[0]
    assert Path(picture).parent == Path(page).parent == run / "attention"
    assert Path(picture).read_bytes().startswith(PNG)
    assert Path(page).name.startswith("120-red-cat-sees-dog-today-")
    assert "<!doctype html>" in Path(page).read_text(encoding="utf-8")


def test_command_makes_only_what_is_named(flags, run, tmp_path, capsys):
    before = sorted((run / "attention").glob("*"))
    assert t2t_attention.main([*flags, "--word=cat", f"--picture={tmp_path}/new/cat.svg", "--heads=2"]) == 0
    assert t2t_attention.main([*flags, "--target=katze", "--kind=cross", f"--html={tmp_path}/cross.html"]) == 0
    assert "cat.svg" in capsys.readouterr().out
    assert sorted(path.name for path in tmp_path.rglob("*.*")) == ["cat.svg", "cross.html"]
    assert sorted((run / "attention").glob("*")) == before


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--kind=encoder,decodr"], "must be one of encoder, decoder, cross. Received: 'decodr'"),
        (["--layers=9"], "A layer of the encoder must be from 1 to 1. Received: 9"),
        (["--layers=0", "--html=x.html"], "A layer of the encoder must be from 1 to 1. Received: 0"),
        (["--layers=two"], "--layers must be numbers from 1 on, comma-separated. Received: 'two'"),
        (["--heads=3"], "A head must be from 1 to 2. Received: 3"),
        (["--word=zebra"], "must be in the source or the target. Received: 'zebra'"),
        (["--word=cat", "--kind=cross"], "The word must be in the sentence. Received: 'cat', and the sentence '"),
        (["--picture=cat"], "must end in .png or .svg. Received: cat."),
        (["--picture=cat.jpg"], "must end in .png or .svg. Received: cat.jpg."),
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


def test_without_matplotlib(flags, run, tmp_path, capsys, monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setattr(t2t_attention.importlib.util, "find_spec", lambda name: None)
    flags = [*flags, "--target=hund"]
    assert t2t_attention.main([*flags, f"--picture={tmp_path}/a.png"]) == 1
    assert "pip install 't2tlite[plots]'" in capsys.readouterr().err
    assert t2t_attention.main(flags) == 0
    out = capsys.readouterr().out
    assert "no picture: it needs matplotlib" in out
    assert "page " in out


# words


def test_a_word_is_found_as_its_pieces(attention):
    assert word_positions(attention.source_pieces, "making") == [2, 3]
    assert word_positions(attention.source_pieces, "cat making") == [1, 2, 3]
    assert word_positions(attention.source_pieces, "</s>") == [5]
    assert word_positions(["▁con", "cat", "▁cat"], "cat") == [2]  # the word, not the part of another
    assert word_positions(["▁con", "cat", "▁dog"], "cat") == [1]
    assert word_positions(["<0xE7>", "<0x8C>", "<0xAB>", "が", "</s>"], "猫") == [0, 1, 2]  # spelt in bytes
    assert word_positions(["<0x8C>", "▁it's", ",", "▁it"], "it's") == [1]  # a byte that is no text
    assert kinds_with(attention, "making") == ["encoder"]
    assert kinds_with(attention, "Katze") == ["decoder", "cross"]


def test_a_word_that_is_not_there(attention):
    with pytest.raises(ValueError, match=r"in the sentence\. Received: 'dog', and the sentence 'The cat making it'"):
        word_positions(attention.source_pieces, "dog")
    with pytest.raises(ValueError, match=r"Received: ' '"):
        word_positions(attention.source_pieces, " ")


def test_pieces_must_fit_the_weights(attention):
    with pytest.raises(ValueError, match=r"\[heads, 5, 5\]\. Received: \[4, 6, 6\] for encoder, layer 1"):
        Attention(attention.source_pieces[:-1], attention.target_pieces, attention.encoder, [], [])


# pictures


def test_heat_maps_draw_the_weights(attention):
    figure = visualise.heat_maps(attention, ["decoder"], layers=[2], heads=[3, 1])
    panels = [axes for axes in figure.axes if axes.images and axes.get_xlabel()]
    assert [axes.get_xlabel() for axes in panels] == ["head 3", "head 1"]
    assert [label.get_text() for label in panels[0].get_xticklabels()] == ["<start>", "·Die", "·Katz", "e", "·macht"]
    assert [label.get_text() for label in panels[0].get_yticklabels()] == ["·Die", "·Katz", "e", "·macht", "</s>"]
    for axes, head in zip(panels, (2, 0), strict=True):
        drawn = axes.images[0].get_array()
        np.testing.assert_array_equal(drawn.data, attention.decoder[1][head])
        np.testing.assert_array_equal(drawn.mask, np.triu(np.ones((5, 5), bool), 1))


def test_word_lines_go_from_the_word_to_what_it_looks_at(attention):
    figure = visualise.word_lines(attention, "making", heads=[2])
    (axes,) = [axes for axes in figure.axes if axes.lines]
    weights = attention.encoder[1][1][[2, 3]]  # the last layer but one of three
    assert len(axes.lines) == (weights >= 0.01).sum()
    strengths = sorted(line.get_alpha() for line in axes.lines)
    np.testing.assert_allclose(strengths, np.sqrt(np.sort(weights[weights >= 0.01])), rtol=1e-6)
    bold = [text.get_text() for text in axes.texts if text.get_fontweight() == "bold"]
    assert bold == ["·mak", "ing"]


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_awkward_text_in_pictures(tmp_path, ending):
    awkward = attention_of(AWKWARD, AWKWARD)
    for name, figure in {
        "maps": visualise.heat_maps(awkward),
        "lines": visualise.word_lines(awkward, "$x$"),
    }.items():
        path = tmp_path / f"{name}.{ending}"
        assert set(visualise.save_picture(figure, path)) <= {"猫"}
        if ending == "png":
            assert path.read_bytes().startswith(PNG)
            continue
        texts = {"".join(e.itertext()) for e in ElementTree.parse(path).iter("{http://www.w3.org/2000/svg}text")}
        shown = {piece.replace("▁", "·").replace("\u202e", "\ufffd").replace("\x07", "\ufffd") for piece in AWKWARD}
        assert shown <= texts


def test_a_picture_that_would_be_too_large():
    long = attention_of(["▁a"] * 120 + ["</s>"], ["▁b"] * 120 + ["</s>"], heads=16)
    with pytest.raises(ValueError, match=r"200 inches wide and high\. Received: one of .* Choose fewer"):
        visualise.heat_maps(long)


# the page


def test_a_page_with_too_many_weights(monkeypatch, attention):
    monkeypatch.setattr("t2tlite.visualise.attention_page.MAX_WEIGHTS", 100)
    with pytest.raises(ValueError, match=r"can hold 100 weights\. Received: 872\."):  # 4 x (3 x 36 + 2 x (25 + 30))
        visualise.page(attention)


def test_page_needs_nothing_from_outside(attention):
    page = visualise.page(attention)
    assert re.findall(r"https?:|\bsrc\s*=|url\(|@import|\bfetch\(|XMLHttpRequest|<link(?! rel=\"icon\")", page) == []
    assert "default-src 'none'" in page


def test_notebooks_show_the_page_in_a_frame(attention):
    frame = attention._repr_html_()
    (content,) = re.findall(r'srcdoc="([^"]*)"', frame)
    assert html.unescape(content) == visualise.page(attention)


def in_browser(page: str, script: str, folder: Path, address: str = "#") -> dict:
    """Opens a page in Chromium at an address within it, runs `script`, which fills the object `result`, and returns
    that with the page's errors."""
    listen = (
        "const errors = []; console.error = e => errors.push(e);"
        "addEventListener('error', e => errors.push(e.message));"
        "addEventListener('securitypolicyviolation', e => errors.push(e.violatedDirective));"
        f"history.replaceState(null, '', {address!r});"
    )
    report = (
        "const result = {}; const $ = s => document.querySelector(s), $$ = s => [...document.querySelectorAll(s)];"
        "const send = (e, type) => e.dispatchEvent(new MouseEvent(type, {bubbles: true, clientX: 9, clientY: 9}));"
        f"try {{ {script} }} catch (e) {{ errors.push(String(e)); }}"
        "result.errors = errors; const pre = document.createElement('pre'); pre.id = 'result';"
        "pre.textContent = JSON.stringify(result); document.body.append(pre);"
    )
    page = page.replace("<title>", f"<script>{listen}</script><title>", 1)
    page = page.replace("</body>", f"<script>{report}</script></body>")
    path = folder / "page.html"
    path.write_text(page, encoding="utf-8")
    (found,) = re.findall(r'<pre id="result">(.*?)</pre>', dump_dom(path, folder / "profile"), re.DOTALL)
    return json.loads(html.unescape(found))


def test_page_shows_weights_in_a_browser(attention, tmp_path):
    script = """
      const pressed = () => $$("button[aria-pressed=true]").map(e => e.textContent);
      const pixel = (q, k) => [...$("#cells").getContext("2d").getImageData(k, q, 1, 1).data];
      result.opened = pressed();
      send($$("#kinds button")[2], "click"); send($$("#layers button")[1], "click");
      $$("#heads button").slice(0, 2).forEach(e => send(e, "click"));
      result.pressed = pressed(); result.hash = location.hash; result.title = $("#maptitle").textContent;
      const texts = found => found.map(e => e.textContent);
      result.rows = texts($$("#rows bdi")); result.columns = texts($$("#columns bdi"));
      result.cells = $$("#rows div").map((_, q) => $$("#columns div").map((_, k) => pixel(q, k)));
      send($$("#queries .token")[1], "mouseover");
      result.values = $$("#keys .value").map(e => e.textContent); result.tip = $("#tip").textContent;
      result.faded = $$("#rows div").map((_, q) => pixel(q, 0)[3]); result.on = $$(".token.on").map(e => e.textContent);
      send($("#queries"), "mouseleave");
      result.after = [$("#tip").style.display, $$(".token.on").length, pixel(0, 0)[3]];
      send($$("#queries .token")[1], "click"); result.held = [location.hash, $$(".token.on").length];
      document.dispatchEvent(new KeyboardEvent("keydown", {key: "Escape"})); result.released = $$(".token.on").length;
    """
    result = in_browser(visualise.page(attention), script, tmp_path)
    assert result["errors"] == []
    assert result["opened"] == ["Encoder self-attention", "2", "1", "2", "3", "4", "all"]
    assert result["pressed"] == ["Cross-attention", "2", "3", "4"]
    assert result["hash"] == "#kind=cross&layer=2&heads=3,4"
    assert result["title"] == "Cross-attention, layer 2 of 2, mean of heads 3, 4"
    assert result["rows"] == ["·Die", "·Katz", "e", "·macht", "</s>"]
    assert result["columns"] == ["·The", "·cat", "·mak", "ing", "·it", "</s>"]
    mean = attention.cross[1][2:].mean(axis=0)  # [T, S]
    weak, strong = np.array([255, 255, 255]), np.array([8, 48, 107])
    colours = weak + np.sqrt(mean)[:, :, None] * (strong - weak)
    np.testing.assert_allclose(np.array(result["cells"])[:, :, :3], colours, atol=1.5)
    assert [float(value or 0) for value in result["values"]] == pytest.approx(mean[1], abs=0.0051)
    best = int(mean[1].argmax())
    assert result["tip"].startswith(f"·Katz looks at{result['columns'][best]}{mean[1, best]:.3f}")
    assert result["faded"] == [50, 255, 50, 50, 50]
    assert len(result["on"]) == 1
    assert result["after"] == ["none", 0, 255]
    assert result["held"] == ["#kind=cross&layer=2&heads=3,4&queries=2", 1]
    assert result["released"] == 0


def test_decoder_hides_what_is_not_read_and_an_address_opens_a_view(attention, tmp_path):
    script = """
      const box = $("#cells").getBoundingClientRect();
      const at = (from, length, i) => from + (i + .5) * length / 5;
      const over = (q, k) => $("#cells").dispatchEvent(new MouseEvent("mousemove", {
        bubbles: true, clientX: at(box.left, box.width, k), clientY: at(box.top, box.height, q)}));
      result.on = $$("#queries .on").map(e => e.textContent);
      result.pixel = [...$("#cells").getContext("2d").getImageData(4, 2, 1, 1).data];
      result.ink = $$("#keys .token").map((_, k) => {
        const data = $("#strokes").getContext("2d").getImageData(222, (k + 1) * 22 + 4, 1, 14).data;
        return data.some((value, i) => i % 4 === 3 && value > 0);
      });
      over(2, 4); result.hidden = $("#tip").textContent; over(2, 1); result.seen = $("#tip").textContent;
    """
    page = visualise.page(attention)
    result = in_browser(page, script, tmp_path, "#kind=decoder&layer=1&heads=2&queries=3")
    assert result["errors"] == []
    assert result["on"] == ["e"]
    assert result["pixel"][:3] == pytest.approx([226, 228, 230], abs=3)  # grey
    row = attention.decoder[0][1][2]
    assert [ink or weight < 0.02 for ink, weight in zip(result["ink"], row, strict=True)] == [True] * 5
    assert result["ink"][3:] == [False, False]
    assert result["hidden"] == "e → ·machtnot yet read"
    assert result["seen"] == f"e → ·Diehead 2{row[1]:.3f}"


def test_awkward_text_on_the_page(tmp_path):
    script = """
      result.tokens = $$("#keys bdi").map(e => e.textContent); result.source = $("#source").textContent;
      result.scripts = document.scripts.length; result.odd = $$("#keys *:not(div, bdi, span, i, h3)").length;
    """
    awkward = attention_of(AWKWARD, AWKWARD)
    result = in_browser(visualise.page(awkward), script, tmp_path)
    cleaned = [piece.replace("\u202e", "\ufffd").replace("\x07", "\ufffd") for piece in AWKWARD]
    assert result["errors"] == []
    assert result["tokens"] == [piece.replace("▁", "·") for piece in cleaned]
    assert result["source"] == "".join(cleaned[:-1]).replace("▁", " ").strip()
    assert result["scripts"] == 4  # the data, the page's, and two of this test
    assert result["odd"] == 0
