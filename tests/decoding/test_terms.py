"""Beam search with terms against exhaustive search, and glossaries through the Python
API.
"""

import numpy as np
import pytest
from table_model import BEAM, TableModel

from t2tlite.decoding.glossary import open_glossary, terms_of
from t2tlite.decoding.terms import term_choice
from t2tlite.decoding.text_decoder import Origin
from t2tlite.programs.bulk.jobs import DecodeJob, LineFormat, ScoreJob
from t2tlite.programs.bulk.part import Window
from t2tlite.programs.serving.models import ServedModel
from t2tlite.tasks.task import open_task
from t2tlite.types import EOS
from t2tlite.vocabularies.encoders import open_encoder
from t2tlite.vocabularies.sentencepiece_encoder import train_sentencepiece

SENTENCES = [
    "red cat sees dog",
    "",
    "horse bites bird",
    "fish likes mouse never",
    "dog hears white cat now",
]


def next_tokens(terms, body):
    """The next token of each incomplete term."""
    tokens = []
    for term in terms:
        size = len(term)
        done = 0
        for length in range(1, size):
            if body[-length:] == term[:length]:
                done = length
        if term not in [body[at : at + size] for at in range(len(body))]:
            tokens.append(term[done])
    return tokens


def test_as_exhaustive_search():
    """All sequences with the terms that begin one where the model would end before."""
    table = TableModel(sentences=4)
    terms = [[(2, 3)], [(4,), (2,)], [], [(3, 3), (3,)]]
    block = np.zeros((4, 2, 3), np.int32)
    for b, rows in enumerate(terms):
        for k, term in enumerate(rows):
            block[b, k, : len(term)] = term
    choose = term_choice(block, BEAM)
    result = table.search([0, 1, 2, 3], [4] * 4, BEAM, 0.6, n_best=BEAM, choose=choose)
    for b in range(4):
        expected = []
        for score, tokens in table.exhaustive(b, 4, 0.6):
            is_allowed = True
            for i, token in enumerate(tokens):
                due = next_tokens(terms[b], tokens[:i])
                ends = table.logits(b, tokens[:i]).argmax() == EOS
                if due and token not in due:
                    is_allowed &= not ends and token != EOS
            if is_allowed:
                expected.append((score, tokens))
        table.check(result, b, expected)


def test_terms_are_in_translations_alone_and_together(model):
    """Words that the model would not choose, of one token and of several."""
    glossary = {"cat": "hund", "likes": "Katzenklo", "white cat": "vogel fisch"}
    free = model.decode(SENTENCES, model.options())
    translations = model.translate(SENTENCES, glossary=glossary)
    wanted = [["hund"], [], [], ["Katzenklo"], ["vogel fisch"]]
    for sentence, text, terms, plain in zip(
        SENTENCES, translations, wanted, free, strict=True
    ):
        assert all(f" {term}" in f" {text}" for term in terms)
        assert terms or text == plain[0].text
        assert model.translate(sentence, glossary=glossary) == text
    both = {"red": "Katzenklo", "dog": "vogel vogel", "sees": "vogel vogel"}
    options = {"glossary": both, "prefix": "maus", "no_repeat_ngram_size": 1}
    for size in (1, 4, 12):
        text = model.translate(SENTENCES[0], **options, beam_size=size)
        assert text.startswith("maus")
        assert [term in text for term in both.values()] == [True] * 3
    other = terms_of(open_glossary({"lion": "löwe"}), SENTENCES)
    assert model.decode(SENTENCES, model.options(), terms=other) == free


def test_log_prob_is_the_models(model):
    sentence = "red cat sees dog"
    options = model.options(return_beams=4)
    for output in model.decode([sentence], options, terms=[["vogel", "hund"]])[0]:
        assert tuple(model.target_encoder.encode(output.text)) == output.ids
        assert model.score(sentence, output.text) == pytest.approx(
            output.log_prob, abs=1e-4
        )


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("a cat, a dog", ["Katze", "Hund"]),
        ("<de> <to-us> (Dog sees Cat", ["Hund"]),
        ("कमी ọ\u0301 می\u200cخواهم", []),
        ("Dog days, Dog days", ["Hundstage"]),
        ("hot  dog's hot dog days dog", ["Hotdog", "Hund"]),
        ("hotdog dogs bird-dog", ["Hund"]),
        ("Polish cafe\u0301 polish DOG.", ["polnisch", "Café", "Politur"]),
    ],
)  # fmt: skip
def test_terms_of_a_sentence(source, expected):
    glossary = {"dog": "Hund", "dog days": "Hundstage", "hot dog": "Hotdog"}
    glossary |= {"café": "Cafe\u0301", "polish": "Politur", "Polish": "polnisch"}
    glossary |= {"cat": "Katze", "कम": "less", "ọ": "he", "می": "wine"}
    assert open_glossary(glossary).terms(source) == expected


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (b"dog\tHund\ncat\n", "line 2: 'cat'"),
        (b"dog\tHund\n\n\tKatze\n", "line 3: "),
        (b"dog\t \n", "line 1: "),
        (b"dog\tHund\tm\n", "line 1: "),
        (b"dog\tHund\ncat\tKatze\ndog\tRuede\n", "line 3: 'dog.tRuede'"),
        (b"dog\tH\xfcnd\n", "line 1: text must be UTF-8"),
    ],
)
def test_malformed_files(tmp_path, text, line):
    path = tmp_path / "glossary.tsv"
    path.write_bytes(text)
    with pytest.raises(ValueError, match=f"glossary.tsv, {line}"):
        open_glossary(path)


def test_what_a_vocabulary_of_words_lacks(model, tmp_path, monkeypatch):
    path = tmp_path / "words.model"
    train_sentencepiece(["cat dog"], 0, path, vocab_type="words")
    options = model.options()
    terms = tmp_path / "terms.tsv"
    terms.write_text("dog\tcat\n\ndog\tcat\ncat\tCat\n", encoding="utf-8")
    glossary = open_glossary(terms)
    terms = f"{terms}, line 4"
    prefixed = DecodeJob(model, options, LineFormat(prefixes=True))
    with monkeypatch.context() as patch:
        patch.setattr(model, "target_encoder", open_encoder(path))
        served = ServedModel(model, "en", "de", options)
        window = Window(["dog\tcat", "dog\tCat"], Origin("in.txt", 2))
        for place, enter in (
            ("line 1", lambda: model.translate("dog", prefix="Cat")),
            ("the glossary, line 1", lambda: model.translate("a", glossary={"b": "Cat"})),
            ("in.txt, line 4", lambda: prefixed.check(window)),
            (terms, lambda: DecodeJob(model, options, LineFormat(glossary=glossary))),
            (terms, lambda: served.check_glossary(glossary, options)),
        ):  # fmt: skip
            with pytest.raises(ValueError, match=rf"Received: {place}, 'Cat'\."):
                enter()
        scored = ScoreJob(model, options, LineFormat()).run(window)
        assert scored.counts["unknown"] == 1
    assert model.translate("dog", prefix="Cat").startswith("Cat")
    monkeypatch.setattr(model, "source_encoder", open_encoder(path))
    counts = prefixed.run(Window(["cat", "Cat dog", "cat Dogs"])).counts
    assert prefixed.summary(counts).endswith("sentences with unknown text: 2")


def test_refused(model, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(model, "task", open_task("parsing", {}))
        with pytest.raises(ValueError, match=r"translations\. Received: a parser\."):
            DecodeJob(
                model, model.options(), LineFormat(glossary=open_glossary({"a": "b"}))
            )
    with pytest.raises(ValueError, match=r"needs beam search\. Received: s"):
        model.translate("cat", glossary={"cat": "hund"}, sampling_method="random")
    with pytest.raises(ValueError, match=r"A term must be one string\. Received: nan"):
        open_glossary({"cat": float("nan")})
