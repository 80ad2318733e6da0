"""BPE dropout (Provilkov et al. 2020, "BPE-Dropout: Simple and Effective Subword
Regularization", algorithm 1): text in another segmentation for each sample.

A word is merged from its characters, the merge of highest priority first. Before each
merge, every possible one is left out with probability `dropout`; when all are left out,
the word is finished. SentencePiece's own sampling leaves a merge out for good, which
makes text about twice as much longer at the same rate.

A segmentation is a pure function of the text, the number of the sample and the
vocabulary: it does not depend on the other texts, the process, or the platform.
"""

from __future__ import annotations

import functools
import hashlib
import heapq
import itertools
import random
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import sentencepiece

from t2tlite.vocabularies.normalisation import SPACE_MARK, compose

CACHED_WORDS = 2**17
MAX_CACHED_CHARACTERS = 64  # of a word


class SubwordSampler:
    """Samples segmentations with a SentencePiece model of type BPE.

    With dropout 0 the ids are those of SentencePiece. User-defined symbols are never
    split.
    """

    def __init__(self, path: Path, normalization: str, dropout: float) -> None:
        """Reads the model. `normalization` is that of its encoder. Raises ValueError if
        it is not of type BPE.
        """
        model = sentencepiece.SentencePieceProcessor(model_file=str(path))
        self._normalize = model.normalize
        self._normalization = normalization
        self._dropout = dropout
        self._unknown: int = model.unk_id()
        self._bytes: list[int] = []  # the ids of the bytes 0 to 255, or none
        self._ids: dict[str, int] = {}  # of the other pieces
        self._scores: dict[str, float] = {}
        for i in range(model.get_piece_size()):
            if model.is_byte(i):
                self._bytes.append(i)
            elif not (model.is_control(i) or model.is_unknown(i)):
                piece = model.id_to_piece(i)
                self._ids[piece] = i
                self._scores[piece] = model.get_score(i)
        # BPE's are the ranks of the merges, other types' logarithms
        if not all(score.is_integer() for score in self._scores.values()):
            raise ValueError(
                "subword_samples need a SentencePiece vocabulary of type bpe, whose"
                f" merges are left out. Received: {path}, of another type. Leave"
                " subword_samples out, or let t2t-datagen learn the vocabulary."
            )
        symbols = self._symbols_of(model)
        self._symbols = frozenset(symbols)
        self._characters = re.compile("|".join([*map(re.escape, symbols), "(?s:.)"]))
        # no piece continues over a space, unless the vocabulary was learned so
        crosses = any(SPACE_MARK in piece[1:] for piece in self._ids)
        word = f"{SPACE_MARK}?[^{SPACE_MARK}]+|{SPACE_MARK}"
        self._words = re.compile("(?s:.+)" if crosses else word)
        self._cached = functools.lru_cache(CACHED_WORDS)(self._merged)

    def _symbols_of(self, model: sentencepiece.SentencePieceProcessor) -> list[str]:
        """The user-defined symbols of several characters, the longest first: what
        SentencePiece keeps whole without any merge.
        """
        symbols = set()
        for pieces in model.encode(
            [*self._ids], out_type=str, enable_sampling=True, alpha=1.0, nbest_size=-1
        ):
            for piece in pieces:
                if len(piece) > 1 and piece in self._ids:
                    symbols.add(piece)
        return sorted(symbols, key=len, reverse=True)

    def encode(self, text: str, sample: int) -> list[int]:
        """The ids of a text in a sample of any number, without EOS."""
        normalised = self._normalize(compose(text, self._normalization))
        seed = hashlib.blake2b(f"{sample}\n{normalised}".encode(), digest_size=8)
        draw = random.Random(int.from_bytes(seed.digest(), "big")).random
        ids: list[int] = []
        for word in self._words.findall(normalised):
            is_cached = len(word) <= MAX_CACHED_CHARACTERS
            pieces, merges = (self._cached if is_cached else self._merged)(word)
            # most words lose no merge, and then are as without dropout
            kept = 0
            while kept < merges and draw() >= self._dropout:
                kept += 1
            if kept < merges:
                decisions = self._decisions(kept, draw)
                pieces, _ = self._merged(word, functools.partial(next, decisions))
            ids += pieces
        return self._with_one_unknown(ids)

    def _decisions(self, kept: int, draw: Callable[[], float]) -> Iterator[bool]:
        """Whether each merge is made, after `kept` that are and one that is not."""
        yield from itertools.repeat(True, kept)
        yield False
        while True:
            yield draw() >= self._dropout

    def _merged(
        self, word: str, is_made: Callable[[], bool] = lambda: True
    ) -> tuple[tuple[int, ...], int]:
        """The ids of a word and the number of merges that gave them; `is_made` decides
        on each possible merge.
        """
        parts: list[str] = self._characters.findall(word)
        following = list(range(1, len(parts) + 1))
        preceding = list(range(-1, len(parts) - 1))
        # possible merges: the negated score, the left part's position, the result
        agenda: list[tuple[float, int, str]] = []

        def offer(left: int, right: int) -> None:
            if left < 0 or right == len(parts):
                return
            if parts[left] in self._symbols or parts[right] in self._symbols:
                return
            merged = parts[left] + parts[right]
            if merged in self._scores:
                heapq.heappush(agenda, (-self._scores[merged], left, merged))

        for left in range(len(parts) - 1):
            offer(left, left + 1)
        left_out = []
        merges = 0
        while agenda:
            merge = heapq.heappop(agenda)
            _, left, merged = merge
            right = following[left]
            if not parts[left] or right == len(parts):
                continue
            if parts[left] + parts[right] != merged:
                continue  # one of the two is now part of another
            if not is_made():
                left_out.append(merge)
                continue
            merges += 1
            parts[left] = merged
            parts[right] = ""
            following[left] = following[right]
            if following[right] < len(parts):
                preceding[following[right]] = left
            offer(preceding[left], left)
            offer(left, following[left])
            # the next merge may be one that this time was left out
            for merge in left_out:
                heapq.heappush(agenda, merge)
            left_out.clear()
        return tuple(self._ids_of(parts)), merges

    def _ids_of(self, parts: Sequence[str]) -> Iterator[int]:
        for part in filter(None, parts):
            if part in self._ids:
                yield self._ids[part]
            elif self._bytes:
                for byte in part.encode():
                    yield self._bytes[byte]
            else:
                yield self._unknown

    def _with_one_unknown(self, ids: list[int]) -> list[int]:
        """The ids with one unknown token for several in a row, as SentencePiece."""
        if self._bytes or self._unknown not in ids:
            return ids
        kept = []
        for index, i in enumerate(ids):
            if i != self._unknown or index == 0 or ids[index - 1] != i:
                kept.append(i)
        return kept
