"""The flags of a command are the fields of a frozen dataclass: name, type, default,
help text and range.

    @dataclasses.dataclass(frozen=True)
    class AverageFlags(RunFlags):
        n: int | None = optional_field(int, "Average this many.")
        loop: LoopOptions = settings(LoopOptions)  # a flag for each of its fields

The options of problems are flags too: fields of the registered problems, those of the
user's package (--t2t_usr_dir) included.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from absl import flags as absl_flags

from t2tlite import registry
from t2tlite.checked_fields import CheckedFields, Facts, facts_of
from t2tlite.files.same_file import (
    STANDARD_OUTPUT_NUMBER,
    NamedFile,
    check_not_overwritten,
)

S = TypeVar("S", bound=CheckedFields)


class CommandError(Exception):
    """A user error other than a bad value or a missing file, such as flags that exclude
    each other.
    """


def required(value: str | None, name: str, example: str = "") -> str:
    """The value of a flag that must be given here. Raises CommandError if it is not."""
    if not value:
        raise missing_flags([f"--{name}"], example)
    return value


def missing_flags(names: Sequence[str], example: str = "") -> CommandError:
    """The error that these flags are not given."""
    shown = f" Example: {example}." if example else ""
    return CommandError(
        f"{' and '.join(names)} must be given. --help explains the flags.{shown}"
    )


def is_missing(value: Any) -> bool:
    """Whether a flag is not given, or given without a value, as by --name=$UNSET."""
    return value in (None, "", ()) or (isinstance(value, tuple) and "" in value)


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

    def information(self) -> str:
        """The text that a flag such as --registry_help asks for: the command prints it,
        and does nothing else.
        """
        return ""

    def words(self, defaults: bool = False) -> list[str]:
        """The flags that were given, as --name=value; with `defaults`, all flags that
        have a value.
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


@dataclasses.dataclass(frozen=True)
class ProblemOptions(Flags):
    """The options of problems that were given, of which each is a flag."""

    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)


def settings(cls: type[S]) -> S:
    """A field whose value is an object of the library. Each field of its class is a
    flag.
    """
    field: S = dataclasses.field(default_factory=cls, metadata={"settings": cls})
    return field


def repeated_flag(meaning: str) -> tuple[str, ...]:
    """A required flag that can be given several times."""
    facts = Facts(tuple, meaning)
    field: tuple[str, ...] = dataclasses.field(
        metadata={"facts": facts, "is_repeated": True}
    )
    return field


def named_files(**files: str | None) -> list[NamedFile]:
    """The files that flags name, called --name=FILE in messages."""
    return [(f"--{name}={file}", file) for name, file in files.items() if file]


def check_standard_output(**inputs: str | None) -> None:
    """Raises ValueError if standard output is redirected to the file of a flag."""
    outputs: list[NamedFile] = [("standard output", STANDARD_OUTPUT_NUMBER)]
    check_not_overwritten(outputs, named_files(**inputs))


def flags_of(cls: type[CheckedFields]) -> dict[str, Flag]:
    """The flags of a command by name, without the options of problems."""
    fields = {field.name: field for field in dataclasses.fields(cls)}
    flags: dict[str, Flag] = {}
    for name in _names_in_order(cls):
        metadata = fields[name].metadata
        if "settings" in metadata:
            flags |= flags_of(metadata["settings"])
        elif name != "options":
            default = fields[name].default
            is_required = default is dataclasses.MISSING
            flags[name] = Flag(
                facts_of(fields[name]),
                None if is_required else default,
                is_required,
                metadata.get("is_text", False),
                metadata.get("is_repeated", False),
            )
    return flags


def all_flags_of(cls: type[Flags]) -> dict[str, Flag]:
    """The flags of a command, and then the options of problems, if it takes them."""
    flags = flags_of(cls)
    if issubclass(cls, ProblemOptions):
        flags = flags | problem_flags() | flags
    return flags


def _names_in_order(cls: type[CheckedFields]) -> list[str]:
    """The names of a class's fields in the order in which --help lists them: those of
    the first base, the class's own, and those of its other bases.
    """
    bases = [base for base in cls.__bases__ if dataclasses.is_dataclass(base)]
    inherited = [_names_in_order(base) for base in bases]
    first = itertools.chain(*inherited[:1])
    others = list(itertools.chain(*inherited[1:]))
    declared = [
        field.name for field in dataclasses.fields(cls) if field.name not in others
    ]
    return list(dict.fromkeys([*first, *declared, *others]))


def values_of(flags: CheckedFields) -> dict[str, Any]:
    """The value of each flag, and of each option of the problem that was given."""
    values: dict[str, Any] = {}
    for name in _names_in_order(type(flags)):
        value = getattr(flags, name)
        if isinstance(value, CheckedFields):
            values |= values_of(value)
        elif name == "options":
            values |= value
        else:
            values[name] = value
    return values


def as_text(value: Any) -> str:
    """A value as it is written on a command line: a list in quotes where a text
    contains a comma.
    """
    if isinstance(value, tuple):
        return absl_flags.CsvListSerializer(",").serialize(list(value))
    return str(value)


def problem_flags() -> dict[str, Flag]:
    """A flag for each option of the registered problems; its value is None if it is not
    given.

    The help text names the problems that have the option unless all have it, and states
    the default unless it differs between problems.
    """
    problems = registry.problem_classes()
    # option -> problem -> field
    fields: dict[str, dict[str, dataclasses.Field[Any]]] = {}
    for problem, cls in problems.items():
        for field in registry.option_fields(cls):
            fields.setdefault(field.name, {})[problem] = field
    flags = {}
    for option, fields_by_problem in fields.items():
        first, *others = fields_by_problem.values()
        default = first.default
        if type(default) not in (str, int, float, bool, tuple):
            continue  # an option that a command line cannot express
        text = _help([problems[problem] for problem in fields_by_problem], option)
        if len(fields_by_problem) < len(problems):
            text = f"{', '.join(sorted(fields_by_problem))}: {text}"
        if any(other.default != default for other in others):
            text += " (default: the problem's)"
        elif default not in ("", ()):
            text += f" (default: {default})"
        flags[option] = Flag(Facts(type(default), text))
    return flags


def _help(classes: Sequence[type], option: str) -> str:
    """The help text of an option, which a problem class may inherit from a base
    class.
    """
    for cls in classes:
        for base in cls.__mro__:
            field = getattr(base, "__dataclass_fields__", {}).get(option)
            if field and facts_of(field).meaning:
                return facts_of(field).meaning
    return f"Explained in {classes[0].__module__}.{classes[0].__name__}."
