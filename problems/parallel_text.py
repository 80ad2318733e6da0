"""A user's own corpus: two text files, line n of one the translation of line n of the
other, or one file with a tab between source and target.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import ClassVar

from t2tlite import registry
from t2tlite.data import splits
from t2tlite.data.problem import Problem, option
from t2tlite.files import text_files

SIDES = ("source", "target")
KINDS = (*SIDES, "tsv")  # of files


@registry.register_problem
@dataclasses.dataclass(frozen=True)
class ParallelText(Problem):
    """Your own text files, one sentence a line: --train_source, --train_target,
    --dev_source, --dev_target.

    Files are text in UTF-8, and compressed if the name ends in `.gz`, `.xz` or `.bz2`.
    A pipe is an error, since files are read twice. Relative names start from the
    current folder, and `~` is the home folder. Each pair of training files is a corpus,
    and each pair of dev files a dev set; several test files are read one after the
    other. A file of two columns counts like a pair of files, and follows those.
    """

    vocab_size: int = 0  # computed from the number of training pairs
    train_source: tuple[str, ...] = option(
        (),
        "Source files to train on, comma-separated; plain text, .gz, .xz or .bz2."
        " Each is a corpus, to which the hparam corpus_weights gives a weight.",
    )
    train_target: tuple[str, ...] = option(
        (), "As many target files, translations of --train_source line by line."
    )
    dev_source: tuple[str, ...] = option(
        (),
        "Source files to evaluate on during training; each is a dev set, of which the"
        " first decides what is best.",
    )
    dev_target: tuple[str, ...] = option(
        (), "Translations of --dev_source, line by line."
    )
    test_source: tuple[str, ...] = option(
        (), "Source files of the final test; optional."
    )
    test_target: tuple[str, ...] = option(
        (), "Translations of --test_source, line by line."
    )
    train_tsv: tuple[str, ...] = option(
        (),
        "Files to train on with source and target on each line, a tab between them:"
        " instead of --train_source and --train_target, or further corpora.",
    )
    dev_tsv: tuple[str, ...] = option(
        (), "Such files to evaluate on during training; each is a dev set."
    )
    test_tsv: tuple[str, ...] = option((), "Such files of the final test; optional.")
    # Class attributes of other problems, options of this one.
    source_language: str = option(  # type: ignore[misc]
        "",
        "Language code of the source, such as en or pt-BR; recorded in the manifest,"
        " and shown by t2t-report.",
    )
    target_language: str = option(  # type: ignore[misc]
        "", "Language code of the target, such as de; used likewise."
    )

    needed_flags: ClassVar[tuple[str, ...]] = (
        "train_source",
        "train_target",
        "dev_source",
        "dev_target",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for split in splits.SPLITS:
            source, target, _ = self._names(split)
            if bool(source) != bool(target):
                given, missing = SIDES if source else SIDES[::-1]
                raise ValueError(
                    f"--{split}_source and --{split}_target must be given together."
                    f" Received: --{split}_{given}={','.join(source or target)} alone."
                    f" Add --{split}_{missing}."
                )
            if len(source) != len(target):
                raise ValueError(
                    f"--{split}_source and --{split}_target must name as many source"
                    f" files as target files. Received: {len(source)} source"
                    f" ({', '.join(source)}) and {len(target)} target"
                    f" ({', '.join(target)}). Give a target file for each source file."
                )

    def splits(self) -> tuple[str, ...]:
        """A split for each corpus (train, train2, ...) and each dev set (dev, dev2,
        ...), and test if it has files.
        """
        train = len(self.train_source) + len(self.train_tsv)
        dev = len(self.dev_source) + len(self.dev_tsv)
        names = splits.numbered(splits.TRAIN, train)
        names += splits.numbered(splits.DEV, dev)
        if self.test_source or self.test_tsv:
            names.append(splits.TEST)
        return tuple(names)

    def pairs(self, split: str, tmp_dir: Path | None) -> Iterator[tuple[str, str]]:
        """Yields the lines of a split's files; `tmp_dir` is not used. Raises the errors
        of `files`, `read_parallel` and `read_tsv`.
        """
        self.files(tmp_dir)
        if split not in self.splits():
            raise ValueError(
                f"The splits of these files are {' and '.join(self.splits())}."
                f" Received: {split!r}. For a test split give --test_source and"
                " --test_target."
            )
        sources, targets, columns = self._paths(split)
        return itertools.chain(
            text_files.read_parallel(sources, targets),
            *map(text_files.read_tsv, columns),
        )

    def files(self, tmp_dir: Path | None) -> list[Path]:
        """The files of all splits, train, dev, test: the source files of each, then its
        target files, then those of two columns. Raises ValueError if there are none to
        train on or to evaluate on, and the errors of `check_rereadable`.
        """
        missing = []
        for base in (splits.TRAIN, splits.DEV):
            if not any(self._names(base)):
                missing.append(f"--{base}_source and --{base}_target")
        if missing:
            raise ValueError(
                "parallel_text needs files to train on and files to evaluate on."
                f" Received: none for {' nor for '.join(missing)}. Give them, several"
                " separated by commas, or files of two columns, --train_tsv and"
                " --dev_tsv."
            )
        paths: list[Path] = []
        for split in self.splits():
            for kind, of_kind in zip(KINDS, self._paths(split), strict=True):
                for path in of_kind:
                    flag = f"--{splits.base(split)}_{kind}"
                    paths.append(text_files.check_rereadable(path, flag))
        return paths

    def _paths(self, split: str) -> tuple[list[Path], ...]:
        """The source files, the target files and the files of two columns of a split:
        all of test, one or one of each for train, train2, dev and so on.
        """
        base = splits.base(split)
        sources, targets, columns = self._names(base)
        if base != splits.TEST:
            index = splits.number(split) - 1
            after = index - len(sources)  # files of two columns follow the pairs
            columns = columns[after : after + 1] if after >= 0 else ()
            sources = sources[index : index + 1]
            targets = targets[index : index + 1]
        return _expanded(sources), _expanded(targets), _expanded(columns)

    def _names(self, base: str) -> tuple[tuple[str, ...], ...]:
        """The source files, the target files and the files of two columns that the
        flags name.
        """
        return tuple(getattr(self, f"{base}_{kind}") for kind in KINDS)


def _expanded(names: Sequence[str]) -> list[Path]:
    """The paths, with the home folder for `~`."""
    return [Path(name).expanduser() for name in names]
