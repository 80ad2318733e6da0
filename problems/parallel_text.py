"""A user's own corpus: two text files, line n of one the translation of line n of the
other; one file with a tab between source and target; or a translation memory (TMX).
"""

import dataclasses
import itertools
from collections.abc import Sequence
from pathlib import Path

from t2tlite.data import splits
from t2tlite.data.problem import Problem, option
from t2tlite.data.tmx import read_tmx
from t2tlite.files import text_files
from t2tlite.problems.corpus import Pairs
from t2tlite.registry import register_problem

# a corpus: its files, and the function that reads their pairs by this name
FileGroup = tuple[str, Sequence[Path]]
TEXT, TSV, TMX = "text", "tsv", "tmx"


@register_problem
@dataclasses.dataclass(frozen=True)
class ParallelText(Problem):
    """Your own text files, one sentence a line: --train_source, --train_target,
    --dev_source, --dev_target.

    Files are text in UTF-8, which may be compressed by gzip, xz or bzip2. A pipe, or -
    for standard input, may stand for one, once. Relative names start from the current
    folder, and `~` is the home folder. Each pair of training files is a corpus, and
    each pair of dev files a dev set; several test files are read one after the other. A
    file of two columns, and then a translation memory, counts like a pair of files, and
    follows those.
    """

    train_source: tuple[str, ...] = option(
        (),
        "Source files to train on, comma-separated, plain or compressed. Each is a"
        " corpus, with a weight in the hparam corpus_weights.",
    )
    train_target: tuple[str, ...] = option((), "Their translations, line by line.")
    dev_source: tuple[str, ...] = option(
        (),
        "Source files to evaluate on; each is a dev set, the first decides what is"
        " best.",
    )
    dev_target: tuple[str, ...] = option((), "Their translations, line by line.")
    test_source: tuple[str, ...] = option(
        (), "Source files of the final test; optional."
    )
    test_target: tuple[str, ...] = option((), "Their translations, line by line.")
    train_tsv: tuple[str, ...] = option(
        (),
        "Files with source, tab and target on each line: further corpora, or all.",
    )
    dev_tsv: tuple[str, ...] = option(
        (), "Such files to evaluate on; each is a dev set."
    )
    test_tsv: tuple[str, ...] = option((), "Such files of the final test; optional.")
    train_tmx: tuple[str, ...] = option(
        (),
        "Translation memories (TMX) to train on, of which source_language and"
        " target_language choose two languages.",
    )
    dev_tmx: tuple[str, ...] = option(
        (), "Such files to evaluate on; each is a dev set."
    )
    test_tmx: tuple[str, ...] = option((), "Such files of the final test; optional.")
    # Class attributes of other problems, options of this one.
    source_language: str = option(  # type: ignore[misc]
        "",
        "Language code of the source, such as en or pt-BR.",
    )
    target_language: str = option(  # type: ignore[misc]
        "", "Language code of the target."
    )

    needed_flags = (
        "train_source",
        "train_target",
        "dev_source",
        "dev_target",
    )

    def splits(self) -> tuple[str, ...]:
        """A split for each corpus (train, train2, ...) and each dev set (dev, dev2,
        ...), and test if it has files.
        """
        return tuple(self.corpora())

    def corpora(self) -> dict[str, list[FileGroup]]:
        """The files of each split: a corpus of train, train2, dev and so on, and all
        corpora of test. Raises ValueError if there is none to train on or to evaluate
        on.
        """
        corpora: dict[str, list[FileGroup]] = {}
        for base in (splits.TRAIN, splits.DEV):
            groups = self._groups(base)
            if not groups:
                raise ValueError(
                    f"parallel_text needs files for {base}. Give --{base}_source and"
                    f" --{base}_target, or --{base}_tsv, or --{base}_tmx."
                )
            names = splits.numbered(base, len(groups))
            for name, group in zip(names, groups, strict=True):
                corpora[name] = [group]
        test = self._groups(splits.TEST)
        if test:
            corpora[splits.TEST] = test
        return corpora

    def pairs(self, split: str, tmp_dir: Path | None) -> Pairs:
        """Yields the lines of a split's files; `tmp_dir` is not used. Raises the errors
        of `files`, `read_parallel`, `read_columns` and `read_tmx`.
        """
        self.files(tmp_dir)
        self.check_split(split)
        return itertools.chain(*itertools.starmap(self._read, self.corpora()[split]))

    def files(self, tmp_dir: Path | None) -> list[Path]:
        """The files of all splits: train, dev, test. Raises ValueError if a pipe is
        given twice; and the errors of `corpora` and `check_file`.
        """
        paths: list[Path] = []
        for _, group in itertools.chain(*self.corpora().values()):
            for path in map(text_files.check_file, group):
                if path in paths and not path.is_file():
                    raise ValueError(
                        f"A pipe, {text_files.shown(path)}, can be read once. Write its"
                        " text to a file."
                    )
                paths.append(path)
        return paths

    def _read(self, kind: str, paths: Sequence[Path]) -> Pairs:
        """The pairs in a corpus's files."""
        if kind == TSV:
            return text_files.read_columns(paths[0])
        if kind == TMX:
            return read_tmx(paths[0], self.source_language, self.target_language)
        return text_files.read_parallel(paths[:1], paths[1:])

    def _groups(self, base: str) -> list[FileGroup]:
        """The corpora of train, dev or test: pairs of files, then those of columns,
        then translation memories.
        """
        groups: list[FileGroup] = []
        sources = self._paths(f"{base}_source")
        targets = self._paths(f"{base}_target")
        if len(sources) != len(targets):
            raise ValueError(
                f"--{base}_source and --{base}_target must be equally many. Received:"
                f" {len(sources)} and {len(targets)}."
            )
        for pair in zip(sources, targets, strict=True):
            groups.append((TEXT, pair))
        for kind in (TSV, TMX):
            for path in self._paths(f"{base}_{kind}"):
                groups.append((kind, [path]))
        return groups

    def _paths(self, name: str) -> list[Path]:
        """The files that an option names."""
        return list(map(Path, getattr(self, name)))
