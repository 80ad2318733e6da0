"""The flags of a command are the fields of a frozen dataclass: name, type, default,
help text and range.

    @dataclasses.dataclass(frozen=True)
    class AverageFlags(groups.RunFlags):
        n: int | None = optional_field(int, "Average this many.")
        # a flag for each of its fields
        loop: LoopOptions = dataclasses.field(default_factory=LoopOptions)

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
        usual = {name: default_of(flag) for name, flag in flags_of(type(self)).items()}
        words = []
        for name, value in values_of(self).items():
            shown = "" if value is None or value is False else as_text(value)
            if shown and (defaults or value != usual.get(name)):
                words.append(f"--{name}={shown}")
        return words


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
    flags: dict[str, Flag] = {}
    for field in dataclasses.fields(cls):
        if part := settings_class(field):
            flags |= flags_of(part)
        elif field.name != OPTIONS:
            flags[field.name] = field
    return flags


def all_flags_of(cls: type[Flags]) -> dict[str, Flag]:
    """The flags of a command, and then the options of problems, if it takes them."""
    flags = flags_of(cls)
    return flags | problem_flags() | flags if takes_options(cls) else flags


def takes_options(cls: type[Flags]) -> bool:
    """Whether the options of problems are flags of a command."""
    return OPTIONS in cls.__dataclass_fields__


def settings_class(field: Flag) -> type[CheckedFields] | None:
    """Returns the class of a field that holds settings of the library, such as
    LoopOptions, whose fields are flags; None for other fields.
    """
    cls = field.default_factory
    if isinstance(cls, type) and issubclass(cls, CheckedFields):
        return cls
    return None


def values_of(flags: CheckedFields) -> dict[str, Any]:
    """Returns the value of each flag, and of the problem options that were given."""
    values: dict[str, Any] = {}
    for name, value in vars(flags).items():
        if isinstance(value, CheckedFields):
            values |= values_of(value)
        elif name == OPTIONS:
            values |= value
        else:
            values[name] = value
    return values


def as_text(value: Any) -> str:
    """Returns a value in the command line's notation. A list has commas, and quotes
    around an entry that contains one.
    """
    if isinstance(value, tuple):
        return absl_flags.CsvListSerializer(",").serialize(list(value))
    return str(value)


def problem_flags() -> dict[str, Flag]:
    """Returns a flag for each option of the registered problems.

    Its default is None, which leaves the choice to the problem. The help text names the
    problems that have the option, unless all have it, and the default, unless it
    differs between problems. If the option means something else in other problems, each
    meaning is explained.
    """
    problems = registry.problem_classes()
    # option -> problem -> default
    defaults: dict[str, dict[str, Any]] = {}
    for problem, cls in problems.items():
        for field in registry.option_fields(cls):
            defaults.setdefault(field.name, {})[problem] = field.default
    flags: dict[str, Any] = {}
    for option, by_problem in defaults.items():
        kind = type(next(iter(by_problem.values())))
        if kind not in CHECKED:
            continue  # an option that a command line cannot express
        meanings: dict[str, list[str]] = {}
        for problem in by_problem:
            meaning = _meaning(problems[problem], option)
            meanings.setdefault(meaning, []).append(problem)
        texts = []
        for meaning, names in meanings.items():
            text = meaning
            if len(names) < len(problems):
                text = f"{', '.join(sorted(names))}: {meaning}"
            if by_problem[names[0]] not in ("", ()):
                different = len({by_problem[name] for name in names}) > 1
                shown = "the problem's" if different else as_text(by_problem[names[0]])
                text += f" (default: {shown})"
            texts.append(text)
        flags[option] = optional_field(kind, "\n".join(texts))
    return flags


def _meaning(cls: type, option: str) -> str:
    """Returns the help text of an option, which a class may inherit; "" without one."""
    for base in cls.__mro__:
        field = getattr(base, "__dataclass_fields__", {}).get(option)
        if field and facts_of(field).meaning:
            return facts_of(field).meaning
    return ""
