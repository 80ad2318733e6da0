"""The page of attention, in a real browser."""

import dataclasses
import html
import json
import re
import struct
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from chromium import accessibility_violations, dump_dom, opened
from random_attention import AWKWARD, attention_of

from t2tlite.programs import visualise


def test_a_page_with_too_many_weights(monkeypatch, attention):
    monkeypatch.setattr("t2tlite.programs.visualise.attention.MAX_WEIGHTS", 100)
    # 4 x (3 x 36 + 2 x (25 + 30))
    with pytest.raises(ValueError, match=r"at most 100 weights\. Received: 872\."):
        visualise.page(attention)


def test_page_needs_nothing_from_outside(attention):
    # a name, not an address to fetch
    page = visualise.page(attention).replace("http://www.w3.org/2000/svg", "")
    outside = (
        r"https?:|\bsrc\s*=(?!"
        r" svgAddress\(\))|url\(|@import|\bfetch\(|XMLHttpRequest|<link(?!"
        r" rel=\"icon\")"
    )
    assert re.findall(outside, page) == []
    assert "default-src 'none'" in page


def test_notebooks_show_the_page_in_a_frame(attention):
    frame = attention._repr_html_()
    (content,) = re.findall(r'srcdoc="([^"]*)"', frame)
    assert html.unescape(content) == visualise.page(attention)


def in_browser(page: str, script: str, folder: Path, address: str = "#") -> dict:
    """Opens a page in Chromium at an address within it, runs `script`, which fills the
    object `result`, and returns that with the page's errors. The script can call
    `pixel(query, key)`, the colour of a cell of the heat map.
    """
    listen = (
        "const errors = []; console.error = e =>"
        " errors.push(e);addEventListener('error', e =>"
        " errors.push(e.message));addEventListener('securitypolicyviolation', e =>"
        " errors.push(e.violatedDirective));history.replaceState(null, '',"
        f" {address!r});"
    )
    report = (
        "const result = {}; const $ = s => document.querySelector(s), $$ = s =>"
        " [...document.querySelectorAll(s)];const pixel = (q, k) =>"
        " [...$('#cells').getContext('2d').getImageData(k, q, 1, 1).data];const cells"
        " = () => $$('#rows div').map((_, q) => $$('#columns div').map((_, k) =>"
        " pixel(q, k)));const send = (e, type) => e.dispatchEvent(new MouseEvent(type,"
        f" {{bubbles: true, clientX: 9, clientY: 9}}));try {{ {script} }} catch (e) {{"
        " errors.push(String(e)); }result.errors = errors; const pre ="
        " document.createElement('pre'); pre.id = 'result';pre.textContent ="
        " JSON.stringify(result); document.body.append(pre);"
    )
    page = page.replace("<title>", f"<script>{listen}</script><title>", 1)
    page = page.replace("</body>", f"<script>{report}</script></body>")
    path = folder / "page.html"
    path.write_text(page, encoding="utf-8")
    (result,) = re.findall(
        r'<pre id="result">(.*?)</pre>', dump_dom(path, folder / "profile"), re.DOTALL
    )
    return json.loads(html.unescape(result))


def check_colours(cells: list, weights: np.ndarray) -> None:
    """The cells of a heat map have the colours of these weights, from white to blue by
    their square roots.
    """
    weak, strong = np.array([255, 255, 255]), np.array([8, 48, 107])
    colours = weak + np.sqrt(weights)[:, :, None] * (strong - weak)
    np.testing.assert_allclose(np.array(cells)[:, :, :3], colours, atol=1.5)


def test_page_shows_weights_in_a_browser(attention, tmp_path):
    script = """
      const pressed = () => $$(".controls button[aria-pressed=true]").map(e => e.textContent);
      result.opened = pressed(); result.shown = $("#eos").ariaChecked;
      $("#eos").click(); send($$("#layers button")[1], "click");
      $$("#heads button").slice(0, 2).forEach(e => send(e, "click"));
      result.pressed = pressed(); result.hash = location.hash; result.title = $("#maptitle").textContent;
      const texts = found => found.map(e => e.textContent);
      result.rows = texts($$("#rows bdi")); result.columns = texts($$("#columns bdi"));
      result.cells = cells();
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
    assert (result["opened"], result["shown"]) == (
        ["Cross-attention", "1", "1", "2", "3", "4", "all"],
        "true",
    )
    assert result["pressed"] == ["Cross-attention", "2", "3", "4"]
    assert result["hash"] == "#kind=cross&layer=2&heads=3,4&eos=shown"
    assert result["title"] == "Cross-attention, layer 2 of 2, mean of heads 3, 4"
    assert result["rows"] == ["·Die", "·Katz", "e", "·macht", "</s>"]
    assert result["columns"] == ["·The", "·cat", "·mak", "ing", "·it", "</s>"]
    mean = attention.cross[1][2:].mean(axis=0)  # [T, S]
    check_colours(result["cells"], mean)
    assert [float(value or 0) for value in result["values"]] == pytest.approx(
        mean[1], abs=0.0051
    )
    best = int(mean[1].argmax())
    assert result["tip"].startswith(
        f"·Katz attends to{result['columns'][best]}{mean[1, best]:.3f}"
    )
    assert result["faded"] == [50, 255, 50, 50, 50]
    assert len(result["on"]) == 1
    assert result["after"] == ["none", 0, 255]
    assert result["held"] == ["#kind=cross&layer=2&heads=3,4&eos=shown&queries=2", 1]
    assert result["released"] == 0


def test_decoder_masks_what_is_not_read_and_address_opens_view(attention, tmp_path):
    script = """
      const box = $("#cells").getBoundingClientRect();
      const at = (from, length, i) => from + (i + .5) * length / 5;
      const over = (q, k) => $("#cells").dispatchEvent(new MouseEvent("mousemove", {
        bubbles: true, clientX: at(box.left, box.width, k), clientY: at(box.top, box.height, q)}));
      result.on = $$("#queries .on").map(e => e.textContent);
      result.pixel = pixel(2, 4);
      result.ink = $$("#keys .token").map((_, k) => {
        const data = $("#strokes").getContext("2d").getImageData(212, k * 22 + 4, 1, 14).data;
        return data.some((value, i) => i % 4 === 3 && value > 0);
      });
      over(2, 4); result.hidden = $("#tip").textContent; over(2, 1); result.seen = $("#tip").textContent;
    """
    page = visualise.page(attention)
    result = in_browser(
        page, script, tmp_path, "#kind=decoder&layer=1&heads=2&eos=shown&queries=3"
    )
    assert result["errors"] == []
    assert result["on"] == ["e"]
    assert result["pixel"][:3] == pytest.approx([226, 228, 230], abs=3)  # grey
    row = attention.decoder[0][1][2]
    assert [
        ink or weight < 0.02 for ink, weight in zip(result["ink"], row, strict=True)
    ] == [True] * 5
    assert result["ink"][3:] == [False, False]
    assert result["hidden"] == "e → ·machtnot yet read"
    assert result["seen"] == f"e → ·Diehead 2{row[1]:.3f}"


def test_awkward_text_on_the_page(tmp_path):
    script = """
      result.tokens = $$("#keys bdi").map(e => e.textContent); result.source = $("#source").textContent;
      result.scripts = document.scripts.length; result.odd = $$("#keys *:not(div, bdi, span, i, h3)").length;
    """
    awkward = attention_of(AWKWARD, AWKWARD)
    result = in_browser(
        visualise.page(awkward), script, tmp_path, "#kind=encoder&eos=shown"
    )
    cleaned = [
        piece.replace("\u202e", "\ufffd").replace("\x07", "\ufffd") for piece in AWKWARD
    ]
    assert result["errors"] == []
    assert result["tokens"] == [piece.replace("▁", "·") for piece in cleaned]
    assert result["source"] == "".join(cleaned[:-1]).replace("▁", " ").strip()
    assert result["scripts"] == 4  # the data, the page's, and two of this test
    assert result["odd"] == 0


def test_end_of_sentence_is_left_out_and_rows_are_renormalised(attention, tmp_path):
    script = """
      const tokens = () => [$$("#queries .token").length, $$("#keys .token").map(e => e.textContent)];
      result.tokens = tokens();
      result.cells = cells();
      send($$("#queries .token")[2], "mouseover"); result.tip = $("#tip").textContent;
      $("#threshold").value = .2; $("#threshold").dispatchEvent(new Event("input"));
      result.hidden = cells().map(row => row.map(colour => colour[0] === 255));
      result.below = [$("#below").textContent, location.hash];
      $$("#kinds button")[1].click(); result.decoder = tokens();
    """
    theirs = [*attention.source_pieces[:-1], "<EOS>_"]  # as in an imported run
    page = visualise.page(dataclasses.replace(attention, source_pieces=theirs))
    result = in_browser(page, script, tmp_path, "#layer=2&heads=3")
    assert result["errors"] == []
    assert result["tokens"] == [4, ["·The", "·cat", "·mak", "ing", "·it"]]
    weights = attention.cross[1][2]  # [T, S]
    rest = weights[:-1, :-1] / weights[:-1, :-1].sum(axis=1, keepdims=True)
    check_colours(result["cells"], rest)
    assert result["tip"].endswith(f"left out: </s>{weights[2, -1]:.3f}")
    np.testing.assert_array_equal(result["hidden"], rest < 0.2)
    assert result["below"] == ["0.20", "#kind=cross&layer=2&heads=3&below=0.2"]
    # ·macht is read where </s> is predicted
    assert result["decoder"] == [4, ["<start>", "·Die", "·Katz", "e"]]


def test_overview_and_arrow_keys_choose_layers_and_heads(attention, tmp_path):
    script = """
      const shown = () => $("#maptitle").textContent.replace("Encoder self-attention, ", "");
      const key = name => { document.dispatchEvent(new KeyboardEvent("keydown", {key: name})); return shown(); };
      const thumbnail = $$("#overview button")[6], small = thumbnail.querySelector("canvas");
      result.names = $$("#overview button").map(e => e.ariaLabel);
      const pixels = canvas => [...canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data];
      thumbnail.click(); result.clicked = shown();
      result.same = pixels(small).every((value, i) => value === pixels($("#cells"))[i]);
      result.pressed = $$("#overview button[aria-pressed=true]").map(e => e.ariaLabel);
      result.keys = ["ArrowRight", "ArrowRight", "ArrowDown", "ArrowDown", "ArrowLeft", "ArrowUp"].map(key);
      $("#heads button:last-child").click(); result.first = key("ArrowRight");
      $("#queries .token").focus();
      const event = name => new KeyboardEvent("keydown", {key: name, bubbles: true});
      const type = name => document.activeElement.dispatchEvent(event(name));
      type("ArrowDown"); result.focused = document.activeElement.textContent;
      type("End"); type("Enter"); result.held = $("#queries [aria-selected=true]").textContent; result.still = shown();
    """
    result = in_browser(visualise.page(attention), script, tmp_path, "#kind=encoder")
    assert result["errors"] == []
    assert result["names"] == [
        f"Layer {layer}, head {head}" for layer in (1, 2, 3) for head in (1, 2, 3, 4)
    ]
    assert result["clicked"] == "layer 2 of 3, head 3"
    assert result["same"]
    assert result["pressed"] == ["Layer 2, head 3"]
    places = [(2, 4), (2, 4), (3, 4), (3, 4), (3, 3), (2, 3)]
    assert result["keys"] == [
        f"layer {layer} of 3, head {head}" for layer, head in places
    ]
    assert result["first"] == "layer 2 of 3, head 1"
    assert (result["focused"], result["held"]) == ("·cat", "·it")
    assert result["still"] == "layer 2 of 3, head 1"


def test_controls_are_folded_on_a_phone(attention, tmp_path):
    attention.save(tmp_path / "page.html")
    with opened((tmp_path / "page.html").as_uri()) as page:
        shown = [
            page.locator("#kinds").is_visible(),
            page.locator("summary").is_visible(),
        ]
        page.set_viewport_size({"width": 390, "height": 844})
        page.wait_for_selector("#kinds", state="hidden")
        page.reload()
        # the lines leave room for the words at both ends
        for column in ("#queries", "#keys"):
            box = page.locator(column).bounding_box()
            assert 0 <= box["x"] < box["x"] + box["width"] <= 390
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        page.click("summary")
        page.click("#kinds button:first-of-type")
        assert (
            page.locator("#maptitle").inner_text().startswith("Encoder self-attention")
        )
        page.set_viewport_size({"width": 1280, "height": 844})
        page.wait_for_selector("summary", state="hidden")
        assert (
            [page.locator("#kinds").is_visible(), page.locator("summary").is_visible()]
            == shown
            == [True, False]
        )


@pytest.mark.slow
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_screen_readers(attention, tmp_path, theme):
    attention.save(tmp_path / "page.html")
    for view in ("", "#kind=decoder&heads=2,3&eos=shown&queries=3&below=0.1"):
        with opened((tmp_path / "page.html").as_uri() + view, theme) as page:
            assert accessibility_violations(page) == []
            names = page.get_by_role("option").evaluate_all(
                "found => found.map(e => e.ariaLabel)"
            )
    mean = attention.decoder[0][1:3].mean(axis=0)  # [T, T]
    best = int(mean[2].argmax())
    assert names[2].startswith(
        f"e, attends to {['<start>', 'Die', 'Katz'][best]} {mean[2, best]:.2f}"
    )


def test_what_is_shown_is_saved_as_an_image(attention, tmp_path):
    attention = dataclasses.replace(attention, run="runs/mine", step=4000)
    attention.save(tmp_path / "page.html")
    with opened(
        (tmp_path / "page.html").as_uri() + "#layer=2&heads=1,4&queries=2", "dark"
    ) as page:
        assert page.title() == "Attention · The cat making it · mine, step 4,000"
        assert page.text_content("#run") == "mine, step 4,000"
        for ending in ("svg", "png"):
            with page.expect_download() as download:
                page.click(f"#{ending}")
            name = download.value.suggested_filename
            assert re.fullmatch(
                rf"the-cat-making-it-\w+-cross-layer2-head1-4\.{ending}", name
            )
            download.value.save_as(tmp_path / f"saved.{ending}")
    svg = ElementTree.parse(tmp_path / "saved.svg").getroot()
    texts = [element.text for element in svg.iter("{http://www.w3.org/2000/svg}text")]
    assert (
        texts[0]
        == "Cross-attention, layer 2 of 2, mean of heads 1, 4; </s> left out, rows"
        " renormalised"
    )
    for text in (
        "The cat making it",
        "mine, step 4,000",
        "·Katz",
        "·mak",
        "head 1",
        "head 4",
    ):
        assert text in texts
    png = (tmp_path / "saved.png").read_bytes()
    width, height = struct.unpack(">II", png[16:24])  # in the header of a PNG
    assert (width, height) == (2 * int(svg.get("width")), 2 * int(svg.get("height")))
