"""The flags of a command line: parses them, says what is wrong with them, prints their
help.

`bin/definitions.py` defines them; `bin.old_sources.py` reads them from the command
line and flag files; what their values stand for is in `bin/flags.py`.
"""

from __future__ import annotations

import dataclasses
import difflib
import os
import textwrap
from collections.abc import Sequence
from typing import Any

from absl import flags as absl_flags

from t2tlite.bin.definitions import (
    DEFINITIONS,
    PROBLEM_OPTIONS,
    RUNS,
    Args,
    Flag,
    field_flags,
    problem_flags,
)
from t2tlite.bin.old_sources import HPARAMS_FLAGS, read
from t2tlite.checked_fields import KINDS, CheckedFields

# text, in which `~` is not expanded to the home folder
TEXT_FLAGS = {"source", "target", "word"}
# names of flags, separated by spaces; or a class whose fields are flags
Names = str | type[CheckedFields]

GENERAL_HELP = {  # of the flags of every command
    "--flagfile": (
        "File with a flag on each line, such as RUN/flags.txt. Flags of the command"
        " line override the file's; --hparams and --decode_hparams override the fields"
        " that they set."
    ),
    "--version": "Print the version of t2tlite, and exit.",
}


def definitions(names: Sequence[Names]) -> dict[str, Flag]:
    """The flags of a command; then, if PROBLEM_OPTIONS is among them, those of all
    problems.
    """
    flags = own_flags(names)
    options = problem_flags() if flags.pop(PROBLEM_OPTIONS, None) else {}
    return flags | {name: flag for name, flag in options.items() if name not in flags}


def own_flags(names: Sequence[Names]) -> dict[str, Flag]:
    """The flags of a command without problem options, for which there is one entry,
    PROBLEM_OPTIONS.
    """
    flags: dict[str, Flag] = {}
    for entry in names:
        if isinstance(entry, str):
            for name in entry.split():
                flag = "output_dir" if name == RUNS else name
                flags[flag] = DEFINITIONS[name]
        else:
            flags |= field_flags(entry)
    return flags


def parse(names: Sequence[Names], argv: Sequence[str]) -> Args:
    """Flag values by name, in which `~` at the start of a path is the home folder;
    absl.flags.Error for a mistake.
    """
    known = definitions(names)
    try:
        args, rest = read(known, argv)
    except absl_flags.IllegalFlagValueError as error:
        raise absl_flags.Error(_wrong_value(error, known)) from error
    if rest:
        raise absl_flags.Error(
            f"Every argument is a flag, --name=value. Received: {' '.join(rest)!r}."
        )
    args |= {
        name: _expand(value) for name, value in args.items() if name not in TEXT_FLAGS
    }
    command_flags = own_flags(names)
    options = {
        name: value
        for name, value in args.items()
        if name not in command_flags and value is not None
    }
    args = {name: value for name, value in args.items() if name in command_flags}
    options = {name: as_option(value) for name, value in options.items()}
    return Args(**args, options=options)


def as_option(value: Any) -> Any:
    """A flag's value as a field of a frozen dataclass has it: a list as a tuple."""
    return tuple(value) if isinstance(value, list) else value


def help_text(doc: str | None, names: Sequence[Names]) -> str:
    """The command's docstring, then its flags with their defaults."""
    lines = [(doc or "").strip(), "", "Flags:"]
    for name, (text, kind, default) in definitions(names).items():
        lines.append(f"  --[no]{name}" if kind is bool else f"  --{name}")
        suffix = (
            "" if default in (None, "") or kind is bool else f" (default: {default})"
        )
        lines += _wrapped(text + suffix)
    for name, text in GENERAL_HELP.items():
        lines += [f"  {name}", *_wrapped(text)]
    return "\n".join(lines)


def _wrapped(text: str) -> list[str]:
    """The lines of a flag's help, indented."""
    lines = []
    for part in text.split("\n"):
        wrapped = textwrap.wrap(part, 94, break_on_hyphens=False)
        lines += [f"      {line}" for line in wrapped]
    return lines


def _wrong_value(
    error: absl_flags.IllegalFlagValueError, known: dict[str, Flag]
) -> str:
    """The kind of value that a flag takes, instead of absl's message `flag
    --NAME=VALUE: REASON`.
    """
    name, _, rest = str(error).removeprefix("flag --").partition("=")
    value, kind = (
        rest.removesuffix(f": {error.__context__}"),
        (known[name].kind if name in known else None),
    )
    return (
        f"--{name} must be {KINDS[kind]}. Received: {value!r}."
        if kind in KINDS
        else str(error)
    )


def unknown_flag(
    error: absl_flags.UnrecognizedFlagError, known: dict[str, Flag]
) -> str:
    """absl's message with flags that are spelt like it; or how to set a field of the
    hparams of that name.
    """
    records = {flag: record for flag, record in HPARAMS_FLAGS.items() if flag in known}
    fields = {
        field.name: flag
        for flag, record in records.items()
        for field in dataclasses.fields(record)
    }
    likely = difflib.get_close_matches(
        error.flagname, [*known, *fields], n=1, cutoff=0.8
    )
    if not likely or likely[0] in known:
        return str(error).replace(" ?", "?")
    value = error.flagvalue.partition("=")[2] or "VALUE"
    return (
        f"Unknown command line flag {error.flagname!r}. Did you mean"
        f" --{fields[likely[0]]}={likely[0]}={value}?"
    )


def _expand(value: Any) -> Any:
    """The value, or each entry of a list, with a leading `~` replaced by the home
    folder.
    """
    if isinstance(value, list):
        return [_expand(entry) for entry in value]
    return os.path.expanduser(value) if isinstance(value, str) else value
