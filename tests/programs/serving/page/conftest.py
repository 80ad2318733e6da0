"""The fixtures of the page's tests: a server of the tiny run, a browser, and visits to
the page.
"""

from collections.abc import Callable, Iterator
from typing import Any

import chromium
import pytest
from page_use import TIMEOUT_MS, models, serving
from playwright.sync_api import Browser, Page, expect, sync_playwright
from running import Gated


@pytest.fixture(scope="module")
def translator(tiny_run, load) -> Gated:
    """The tiny run's model, here with a gate that a test can close."""
    translator = Gated(load(tiny_run.run, None))
    translator.gate.set()
    return translator


@pytest.fixture(scope="module")
def address(translator) -> Iterator[str]:
    """The address of a server that translates in both directions and parses."""
    with serving(models(translator)) as server:
        yield server.url


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium without a window; skips the tests if it is not installed."""
    path = chromium.executable()
    expect.set_options(timeout=TIMEOUT_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=chromium.FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def visit(browser, address) -> Iterator[Callable[..., Page]]:
    """visit(fragment, script=..., options of the browser's context) opens the page; it
    must have no error, and ask no other server.
    """
    contexts, wrong = [], []

    def visit(
        fragment: str = "", script: str = "", at: str = address, **options: Any
    ) -> Page:
        contexts.append(
            context := browser.new_context(
                **{"viewport": {"width": 1440, "height": 900}, **options}
            )
        )
        context.grant_permissions(["clipboard-read", "clipboard-write"])
        context.add_init_script(script)
        page = context.new_page()
        page.set_default_timeout(TIMEOUT_MS)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on(
            "console",
            lambda message: (
                wrong.append(message.text)
                if "Content Security" in message.text
                else None
            ),
        )
        page.on(
            "request",
            lambda request: (
                wrong.append(request.url)
                if not request.url.startswith((at, "blob:"))
                else None
            ),
        )
        page.goto(at + fragment)
        return page

    yield visit
    for context in contexts:
        context.close()
    assert wrong == []
