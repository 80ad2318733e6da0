"""Two small problems for tests of making and opening data, and the manifest of a
run.
"""

import dataclasses
import hashlib
import random
from pathlib import Path

from t2tlite.data.manifest import Manifest, RunManifest
from t2tlite.data.problem import Problem
from t2tlite.vocabularies.encoders import VocabularyEntry

WORDS = "cat dog mat house tree sits runs sleeps under over the a big small red".split()


def sentences(count: int, seed: int) -> list[tuple[str, str]]:
    """Pairs of random words and the same words in upper case, reversed."""
    draw = random.Random(seed)
    rows = [draw.choices(WORDS, k=draw.randint(1, 9)) for _ in range(count)]
    return [(" ".join(row), " ".join(row[::-1]).upper()) for row in rows]


def write_subwords(path: Path) -> Path:
    """A vocabulary of tensor2tensor's kind: ASCII's characters, and WORDS."""
    words = [f"{word}_" for word in WORDS]
    subtokens = ["<pad>_", "<EOS>_", *map(chr, range(33, 127)), *words]
    subtokens += [word.upper() for word in words]
    lines = [f"'{subtoken}'\n" for subtoken in subtokens]
    path.write_text("".join(lines), encoding="utf-8")
    return path


def write_pairs(path: Path, count: int = 60) -> Path:
    """A tab-separated file of pairs, for `FileTask`."""
    path.write_text(
        "".join(f"{source}\t{target}\n" for source, target in sentences(count, 4))
    )
    return path


@dataclasses.dataclass(frozen=True)
class TinyTask(Problem):
    """Pairs in memory."""

    vocab_size: int = 330
    train: tuple[tuple[str, str], ...] = tuple(sentences(230, 1))
    dev: tuple[tuple[str, str], ...] = tuple(sentences(30, 2))
    test: tuple[tuple[str, str], ...] = tuple(sentences(20, 3))

    source_language = "en"
    target_language = "de"

    def pairs(self, split, tmp_dir):
        yield from getattr(self, split)


@dataclasses.dataclass(frozen=True)
class FileTask(Problem):
    """Pairs from tab-separated files."""

    vocab_size: int = 330
    train: str = ""

    def splits(self):
        return ("train", "dev")

    def files(self, tmp_dir):
        return [Path(self.train)]

    def pairs(self, split, tmp_dir):
        for line in Path(self.train).read_text().splitlines():
            source, target = line.split("\t")
            yield source, target


def run_manifest(
    source: str = "a",
    target: str | None = None,
    task: str = "translation",
    reverse: bool = False,
) -> RunManifest:
    """The manifest of a run whose vocabularies have these hashes, or one vocabulary for
    source and target.
    """
    entries = [
        VocabularyEntry(file="v", size=3, bytes=9, sha256=name) if name else None
        for name in (source, target)
    ]
    fields = {
        "problem": "p",
        "t2tlite": "0.1.0",
        "options": {},
        "decode_defaults": {},
        "splits": {},
    }
    data = Manifest(
        **fields, task=task, vocabulary=entries[0], target_vocabulary=entries[1]
    )
    return RunManifest.of(data, reverse, Path("data"))


def contents(folder: Path) -> dict[str, str]:
    """Every file below `folder`, hidden ones too, with a digest."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
