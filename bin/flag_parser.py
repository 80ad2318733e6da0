"""Makes an object of a command's flags from a command line and its flag files, and
writes the text of --help.

Within the command line, or within one file, the values of a list or of a map
(--hparams) add up; any other flag may have one value only. The command line overrides
its flag files, a later file an earlier one, in a map field by field.
"""

from __future__ import annotations

import dataclasses
import os
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from absl import flags as absl_flags

from t2tlite import tensor2tensor_names
from t2tlite.bin.flag_fields import (
    OPTIONS,
    Flag,
    Flags,
    all_flags_of,
    as_text,
    flags_of,
    require,
    takes_options,
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
    fields: dict[str, Any] = {name: values.pop(name) for name in flags_of(cls)}
    required = {}
    for name, value in fields.items():
        if known[name].default is dataclasses.MISSING:
            required[name] = value
    require(**required)
    if takes_options(cls):
        given = {name: value for name, value in values.items() if value is not None}
        fields[OPTIONS] = given
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
    rest: list[str] = []
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
            earlier = values[name]
            if name in HPARAMS_FLAGS and earlier:
                value = merged_changes(earlier, value)
            elif name in given_in and isinstance(value, tuple) and value != earlier:
                # the user may expect the lists to add up
                replaced = f"{as_text(earlier)} {given_in[name]}"
                say(f"--{name}={as_text(value)} replaces {replaced}.")
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
            lines = Path(file).read_text(encoding="utf-8-sig").split("\n")
        except (OSError, UnicodeDecodeError) as error:
            raise ValueError(
                "--flagfile must be a text file with a flag on each line. Received:"
                f" {file or 'no name'}: {error}."
            ) from error
        lines = list(filter(None, map(str.strip, lines)))
        flags = [line for line in lines if not line.startswith(("#", "//"))]
        sources.append((f"in {file}", flags))
    return [*sources, ("on the command line", words)]


def _value(name: str, kind: type, texts: Sequence[str], source: str) -> Any:
    """Returns the value of a flag that a source gives, perhaps several times."""
    if name in HPARAMS_FLAGS:
        return ",".join(texts)
    if kind is tuple:
        entries: list[str] = []
        for text in texts:
            path = os.path.expanduser(text)
            # a file whose name has a comma is one entry
            is_file = "," in text and os.path.exists(path)
            entries += (
                [path] if is_file else absl_flags.ListParser().parse(text) or [""]
            )
        if entries == [""]:
            return ()
        return tuple(map(os.path.expanduser, entries))
    values: list[Any] = []
    for text in texts:
        if kind is str:
            values.append(os.path.expanduser(text))
        else:
            values.append(parse_value(f"--{name}", text, kind))
    if len(set(values)) > 1:
        raise absl_flags.Error(
            f"--{name} must be given once. Received: {' and '.join(texts)} {source}."
        )
    return values[0]


def help_text(doc: str | None, cls: type[Flags]) -> str:
    """Returns the command's docstring, then its flags with their defaults."""
    lines = [(doc or "").strip(), "", "Flags:"]
    for name, flag in all_flags_of(cls).items():
        facts = facts_of(flag)
        title = f"  --[no]{name}" if facts.kind is bool else f"  --{name}"
        default = default_of(flag)
        shown = f" (default: {as_text(default)})"
        if default in (None, False, "", ()):
            shown = ""
        lines.append(entry(title, facts.meaning + shown))
    lines += [entry(f"  {name}", text) for name, text in GENERAL_HELP.items()]
    return "\n".join(lines)


def entry(title: str, text: str) -> str:
    """A title and the indented text below it, each of whose lines is wrapped."""
    lines = [title]
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
