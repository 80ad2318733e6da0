"""The flags of a command are the fields of a frozen dataclass: name, type, default,
help text and range.

    @dataclasses.dataclass(frozen=True)
    class AverageFlags(groups.RunFlags):
        n: int | None = optional_field(int, "Average this many.")

Settings of the library, such as LoopOptions, are bases whose fields are flags too.
--help lists them in the order of the fields: those of the last base come first. The
options of problems are flags too: fields of the registered problems, those of the
user's package (--t2t_usr_dir) included.

Within the command line, or within one file, the values of a list or of a map
(--hparams) add up; any other flag may have one value only. The command line overrides
its flag files, a later file an earlier one, in a map field by field.
"""

import dataclasses
import os
import textwrap
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

from absl import flags as absl_flags

from t2tlite import checked_fields, registry, tensor2tensor_names
from t2tlite.checked_fields import CheckedFields, default_of, facts_of
from t2tlite.config import DecodeHParams, HParams
from t2tlite.files import same_file, text_files

Flag: TypeAlias = "dataclasses.Field[Any]"
F = TypeVar("F", bound="Flags")

PROBLEM_OPTIONS = "options"  # the field that holds the options of the problem
# flags whose value is field=value,...
HPARAMS_FLAGS: dict[str, type[CheckedFields]] = {
    "hparams": HParams,
    "decode_hparams": DecodeHParams,
}
GENERAL_HELP = {  # of the flags of every command
    "--flagfile": "File with a flag on each line, such as RUN/flags.txt. Flags of the"
    " command line override the file's, --hparams the fields that it sets.",
    "--version": "Print the version of t2tlite, and exit.",
}


@dataclasses.dataclass(frozen=True)
class Flags(CheckedFields):
    """The flag values of a command."""

    def words(self, defaults: bool = False) -> list[str]:
        """Returns the flags that differ from their defaults, as --name=value; with
        `defaults`, all flags that have a value.
        """
        flags = flags_of(type(self))
        values = vars(self) | getattr(self, PROBLEM_OPTIONS, {})
        values.pop(PROBLEM_OPTIONS, None)
        words = []
        for name, value in values.items():
            is_usual = name in flags and value == default_of(flags[name])
            shown = "" if value is None or value is False else as_text(value)
            if shown and (defaults or not is_usual):
                words.append(f"--{name}={shown}")
        return words

    def values_of(self, base: type[CheckedFields]) -> dict[str, Any]:
        """The values of the fields of a base class."""
        return {name: getattr(self, name) for name in flags_of(base)}

    def files(self, *names: str) -> list[same_file.NamedFile]:
        """Returns the files that flags name; messages call them --name=FILE."""
        named: list[same_file.NamedFile] = []
        for name in names:
            value = getattr(self, name) or ()
            for file in [value] if isinstance(value, str) else value:
                named.append((f"--{name}={file}", file))
        return named

    def check_standard_output(self, *names: str) -> None:
        """Raises ValueError if standard output is redirected to a file of a flag."""
        output = "standard output", same_file.STANDARD_OUTPUT_NUMBER
        same_file.check_not_overwritten([output], self.files(*names))


# what flags a command has


def flags_of(cls: type[CheckedFields]) -> dict[str, Flag]:
    """The flags of a command by name, without the options of problems."""
    flags = {field.name: field for field in dataclasses.fields(cls)}
    flags.pop(PROBLEM_OPTIONS, None)
    return flags


def takes_options(cls: type[Flags]) -> bool:
    """Whether the options of problems are flags of a command."""
    return PROBLEM_OPTIONS in cls.__dataclass_fields__


def all_flags_of(cls: type[Flags]) -> dict[str, Flag]:
    """The flags of a command, and then the options of problems, if it takes them."""
    flags = flags_of(cls)
    if takes_options(cls):
        for name, flag in problem_flags().items():
            flags.setdefault(name, flag)
    return flags


def problem_flags() -> dict[str, Flag]:
    """Returns a flag for each option of the registered problems.

    Its default is None, which leaves the choice to the problem. Each meaning that the
    option has is explained, with the default, unless that differs, and the problems
    that have it, unless all do.
    """
    problems = registry.problem_classes()
    # option -> meaning -> problem -> field
    options: dict[str, Any] = defaultdict(lambda: defaultdict(dict))
    for problem, cls in problems.items():
        for field in registry.option_fields(cls):
            options[field.name][_meaning(cls, field.name)][problem] = field
    flags: dict[str, Any] = {}
    for option, meanings in options.items():
        texts = []
        for meaning, fields in meanings.items():
            defaults = {field.default for field in fields.values()}
            text = _with_default(meaning, *defaults) if len(defaults) == 1 else meaning
            if len(fields) < len(problems):
                text = f"{', '.join(sorted(fields))}: {text}"
            texts.append(text)
            kind = facts_of(next(iter(fields.values()))).kind
        if kind in checked_fields.CHECKED:  # a command line cannot express others
            flags[option] = checked_fields.optional_field(kind, "\n".join(texts))
    return flags


def _meaning(cls: type, option: str) -> str:
    """Returns the help text of an option, which a class may inherit; "" without one."""
    for base in cls.__mro__:
        field = getattr(base, "__dataclass_fields__", {}).get(option)
        if field and facts_of(field).meaning:
            return facts_of(field).meaning
    return ""


# from a command line to values


def parse(cls: type[F], argv: Sequence[str]) -> F:
    """Returns the flags of a command line; `~` before a path becomes the home folder.

    Raises absl.flags.Error for a wrong flag, and ValueError for a wrong value or a
    required flag that is not given.
    """
    options = read_flags(all_flags_of(cls), argv)
    values: dict[str, Any] = {}
    required = {}
    for name, flag in flags_of(cls).items():
        if name in options:
            values[name] = options.pop(name)
        if flag.default is dataclasses.MISSING:
            required[name] = values.get(name)
    require(**required)
    if takes_options(cls):
        values[PROBLEM_OPTIONS] = options
    return cls(**values)


def read_flags(
    known: Mapping[str, Flag], argv: Sequence[str], known_only: bool = False
) -> dict[str, Any]:
    """Returns the values of the flags that are given; others than `known` are errors,
    unless `known_only`.

    Raises absl.flags.Error for an unknown or a contradictory flag, ValueError for a
    wrong value, and as `read_lines` for a flag file.
    """
    values: dict[str, Any] = {}
    for words in _sources(argv):
        parser = absl_flags.FlagValues()
        parser.set_gnu_getopt(True)  # reads flags behind other words, too
        for name, flag in known.items():
            text: absl_flags.ArgumentParser[Any] = absl_flags.ArgumentParser()
            texts = absl_flags.MultiFlag(text, None, name, None, "")
            texts.boolean = facts_of(flag).kind is bool  # --NAME and --noNAME
            parser[name] = texts
        try:
            _, *rest = parser(["t2tlite", *words], known_only=known_only)
        except absl_flags.UnrecognizedFlagError as error:
            raise absl_flags.Error(_unknown_flag(error, known)) from error
        if rest and not known_only:
            raise absl_flags.Error(
                f"Arguments must be --name=value. Received: {' '.join(rest)!r}."
            )
        for name, flag in known.items():
            if not parser[name].present:
                continue
            value = _value(name, facts_of(flag).kind, parser[name].value)
            if name in HPARAMS_FLAGS and name in values:
                value = checked_fields.merged_changes(values[name], value)
            values[name] = value
    return values


def _sources(argv: Sequence[str]) -> list[list[str]]:
    """Returns the flags of each file that the words name, and then the other words."""
    files = []
    words = []
    remaining = iter(argv)
    for word in remaining:
        flag, equals, file = word.partition("=")
        if flag in ("--flagfile", "-flagfile"):
            files.append(_flags_in(file if equals else next(remaining, "")))
        else:
            words.append(word)
    return [*files, words]


def _flags_in(file: str) -> list[str]:
    """Returns the flags in a file. absl reads the files that it names."""
    lines = map(str.strip, text_files.read_lines(file))
    return [line for line in lines if line and not line.startswith(("#", "//"))]


def _value(name: str, kind: type, texts: Sequence[str]) -> Any:
    """Returns the value of a flag that is given, perhaps several times."""
    if name in HPARAMS_FLAGS:
        return ",".join(texts)
    values: list[Any] = []
    for text in texts:
        path = os.path.expanduser(text)
        # a file whose name has a comma is one entry
        if kind is tuple and not ("," in text and os.path.exists(path)):
            entries = absl_flags.ListParser().parse(text) or [""]
            values += map(os.path.expanduser, entries)
        elif kind in (str, tuple):
            values.append(path)
        else:
            values.append(checked_fields.parse_value(f"--{name}", text, kind))
    if kind is tuple:
        return () if values == [""] else tuple(values)
    if len(set(values)) > 1:
        raise absl_flags.Error(
            f"--{name} must be given once. Received: {' and '.join(texts)}."
        )
    return values[0]


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


# checks of values


def require(**values: object) -> None:
    """Raises ValueError if one of these flags is not given, or given without a value,
    as by --name=$UNSET.
    """
    missing = []
    for name, value in values.items():
        if value in (None, "", ()) or (isinstance(value, tuple) and "" in value):
            missing.append(f"--{name}")
    if missing:
        raise ValueError(f"{' and '.join(missing)} must be given. --help has examples.")


# the text of --help


def help_text(doc: str | None, cls: type[Flags]) -> str:
    """Returns the command's docstring, then its flags with their defaults."""
    entries = {}
    for name, flag in all_flags_of(cls).items():
        facts = facts_of(flag)
        title = f"--[no]{name}" if facts.kind is bool else f"--{name}"
        entries[title] = _with_default(facts.meaning, default_of(flag))
    lines = [(doc or "").strip(), "", "Flags:"]
    for title, text in (entries | GENERAL_HELP).items():
        lines.append(f"  {title}")
        for part in text.split("\n"):
            wrapped = textwrap.wrap(part, 94, break_on_hyphens=False)
            lines += [f"      {line}" for line in wrapped]
    return "\n".join(lines)


def as_text(value: Any) -> str:
    """Returns a value in the command line's notation. A list has commas, and quotes
    around an entry that contains one.
    """
    if isinstance(value, tuple):
        return absl_flags.CsvListSerializer(",").serialize(list(value))
    return str(value)


def _with_default(meaning: str, default: object) -> str:
    """A help text with the default, if there is one."""
    if default in (None, False, "", ()):
        return meaning
    return f"{meaning} (default: {as_text(default)})"
