"""The server reads text as the other doors do."""

from spellings import SPELLINGS

from t2tlite.trees.tree import parse_tree

SENTENCE = "red cat sees dog today"


def test_translations(server, translator):
    expected = translator.translate(SENTENCE)
    one_line = {
        name: spoil(SENTENCE)
        for name, spoil in SPELLINGS.items()
        if not {"\x85", "\u2028"} & set(spoil(SENTENCE))  # they end a line of a text
    }
    answer = server.post("/translate", {"q": list(one_line.values())}).json()
    texts = [text.strip() for text in answer["translatedText"]]
    assert dict(zip(one_line, texts, strict=True)) == dict.fromkeys(one_line, expected)


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
    assert parse_tree(hypothesis["text"]).words() == words
    assert [answers[0]["translatedText"]] == answers[1]["translatedText"]
