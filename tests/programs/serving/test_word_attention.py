"""Cross-attention between words, with expected weights from the definition by hand."""

import random
import string

import numpy as np
import pytest
import sentencepiece
from running import running, served

from t2tlite.programs.runs.translator import Translator
from t2tlite.programs.serving.attention import words_answer
from t2tlite.programs.serving.schemas import AttentionResponse
from t2tlite.programs.visualise.attention import Attention
from t2tlite.vocabularies.normalisation import is_blank
from t2tlite.vocabularies.sentencepiece_encoder import SentencePieceEncoder


def word_attention(attention, source):
    return AttentionResponse.model_validate_json(words_answer(attention, source))


def test_weights_are_of_words_and_scaled():
    """Summed over source pieces, averaged over target pieces, heads and layers; then
    rows sum to 1.
    """
    source, target = ["▁a", "b", "▁c", "</s>"], ["▁x", "y", "</s>"]
    first = [[0.1, 0.2, 0.3, 0.4], [0.4, 0.1, 0.1, 0.4], [0.25] * 4]
    second = [[0.3, 0.2, 0.1, 0.4], [0.0, 0.5, 0.3, 0.2], [0.25] * 4]
    heads = np.array([first, second], np.float32)  # [H, T, S]
    words = {"source_words": [0, 0, 1], "target_words": [0, 0], "target": "xy"}
    attention = Attention(source, target, [], [], [heads, heads], **words)
    response = word_attention(attention, " ab  c")
    words = [(word.text, word.start, word.end) for word in response.source_words]
    assert words == [("ab", 1, 3), ("c", 5, 6)]
    (word,) = response.target_words
    assert (word.text, word.start, word.end) == ("xy", 0, 2)
    # means over heads: rows .2 .2 .2 .4 and .2 .3 .2 .3; ab: .4 and .5, mean .45; c: .2
    np.testing.assert_allclose(response.weights, [[0.45 / 0.65, 0.2 / 0.65]], rtol=1e-6)


def test_words_of_a_parsers_output_are_those_of_alignments(parsing_translator):
    """With a vocabulary of tensor2tensor, and words that are brackets of the tree."""
    attention = parsing_translator.attention("A president saw .")
    response = word_attention(attention, attention.source)
    sources = [word.text for word in response.source_words]
    assert sources == "A president saw .".split()
    words = attention.target.split()
    shown = [word.text for word in response.target_words]
    attended = set(attention.target_words)
    assert shown == [word for i, word in enumerate(words) if i in attended]
    assert len(shown) >= len(words) - 1  # a piece of `. /S` belongs to one of them


@pytest.fixture(scope="module", params=["nmt_nfkc", "nfkc_cf"])
def normalising(request, translator, tmp_path_factory):
    """A server of the tiny run with another vocabulary of its size, which normalises
    text as SentencePiece's rules of this name do.
    """
    path = tmp_path_factory.mktemp("normalising") / "vocab.model"
    draw = random.Random(1)
    letters = string.ascii_lowercase + "äöü"
    words = ["".join(draw.choices(letters, k=6)) for _ in range(2000)]
    with path.open("wb") as file:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter([*words, "katze hund maus vogel rot red cat"]),
            model_writer=file,
            model_type="bpe",
            vocab_size=translator.source_encoder.vocab_size,
            pad_id=0,
            eos_id=1,
            unk_id=2,
            bos_id=-1,
            byte_fallback=True,
            normalization_rule_name=request.param,
            minloglevel=2,
        )
    encoder = SentencePieceEncoder(path)
    model = Translator(
        translator.engine,
        (encoder, encoder),
        translator.manifest,
        translator.checkpoint,
        run=translator.run,
    )
    with running([served(model)]) as server:
        yield server


@pytest.mark.parametrize(
    "text",
    [
        "katze ½ ﬁsch ①",  # become 1⁄2, fi and 1
        "hund´maus ¨ vogel",  # a space and an accent
        "ka\u200btze \u200b hund",
        "katze\u3000hund",
        "rote\u0308 \u0308 katze",
        "ｋａｔｚｅ．",
        "\x01katze \x02 hund",
        "\ufeffkatze \xad hund\xad",
        "  katze   hund  ",
        "ﷺ ㍿ KATZE",
    ],
)
def test_words_are_those_that_were_sent(normalising, text):
    """A vocabulary that normalises may have more words than the text, or fewer."""
    for source, translation in ((text, "katze"), ("red cat", text), (text, text)):
        body = {"q": source, "translation": translation}
        response = normalising.post("/attention", body)
        assert response.status_code == 200, response.text
        answer = response.json()
        assert answer["translation"] == translation
        for words, sent in (
            (answer["source_words"], source),
            (answer["target_words"], translation),
        ):
            assert words
            for word in words:
                assert sent[word["start"] : word["end"]] == word["text"]
                assert word["text"] in sent.split()
        # with letters or digits, no word is missing
        for word in translation.split():
            if any(map(str.isalnum, word)):
                assert word in [each["text"] for each in answer["target_words"]]
        assert len(answer["weights"]) == len(answer["target_words"])
        assert all(sum(row) == pytest.approx(1, rel=1e-4) for row in answer["weights"])
        page = normalising.post("/attention.html", body)
        assert page.status_code == 200


@pytest.mark.parametrize("text", ["\u200b", "\ufeff", "\xad", "\x01"])
def test_text_of_which_nothing_is_left(normalising, text):
    """Is a blank translation, or a sentence without words."""
    body = {"q": "red cat", "translation": text}
    assert normalising.post("/attention", body).status_code == 200
    response = normalising.post("/attention", {"q": text})
    if is_blank(text):
        assert response.status_code == 400
        assert "must be a sentence" in response.json()["error"]
    elif response.status_code == 400:
        assert response.json()["error"].startswith("Attention needs words")
    for path, body in (
        ("/translate", {"q": text, "alternatives": 1}),
        ("/translate", {"q": f"<b>{text}</b> red <i>{text}</i>", "format": "html"}),
    ):
        assert normalising.post(path, body).status_code == 200, path
