"""Frozen dataclasses with checked values, and overrides in the command line's notation.

A field's declaration says everything about it: its meaning, its range, and what
depends on it.
"""

import contextlib
import dataclasses
import inspect
import re
import types
from collections.abc import Iterable
from typing import Any, ClassVar, Final, NamedTuple, Self, TypeVar

from t2tlite.registry import HPARAMS, did_you_mean

# in messages
VALUE_KINDS = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "text",
}
# kinds of values; a field of a user's class may be of another
CHECKED = (*VALUE_KINDS, tuple)
BOOLEANS = {"true": True, "1": True, "false": False, "0": False}

# an entry of the part "Attributes" of a docstring
ATTRIBUTE_ENTRY = re.compile(r"^    (\w+): (.+(?:\n {8}.+)*)", re.MULTILINE)

MAX_SEED = 2**32 - 1  # NumPy's and TensorFlow's
MAX_INT = 2**63 - 1
MAX_FLOAT = 1e300
AUTO: Final = "auto"  # the value of a field that the devices decide

T = TypeVar("T")


class Facts(NamedTuple):
    """What the declaration of a field says beside its name and default."""

    kind: type  # of its values, unless they are None
    meaning: str  # for docs/reference.md, or the help text of its flag
    low: float | None = None  # the least value
    high: float | None = None  # the greatest value
    choices: tuple[str, ...] = ()  # all values, unless empty
    auto: bool = False  # the value may be AUTO
    # with another value, a run's checkpoints would be of another model
    model: bool = False
    t2t: bool = True  # tensor2tensor has an hparam of this name

    def in_range(self, value: float) -> bool:
        if self.low is not None and not value >= self.low:
            return False
        return self.high is None or value <= self.high

    def accepts_auto(self, value: Any) -> bool:
        return self.auto and value == AUTO

    def requirement(self, value: Any, largest: int = MAX_INT) -> str:
        """What `value` must be; empty if it is."""
        if self.kind not in CHECKED or self.accepts_auto(value):
            return ""
        if type(value) is not self.kind and (self.kind, type(value)) != (float, int):
            return f"of type {self.kind.__name__}{' or auto' * self.auto}"
        if self.choices and value not in self.choices:
            return f"one of {', '.join(self.choices)}"
        if self.kind not in (int, float):
            return ""
        if not self.in_range(value):
            highest = "" if self.high is None else f" and at most {self.high}"
            return f"at least {self.low}{highest}"
        limit = largest if self.kind is int else MAX_FLOAT
        return "" if abs(value) <= limit else f"at most {limit}"


def checked_field(default: T, meaning: str = "", **facts: Any) -> T:
    """A dataclass field with this default and these facts (see `Facts`). By default the
    meaning is that of the class's docstring.
    """
    kind = facts.pop("kind", type(default))
    return _field(kind, meaning, facts, default=default)


def optional_field(kind: type[T], meaning: str, **facts: Any) -> T | None:
    """A dataclass field whose default is None."""
    return _field(kind, meaning, facts, default=None)


def required_field(kind: type[T], meaning: str, **facts: Any) -> T:
    """A dataclass field without a default."""
    return _field(kind, meaning, facts)


def _field(kind: type, meaning: str, facts: dict[str, Any], **default: Any) -> Any:
    metadata = {"facts": Facts(kind, meaning, **facts)}
    return dataclasses.field(metadata=metadata, **default)


def facts_of(field: dataclasses.Field[Any]) -> Facts:
    """What the field's declaration says; without `checked_field`, the type of its
    default alone.
    """
    return field.metadata.get("facts") or Facts(type(field.default), "")


def default_of(field: dataclasses.Field[T]) -> T | None:
    return None if field.default is dataclasses.MISSING else field.default


@dataclasses.dataclass(frozen=True)
class CheckedFields:
    """A frozen dataclass whose values are checked when it is made."""

    called: ClassVar[str] = HPARAMS  # in messages
    largest: ClassVar[int] = MAX_INT

    def __init_subclass__(cls) -> None:
        """Takes the meanings of fields from the attributes in the class's docstring."""
        for name, words in ATTRIBUTE_ENTRY.findall(inspect.cleandoc(cls.__doc__ or "")):
            field = vars(cls).get(name)
            if isinstance(field, dataclasses.Field) and not facts_of(field).meaning:
                facts = facts_of(field)._replace(meaning=" ".join(words.split()))
                field.metadata = types.MappingProxyType({"facts": facts})

    def __new__(cls, *values: object, **fields: object) -> Self:
        """A misspelt field is the same error wherever it is given: in an hparam set,
        for example, by `dataclasses.replace`.
        """
        known = [field.name for field in dataclasses.fields(cls)]
        for name in fields:
            if name not in known:
                raise ValueError(
                    f"{cls.called} has no field {name!r}. {did_you_mean(name, known)}"
                )
        return super().__new__(cls)

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = plain(getattr(self, field.name))
            object.__setattr__(self, field.name, value)
            if value is not None or field.default is not None:
                _check(field.name, facts_of(field), value, self.largest)

    def override(self, text: str) -> Self:
        """A copy with the changes in `text`, `field=value,field=value`.

        Spaces around names and values and a trailing comma are ignored. Booleans are
        true, false, 1 or 0, in upper or lower case; strings have no quotes. An unknown
        field, a field set twice, a value of the wrong type or out of range, or a part
        that is not `field=value` raises a ValueError.

        >>> from t2tlite.config import HParams
        >>> HParams().override("batch_size=2048, relu_dropout=0.1").batch_size
        2048
        """
        values: dict[str, Any] = parse_changes(text)
        for field in dataclasses.fields(self):
            name = field.name
            facts = facts_of(field)
            if name in values and not facts.accepts_auto(values[name]):
                values[name] = parse_value(name, values[name], facts.kind)
        return dataclasses.replace(self, **values)

    def diff(self, other: Self) -> dict[str, tuple[Any, Any]]:
        """The fields in which two differ: name -> (value here, value in `other`)."""
        differences = {}
        for name, value in vars(self).items():
            if value != getattr(other, name):
                differences[name] = value, getattr(other, name)
        return differences

    def changes(self, other: Self) -> list[str]:
        """What `override` changes in `other` to make this: ["num_heads=4"]."""
        return [f"{name}={value}" for name, (value, _) in self.diff(other).items()]


def checked(
    name: str,
    kind: type[T],
    value: T,
    low: float | None = None,
    high: float | None = None,
    choices: Iterable[str] = (),
) -> T:
    """The value of an argument as `plain`. Raises ValueError for one of another type,
    out of range, or that is none of the choices.
    """
    value = plain(value)
    _check(name, Facts(kind, "", low, high, tuple(choices)), value)
    return value


def _check(name: str, facts: Facts, value: Any, largest: int = MAX_INT) -> None:
    if required := facts.requirement(value, largest):
        raise ValueError(f"{name} must be {required}. Received: {value!r}.")


def plain(value: Any) -> Any:
    """A number of NumPy as Python's; other values as they are."""
    is_scalar = getattr(value, "shape", None) == () and hasattr(value, "item")
    return value.item() if is_scalar else value


def parse_changes(text: str) -> dict[str, str]:
    """The changes in the notation of `CheckedFields.override`: field -> value.

    >>> parse_changes("batch_size=2048, relu_dropout=0.1")
    {'batch_size': '2048', 'relu_dropout': '0.1'}
    """
    changes: dict[str, str] = {}
    for part in text.split(","):
        name, equals, value = map(str.strip, part.partition("="))
        if not (name or equals):
            continue
        if not (name and equals) or name in changes:
            raise ValueError(
                "Changes must be field=value,... and each field once. Received:"
                f" {part.strip()!r} in {text!r}."
            )
        changes[name] = value
    return changes


def merged_changes(earlier: str, later: str) -> str:
    """The changes of two texts, as one text. A later change of a field replaces an
    earlier one.

    >>> merged_changes("batch_size=2048,num_heads=4", "num_heads=8")
    'batch_size=2048,num_heads=8'
    """
    changes = parse_changes(earlier) | parse_changes(later)
    return ",".join(f"{name}={value}" for name, value in changes.items())


def parse_value(name: str, text: str, kind: type) -> Any:
    """The value of a text in the command line's notation. Raises ValueError, which
    calls it `name`, for another text.
    """
    with contextlib.suppress(KeyError, ValueError):
        if kind is bool:
            return BOOLEANS[text.lower()]
        if kind is not str:
            return kind(text)
        if text and not set(text) & set("\"'[]"):
            return text
    required = VALUE_KINDS[kind]
    if kind is str:
        required += " without quotes or brackets"
    raise ValueError(f"{name} must be {required}. Received: {text!r}.")
