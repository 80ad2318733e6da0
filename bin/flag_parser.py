"""From a command line to an object of a command's flags; messages on wrong flags; the
text of --help.
"""

from __future__ import annotations

import dataclasses
import difflib
import os
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from absl import flags as absl_flags

from t2tlite.bin.flag_fields import (
    Flag,
    Flags,
    all_flags_of,
    as_text,
    flags_of,
    is_missing,
    missing_flags,
)
from t2tlite.bin.flag_sources import HPARAMS_FLAGS, read
from t2tlite.checked_fields import KINDS, CheckedFields

C = TypeVar("C", bound=CheckedFields)
F = TypeVar("F", bound=Flags)

GENERAL_HELP = {  # of the flags of every command
    "--flagfile": (
        "File with a flag on each line, such as RUN/flags.txt. Flags of the command"
        " line override the file's; --hparams and --decode_hparams override the fields"
        " that they set."
    ),
    "--version": "Print the version of t2tlite, and exit.",
}


def parse(cls: type[F], argv: Sequence[str]) -> F:
    """The flags of a command; `~` at the start of a path becomes the home folder.

    Raises absl.flags.Error for a wrong flag, and CommandError if a required one is not
    given.
    """
    return made(cls, parsed_values(cls, argv))


def parsed_values(cls: type[Flags], argv: Sequence[str]) -> dict[str, Any]:
    """The value of each flag of a command, and of each option of its problem."""
    known = all_flags_of(cls)
    try:
        values, rest = read(known, argv)
    except absl_flags.IllegalFlagValueError as error:
        raise absl_flags.Error(_wrong_value(error, known)) from error
    except absl_flags.UnrecognizedFlagError as error:
        raise absl_flags.Error(_unknown_flag(error, known)) from error
    if rest:
        raise absl_flags.Error(
            f"Every argument is a flag, --name=value. Received: {' '.join(rest)!r}."
        )
    for name, value in values.items():
        if not known[name].is_text:
            values[name] = _expand(value)
    return values


def made(cls: type[F], values: Mapping[str, Any]) -> F:
    """The object of a command's flags. Raises CommandError if a required flag is not
    given.
    """
    flags = flags_of(cls)
    missing = []
    for name, flag in flags.items():
        if flag.is_required and is_missing(values[name]):
            missing.append(f"--{name}")
    if missing:
        raise missing_flags(missing)
    options = {}
    for name, value in values.items():
        if name not in flags and value is not None:
            options[name] = value
    return _build(cls, {**values, "options": options})


def _build(cls: type[C], values: Mapping[str, Any]) -> C:
    fields = {}
    for field in dataclasses.fields(cls):
        if settings := field.metadata.get("settings"):
            fields[field.name] = _build(settings, values)
        else:
            fields[field.name] = values[field.name]
    return cls(**fields)


def help_text(doc: str | None, cls: type[Flags]) -> str:
    """The command's docstring, then its flags with their defaults."""
    lines = [(doc or "").strip(), "", "Flags:"]
    for name, flag in all_flags_of(cls).items():
        text = flag.help
        if flag.kind is bool:
            name = f"[no]{name}"
        elif flag.default not in (None, "", ()):
            text += f" (default: {as_text(flag.default)})"
        lines += [f"  --{name}", *_wrapped(text)]
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
    error: absl_flags.IllegalFlagValueError, known: Mapping[str, Flag]
) -> str:
    """The kind of value that a flag takes, instead of absl's message `flag
    --NAME=VALUE: REASON`.
    """
    name, _, rest = str(error).removeprefix("flag --").partition("=")
    if name not in known or known[name].kind not in KINDS:
        return str(error)
    value = rest.removesuffix(f": {error.__context__}")
    return f"--{name} must be {KINDS[known[name].kind]}. Received: {value!r}."


def _unknown_flag(
    error: absl_flags.UnrecognizedFlagError, known: Mapping[str, Flag]
) -> str:
    """absl's message with flags that are spelt like it; or how to set a field of the
    hparams of that name.
    """
    fields = {}
    for flag, record in HPARAMS_FLAGS.items():
        if flag in known:
            fields |= {field.name: flag for field in dataclasses.fields(record)}
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
    if isinstance(value, tuple):
        return tuple(_expand(entry) for entry in value)
    return os.path.expanduser(value) if isinstance(value, str) else value
