"""Encodes and decodes text with SentencePiece vocabularies, and learns them."""

import functools
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import sentencepiece

from t2tlite.files.atomic_file import atomic_file
from t2tlite.types import EOS, PAD
from t2tlite.vocabularies.normalisation import (
    JOINER,
    NFC,
    NFKC,
    NON_JOINER,
    NONE,
    SPACE_MARK,
    compose,
    normalise,
    normalization_map,
)
from t2tlite.vocabularies.text_encoder import (
    TextEncoder,
    check_unicode,
    ids_in_range,
    text_ids,
)

# SentencePiece encodes a list in a thread that it starts: 40 microseconds, or a
# millisecond where all cores are busy, against 3 for a sentence without a thread.
FEW_TEXTS = 64
MAX_VOCAB_SIZE = 10**7
# special tokens and bytes
SPECIAL_IDS = 259
# SentencePiece requires an unknown token; with byte fallback it never occurs in encoded
# text
UNKNOWN = 2
# names of the normalisers in models
NORMALIZERS = {NFC: "t2tlite_nfc", NFKC: "t2tlite_nfkc"}
# fields of sentencepiece_model.proto: number and wire type
NORMALIZER_SPEC, NAME = b"\x1a", b"\x0a"
COMPILED_JOINERS = {JOINER: "\ue00d", NON_JOINER: "\ue00c"}

# How each type of vocabulary is learned. Only the first has bytes, to spell any text:
# in the others, what training did not see is the unknown token.
PIECES, CHARACTERS, WORDS = VOCAB_TYPES = ("sentencepiece", "characters", "words")
LEARNING: dict[str, dict[str, Any]] = {
    PIECES: {
        "model_type": "bpe",
        "byte_fallback": True,
        # so that any number is copied digit by digit
        "split_digits": True,
        # The most frequent characters, which make up this share of the training text,
        # are pieces; the others are spelled in bytes. Text of up to 10,000 characters
        # keeps them all. Web-crawled text loses thousands of characters that occur only
        # a few times.
        "character_coverage": 0.9999,
    },
    CHARACTERS: {"model_type": "char", "character_coverage": 1.0},
    WORDS: {"model_type": "word", "character_coverage": 1.0},
}

# LOWER FIVE EIGHTHS BLOCK: SentencePiece ignores a training sentence that contains it.
# Training replaces it by a space; encoding spells it in bytes.
RESERVED = "\u2585"

# SentencePiece ignores training sentences of more than 4,192 bytes, so longer ones are
# split into parts of this many characters. This also bounds text without spaces, so
# that the time of learning is in proportion to the text.
SENTENCE_CHARACTERS = 1000

# in SentencePiece's messages
BOUNDS = {
    "largest": r"too high.*?<= (\d+)",
    "smallest": r"smaller than required_chars\. \d+ vs (\d+)",
}


class VocabularySizeError(ValueError):
    """The text allows no vocabulary of fewer than `smallest`, or none of more than
    `largest` pieces; the other bound is None.
    """

    def __init__(
        self, received: int, smallest: int | None = None, largest: int | None = None
    ):
        self.smallest = smallest
        self.largest = largest
        bound = f"at most {largest} for this text. Lower vocab_size or give more text."
        if smallest is not None:
            bound = (
                f"at least {smallest} for this text: its characters, the symbols, and"
                f" {SPECIAL_IDS} special tokens and bytes. Raise it."
            )
        super().__init__(f"Received: vocab_size={received}, which must be {bound}")


class SentencePieceEncoder(TextEncoder):
    """A SentencePiece vocabulary: text to token ids and back.

    The model contains the normaliser that is applied to text; vocabularies of
    t2t-datagen have the rule of vocabularies/normalisation.py. `decode(encode(text))`
    is `normalise(text)` for any Unicode text. With normalization=none, as in
    vocabularies that are older than the rule, it is the text itself, with leading,
    trailing and repeated spaces, tabs, control characters, composed and decomposed
    accents, and emoji. Only U+2581 (LOWER ONE EIGHTH BLOCK), which SentencePiece uses
    for spaces, becomes a space. Characters that training did not see are spelled in the
    bytes of UTF-8.

    `decode` also accepts ids that encoding never yields: bytes that are not UTF-8
    become U+FFFD, and the unknown token, id 2, becomes U+2047 between spaces.

    Example, with a vocabulary in which `▁walk` is 417 and `ing` is 268:

        encode("walking")              # [417, 268]
        decode([417, 268, 1, 0, 0])    # "walking"
        pieces([417, 268, 1])          # ["▁walk", "ing", "</s>"]

    The piece of a byte is written as "<0x0A>".
    """

    type = "sentencepiece"
    ending = ".model"

    def __init__(self, path: str | Path):
        """Loads a `.model` file, in milliseconds.

        Raises FileNotFoundError, or ValueError if it is not a SentencePiece model with
        padding id 0 and EOS id 1.
        """
        self.path = Path(path)
        model = self.path.read_bytes()
        try:
            processor = sentencepiece.SentencePieceProcessor(model_proto=model)
            self.vocab_size: int = processor.get_piece_size()
            # an empty file is read as an empty model
            if not self.vocab_size:
                raise RuntimeError
            processor.id_to_piece(list(range(self.vocab_size)))
        except (RuntimeError, UnicodeDecodeError) as error:
            # UnicodeDecodeError: a piece is not UTF-8
            raise ValueError(
                f"The vocabulary must be a SentencePiece model. Received: {path}."
            ) from error
        pad, eos = processor.pad_id(), processor.eos_id()
        if (pad, eos) != (PAD, EOS):
            raise ValueError(
                f"A vocabulary must have the padding id {PAD} and the EOS id {EOS}."
                f" Received: {pad} and {eos} in {path}."
            )
        self._processor = processor
        # bytes spell everything
        has_bytes = processor.piece_to_id("<0x00>") != processor.unk_id()
        self.unknown = None if has_bytes else processor.unk_id()
        self.normalization = NONE
        for normalization, name in NORMALIZERS.items():
            if model.endswith(name.encode()):
                self.normalization = normalization

    def normalise(self, text: str) -> str:
        check_unicode(text)
        composed = compose(text, self.normalization)
        normalised = self._processor.normalize(composed).replace(SPACE_MARK, " ")
        # SentencePiece adds one
        return normalised.removeprefix(" ")

    def encode_batch(
        self, texts: Sequence[str], num_threads: int = 1
    ) -> list[list[int]]:
        composed = [compose(text, self.normalization) for text in texts]
        try:
            if len(composed) <= FEW_TEXTS:
                return [self._processor.encode(text) for text in composed]
            return self._processor.encode(composed, num_threads=num_threads)
        except (RuntimeError, TypeError):
            for text in texts:
                check_unicode(text)
            raise

    def decode(self, ids: Iterable[int]) -> str:
        return self._processor.decode(text_ids(ids, self.vocab_size))

    def pieces(self, ids: Iterable[int]) -> list[str]:
        return self._processor.id_to_piece(ids_in_range(ids, self.vocab_size))


def train_sentencepiece(
    sentences: Iterable[str],
    vocab_size: int,
    path: str | Path,
    symbols: Sequence[str] = (),
    normalization: str = NFC,
    vocab_type: str = PIECES,
) -> None:
    """Learns a vocabulary from `sentences` and writes it to `path`, by default one of
    byte-pair encoding. The same sentences give the same file.

    BPE with byte fallback: padding 0, EOS 1, unknown 2, no start-of-sequence token, the
    256 bytes from id 3 on. Each digit is a piece of its own. Text is normalised by the
    rule of vocabularies/normalisation.py, and the file contains this rule.

    The sentences are read once. There are exactly `vocab_size` ids, SPECIAL_IDS of them
    for special tokens and bytes. Each of `symbols`, strings without spaces, is one
    piece if a word begins with it.

    A vocabulary of another type has no bytes, and at most `vocab_size` of the most
    frequent characters or words; with 0, all of them.

    Raises VocabularySizeError with a bound if `vocab_size` is too large or too small
    for the text. Raises ValueError if there is no text, or a sentence contains a lone
    surrogate.
    """
    takes_all = vocab_type != PIECES and vocab_size == 0
    # with billions of pieces, SentencePiece would not end
    size = MAX_VOCAB_SIZE if takes_all else min(vocab_size, MAX_VOCAB_SIZE)
    # fewer would hide the bound that the error names
    if vocab_type == PIECES:
        size = max(size, SPECIAL_IDS)
    # each once, in order
    pieces = {}
    for symbol in symbols:
        pieces[SPACE_MARK + normalise(symbol, normalization)] = True
    least = UNKNOWN + len(pieces) + 2
    if vocab_type != PIECES and not takes_all and vocab_size < least:
        raise ValueError(
            f"vocab_size must be 0, or at least {least}: special tokens, symbols and"
            f" a piece. Received: {vocab_size}."
        )
    try:
        with atomic_file(path) as file:
            model = io.BytesIO()
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=_training_text(sentences, normalization, vocab_type),
                model_writer=model,
                use_all_vocab=takes_all,
                hard_vocab_limit=vocab_type == PIECES,
                vocab_size=size,
                pad_id=PAD,
                eos_id=EOS,
                unk_id=UNKNOWN,
                bos_id=-1,
                user_defined_symbols=list(pieces),
                normalization_rule_name="identity",
                remove_extra_whitespaces=False,
                num_threads=1,
                minloglevel=2,
                **LEARNING[vocab_type],
            )
            file.write(model.getvalue())
            if normalization != NONE:
                # its name ends the file: readers of Protocol Buffers merge the fields
                # of a message that occurs twice
                file.write(normalizer(normalization))
    except RuntimeError as error:
        raise _training_error(str(error), vocab_size) from error


@functools.cache
def normalizer(normalization: str) -> bytes:
    """The fields of a model that have the rule NFC or NFKC as SentencePiece's
    normaliser, which also removes extra spaces.

    SentencePiece refuses to map a string to itself, as the rule for joiners needs. So
    joiners are compiled as other characters, whose UTF-8 is as long.
    """
    compiled = []
    for written, replacement in normalization_map(normalization).items():
        for joiner, other in COMPILED_JOINERS.items():
            replacement = replacement.replace(joiner, other)
        compiled.append((written, replacement))
    rule = sentencepiece.SentencePieceNormalizer(
        norm_map=compiled, remove_extra_whitespaces=True
    )
    message: bytes = rule.serialized_model_proto()
    for joiner, other in COMPILED_JOINERS.items():
        message = message.replace(other.encode(), joiner.encode())
    name = NORMALIZERS[normalization].encode()
    named = NAME + bytes([len(name)]) + name
    return message + NORMALIZER_SPEC + bytes([len(named)]) + named


def _training_text(
    sentences: Iterable[str], normalization: str, vocab_type: str
) -> Iterator[str]:
    """Yields the training text: normalised sentences, long ones in parts; or words."""
    for text in sentences:
        check_unicode(text)
        sentence = normalise(text, normalization).replace(RESERVED, " ")
        if vocab_type == WORDS:
            yield from sentence.split()
            continue
        for start in range(0, len(sentence), SENTENCE_CHARACTERS):
            yield sentence[start : start + SENTENCE_CHARACTERS]


def _training_error(message: str, vocab_size: int) -> ValueError:
    """Turns SentencePiece's message into an error that says what to do."""
    if "sentences_.empty()" in message:
        return ValueError("A vocabulary needs text to learn from. Received: none.")
    for bound, pattern in BOUNDS.items():
        match = re.search(pattern, message)
        if match:
            return VocabularySizeError(vocab_size, **{bound: int(match[1])})
    return ValueError(f"SentencePiece cannot learn {vocab_size} pieces: {message}")
