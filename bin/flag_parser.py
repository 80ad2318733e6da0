"""Makes an object of a command's flags from a command line and its flag files, and
writes the text of --help.

Within the command line, or within one file, the values of a list or of a map
(--hparams) add up; any other flag may have one value only. The command line overrides
its flag files, a later file an earlier one, in a map field by field.
"""

from __future__ import annotations

import dataclasses
import itertools
import os
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
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
from t2tlite.checked_fields import (
    CheckedFields,
    default_of,
    facts_of,
    merged_changes,
    parse_value,
)
from t2tlite.config import DecodeHParams, HParams
from t2tlite.console import say

C = TypeVar("C", bound=CheckedFields)
F = TypeVar("F", bound=Flags)

TEXT: absl_flags.ArgumentParser[Any] = absl_flags.ArgumentParser()
# whose value is field=value,...
HPARAMS_FLAGS: dict[str, type[CheckedFields]] = {
    "hparams": HParams,
    "decode_hparams": DecodeHParams,
}
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

    Raises absl.flags.Error for a wrong flag, and ValueError for a wrong value or a
    required flag that is not given.
    """
    known = all_flags_of(cls)
    try:
        values, rest = read_flags(known, argv)
    except absl_flags.UnrecognizedFlagError as error:
        raise absl_flags.Error(_unknown_flag(error, known)) from error
    if rest:
        raise absl_flags.Error(
            f"Every argument is a flag, --name=value. Received: {' '.join(rest)!r}."
        )
    of_command = flags_of(cls)
    options = {}
    required = {}
    for name, value in values.items():
        if known[name].default is dataclasses.MISSING:
            required[name] = value
        if name not in of_command and value is not None:
            options[name] = value
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


def read_flags(
    known: Mapping[str, Flag], argv: Sequence[str], known_only: bool = False
) -> tuple[dict[str, Any], list[str]]:
    """Returns the value of each flag, and the words that are not flags.

    Raises absl.flags.Error for an unknown or a contradictory flag, and ValueError for a
    wrong value or a flag file that cannot be read.
    """
    values = {name: default_of(flag) for name, flag in known.items()}
    given_in: dict[str, str] = {}
    rest = []
    for source, words in _sources(argv):
        parser = absl_flags.FlagValues()
        for name, flag in known.items():
            texts = absl_flags.MultiFlag(TEXT, None, name, None, "")
            texts.boolean = facts_of(flag).kind is bool  # --NAME and --noNAME
            parser[name] = texts
        rest += parser(["t2tlite", *words], known_only=known_only)[1:]
        for name, flag in known.items():
            if not parser[name].present:
                continue
            value = _value(name, facts_of(flag).kind, parser[name].value, source)
            if name in given_in:
                value = _overridden(name, values[name], value, given_in[name])
            values[name] = value
            given_in[name] = source
    return values, rest


def _sources(argv: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Returns the flag files that the words name, and then the other words, each with
    what messages call it. absl reads the files that a file names.
    """
    sources = []
    words = []
    remaining = iter(argv)
    for word in remaining:
        flag, equals, file = word.partition("=")
        if flag not in ("--flagfile", "-flagfile"):
            words.append(word)
            continue
        file = os.path.expanduser(file if equals else next(remaining, ""))
        try:
            text = Path(file).read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            raise ValueError(
                "--flagfile must be a text file with a flag on each line. Received:"
                f" {file or 'no name'}: {error}."
            ) from error
        lines = map(str.strip, text.split("\n"))
        flags = [line for line in lines if line and not line.startswith(("#", "//"))]
        sources.append((f"in {file}", flags))
    return [*sources, ("on the command line", words)]


def _value(name: str, kind: type, texts: Sequence[str], source: str) -> Any:
    """Returns the value of a flag that a source gives, perhaps several times."""
    if kind is tuple and texts == [""]:
        return ()
    if kind is tuple:
        return tuple(itertools.chain.from_iterable(map(_entries, texts)))
    if name in HPARAMS_FLAGS:
        return ",".join(texts)
    values: list[Any] = []
    for text in texts:
        if kind is str:
            values.append(os.path.expanduser(text))
        else:
            values.append(parse_value(f"--{name}", text, kind))
    if len(set(values)) > 1:
        raise absl_flags.Error(
            f"--{name} must be given once. Received: {' and '.join(texts)} {source}."
            " Leave one of them out."
        )
    return values[0]


def _overridden(name: str, earlier: Any, later: Any, source: str) -> Any:
    """Combines the values of two sources; `source` is the earlier one."""
    if name in HPARAMS_FLAGS:
        return merged_changes(earlier, later)
    if isinstance(later, tuple) and earlier and earlier != later:
        # the user may expect the lists to add up
        say(f"--{name}={as_text(later)} replaces {as_text(earlier)} {source}.")
    return later


def _entries(text: str) -> list[str]:
    """Returns the entries of a list. A file whose name has a comma is one entry."""
    path = os.path.expanduser(text)
    if "," in text and os.path.exists(path):
        return [path]
    entries = absl_flags.ListParser().parse(text) or [""]
    return list(map(os.path.expanduser, entries))


def help_text(doc: str | None, cls: type[Flags]) -> str:
    """Returns the command's docstring, then its flags with their defaults."""
    texts = {}
    for name, flag in all_flags_of(cls).items():
        facts = facts_of(flag)
        default = default_of(flag)
        shown = f"--[no]{name}" if facts.kind is bool else f"--{name}"
        texts[shown] = facts.meaning
        if default not in (None, False, "", ()):
            texts[shown] += f" (default: {as_text(default)})"
    lines = [(doc or "").strip(), "", "Flags:"]
    for name, text in (texts | GENERAL_HELP).items():
        lines.append(f"  {name}")
        for part in text.split("\n"):
            wrapped = textwrap.wrap(part, 94, break_on_hyphens=False)
            lines += [f"      {line}" for line in wrapped]
    return "\n".join(lines)


def _unknown_flag(
    error: absl_flags.UnrecognizedFlagError, known: Mapping[str, Flag]
) -> str:
    """Returns what is here for a flag of tensor2tensor's, or how to set a field of the
    hparams; or absl's message, which suggests flags that are spelt alike.
    """
    name = error.flagname
    value = error.flagvalue.partition("=")[2] or "VALUE"
    hint = tensor2tensor_names.answer(tensor2tensor_names.FLAGS, name)
    hint = hint.replace("VALUE", value)
    for flag, record in HPARAMS_FLAGS.items():
        if flag in known and name in record.__dataclass_fields__:
            hint = f"Did you mean --{flag}={name}={value}?"
    if not hint:
        return str(error).replace(" ?", "?")
    return f"Unknown command line flag {name!r}. {hint}"
