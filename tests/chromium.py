"""A browser without a window, for tests of pages and drawings."""

import contextlib
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
]
FLAGS += [
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def executable() -> str:
    """The browser's path; skips the test where there is none."""
    browser = next(filter(None, map(shutil.which, NAMES)), None)
    if browser is None:
        pytest.skip("Chromium is not installed")
    return browser


def dump_dom(page: Path, profile: Path) -> str:
    """The page's elements after it has been laid out and its scripts have run; skips
    where there is no browser.
    """
    command = [
        executable(),
        *FLAGS,
        f"--user-data-dir={profile}",
        "--dump-dom",
        page.resolve().as_uri(),
    ]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=60, check=True
    ).stdout


@contextlib.contextmanager
def opened(address: str, theme: str = "light", **options: Any) -> Iterator[Any]:
    """Playwright's page at an address, in the theme "light" or "dark"; skips where
    there is no browser.

    The options are those of the browser's context.
    """
    browser = executable()
    from playwright.sync_api import sync_playwright

    with (
        sync_playwright() as playwright,
        playwright.chromium.launch(executable_path=browser, args=FLAGS[1:]) as chromium,
    ):
        page = chromium.new_page(
            color_scheme=theme, viewport={"width": 1440, "height": 980}, **options
        )
        page.goto(address)
        yield page


def accessibility_violations(page: Any) -> list[str]:
    """What axe-core finds wrong with a page of `opened`: the rule and the elements."""
    from axe_playwright_python.sync_playwright import Axe

    violations = Axe().run(page).response["violations"]
    return [
        f"{violation['help']}: {[node['html'][:200] for node in violation['nodes']]}"
        for violation in violations
    ]
