"""The flags of a command are the fields of a frozen dataclass: name, type, default,
help text and range.

    @dataclasses.dataclass(frozen=True)
    class AverageFlags(groups.RunFlags):
        n: int | None = optional_field(int, "Average this many.")

Settings of the library, such as LoopOptions, are bases whose fields are flags too.
--help lists them in the order of the fields: those of the last base come first.

The options of problems are flags too: fields of the registered problems, those of the
user's package (--t2t_usr_dir) included.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, TypeAlias

from absl import flags as absl_flags

from t2tlite import registry
from t2tlite.checked_fields import (
    CHECKED,
    CheckedFields,
    default_of,
    facts_of,
    optional_field,
)
from t2tlite.files.same_file import (
    STANDARD_OUTPUT_NUMBER,
    NamedFile,
    check_not_overwritten,
)

Flag: TypeAlias = "dataclasses.Field[Any]"
OPTIONS = "options"  # the field that holds the options of the problem


@dataclasses.dataclass(frozen=True)
class Flags(CheckedFields):
    """The flag values of a command."""

    largest = 2**63 - 1

    def words(self, defaults: bool = False) -> list[str]:
        """Returns the flags that differ from their defaults, as --name=value; with
        `defaults`, all flags that have a value.
        """
        flags = flags_of(type(self))
        words = []
        for name, value in (vars(self) | self.problem_options()).items():
            shown = "" if value is None or value is False else as_text(value)
            is_usual = name in flags and value == default_of(flags[name])
            if shown and name != OPTIONS and (defaults or not is_usual):
                words.append(f"--{name}={shown}")
        return words

    def problem_options(self) -> dict[str, Any]:
        """The options of the problem that were given, by name."""
        return dict(getattr(self, OPTIONS, {}))

    def values_of(self, base: type[CheckedFields]) -> dict[str, Any]:
        """The values of the fields of a base class."""
        return {name: getattr(self, name) for name in flags_of(base)}


def field_of(cls: type[CheckedFields], name: str) -> Any:
    """Copies a field of a class of the library: default, help text and range."""
    field = cls.__dataclass_fields__[name]
    return dataclasses.field(default=field.default, metadata=field.metadata)


def require(example: str = "", **values: object) -> None:
    """Raises ValueError if one of these flags is not given, or given without a value,
    as by --name=$UNSET.
    """
    missing = []
    for name, value in values.items():
        if value in (None, "", ()) or (isinstance(value, tuple) and "" in value):
            missing.append(f"--{name}")
    if missing:
        shown = f" Example: {example}." if example else ""
        raise ValueError(
            f"{' and '.join(missing)} must be given. --help explains the flags.{shown}"
        )


def named_files(**flags: str | Sequence[str] | None) -> list[NamedFile]:
    """Returns the files that flags name; messages call them --name=FILE."""
    named: list[NamedFile] = []
    for name, value in flags.items():
        files = [value] if isinstance(value, str) else value or []
        named += [(f"--{name}={file}", file) for file in files if file]
    return named


def check_standard_output(**inputs: str | Sequence[str] | None) -> None:
    """Raises ValueError if standard output is redirected to a flag's file."""
    outputs: list[NamedFile] = [("standard output", STANDARD_OUTPUT_NUMBER)]
    check_not_overwritten(outputs, named_files(**inputs))


def flags_of(cls: type[CheckedFields]) -> dict[str, Flag]:
    """The flags of a command by name, without the options of problems."""
    flags = {field.name: field for field in dataclasses.fields(cls)}
    flags.pop(OPTIONS, None)
    return flags


def all_flags_of(cls: type[Flags]) -> dict[str, Flag]:
    """The flags of a command, and then the options of problems, if it takes them."""
    flags = flags_of(cls)
    return flags | problem_flags() | flags if takes_options(cls) else flags


def takes_options(cls: type[Flags]) -> bool:
    """Whether the options of problems are flags of a command."""
    return OPTIONS in cls.__dataclass_fields__


def as_text(value: Any) -> str:
    """Returns a value in the command line's notation. A list has commas, and quotes
    around an entry that contains one.
    """
    if isinstance(value, tuple):
        return absl_flags.CsvListSerializer(",").serialize(list(value))
    return str(value)


def problem_flags() -> dict[str, Flag]:
    """Returns a flag for each option of the registered problems.

    Its default is None, which leaves the choice to the problem. Each meaning that the
    option has is explained, with the default, unless that differs, and the problems
    that have it, unless all do.
    """
    problems = registry.problem_classes()
    # option -> meaning -> problem -> field
    options: dict[str, dict[str, dict[str, Flag]]] = {}
    for problem, cls in problems.items():
        for field in registry.option_fields(cls):
            meanings = options.setdefault(field.name, {})
            meanings.setdefault(_meaning(cls, field), {})[problem] = field
    flags: dict[str, Any] = {}
    for option, meanings in options.items():
        texts = []
        for meaning, fields in meanings.items():
            owners = (
                "" if len(fields) == len(problems) else f"{', '.join(sorted(fields))}: "
            )
            defaults = {field.default for field in fields.values()}
            shown = "the problem's" if len(defaults) > 1 else as_text(*defaults)
            default = f" (default: {shown})" if shown else ""
            texts.append(f"{owners}{meaning}{default}")
            kind = facts_of(next(iter(fields.values()))).kind
        if kind in CHECKED:  # otherwise a command line cannot express it
            flags[option] = optional_field(kind, "\n".join(texts))
    return flags


def _meaning(cls: type, option: Flag) -> str:
    """Returns the help text of an option, which a class may inherit; "" without one."""
    for base in cls.__mro__:
        field = getattr(base, "__dataclass_fields__", {}).get(option.name, option)
        if facts_of(field).meaning:
            return facts_of(field).meaning
    return ""
