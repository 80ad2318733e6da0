"""Opens vocabulary files of both types, and describes them for manifests."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from t2tlite.files.atomic_file import check_sha256, file_sha256
from t2tlite.files.records import Count, Name
from t2tlite.vocabularies.sentencepiece_encoder import SentencePieceEncoder
from t2tlite.vocabularies.subword_encoder import SubwordEncoder
from t2tlite.vocabularies.text_encoder import TextEncoder

# of a file name, by its ending
ENCODERS: dict[str, type[TextEncoder]] = {
    ".model": SentencePieceEncoder,
    ".subwords": SubwordEncoder,
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class VocabularyEntry:
    """The entry of a vocabulary file in a manifest."""

    file: Name  # the file's name in the folder of the manifest
    # "sentencepiece" or "subwords", like the ending of the file name
    type: str = ""
    size: Count  # number of ids
    bytes: Count
    sha256: str

    @classmethod
    def of(cls, path: Path, name: str = "") -> VocabularyEntry:
        """The entry of a vocabulary file, under its own name or `name`. Raises as
        `open_encoder`.
        """
        name = name or path.name
        encoder = encoder_of(name)
        return cls(
            file=name,
            type=encoder.type,
            size=encoder(path).vocab_size,
            bytes=path.stat().st_size,
            sha256=file_sha256(path),
        )


def open_encoder(path: str | Path) -> TextEncoder:
    """The encoder of a vocabulary file. Raises FileNotFoundError or ValueError if it
    cannot be read.
    """
    return encoder_of(path)(path)


def encoder_of(path: str | Path) -> type[TextEncoder]:
    """The class that reads files of this name."""
    ending = Path(path).suffix
    if ending not in ENCODERS:
        raise ValueError(
            "A vocabulary's file name must end in .model (SentencePiece) or .subwords"
            f" (tensor2tensor). Received: {path}."
        )
    return ENCODERS[ending]


def open_encoders(
    folder: Path, source: VocabularyEntry, target: VocabularyEntry, advice: str
) -> tuple[TextEncoder, TextEncoder]:
    """Opens the encoders of source and target: one object for both if they share a
    vocabulary.

    Raises FileNotFoundError with `advice` if a file is missing, and ValueError if its
    content differs from the record.
    """
    encoders: dict[str, TextEncoder] = {}
    for entry in (source, target):
        if entry.file not in encoders:
            check_sha256(folder / entry.file, entry.sha256, advice)
            encoders[entry.file] = open_encoder(folder / entry.file)
    return encoders[source.file], encoders[target.file]
