"""Vocabulary files of either kind: which there are, how they are opened, and what manifests record of them."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from t2tlite.files.atomic_file import file_sha256
from t2tlite.vocabularies.sentencepiece_encoder import SentencePieceEncoder
from t2tlite.vocabularies.subword_encoder import SubwordEncoder

TextEncoder = SentencePieceEncoder | SubwordEncoder
ENDINGS = {"sentencepiece": ".model", "subwords": ".subwords"}  # kind of vocabulary -> ending of its file's name


@dataclasses.dataclass(frozen=True, kw_only=True)
class VocabularyEntry:
    """What a manifest records of a vocabulary file."""

    file: str  # the file's name in the folder of the manifest
    type: str = ""  # "sentencepiece" or "subwords"; the file name's ending says the same
    size: int  # number of ids
    bytes: int
    sha256: str

    @classmethod
    def of(cls, path: Path, name: str = "") -> VocabularyEntry:
        """The entry of a vocabulary file, under another name where one is given.

        Raises:
            ValueError: the file is damaged.
        """
        name = name or path.name
        kind = vocabulary_type(name)
        encoder = OPENERS[kind](path)
        return cls(file=name, type=kind, size=encoder.vocab_size, bytes=path.stat().st_size, sha256=file_sha256(path))


def vocabulary_type(path: str | Path) -> str:
    """ "sentencepiece" or "subwords", by the ending of a file's name.

    Raises:
        ValueError: it has another ending.
    """
    for kind, ending in ENDINGS.items():
        if Path(path).suffix == ending:
            return kind
    raise ValueError(
        f"A vocabulary's file name must end in .model (SentencePiece) or .subwords (tensor2tensor). Received: {path}."
    )


OPENERS: dict[str, type[TextEncoder]] = {"sentencepiece": SentencePieceEncoder, "subwords": SubwordEncoder}


def open_encoder(path: str | Path) -> TextEncoder:
    """The encoder for a vocabulary file.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: no encoder reads such a file, or it is damaged.
    """
    return OPENERS[vocabulary_type(path)](path)


def open_encoders(folder: Path, source: VocabularyEntry, target: VocabularyEntry) -> tuple[TextEncoder, TextEncoder]:
    """The encoders of source and target; the same object where they share a vocabulary.

    Raises:
        FileNotFoundError: a file is missing.
        ValueError: a file is damaged.
    """
    encoder = open_encoder(folder / source.file)
    return encoder, encoder if target == source else open_encoder(folder / target.file)
