"""A browser without a window, for tests of pages and drawings."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]
FLAGS += ["--disable-background-networking", "--disable-component-update", "--disable-sync"]


def dump_dom(page: Path, profile: Path) -> str:
    """The page's elements after it has been laid out and its scripts have run; skips where there is no browser."""
    browser = next(filter(None, map(shutil.which, NAMES)), None)
    if browser is None:
        pytest.skip("Chromium is not installed")
    command = [browser, *FLAGS, f"--user-data-dir={profile}", "--dump-dom", page.resolve().as_uri()]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
