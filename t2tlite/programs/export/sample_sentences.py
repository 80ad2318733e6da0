"""Sentences to verify an export with: of the run's dev data, or if it is gone words of
the vocabulary.
"""

from __future__ import annotations

import itertools
import random

from t2tlite.data.dataset import open_dataset
from t2tlite.decoding.text_decoder import TextDecoder

SENTENCES = 12
LONGEST = 48  # tokens
WORDS = 8  # of a sentence made from the vocabulary, at most


def sample_sentences(model: TextDecoder) -> tuple[list[str], str]:
    """Some sentences that the model can decode, the longest first, none blank; and
    where they come from.
    """
    sentences, origin = _usable(model, _dev_sentences(model)), "of dev"
    if not sentences:
        sentences, origin = (
            _usable(model, _made_sentences(model)),
            "made of the vocabulary's words",
        )
    chosen = sentences[:: max(1, len(sentences) // SENTENCES)][:SENTENCES]
    lengths = dict(
        zip(chosen, map(len, model.source_encoder.encode_batch(chosen)), strict=True)
    )
    return sorted(chosen, key=lambda sentence: -lengths[sentence]), origin


def _usable(model: TextDecoder, sentences: list[str]) -> list[str]:
    limit = min(LONGEST, model.max_source_tokens)
    is_blank = model.source_encoder.is_blank
    sentences = [text for text in dict.fromkeys(sentences) if not is_blank(text)]
    encoded = model.source_encoder.encode_batch(sentences)
    return [
        sentence
        for sentence, ids in zip(sentences, encoded, strict=True)
        if len(ids) <= limit
    ]


def _dev_sentences(model: TextDecoder) -> list[str]:
    """The sources of dev; empty if the data is no longer there, or the run was
    imported.
    """
    if not model.manifest.data_dir:
        return []
    try:
        return (
            open_dataset(model.manifest.data_dir, model.manifest.name)
            .store("dev")
            .source_text()
        )
    except (OSError, ValueError):
        return []


def _made_sentences(model: TextDecoder) -> list[str]:
    """Sentences of pieces of the source's vocabulary that have only letters."""
    draw, encoder = random.Random(0), model.source_encoder
    texts = (encoder.decode([i]).strip() for i in range(2, encoder.vocab_size))
    words = sorted(set(itertools.islice(filter(str.isalpha, texts), 20_000))) or ["a"]
    return [
        " ".join(draw.choices(words, k=draw.randint(1, WORDS)))
        for _ in range(SENTENCES)
    ]
