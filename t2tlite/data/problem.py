"""What a problem defines: where its sentence pairs come from, and how they are decoded.

A problem yields text and nothing else. `data/generate.py` turns it into a vocabulary
and token shards, and from then on the manifest in the data directory represents the
problem.
"""

import dataclasses
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, Self

from t2tlite import registry
from t2tlite.checked_fields import CheckedFields, checked_field
from t2tlite.data.language_codes import check_differ, parse_language
from t2tlite.data.splits import SPLITS
from t2tlite.files.records import NAME
from t2tlite.vocabularies.normalisation import NFC, NORMALIZATIONS
from t2tlite.vocabularies.sentencepiece_encoder import PIECES, VOCAB_TYPES

# a field that is an option of a problem; its flag's help is the meaning and the default
option = checked_field


@dataclasses.dataclass(frozen=True)
class Problem(CheckedFields):
    """Sentence pairs, in the splits train, dev and test; several corpora to train on
    are train, train2 and so on.

    A subclass is a frozen dataclass whose fields are its options: a command-line flag
    of the same name sets each. A subclass that gives a field another default keeps its
    help text.
    """

    vocab_size: int = option(
        0,
        "Pieces in the vocabulary that source and target share; 0: by the number of"
        " training pairs, 1,000 to 32,000. A text that allows no vocabulary of the"
        " default size has the nearest that it allows.",
    )
    vocab_type: str = option(
        PIECES,
        "What a learned vocabulary consists of. sentencepiece: pieces of words, and the"
        " bytes of UTF-8 for other characters; characters, words: those of the training"
        " text, the most frequent if vocab_size is not 0; others are unknown.",
        choices=VOCAB_TYPES,
    )
    vocab_file: tuple[str, ...] = option(
        (),
        "Vocabulary to use instead of learning one: a .model or tensor2tensor's"
        " .subwords file, or the source's and the target's, comma-separated. A run's is"
        " RUN/vocab.model or RUN/vocab.subwords.",
    )
    user_symbols: tuple[str, ...] = option(
        (),
        "Symbols of your own, comma-separated, such as '<2de>,<BT>': each is one piece"
        " of a learned vocabulary wherever a word begins with it.",
    )
    normalization: str = option(
        NFC,
        "How the learned vocabulary reads text. nfc: accents composed, white space as"
        " single spaces, zero-width characters removed; nfkc: full-width letters,"
        " ligatures and superscripts as plain ones too; none: as it is written.",
        choices=NORMALIZATIONS,
    )
    max_length: int = option(
        0,
        "Drop training pairs with a side of more than this many tokens, the"
        " end-of-sentence token (EOS) included; 0 keeps all.",
        low=0,
    )
    max_length_ratio: float = option(
        0.0,
        "Drop training pairs with a side more than this many times as long, in tokens,"
        " as the other; 0 keeps all.",
        low=0,
    )
    drop: tuple[str, ...] = option(
        (),
        "Training pairs to leave out, comma-separated: duplicates repeat an earlier"
        " pair, test_overlap have a source or target of dev or test, copies have a"
        " target equal to the source. All are reported.",
    )
    # swap source and target (NAME_rev); both directions share one data directory
    reverse: bool = False

    called: ClassVar[str] = "A problem"  # in messages
    # or "text_to_text", if only one output is right: scored by exact match; or
    # "parsing": the target is a tree, see trees/linearise.py
    task: ClassVar[str] = "translation"
    # code of BCP 47 for manifest and report; "" if there is none
    source_language: ClassVar[str] = ""
    target_language: ClassVar[str] = ""
    decode_defaults: ClassVar[dict[str, float]] = {
        "beam_size": 4,
        "alpha": 0.6,
        "extra_length": 50,
    }
    # without these t2t-datagen cannot make the data
    needed_flags: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        defaults = {field.name: field.default for field in dataclasses.fields(self)}
        for name in dir(type(self)):
            value = getattr(type(self), name, None)
            is_option = isinstance(value, dataclasses.Field)
            if is_option or value is not defaults.get(name, value):
                raise ValueError(
                    "An option of a problem must be a field of a frozen dataclass."
                    f" Received: {type(self).__name__}.{name}. Give it a type, and"
                    " the class the decorator @dataclasses.dataclass(frozen=True)."
                )
        for field in registry.option_fields(type(self)):
            if isinstance(field.default, tuple):
                value = _texts(getattr(self, field.name))
                object.__setattr__(self, field.name, value)
        super().__post_init__()
        for language in (self.source_language, self.target_language):
            if language:
                parse_language(language)
        check_differ(self.source_language, self.target_language)

    def name(self) -> str:
        """The name of the data: the registered name without `_rev`."""
        return registry.snake_case(type(self).__name__)

    def targets_are_text(self) -> bool:
        """Whether targets are sentences, which `t2t-datagen` looks for in dev and test;
        by default those of translation, but not trees.
        """
        return self.task == Problem.task

    def splits(self) -> tuple[str, ...]:
        """The names of its splits: at least train and dev."""
        return SPLITS

    def check_split(self, split: str) -> None:
        """Raises ValueError for a name that is not one of its splits."""
        if split not in self.splits():
            raise ValueError(
                f"split must be one of {', '.join(self.splits())}. Received: {split!r}."
            )

    def pairs(self, split: str, tmp_dir: Path | None) -> Iterator[tuple[str, str]]:
        """Yields (source, target) of a split, two strings. A text is one line: line
        breaks and lone surrogates are errors, any other character may be in it.

        Never reversed: the data directory holds one direction. `tmp_dir` is where raw
        files are or are downloaded to.

        Raises:
            ValueError: bad input; the message names file and line.
            FileNotFoundError: a file is missing; the message says where it was looked
                for and how to get it.
        """
        raise NotImplementedError

    def symbols(self, tmp_dir: Path | None) -> tuple[str, ...]:
        """Strings, such as labelled brackets, that become one piece of the vocabulary
        at the beginning of a word.
        """
        return ()

    def files(self, tmp_dir: Path | None) -> list[Path]:
        """The raw files that `pairs` reads, for the manifest to record; empty for
        generated data.
        """
        return []


@dataclasses.dataclass(frozen=True)
class GivenPairs(Problem):
    """Pairs that a Python program gives, in memory. The class is not registered: its
    data is used without the pairs, and made again by the program.
    """

    # class attributes of other problems, options of this one
    source_language: str = ""  # type: ignore[misc]
    target_language: str = ""  # type: ignore[misc]
    # of the data; and the pairs of each split
    given_name: str = dataclasses.field(default="", init=False)
    given: dict[str, list[Any]] = dataclasses.field(
        default_factory=dict, init=False, repr=False
    )

    @classmethod
    def of(cls, name: str, given: dict[str, list[Any]], **options: Any) -> Self:
        """The problem of the pairs of each split. Raises ValueError if the name cannot
        be that of data.
        """
        if not re.fullmatch(NAME, name) or name.endswith("_rev"):
            raise ValueError(
                f"name must be a word, without _rev at its end. Received: {name!r}."
            )
        problem = cls(**options)
        vars(problem).update(given_name=name, given=given)
        return problem

    def name(self) -> str:
        return self.given_name

    def splits(self) -> tuple[str, ...]:
        return tuple(self.given)

    def pairs(self, split: str, tmp_dir: Path | None) -> Iterator[tuple[str, str]]:
        return iter(self.given[split])


def _texts(value: object) -> object:
    """An option of several: one text or path, or a list of them. Another value stays
    as it is.
    """
    if isinstance(value, str | os.PathLike):
        value = [value]
    if not isinstance(value, list | tuple):
        return value
    texts = []
    for item in value:
        texts.append(os.fspath(item) if isinstance(item, os.PathLike) else item)
    return tuple(texts)
