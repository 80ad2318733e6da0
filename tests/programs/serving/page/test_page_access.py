"""The page can be used with keys alone, on a phone, in a narrow window, and with a
screen reader.
"""

import pytest
from axe_playwright_python.sync_playwright import Axe
from page_use import SENTENCE, TEXT, marks, translated
from playwright.sync_api import expect

WIDTHS = (320, 390, 820, 1440)


def test_keyboard_alone(visit, translator):
    page = visit()
    expect(page.locator("#text")).to_be_focused()
    page.keyboard.type(SENTENCE)
    page.keyboard.press("Control+Enter")
    words = page.locator(".word")
    expect(words.first).to_be_visible()
    for _ in range(2):  # past Clear, into the translation
        page.keyboard.press("Tab")
    expect(words.nth(0)).to_be_focused()
    page.keyboard.press("ArrowRight")
    expect(words.nth(1)).to_be_focused()
    marks(page)
    page.keyboard.press("End")
    expect(words.last).to_be_focused()
    reached = []
    for _ in range(3):  # one Tab leaves the words
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.id"))
    assert reached == ["copy", "link", "inside"]
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")  # the second alternative
    (n_best,) = translator.decode(
        [SENTENCE], translator.options(beam_size=4, return_beams=4)
    )
    expect(page.locator("#result")).to_have_text(n_best[1].text)
    expect(page.locator("#best button").nth(1)).to_be_focused()
    for _ in range(3):
        page.keyboard.press("Tab")
    expect(page.locator("#beam")).to_be_focused()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    expect(page.locator("#best li")).to_have_count(2)


def test_tapping_on_a_phone(visit):
    page = visit(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    page.locator("#examples button").first.tap()
    expect(page.locator("#hint")).to_have_text(
        "Tap a word of the translation to see which words of the text it attends to."
    )
    # the keyboard would cover the page
    expect(page.locator("#text")).not_to_be_focused()
    page.locator(".word").nth(1).tap()
    marks(page)
    expect(page.locator("#hint")).to_contain_text("attends to")


@pytest.mark.parametrize("task", ["translation", "parsing"])
def test_nothing_is_wider_than_the_screen(visit, task):
    page = visit("#target=tree" if task == "parsing" else "")
    page.fill("#text", "The small cat sleeps in the old house . " * 3 + "x" * 200)
    expect(page.locator("article svg, .word").first).to_be_visible()
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        source, mirror = (
            page.locator("#text").bounding_box(),
            page.locator("#mirror").bounding_box(),
        )
        assert source == mirror  # marks are where the words are


def test_the_page_of_the_api_fits_a_phone(visit):
    page = visit("/docs", viewport={"width": 390, "height": 844})
    expect(page.locator("details").first).to_be_visible()
    page.evaluate(
        "for (const one of document.querySelectorAll('details')) one.open = 1"
    )
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 844})
        assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.slow
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_accessibility(visit, theme):
    """axe-core finds nothing wrong with the page, empty and in use."""
    page = visit(color_scheme=theme)

    def check() -> None:
        report = Axe().run(page)
        assert report.response["violations"] == [], report.generate_report()

    check()
    translated(page, TEXT)
    page.locator(".word").first.focus()
    marks(page)
    check()
    page.fill("#text", "cat " * 2000)
    expect(page.locator("#problem")).to_be_visible()
    check()
    page.select_option("#target", "tree")
    page.fill("#text", "The cat sleeps . " * 20)
    expect(page.locator("article svg")).to_have_count(20)
    check()
