"""Opens vocabulary files of both types, and describes them for manifests."""

import dataclasses
from pathlib import Path
from typing import Self

from t2tlite.files.atomic_file import check_sha256, file_sha256
from t2tlite.files.records import Count, Name
from t2tlite.vocabularies.sentencepiece_encoder import SentencePieceEncoder
from t2tlite.vocabularies.subword_encoder import SubwordEncoder
from t2tlite.vocabularies.text_encoder import TextEncoder

ENCODERS: tuple[type[TextEncoder], ...] = (SentencePieceEncoder, SubwordEncoder)


@dataclasses.dataclass(frozen=True, kw_only=True)
class VocabularyEntry:
    """The entry of a vocabulary file in a manifest.

    Attributes:
        file: the file's name in the folder of the manifest.
        type: "sentencepiece" or "subwords", like the ending of the file name.
        size: the number of ids.
        bytes: those of the file.
        sha256: its checksum.
    """

    file: Name
    type: str = ""
    size: Count
    bytes: Count
    sha256: str

    @classmethod
    def of(cls, path: Path, name: str = "") -> Self:
        """The entry of a vocabulary file, under its own name or `name`. Raises as
        `open_encoder`.
        """
        encoder = open_encoder(path, name)
        return cls(
            file=name or path.name,
            type=encoder.type,
            size=encoder.vocab_size,
            bytes=path.stat().st_size,
            sha256=file_sha256(path),
        )


def open_encoder(path: str | Path, name: str = "") -> TextEncoder:
    """The encoder of a vocabulary file, whose type is that of its own name or `name`.
    Raises FileNotFoundError or ValueError if it cannot be read.
    """
    for encoder in ENCODERS:
        if (name or str(path)).endswith(encoder.ending):
            return encoder(path)
    raise ValueError(
        f"A vocabulary must be named .model or .subwords. Received: {path}."
    )


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
