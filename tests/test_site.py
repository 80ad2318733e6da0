"""The site that `make docs` builds, in a browser: its search, and its pages on a phone.

Skipped if it has not been built; .ci/run builds it first.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from chromium import opened

SITE = Path(__file__).resolve().parents[1] / "build" / "site"
PAGES = sorted(SITE.glob("*.html"))
# elements with text that is cut off at the right, and cannot be scrolled to
CUT_OFF = """() => {
  const cut = element => element.clientWidth
    && element.scrollWidth > element.clientWidth + 1
    && getComputedStyle(element).overflowX === "hidden"
    && !element.matches(".md-sidebar__scrollwrap");
  return [...document.querySelectorAll("body *")].filter(cut).map(e => e.textContent);
}"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not PAGES, reason="make docs has not built the site"),
]


@pytest.fixture(scope="module")
def phone() -> Iterator[Any]:
    with opened("about:blank") as page:
        page.set_viewport_size({"width": 390, "height": 844})
        yield page


def test_search_in_a_page_opened_as_a_file():
    with opened((SITE / "faq.html").as_uri()) as page:
        # by keys, as a reader does: the page does not search what is set without a key
        page.locator("input.md-search__input").press_sequentially("back-translation")
        link = page.locator(".md-search-result__link").first
        link.wait_for(timeout=20_000)
        assert "own-data.html" in link.get_attribute("href")


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_pages_fit_a_phone(phone, path):
    """Nothing is wider than the page, titles are whole, and code need not be scrolled."""
    phone.goto(path.as_uri())
    assert phone.evaluate("document.documentElement.scrollWidth") <= 390
    assert phone.evaluate(CUT_OFF) == []
    blocks = phone.locator("pre > code")
    assert blocks.evaluate_all("all => all.every(e => e.scrollWidth <= e.clientWidth)")


def test_flags_are_not_broken_after_their_hyphens(phone):
    phone.goto((SITE / "own-data.html").as_uri())
    names = phone.locator("code .unbroken").filter(has_text="--")
    assert names.count() > 20
    # the rectangles of one element are the lines that it is on
    assert names.evaluate_all("all => all.every(e => e.getClientRects().length <= 1)")


def test_the_tutorial_shows_what_its_cells_printed(phone):
    phone.goto((SITE / "tutorial.html").as_uri())
    outputs = phone.locator(".output").all_inner_texts()
    assert any("BLEU|nrefs:1|" in text for text in outputs)
    assert any("(best so far)" in text for text in outputs)
    attention = phone.frame_locator("iframe[title=Attention]")
    assert attention.locator("h1").text_content() == "Attention"
