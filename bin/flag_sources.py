"""Reads flags from their sources, the command line and its flag files.

Within one source, the values of a list or a map (--hparams) add up; any other flag may
have one value only. A later source overrides an earlier one, in a map field by field.
A flag file comes before the file that names it and before files named later; the
command line comes last.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from absl import flags as absl_flags

from t2tlite.bin.flag_fields import Flag
from t2tlite.checked_fields import merged_changes, split_changes
from t2tlite.config import DecodeHParams, HParams
from t2tlite.console import say

# whose value is field=value,...
HPARAMS_FLAGS = {"hparams": HParams, "decode_hparams": DecodeHParams}
COMMAND_LINE = "on the command line"  # its name in messages
FLAG_FILE = "--flagfile must be a text file with a flag on each line."
TEXT: absl_flags.ArgumentParser[Any] = absl_flags.ArgumentParser()


class ListParser(absl_flags.ListParser):
    """The parser of a list, in which a file whose name has a comma is one entry."""

    def parse(self, argument: Any) -> list[str]:
        has_comma = isinstance(argument, str) and "," in argument
        if has_comma and os.path.exists(os.path.expanduser(argument)):
            return [argument]
        return super().parse(argument)


PARSERS: dict[type, absl_flags.ArgumentParser[Any]] = {
    str: TEXT,
    int: absl_flags.IntegerParser(),
    float: absl_flags.FloatParser(),
    bool: absl_flags.BooleanParser(),
    tuple: ListParser(),
}


class Source(NamedTuple):
    """A place where flags are given."""

    name: str  # in messages: "on the command line", "in FILE"
    words: list[str]  # its flags and their values, without --flagfile


def read(
    known: dict[str, Flag], argv: Sequence[str], known_only: bool = False
) -> tuple[dict[str, Any], list[str]]:
    """Returns the value of each flag, and the words that are not flags.

    Raises absl.flags.Error for a wrong, an unknown or a contradictory flag, and
    ValueError for a flag file that cannot be read.
    """
    values = {name: flag.default for name, flag in known.items()}
    named_by: dict[str, Source] = {}  # the source of each value
    rest = []
    for source in sources_of(argv):
        given, others = _parse(known, source.words, known_only)
        rest += others
        for name, occurrences in given.items():
            value = _combined(name, known[name], occurrences, source)
            if name in named_by:
                value = _overridden(name, values[name], value, named_by[name])
            values[name] = value
            named_by[name] = source
    return values, rest


def sources_of(argv: Sequence[str]) -> list[Source]:
    """Returns the flag files that the words name, in the order in which they are read,
    and the words themselves.

    Raises ValueError for a file that cannot be read, or names itself.
    """
    sources: list[Source] = []
    _add_source(COMMAND_LINE, argv, sources, ())
    return sources


def _add_source(
    name: str, words: Iterable[str], sources: list[Source], within: tuple[str, ...]
) -> None:
    """Adds the files that a source names, and then the source."""
    words_here = []
    remaining = iter(words)
    for word in remaining:
        flag, equals, file = word.partition("=")
        if word == "--":
            words_here += [word, *remaining]
        elif flag not in ("--flagfile", "-flagfile"):
            words_here.append(word)
        else:
            file = file if equals else next(remaining, "")
            _add_file(os.path.expanduser(file), sources, within)
    sources.append(Source(name, words_here))


def _add_file(file: str, sources: list[Source], within: tuple[str, ...]) -> None:
    """Adds a flag file; `within` are the files through which it was reached."""
    if not file:
        raise ValueError(f"{FLAG_FILE} Received: no name.")
    if os.path.realpath(file) in within:
        raise ValueError(f"{FLAG_FILE} Received: {file}, which names itself.")
    try:
        text = Path(file).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{FLAG_FILE} Received: {file}: {error}.") from error
    lines = map(str.strip, text.split("\n"))
    words = [line for line in lines if line and not line.startswith(("#", "//"))]
    _add_source(f"in {file}", words, sources, (*within, os.path.realpath(file)))


def _parse(
    known: dict[str, Flag], words: list[str], known_only: bool
) -> tuple[dict[str, list[Any]], list[str]]:
    """Returns all values that the words give to each flag, in their order, and the
    words that are not flags.
    """
    values = absl_flags.FlagValues()
    for name, flag in known.items():
        parser = TEXT if flag.is_repeated else PARSERS[flag.kind]
        occurrences = absl_flags.MultiFlag(parser, None, name, None, flag.help)
        occurrences.boolean = flag.kind is bool  # --NAME and --noNAME
        values[name] = occurrences
    rest = values(["t2tlite", *words], known_only=known_only)[1:]
    given = {name: values[name].value for name in known if values[name].present}
    return given, rest


def _combined(name: str, flag: Flag, values: list[Any], source: Source) -> Any:
    """Combines the values that one source gives to a flag."""
    if flag.is_repeated:
        return tuple(values)
    if flag.kind is tuple:
        return tuple(itertools.chain.from_iterable(values))
    if name in HPARAMS_FLAGS:
        changes: dict[str, str] = {}
        for field, change in split_changes(",".join(values)):
            if changes.setdefault(field, change) != change:
                raise absl_flags.Error(
                    f"--{name} must set each field once. Received: {changes[field]} and"
                    f" {change} {source.name}. Leave one of them out."
                )
        return ",".join(changes.values())
    for value in values[1:]:
        if value != values[0]:
            raise absl_flags.Error(
                f"--{name} must be given once. Received: {_shown(values[0])} and"
                f" {_shown(value)} {source.name}. Leave one of them out."
            )
    return values[0]


def _overridden(name: str, earlier: Any, later: Any, source: Source) -> Any:
    """Combines the values of two sources; `source` is the earlier one."""
    if name in HPARAMS_FLAGS:
        return merged_changes(earlier, later)
    if isinstance(later, tuple) and earlier and earlier != later:
        # the user may expect the lists to add up
        say(f"--{name}={_shown(later)} replaces {_shown(earlier)} {source.name}.")
    return later


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return ",".join(value)
    return str(value).lower() if isinstance(value, bool) else str(value)
