"""Makes an object of a command's flags from a command line, explains wrong flags, and
writes the text of --help.
"""

from __future__ import annotations

import dataclasses
import difflib
import os
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from absl import flags as absl_flags

from t2tlite import tensor2tensor_names
from t2tlite.bin.flag_fields import (
    Flag,
    Flags,
    all_flags_of,
    as_text,
    flags_of,
    require,
    settings_class,
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
    """Returns the flags of a command line; `~` before a path becomes the home folder.

    Raises absl.flags.Error for a wrong flag, and CommandError if a required one is not
    given.
    """
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
    flags = flags_of(cls)
    options = {}
    required = {}
    for name, value in values.items():
        if not known[name].is_text:
            values[name] = _expand(value)
        if known[name].is_required:
            required[name] = value
        if name not in flags and value is not None:
            options[name] = values[name]
    require(**required)
    return _made(cls, {**values, "options": options})


def _made(cls: type[C], values: Mapping[str, Any]) -> C:
    """Makes an object, and the settings in it, from the values of their fields."""
    fields = {}
    for field in dataclasses.fields(cls):
        if part := settings_class(field):
            fields[field.name] = _made(part, values)
        else:
            fields[field.name] = values[field.name]
    return cls(**fields)


def help_text(doc: str | None, cls: type[Flags]) -> str:
    """Returns the command's docstring, then its flags with their defaults."""
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
    """Returns a message with the kind of value that the flag takes. absl's message
    `flag --NAME=VALUE: REASON` does not say it.
    """
    name, _, rest = str(error).removeprefix("flag --").partition("=")
    if name not in known or known[name].kind not in KINDS:
        return str(error)
    value = rest.removesuffix(f": {error.__context__}")
    return f"--{name} must be {KINDS[known[name].kind]}. Received: {value!r}."


def _unknown_flag(
    error: absl_flags.UnrecognizedFlagError, known: Mapping[str, Flag]
) -> str:
    """Returns what is here for a flag of tensor2tensor's; or absl's message, which
    suggests flags that are spelt alike; or, if a field of the hparams is more like it,
    how to set that field.
    """
    value = error.flagvalue.partition("=")[2] or "VALUE"
    hint = tensor2tensor_names.answer(tensor2tensor_names.FLAGS, error.flagname)
    if hint:
        hint = hint.replace("VALUE", value)
        return f"Unknown command line flag {error.flagname!r}. {hint}"
    fields: dict[str, str] = {}
    for flag, record in HPARAMS_FLAGS.items():
        if flag in known:
            fields |= {field.name: flag for field in dataclasses.fields(record)}
    likely = difflib.get_close_matches(
        error.flagname, [*known, *fields], n=1, cutoff=0.8
    )
    if not likely or likely[0] in known:
        return str(error).replace(" ?", "?")
    return (
        f"Unknown command line flag {error.flagname!r}. Did you mean"
        f" --{fields[likely[0]]}={likely[0]}={value}?"
    )


def _expand(value: Any) -> Any:
    """Replaces a leading `~` by the home folder, in a list for each entry."""
    if isinstance(value, tuple):
        return tuple(map(_expand, value))
    return os.path.expanduser(value) if isinstance(value, str) else value
