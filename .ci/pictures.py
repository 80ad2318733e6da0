"""Makes the pictures of README.md from a run, in light and dark: the translation page,
attention, and the learning curve.

    make demo
    t2t-serve --output_dir=runs/demo/grammar_ende &
    t2t-attention --output_dir=runs/demo/grammar_ende --html=attention.html \
        --source="Did the neighbor's sister buy a red car in Paris?"
    t2t-report --output_dir=runs/demo/grammar_ende
    python .ci/pictures.py http://127.0.0.1:5000 attention.html \
        runs/demo/grammar_ende/report.html

Needs Chromium, and the packages of requirements-dev.txt. Writes docs/pictures.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "pictures"
TEXT = (
    "Did the neighbor's sister buy a red car in Paris?\n"
    "The woman who the farmer looks for has always slept in the kitchen."
)
COLOURS = 64  # of a picture, which makes its file a third as large


def main() -> None:
    """Makes all pictures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("server", help="the address of a t2t-serve")
    parser.add_argument("attention", type=Path, help="a page of t2t-attention")
    parser.add_argument("report", type=Path, help="a report of t2t-report")
    args = parser.parse_args()
    FOLDER.mkdir(exist_ok=True)
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    with (
        sync_playwright() as playwright,
        playwright.chromium.launch(
            executable_path=chromium, args=["--no-sandbox"]
        ) as browser,
    ):
        for theme in ("light", "dark"):
            page = browser.new_page(
                color_scheme=theme,
                viewport={"width": 1000, "height": 600},
                device_scale_factor=1.5,
            )
            picture_translation(page, args.server, theme)
            picture_attention(page, args.attention, theme)
            picture_curve(page, args.report, theme)
    for path in FOLDER.glob("*.png"):
        Image.open(path).convert("RGB").quantize(COLOURS).save(path, optimize=True)


def picture_translation(page: Page, address: str, theme: str) -> None:
    """The text and its translation, down to the alternatives, which are not shown."""
    page.goto(address)
    page.fill("#text", TEXT)
    page.wait_for_selector("#took:not(:empty)")
    page.wait_for_timeout(1500)
    end = page.locator("#best").bounding_box()["y"]
    page.screenshot(
        path=FOLDER / f"translation-{theme}.png",
        clip={"x": 0, "y": 0, "width": 1000, "height": end - 10},
    )


def picture_attention(page: Page, file: Path, theme: str) -> None:
    """The heads of the last layer, from the words of the translation to the source."""
    page.goto(file.resolve().as_uri())
    page.locator("#layers button").last.click()
    page.fill("#threshold", "0.2")
    page.wait_for_timeout(1000)
    lines = page.locator("section", has=page.locator("#strokes"))
    lines.screenshot(path=FOLDER / f"attention-{theme}.png")


def picture_curve(page: Page, file: Path, theme: str) -> None:
    """The training curves of the report."""
    page.goto(file.resolve().as_uri())
    curves = page.locator("svg").first
    curves.screenshot(path=FOLDER / f"curve-{theme}.png")


if __name__ == "__main__":
    main()
