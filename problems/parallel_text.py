"""A user's own corpus: two text files, line n of one the translation of line n of the
other.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from t2tlite import registry
from t2tlite.data import splits
from t2tlite.data.problem import Problem, option
from t2tlite.files import text_files

SIDES = ("source", "target")


@registry.register_problem
@dataclasses.dataclass(frozen=True)
class ParallelText(Problem):
    """Your own text files, one sentence a line: --train_source, --train_target,
    --dev_source, --dev_target.

    Files are text in UTF-8, compressed where the name ends in `.gz`, `.xz` or `.bz2`,
    and not pipes, since they are read twice. Relative names start from the current
    folder, and `~` is the home folder. Each pair of training files is a corpus, and
    each pair of dev files a dev set; several test files are read one after the other.
    """

    vocab_size: int = 0  # by the number of training pairs
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
    # Class attributes of other problems, options of this one.
    source_language: str = option(  # type: ignore[misc]
        "",
        "Language code of the source, such as en; recorded in the manifest, and shown"
        " by t2t-report.",
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
            source, target = (
                getattr(self, f"{split}_source"),
                getattr(self, f"{split}_target"),
            )
            if bool(source) != bool(target):
                given, missing = (
                    ("source", "target") if source else ("target", "source")
                )
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
        names = splits.numbered(splits.TRAIN, len(self.train_source))
        names += splits.numbered(splits.DEV, len(self.dev_source))
        if self.test_source:
            names.append(splits.TEST)
        return tuple(names)

    def pairs(self, split: str, tmp_dir: Path | None) -> Iterator[tuple[str, str]]:
        """Yields the lines of a split's files; `tmp_dir` is not used. Raises as `files`
        and `read_parallel` do.
        """
        self.files(tmp_dir)
        if split not in self.splits():
            raise ValueError(
                f"The splits of these files are {' and '.join(self.splits())}."
                f" Received: {split!r}. For a test split give --test_source and"
                " --test_target."
            )
        return text_files.read_parallel(*self._paths(split))

    def files(self, tmp_dir: Path | None) -> list[Path]:
        """The files of all splits, train, dev, test: the source files of each, then its
        target files.
        """
        files = {"train": self.train_source, "dev": self.dev_source}
        missing = [
            f"--{split}_source and --{split}_target"
            for split, names in files.items()
            if not names
        ]
        if missing:
            raise ValueError(
                "parallel_text needs files to train on and files to evaluate on."
                f" Received: none for {' nor for '.join(missing)}. Give them, several"
                " separated by commas."
            )
        paths: list[Path] = []
        for split in self.splits():
            base = splits.base(split)
            for side, of_side in zip(SIDES, self._paths(split), strict=True):
                flag = f"--{base}_{side}"
                paths += [text_files.check_rereadable(path, flag) for path in of_side]
        return paths

    def _paths(self, split: str) -> tuple[list[Path], list[Path]]:
        """The source files and the target files of a split: one of each for train,
        train2, dev and so on.
        """
        base = splits.base(split)
        sources = getattr(self, f"{base}_source")
        targets = getattr(self, f"{base}_target")
        if base != splits.TEST:
            index = splits.number(split) - 1
            sources = sources[index : index + 1]
            targets = targets[index : index + 1]
        source_paths = [Path(name).expanduser() for name in sources]
        target_paths = [Path(name).expanduser() for name in targets]
        return source_paths, target_paths
