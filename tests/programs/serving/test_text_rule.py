"""The server reads text as the other doors do."""

from __future__ import annotations

import pytest
from spellings import SPELLINGS

SENTENCE = "red cat sees dog today"


def test_translations_and_scores(server, translator):
    expected = translator.translate(SENTENCE)
    one_line = {
        name: spoil(SENTENCE)
        for name, spoil in SPELLINGS.items()
        if not {"\x85", "\u2028"} & set(spoil(SENTENCE))  # they end a line of a text
    }
    answer = server.post("/translate", {"q": list(one_line.values())}).json()
    texts = [text.strip() for text in answer["translatedText"]]
    assert dict(zip(one_line, texts, strict=True)) == dict.fromkeys(one_line, expected)
    sources = [*one_line.values(), *[SENTENCE] * len(SPELLINGS)]
    targets = [expected] * len(one_line)
    targets += [spoil(expected) for spoil in SPELLINGS.values()]
    body = {"q": sources, "translation": targets}
    values = server.post("/score", body).json()["scores"]
    assert values == pytest.approx([values[0]] * len(values), abs=1e-4)


def test_words_to_parse_are_between_any_white_space(parsing_translator):
    """The same in a text, in a list of texts and in Python; trees are over the words as
    they were written.
    """
    from running import running, served

    text = "He paid 10\u00a0000 \u200b for co\u00adffee ."
    words = ["He", "paid", "10", "000", "for", "co\u00adffee", "."]
    assert parsing_translator.parse(text).tree.words() == words
    with running([served(parsing_translator, "en", "tree")]) as server:
        answers = [
            server.post("/translate", {"q": q, "segments": True}).json()
            for q in (text, [text])
        ]
    hypothesis = answers[0]["segments"][0]["hypotheses"][0]
    assert _words(hypothesis["tree"]) == words
    assert [answers[0]["translatedText"]] == answers[1]["translatedText"]


def _words(node):
    if isinstance(node, str):
        return [node]
    return [word for child in node[1:] for word in _words(child)]
