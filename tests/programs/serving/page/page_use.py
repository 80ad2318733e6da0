"""What the tests of the page share: texts, a script, servers that translate and parse,
and steps.
"""

import re
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

from playwright.sync_api import Page, expect
from running import Running, parser_of, running, served

from t2tlite.programs.serving.models import ServedModel

SENTENCE = "red cat sees dog today"
TEXT = f"😀 {SENTENCE}.\n\nBird likes white fish."
EXAMPLES = ("red cat sees dog", "bird likes <b>fish</b>")
MAX_CHARACTERS = 5000
ALL_PAIRS = (("en", "de"), ("de", "en"), ("en", "tree"))
TIMEOUT_MS = 30_000  # building a search takes seconds on a busy machine
# Answers to texts with the word "never" arrive late, even where the page no longer
# waits for them.
LATE = """
const real = window.fetch;
window.late = {};
window.fetch = async (path, options = {}) => {
  const slow = path === "translate" && options.body.includes("never");
  late.asked ||= slow;
  const response = await real(path, {...options, signal: undefined});
  if (slow) {
    while (!document.getElementById("took").textContent) await new Promise(done => setTimeout(done, 50));
    late.arrived = true;
  }
  return response;
};
"""


def models(
    translator: Any, pairs: Sequence[tuple[str, str]] = ALL_PAIRS
) -> list[ServedModel]:
    """Models that translate in both directions and parse, or do what `pairs` say."""
    parser = parser_of(translator)
    return [
        served(
            parser if target == "tree" else translator,
            source,
            target,
            examples=EXAMPLES,
        )
        for source, target in pairs
    ]


def serving(
    models: Sequence[ServedModel] | None, **options: Any
) -> AbstractContextManager[Running]:
    """A server of these models, or one that still loads them, for texts of up to
    MAX_CHARACTERS.
    """
    return running(models, max_characters=MAX_CHARACTERS, **options)


def translated(page: Page, text: str) -> None:
    """Puts a text on the page, and waits until it has been translated."""
    page.fill("#text", text)
    expect(page.locator("#took")).to_have_text(
        re.compile(r"^\d+ sentences? in [\d.]+ s$")
    )


def marks(page: Page) -> dict[str, float]:
    """The marked words of the text with their colour's part in percent."""
    matches = page.locator("#mirror mark")
    expect(matches.first).to_be_attached()
    weight = (
        "mark => [mark.textContent,"
        " parseFloat(mark.style.getPropertyValue('--weight'))]"
    )
    return dict(matches.evaluate_all(f"all => all.map({weight})"))
