"""Vocabulary files of either kind, one for both languages or one for each."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from t2tlite.vocabularies.sentencepiece_encoder import SentencePieceEncoder
from t2tlite.vocabularies.subword_encoder import SubwordEncoder

TextEncoder = SentencePieceEncoder | SubwordEncoder
ENDINGS = {"sentencepiece": ".model", "subwords": ".subwords"}  # kind of vocabulary -> ending of its file's name


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


def open_encoder(path: str | Path) -> TextEncoder:
    """The encoder for a vocabulary file.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: no encoder reads such a file, or it is damaged.
    """
    return SubwordEncoder(path) if vocabulary_type(path) == "subwords" else SentencePieceEncoder(path)


def vocabulary_entries(manifest: Mapping[str, Any], reverse: bool = False) -> tuple[dict[str, Any], dict[str, Any]]:
    """What a manifest says of the vocabularies: the source's and the target's, which are mostly the same.

    Args:
        manifest: of a data directory or a run: "vocabulary" is the source's, and the target's too unless there is a
            "target_vocabulary".
        reverse: swap the two.
    """
    source = manifest["vocabulary"]
    target = manifest.get("target_vocabulary", source)
    return (target, source) if reverse else (source, target)


def open_encoders(folder: Path, manifest: Mapping[str, Any], reverse: bool = False) -> tuple[TextEncoder, TextEncoder]:
    """The encoders of source and target; the same object where they share a vocabulary.

    Args:
        folder: where the files lie.
        manifest: names them.
        reverse: swap the two.

    Raises:
        FileNotFoundError: a file is missing.
        ValueError: a file is damaged.
    """
    source, target = vocabulary_entries(manifest, reverse)
    encoder = open_encoder(folder / source["file"])
    return encoder, encoder if target is source else open_encoder(folder / target["file"])


def same_vocabularies(one: Mapping[str, Any], other: Mapping[str, Any], reverse: bool = False) -> bool:
    """Whether two manifests speak of the same vocabularies, by their content; `reverse` swaps those of the other."""
    pairs = zip(vocabulary_entries(one), vocabulary_entries(other, reverse), strict=True)
    return all(mine["sha256"] == theirs["sha256"] for mine, theirs in pairs)
