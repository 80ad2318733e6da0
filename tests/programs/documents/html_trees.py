"""Well-formed documents as Hypothesis strategies, translations of them, and what must
stay in a translated document.
"""

import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from html import unescape

from hypothesis import strategies as st

from t2tlite.programs.documents.html_text import HtmlText
from t2tlite.programs.documents.sentences import split_text

# of a sentence the translation, and pairs of a source word and a target word
Translate = Callable[[str], tuple[str, list[tuple[int, int]]]]

NAMES = ["a", "b", "i", "span", "code", "div", "p", "ul"]
UNTOUCHED_CONTENT = "x &amp; <b>y</b>  <i title='>'>z.\n</i>"
TEXTS = st.sampled_from(
    ["dog", "We cry. ", ", ", " ", "\n  ", "&lt;", "bird, ", " The", "<img>", "😀", "."]
)


def trees(
    texts: st.SearchStrategy[str] = TEXTS,
    names: Sequence[str] = NAMES,
    smallest: int = 0,
) -> st.SearchStrategy:
    """Lists of texts and elements; an element is a name and a list of at least so many."""

    def elements(inner):
        content = st.lists(inner, min_size=smallest, max_size=4)
        return st.tuples(st.sampled_from(names), content)

    return st.lists(st.recursive(texts, elements, max_leaves=30), max_size=5)


def written(nodes: list, between: str = "") -> str:
    """A list of trees as HTML, whose elements have numbers."""
    numbers = itertools.count()

    def write(node) -> str:
        if isinstance(node, str):
            return node.replace("<img>", f"<img id={next(numbers)}>")
        name, children = node
        number = next(numbers)
        if name == "code":
            return f"<code id={number}>{UNTOUCHED_CONTENT}</code>"
        name = "div" if name in ("p", "ul") and len(children) > 2 else name
        content = between.join(map(write, children))
        return f"<{name} id={number}>{content}</{name}>"

    return between.join(map(write, nodes))


def translated(
    document: str, translate: Translate, inline: bool = True, language: str = ""
) -> str:
    """The document with each sentence translated; twice, as for two hypotheses."""
    html = HtmlText(document, inline)

    def translations() -> Iterator:
        for text in html.texts:
            split = split_text(text)
            sentences = [translate(segment.sentence) for segment in split.segments]
            yield split, sentences

    html.translated(translations(), "xx")
    return html.translated(translations(), language)


def reordered(order: Callable[[range], list[int]]) -> Translate:
    """Words in capitals, in another order, each aligned to itself."""

    def translate(sentence: str) -> tuple[str, list[tuple[int, int]]]:
        words = sentence.upper().split()
        sources = order(range(len(words)))
        text = " ".join(words[source] for source in sources)
        return text, [(source, target) for target, source in enumerate(sources)]

    return translate


def backwards(indices: range) -> list[int]:
    return list(reversed(indices))


def parents(document: str) -> dict[str, str | None]:
    """Of each element the number of the one around it; fails if tags are not nested, or
    a tag is there twice.
    """
    document = document.replace(UNTOUCHED_CONTENT, "")
    result = {}
    opened = []
    for closing, name, number in re.findall(r"<(/?)(\w+)(?: id=(\d+))?>", document):
        if closing:
            assert opened.pop()[0] == name
        else:
            assert number not in result
            result[number] = opened[-1][1] if opened else None
            if name != "img":
                opened.append((name, number))
    assert not opened
    return result


def letters(document: str) -> str:
    """The visible characters that are translated, in order, without white space."""
    text = re.sub(r"<code.*?</code>|<[^>]*>", "", document, flags=re.DOTALL)
    return "".join(unescape(text).split()).upper()
