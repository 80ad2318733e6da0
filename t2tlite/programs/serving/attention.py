"""Attention: between words, and a page with every head.

One thread of its own, with a short queue, computes attention and makes the answers: an
answer may have millions of weights, and must not delay those who translate.
"""

import dataclasses
import re
from collections.abc import Callable, Sequence

import numpy as np
from starlette.exceptions import HTTPException

from t2tlite.decoding.alignment import pieces_by_word, word_weights
from t2tlite.programs.documents.tag_projection import WORD
from t2tlite.programs.serving import options, requests, schemas
from t2tlite.programs.serving.batching import BatchFunction, Work
from t2tlite.programs.serving.models import Catalogue, ServedModel
from t2tlite.programs.visualise.attention import Attention, page
from t2tlite.vocabularies.normalisation import is_blank

LINE_ENDS = re.compile("[\n\r]")

# from the attention, the sentence, and the number of words of a tag before it
Answer = Callable[[Attention, str, int], bytes]


def attention_work(
    body: schemas.TranslateRequest,
    catalogue: Catalogue,
    answer: Answer,
) -> Work:
    """The work to make an answer from the attention of a sentence and its translation:
    the given one, or the model's own if that is missing or blank. Raises HTTPException.
    """
    model = catalogue.model(body.source, body.target)
    sentence = _sentence("q", body.q)
    translation = None
    if not is_blank(body.translation or ""):
        translation = _sentence("translation", body.translation)
    tokens = model.token_counts([sentence], options.MAX_ATTENTION_TOKENS)
    function = BatchFunction(_answers, (model, answer))
    return Work(function, [(sentence, translation)], tokens)


def _sentence(name: str, text: str | list[str] | None) -> str:
    """The text. Raises HTTPException 400 unless it is one sentence."""
    if not isinstance(text, str) or is_blank(text) or LINE_ENDS.search(text):
        message = f"{name} must be a sentence: no list, not blank, and on one line."
        raise HTTPException(400, message)
    return text


def _answers(
    pairs: Sequence[tuple[str, str | None]],
    model: ServedModel,
    answer: Answer,
) -> list[bytes]:
    """The answer for a sentence and its translation: one pair is computed at a time."""
    [(source, target)] = pairs
    [tagged] = model.tagged([source])
    pair = model.translator.sentence_pair(tagged, target)
    limit = options.MAX_ATTENTION_TOKENS
    tokens = len(pair.target_tokens) - 1
    requests.check_limit("A sentence", tokens, limit, "tokens")
    attention = model.translator.attention_of(pair)
    return [answer(attention, source, len(model.tag.split()))]


def page_answer(attention: Attention, source: str, tag_words: int) -> bytes:
    """The page, which does not name the folder of the run."""
    return page(dataclasses.replace(attention, run="")).encode()


def words_answer(attention: Attention, source: str, tag_words: int = 0) -> bytes:
    """The words of both texts, and a row of weights for each target word.

    `source` is the text as it was sent; the model's source has `tag_words` words before
    it. Weights between words follow the rule of decoding/alignment.py, except that all
    pieces of a word count. Rows are scaled to sum to 1. A word without a piece, such as
    a zero-width space that the vocabulary drops, is left out.
    """
    sources = _pieces_of_words(source, attention.source_words, tag_words)
    targets = _pieces_of_words(attention.target, attention.target_words)
    weights: list[list[float]] = [[] for _ in targets]
    if sources and targets:
        layers = [layer.mean(axis=0) for layer in attention.cross]
        mean = np.mean(layers, axis=0)  # [target pieces, source pieces]
        rows = word_weights(mean, list(sources.values()), list(targets.values()))
        sums = np.maximum(rows.sum(axis=1, keepdims=True), 1e-9)
        weights = (rows / sums).tolist()
    response = schemas.AttentionResponse(
        translation=attention.target,
        source_words=list(sources),
        target_words=list(targets),
        weights=weights,
    )
    return response.model_dump_json().encode()


def _pieces_of_words(
    text: str,
    words_of_pieces: Sequence[int],
    tag_words: int = 0,
) -> dict[schemas.PlacedWord, list[int]]:
    """The pieces of each word of a text, which `tag_words` others precede.

    Words are separated by white space. If a model decoded pieces of white space alone,
    they belong to no word.
    """
    pieces = pieces_by_word(words_of_pieces)
    pieces_of_words = {}
    for number, match in enumerate(WORD.finditer(text), tag_words):
        if number in pieces:
            start, end = match.span()
            word = schemas.PlacedWord(text=match[0], start=start, end=end)
            pieces_of_words[word] = pieces[number]
    return pieces_of_words
