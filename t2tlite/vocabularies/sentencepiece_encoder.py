"""Text to token ids and back.

Ids 0 and 1 are the padding and the end mark in every vocabulary. An encoder never adds either: the token store
appends the end mark, batches are padded, and `decode` undoes both.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import sentencepiece

from t2tlite.files.atomic_file import atomic_file
from t2tlite.tokens import EOS, PAD

SPACE = "\u2581"  # how a piece shows the space before a word
UNKNOWN = 2  # has an id because SentencePiece demands one; byte fallback never produces it

# Characters beyond this share of the training text are spelt in bytes instead of taking up a piece each. Text of up
# to 10,000 characters keeps them all; web-crawled text loses the thousands of characters it holds a few times.
CHARACTER_COVERAGE = 0.9999

# SentencePiece skips sentences of more than 4,192 bytes; longer ones are learned from in parts of this many characters.
SENTENCE_CHARACTERS = 1000


class SentencePieceEncoder:
    """A SentencePiece vocabulary: text in, token ids out, and back.

    Text survives `decode(encode(text))` exactly: spaces at either end and in rows, tabs, control characters, composed
    and decomposed accents, emoji, any character of Unicode, whether or not training saw it (byte fallback spells it
    in UTF-8). What does not survive:

    - U+2581 (LOWER ONE EIGHTH BLOCK), with which SentencePiece marks spaces: it becomes a space;
    - lone surrogates, which are not text in UTF-8: a ValueError.

    `decode` accepts any ids in range, as a model may produce them: bytes that are no UTF-8 become U+FFFD, and the
    unknown id 2 becomes U+2047 between spaces.

    Encoders can be pickled, and load in milliseconds.

    Example, with a vocabulary in which `▁walk` is 417 and `ing` is 268:

        encode("walking")              # [417, 268]
        decode([417, 268, 1, 0, 0])    # "walking"

    Attributes:
        path: the model file.
        vocab_size: number of ids.
    """

    def __init__(self, path: str | Path):
        """Loads a `.model` file.

        Raises:
            FileNotFoundError: there is no such file.
            ValueError: it is no SentencePiece model, or its padding and end mark are not 0 and 1.
        """
        self.path = Path(path)
        if not self.path.is_file():
            raise FileNotFoundError(f"The vocabulary must be a file. Received: {path}, which does not exist.")
        try:
            self._processor = sentencepiece.SentencePieceProcessor(model_proto=self.path.read_bytes())
            if not self._processor.get_piece_size():
                raise RuntimeError("no pieces")  # an empty file is read as an empty model
        except RuntimeError as error:
            raise ValueError(
                f"The vocabulary must be a SentencePiece model. Received: {path}, which is none or is damaged."
            ) from error
        marks = self._processor.pad_id(), self._processor.eos_id()
        if marks != (PAD, EOS):
            raise ValueError(
                f"A vocabulary's padding and end mark must have the ids {PAD} and {EOS}. Received: {marks[0]} and "
                f"{marks[1]} in {path}. Train it with pad_id={PAD}, eos_id={EOS}."
            )
        self.vocab_size: int = self._processor.get_piece_size()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.path,)

    def encode(self, text: str) -> list[int]:
        """Token ids of `text`, without the end mark; none for the empty text.

        Raises:
            ValueError: `text` holds a lone surrogate.
        """
        return self.encode_batch([text])[0]

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of each text, on one thread.

        Raises:
            ValueError: a text holds a lone surrogate.
        """
        try:
            return self._processor.encode(list(texts), num_threads=1)
        except (RuntimeError, TypeError) as error:
            for text in texts:
                check_unicode(text)
            raise ValueError(f"SentencePiece cannot encode the text: {error}") from error

    def decode(self, ids: Iterable[int]) -> str:
        """The text of `ids` up to the first end mark; padding is skipped.

        Raises:
            ValueError: an id is negative, or `vocab_size` or more.
        """
        return self._processor.decode(self._content(ids))

    def decode_batch(self, ids: Iterable[Iterable[int]]) -> list[str]:
        """`decode` of each row."""
        return [self.decode(row) for row in ids]

    def pieces(self, ids: Iterable[int]) -> list[str]:
        """How each id reads, end mark and padding included: `▁` stands for a space, `<0x0A>` for a byte.

        Raises:
            ValueError: an id is negative, or `vocab_size` or more.
        """
        return [self._processor.id_to_piece(self._checked(i)) for i in ids]

    def tf_tokenizer(self) -> Any:
        """A `tensorflow_text.SentencepieceTokenizer`: the same ids in a TensorFlow graph, EOS appended."""
        import tensorflow_text

        return tensorflow_text.SentencepieceTokenizer(self.path.read_bytes(), add_eos=True)

    def _content(self, ids: Iterable[int]) -> list[int]:
        content = []
        for i in ids:
            if i == EOS:
                break
            if i != PAD:
                content.append(self._checked(i))
        return content

    def _checked(self, i: int) -> int:
        if not 0 <= i < self.vocab_size:
            raise ValueError(f"A token id must be at least 0 and less than {self.vocab_size}. Received: {i}.")
        return int(i)


def check_unicode(text: str) -> None:
    """Raises ValueError where `text` cannot be written in UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(
            f"Text must be Unicode without lone surrogates. Received: {text[error.start]!a} at character "
            f"{error.start + 1} of {text[:80]!a}. Read the file as UTF-8."
        ) from error


def train_sentencepiece(
    sentences: Iterable[str], vocab_size: int, path: str | Path, symbols: Sequence[str] = ()
) -> None:
    """Learns a byte-pair vocabulary from `sentences` and writes it to `path`: the same sentences, the same file.

    BPE with byte fallback; padding 0, end mark 1, unknown 2, no begin mark, 256 bytes from id 3 on. Each digit stands
    alone. Text is not normalised, and spaces are kept as they are.

    Args:
        sentences: plain text, read once.
        vocab_size: exactly this many ids; 259 are taken by marks and bytes.
        path: the model file; appears whole or not at all.
        symbols: strings without spaces, each of which is one piece wherever a word begins with it.

    Raises:
        ValueError: `vocab_size` is too large or too small for the text (the message names the limit), there is no
            text, or a sentence holds a lone surrogate.
        OSError: the file cannot be written.
    """
    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=_parts(sentences),
            model_writer=model,
            model_type="bpe",
            vocab_size=vocab_size,
            pad_id=PAD,
            eos_id=EOS,
            unk_id=UNKNOWN,
            bos_id=-1,
            byte_fallback=True,
            user_defined_symbols=[SPACE + symbol for symbol in symbols],
            split_digits=True,  # so that a number is copied digit by digit, whether or not training saw it
            character_coverage=CHARACTER_COVERAGE,
            normalization_rule_name="identity",
            remove_extra_whitespaces=False,
            num_threads=1,
            minloglevel=2,
        )
    except RuntimeError as error:
        raise _training_error(str(error), vocab_size, len(symbols)) from error
    with atomic_file(path) as file:
        file.write(model.getvalue())


def _parts(sentences: Iterable[str]) -> Iterator[str]:
    for sentence in sentences:
        check_unicode(sentence)
        for start in range(0, len(sentence), SENTENCE_CHARACTERS):
            yield sentence[start : start + SENTENCE_CHARACTERS]


def _training_error(message: str, vocab_size: int, num_symbols: int) -> ValueError:
    """SentencePiece's message in words that say what to do."""
    if found := re.search(r"too high.*?<= (\d+)", message):
        return ValueError(
            f"vocab_size must be at most {found[1]} for this text, which is too small for more. Received: "
            f"{vocab_size}. Lower vocab_size or give more text."
        )
    if found := re.search(r"smaller than required_chars\. \d+ vs (\d+)", message):
        marks = (
            f"259 ids are marks and bytes, {num_symbols:,} symbols" if num_symbols else "259 ids are marks and bytes"
        )
        return ValueError(
            f"vocab_size must be at least {found[1]} for this text: {marks}, and each character needs one. "
            f"Received: {vocab_size}. Raise vocab_size."
        )
    if "sentences_.empty()" in message:
        return ValueError("The vocabulary needs text to learn from. Received: no sentence. Check the training files.")
    return ValueError(f"SentencePiece cannot learn a vocabulary of {vocab_size} pieces: {message}")
