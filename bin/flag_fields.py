"""The flags of a command are the fields of a frozen dataclass: name, type, default,
help text and range.

    @dataclasses.dataclass(frozen=True)
    class AverageFlags(groups.RunFlags):
        n: int | None = optional_field(int, "Average this many.")
        # a flag for each of its fields
        loop: LoopOptions = dataclasses.field(default_factory=LoopOptions)

The options of problems are flags too: fields of the registered problems, those of the
user's package (--t2t_usr_dir) included.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

from absl import flags as absl_flags

from t2tlite import registry
from t2tlite.checked_fields import CheckedFields, Facts, default_of, facts_of
from t2tlite.files.same_file import (
    STANDARD_OUTPUT_NUMBER,
    NamedFile,
    check_not_overwritten,
)

OPTIONS = "options"  # the field that holds the options of the problem


class CommandError(Exception):
    """A user error, such as flags that exclude each other. A bad value is a ValueError,
    a missing file an OSError.
    """


class Flag(NamedTuple):
    """A command-line flag."""

    facts: Facts  # kind and help text among them
    default: Any = None  # the value if the flag is not given
    is_required: bool = False
    # text, in which `~` is not expanded to the home folder
    is_text: bool = False
    # of a tuple: given several times, instead of once with commas
    is_repeated: bool = False

    @property
    def help(self) -> str:
        return self.facts.meaning

    @property
    def kind(self) -> type:
        """str, int, float, bool or tuple."""
        return self.facts.kind


@dataclasses.dataclass(frozen=True)
class Flags(CheckedFields):
    """The flag values of a command."""

    largest = 2**63 - 1

    def words(self, defaults: bool = False) -> list[str]:
        """Returns the flags that differ from their defaults, as --name=value; with
        `defaults`, all flags that have a value.
        """
        known = flags_of(type(self))
        words = []
        for name, value in values_of(self).items():
            if value is None or value is False:
                continue
            shown = as_text(value)
            default = as_text(known[name].default) if name in known else None
            if shown and (defaults or shown != default):
                words.append(f"--{name}={shown}")
        return words


def field_of(cls: type[CheckedFields], name: str) -> Any:
    """Copies a field of a class of the library: default, help text and range."""
    field = cls.__dataclass_fields__[name]
    return dataclasses.field(default=field.default, metadata=field.metadata)


def text_flag(meaning: str, default: Any = None) -> Any:
    """Declares a flag of plain text, in which a leading `~` has no meaning."""
    metadata = {"facts": Facts(str, meaning), "is_text": True}
    return dataclasses.field(default=default, metadata=metadata)


def repeated_flag(meaning: str, default: Any = dataclasses.MISSING) -> Any:
    """Declares a flag that can be given several times; it is required unless it has a
    default.
    """
    metadata = {"facts": Facts(tuple, meaning), "is_repeated": True}
    return dataclasses.field(default=default, metadata=metadata)


def require(example: str = "", **values: object) -> None:
    """Raises CommandError if one of these flags is not given, or given without a value,
    as by --name=$UNSET.
    """
    missing = []
    for name, value in values.items():
        if value in (None, "", ()) or (isinstance(value, tuple) and "" in value):
            missing.append(f"--{name}")
    if missing:
        shown = f" Example: {example}." if example else ""
        raise CommandError(
            f"{' and '.join(missing)} must be given. --help explains the flags.{shown}"
        )


def named_files(**files: str | None) -> list[NamedFile]:
    """Returns the files that flags name; messages call them --name=FILE."""
    return [(f"--{name}={file}", file) for name, file in files.items() if file]


def check_standard_output(**inputs: str | None) -> None:
    """Raises ValueError if standard output is redirected to a flag's file."""
    outputs: list[NamedFile] = [("standard output", STANDARD_OUTPUT_NUMBER)]
    check_not_overwritten(outputs, named_files(**inputs))


def flags_of(cls: type[CheckedFields]) -> dict[str, Flag]:
    """The flags of a command by name, without the options of problems."""
    fields = {field.name: field for field in dataclasses.fields(cls)}
    flags: dict[str, Flag] = {}
    for name in _names_in_order(cls):
        field = fields[name]
        if part := settings_class(field):
            flags |= flags_of(part)
        elif name != OPTIONS:
            flags[name] = Flag(
                facts_of(field),
                default_of(field),
                field.default is dataclasses.MISSING,
                field.metadata.get("is_text", False),
                field.metadata.get("is_repeated", False),
            )
    return flags


def all_flags_of(cls: type[Flags]) -> dict[str, Flag]:
    """The flags of a command, and then the options of problems, if it takes them."""
    flags = flags_of(cls)
    return flags | problem_flags() | flags if takes_options(cls) else flags


def takes_options(cls: type[Flags]) -> bool:
    """Whether the options of problems are flags of a command."""
    return OPTIONS in cls.__dataclass_fields__


def settings_class(field: dataclasses.Field[Any]) -> type[CheckedFields] | None:
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
    for name in _names_in_order(type(flags)):
        value = getattr(flags, name)
        if isinstance(value, CheckedFields):
            values |= values_of(value)
        elif name == OPTIONS:
            values |= value
        else:
            values[name] = value
    return values


def _names_in_order(cls: type) -> list[str]:
    """Returns the names of a class's fields in the order of --help: those of the first
    base, the class's own, those of its other bases.
    """
    bases = filter(dataclasses.is_dataclass, cls.__bases__)
    first, *others = [_names_in_order(base) for base in bases] or [[]]
    later = list(itertools.chain(*others))
    names = first
    for field in dataclasses.fields(cls):
        if field.name not in later:
            names.append(field.name)
    return list(dict.fromkeys([*names, *later]))


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
    # option -> problem -> field
    fields: dict[str, dict[str, dataclasses.Field[Any]]] = {}
    for problem, cls in problems.items():
        for field in registry.option_fields(cls):
            fields.setdefault(field.name, {})[problem] = field
    flags = {}
    for option, fields_by_problem in fields.items():
        kind = type(next(iter(fields_by_problem.values())).default)
        if kind not in (str, int, float, bool, tuple):
            continue  # an option that a command line cannot express
        by_meaning: dict[str, list[str]] = {}
        for problem in fields_by_problem:
            meaning = _meaning(problems[problem], option)
            by_meaning.setdefault(meaning, []).append(problem)
        unexplained = by_meaning.pop("", [])
        if not by_meaning:
            cls = problems[unexplained[0]]
            by_meaning[f"Explained in {cls.__module__}.{cls.__name__}."] = []
        next(iter(by_meaning.values())).extend(unexplained)
        texts = []
        for meaning, names in by_meaning.items():
            text = meaning
            if len(names) < len(problems):
                text = f"{', '.join(sorted(names))}: {meaning}"
            texts.append(text + _default([fields_by_problem[name] for name in names]))
        flags[option] = Flag(Facts(kind, "\n".join(texts)))
    return flags


def _default(fields: Sequence[dataclasses.Field[Any]]) -> str:
    """Returns what a help text says of the default, " (default: 9)"."""
    default = fields[0].default
    if any(field.default != default for field in fields):
        return " (default: the problem's)"
    return "" if default in ("", ()) else f" (default: {default})"


def _meaning(cls: type, option: str) -> str:
    """Returns the help text of an option, which a class may inherit; "" without one."""
    for base in cls.__mro__:
        field = getattr(base, "__dataclass_fields__", {}).get(option)
        if field and facts_of(field).meaning:
            return facts_of(field).meaning
    return ""
