"""Texts and a script for the page, and steps that its tests share."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

SENTENCE = "red cat sees dog today"
TEXT = f"😀 {SENTENCE}.\n\nBird likes white fish."
TIMEOUT_MS = 30_000  # building a search takes seconds on a busy machine
# Answers to texts with the word "never" arrive late, even where the page no longer waits for them.
LATE = """
const real = window.fetch;
window.late = {};
window.fetch = async (path, options = {}) => {
  const slow = path === "v1/translate" && options.body.includes("never");
  late.asked ||= slow;
  const response = await real(path, {...options, signal: undefined});
  if (slow) {
    while (!document.getElementById("took").textContent) await new Promise(done => setTimeout(done, 50));
    late.arrived = true;
  }
  return response;
};
"""


def translated(page: Page, text: str) -> None:
    """Puts a text on the page, and waits until it has been translated."""
    page.fill("#text", text)
    expect(page.locator("#took")).to_have_text(re.compile(r"^\d+ sentences? in [\d.]+ s$"))


def marks(page: Page) -> dict[str, float]:
    """The marked words of the text with their colour's part in percent."""
    matches = page.locator("#mirror mark")
    expect(matches.first).to_be_attached()
    weight = "mark => [mark.textContent, parseFloat(mark.style.getPropertyValue('--weight'))]"
    return dict(matches.evaluate_all(f"all => all.map({weight})"))
