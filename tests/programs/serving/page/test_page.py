"""What the page of t2t-serve does in a real browser: translating, parsing, copying,
linking, reporting errors.
"""

import re

import pytest
from page_use import (
    EXAMPLES,
    LATE,
    MAX_CHARACTERS,
    SENTENCE,
    TEXT,
    TIMEOUT_MS,
    marks,
    models,
    serving,
    translated,
)
from playwright.sync_api import Page, expect
from running import tree_of

from t2tlite.programs.serving.models import Catalogue
from t2tlite.trees.drawing import tree_svg
from t2tlite.trees.tree import format_tree


def until(page: Page, condition: str) -> None:
    """Waits for what is true on the page; its policy forbids Playwright's own way."""
    for _ in range(TIMEOUT_MS // 50):
        if page.evaluate(condition):
            return
        page.wait_for_timeout(50)
    raise AssertionError(f"{condition} did not become true")


def test_translates_while_typing(visit, translator):
    page = visit()
    page.locator("#text").press_sequentially(SENTENCE, delay=20)
    expect(page.locator("#result")).to_have_text(translator.translate([SENTENCE])[0])
    page.locator("#text").press_sequentially("\nbird likes fish")
    expected = translator.translate([SENTENCE, "bird likes fish"])
    expect(page.locator("#result")).to_have_text(
        re.compile(f"^{expected[0]}\\s{expected[1]}$")
    )
    page.click("#clear")
    expect(page.locator("#result")).to_be_empty()
    expect(page.locator("#text")).to_be_focused()


def test_an_older_answer_never_replaces_a_newer_one(visit, translator):
    page = visit(script=LATE)
    page.fill("#text", "cat never sees dog")
    until(page, "late.asked")  # its request is under way
    translated(page, "bird likes fish")
    until(page, "late.arrived")
    page.wait_for_timeout(100)
    expect(page.locator("#result")).to_have_text(
        translator.translate(["bird likes fish"])[0]
    )


def test_alternatives_with_scores(visit, translator):
    page = visit()
    translated(page, SENTENCE)
    (n_best,) = translator.decode(
        [SENTENCE], translator.options(beam_size=4, return_beams=4)
    )
    shown = page.locator("#best li")
    expect(shown).to_have_count(4)
    for i, output in enumerate(n_best):
        numbers = f"score −{-output.score:.3f}, log-probability −{-output.log_prob:.2f}"
        expect(shown.nth(i)).to_have_text(output.text + numbers)
    shown.nth(1).locator("button").click()
    expect(page.locator("#result")).to_have_text(n_best[1].text)
    page.click("#copy")
    assert page.evaluate("navigator.clipboard.readText()") == n_best[1].text


def test_beam_size_and_length_penalty(visit, translator):
    page = visit()
    translated(page, SENTENCE)
    page.locator("#beam").fill("2")
    expect(page.locator("#best li")).to_have_count(2)
    with page.expect_request("**/translate") as request_info:
        page.locator("#alpha").fill("1.5")
    assert request_info.value.post_data_json["alpha"] == 1.5
    assert request_info.value.post_data_json["beam_size"] == 2
    page.click("#defaults")
    expect(page.locator("#best li")).to_have_count(translator.options().beam_size)
    expect(page.locator("output")).to_have_text(
        [str(translator.options().beam_size), str(translator.options().alpha)]
    )


def test_pointing_at_a_word_marks_what_it_attends_to(visit, address):
    page = visit()
    translated(page, TEXT)
    with page.expect_response("**/attention") as answered:
        page.locator("#result > span").nth(1).locator(".word").nth(0).hover()
    answer = answered.value.json()
    shown = marks(page)
    expected = {
        word["text"]: weight
        for word, weight in zip(
            answer["source_words"], answer["weights"][0], strict=True
        )
    }
    # the colour is by the square root of the weight
    for word, weight in expected.items():
        assert shown.get(word, 0) == pytest.approx(
            100 * weight**0.5, abs=15 if weight < 0.03 else 1
        )
    assert "😀" not in "".join(shown)
    expect(page.locator("#hint")).to_contain_text("attends to")
    page.locator("h1").hover()
    expect(page.locator("#mirror mark")).to_have_count(0)


def test_look_inside_opens_the_attention_explorer(visit):
    page = visit()
    translated(page, SENTENCE)
    with page.context.expect_page() as opened:
        page.click("#inside")
    expect(opened.value.locator("#source")).to_have_text(SENTENCE)
    expect(opened.value.locator("#target")).to_have_text(
        page.locator("#result").inner_text()
    )


def test_a_link_holds_text_and_options(visit):
    page = visit()
    page.select_option("#source", "de")
    page.locator("#beam").fill("2")
    translated(page, "100% & #1 + 😀\n\nkatze = hund")
    page.click("#link")
    link = page.evaluate("navigator.clipboard.readText()")
    other = visit("#" + link.partition("#")[2])
    expect(other.locator("#text")).to_have_value("100% & #1 + 😀\n\nkatze = hund")
    expect(other.locator("#result")).to_have_text(page.locator("#result").inner_text())
    expect(other.locator("#source")).to_have_value("de")
    expect(other.locator("#target")).to_have_value("en")
    expect(other.locator("#best li")).to_have_count(2)
    # a link followed on the page itself
    other.evaluate("location.hash = 'source=en&target=de&text=cat'")
    expect(other.locator("#text")).to_have_value("cat")


def test_copying_from_a_server_without_https(visit):
    page = visit(
        script="Object.defineProperty(navigator, 'clipboard', {value: undefined});"
    )
    translated(page, SENTENCE)
    words = page.locator("#result").inner_text()
    page.click("#copy")
    page.fill("#text", "")
    page.keyboard.press("Control+V")
    expect(page.locator("#text")).to_have_value(words)


def test_swapping_languages(visit):
    page = visit()
    translated(page, SENTENCE)
    words = page.locator("#result").inner_text()
    page.click("#swap")
    expect(page.locator("#source")).to_have_value("de")
    expect(page.locator("#text")).to_have_value(words)


def test_one_pair_has_names_without_drop_downs(visit, translator):
    with serving(models(translator, [("en", "de")])) as server:
        page = visit(at=server.url)
        expect(page.locator(".pair")).to_have_text(
            re.compile(r"English\s+→\s+German"), use_inner_text=True
        )
        expect(
            page.locator("select:visible, #swap:visible, .pair label:visible")
        ).to_have_count(0)
        translated(page, SENTENCE)


def test_examples_are_translated(visit, translator):
    page = visit()
    examples = page.locator("#examples button")
    expect(examples).to_have_text(list(EXAMPLES))
    examples.nth(1).click()
    expect(page.locator("#text")).to_have_value(EXAMPLES[1])
    expect(page.locator("#text")).to_be_focused()
    expect(page.locator("#result")).to_have_text(translator.translate([EXAMPLES[1]])[0])
    expect(page.locator("#examples")).to_be_hidden()
    page.click("#clear")
    expect(examples).to_have_count(2)
    expect(page.locator("#examples")).to_be_visible()


def test_fifty_paragraphs(visit, translator):
    page = visit()
    page.evaluate("""window.seen = [];
      const busy = document.getElementById("busy"), observer = new MutationObserver(() => seen.push(busy.textContent));
      observer.observe(busy, {childList: true, subtree: true});""")
    paragraphs = [f"{SENTENCE}.  Bird likes fish." for _ in range(50)]
    page.evaluate(
        "navigator.clipboard.writeText(" + repr("\n\n".join(paragraphs)) + ")"
    )
    page.focus("#text")
    page.keyboard.press("Control+V")
    expect(page.locator("#took")).to_contain_text("100 sentences")
    counts = [
        words.split(" sentences")[0].strip()
        for words in page.evaluate("seen")
        if "Working" not in words
    ]
    assert counts == [f"{i} of 100" for i in range(101)]
    expect(page.locator("#busy")).to_be_hidden()
    first, second = translator.translate([f"{SENTENCE}.", "Bird likes fish."])
    assert page.locator("#result").text_content() == "\n\n".join(
        f"{first}  {second}" for _ in range(50)
    )
    page.locator(".word").last.hover()
    marks(page)
    box = page.locator("#text").locator("xpath=ancestor::*[@class='scroll']")
    # the text scrolls to the words that are marked
    assert box.evaluate("box => box.scrollTop > 0")


@pytest.mark.parametrize(
    ("text", "progress"),
    [
        ("red cat sees dog.\nbird likes fish.", "0 of 2 sentences"),
        ("red cat", "Working"),
    ],
)
def test_stop(visit, translator, text, progress):
    page = visit()
    translator.gate.clear()
    try:
        page.fill("#text", text)
        expect(page.locator("#busy")).to_contain_text(progress)
        page.click("#stop")
        expect(page.locator("#busy")).to_be_hidden()
        expect(page.locator("#hint")).to_contain_text("Stopped")
    finally:
        translator.gate.set()


def test_errors_are_sentences(visit):
    page = visit()
    problem = page.locator("#problem")
    page.fill("#text", "cat " * 2000)
    expect(problem).to_contain_text(
        f"A text must have at most {MAX_CHARACTERS:,} characters. This one has 8,000."
        " Shorten it, or translate it in parts."
    )
    page.route(
        "**/translate",
        lambda route: route.fulfill(
            status=500, json={"error": "A sentence of the server."}
        ),
    )
    page.fill("#text", "cat")
    expect(problem).to_contain_text("A sentence of the server.")
    page.unroute("**/translate")
    lines = '{"segments": 2}\n{"error": "It failed in between."}\n'
    page.route("**/translate", lambda route: route.fulfill(body=lines))
    page.click("#again")
    expect(problem).to_contain_text("It failed in between.")
    page.unroute("**/translate")
    page.route("**/translate", lambda route: route.abort())
    page.click("#again")
    expect(problem).to_contain_text(
        "The server does not answer. Check the connection, or start t2t-serve again."
    )
    page.unroute("**/translate")
    page.click("#again")
    expect(page.locator("#result .word").first).to_be_visible()
    expect(problem).to_be_hidden()


def test_typing_while_the_models_are_loaded(visit, translator):
    with serving(None) as server:
        page = visit(at=server.url)
        page.fill("#text", SENTENCE)
        expect(page.locator("#problem")).to_contain_text(
            "The server is loading its models."
        )
        server.service.ready(Catalogue(models(translator)))
        expect(page.locator("#result")).to_have_text(
            translator.translate([SENTENCE])[0]
        )
        expect(page.locator("#text")).to_have_value(SENTENCE)
        expect(page.locator("#problem")).to_be_hidden()


def test_an_api_key(visit, translator):
    with serving(models(translator), api_key="open sesame") as server:
        page = visit(at=server.url)
        expect(page.locator("#about")).not_to_be_empty()
        # sentences of the data are not for everybody
        expect(page.locator("#examples")).to_be_hidden()
        page.fill("#text", SENTENCE)
        expect(page.locator("#problem")).to_contain_text("A valid API key is required")
        page.fill("#key", "open sesame")
        page.keyboard.press("Tab")
        expect(page.locator("#result")).to_have_text(
            translator.translate([SENTENCE])[0]
        )
        page.locator(".word").first.hover()
        marks(page)
        with page.context.expect_page() as opened:
            page.click("#inside")
        expect(opened.value.locator("#source")).to_have_text(SENTENCE)


def test_parser(visit, tmp_path):
    page = visit()
    page.select_option("#target", "tree")
    page.fill("#text", "The cat sleeps .\nIt < dreams .")
    expect(page.locator("article svg")).to_have_count(2)
    trees = [tree_of("The cat sleeps ."), tree_of("It < dreams .")]
    expect(page.locator("article pre")).to_have_text(
        [format_tree(tree) for tree in trees]
    )
    drawn = page.locator("article svg").nth(1).locator("text").all_text_contents()
    assert sorted(drawn) == sorted("TOP NP NN It NN < NN dreams NN .".split())
    expect(page.locator("article").first).to_contain_text(
        "Score −0.250; repaired: added words 2"
    )
    with page.expect_download() as saved:
        page.get_by_text("Download SVG").first.click()
    saved.value.save_as(tmp_path / "tree.svg")
    assert (tmp_path / "tree.svg").read_text(encoding="utf-8") == tree_svg(trees[0])
    page.get_by_text("Copy brackets").nth(1).click()
    assert page.evaluate("navigator.clipboard.readText()") == format_tree(trees[1])
