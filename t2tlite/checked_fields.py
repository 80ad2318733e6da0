"""Frozen dataclasses with checked values, and overrides in the command line's notation.

A field's declaration says everything about it: its meaning, its range, and what
depends on it.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, NamedTuple, TypeVar

from t2tlite.registry import HPARAMS, did_you_mean

# kinds of values; a field of a user's class may be of another
CHECKED = (bool, int, float, str, tuple)
# in messages
KINDS = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}

MAX_SEED = 2**32 - 1  # NumPy's and TensorFlow's

C = TypeVar("C", bound="CheckedFields")
T = TypeVar("T")


class Facts(NamedTuple):
    """What the declaration of a field says beside its name and default."""

    kind: type  # of its values, unless they are None
    meaning: str  # for --show_hparams, or the help text of its flag
    low: float | None = None  # the least value
    high: float | None = None  # the greatest value
    choices: tuple[str, ...] = ()  # all values, unless empty
    # with another value, a run's checkpoints would be of another model
    model: bool = False
    t2t: bool = True  # tensor2tensor has an hparam of this name

    def in_range(self, value: float) -> bool:
        return (self.low is None or value >= self.low) and (
            self.high is None or value <= self.high
        )

    @property
    def range(self) -> str:
        """The range in words, of a field with a least value."""
        return f"at least {self.low}" + (
            "" if self.high is None else f" and at most {self.high}"
        )


def checked_field(
    default: T,
    meaning: str,
    low: float | None = None,
    high: float | None = None,
    choices: tuple[str, ...] = (),
    *,
    kind: type | None = None,
    model: bool = False,
    t2t: bool = True,
) -> T:
    """A dataclass field with this default and these facts (see `Facts`); a default of
    None needs a `kind`.
    """
    facts = Facts(kind or type(default), meaning, low, high, choices, model, t2t)
    return dataclasses.field(default=default, metadata={"facts": facts})


def required_field(
    kind: type[T], meaning: str, low: float | None = None, high: float | None = None
) -> T:
    """A dataclass field without a default."""
    field: T = dataclasses.field(metadata={"facts": Facts(kind, meaning, low, high)})
    return field


def optional_field(
    kind: type[T],
    meaning: str,
    low: float | None = None,
    high: float | None = None,
    choices: tuple[str, ...] = (),
) -> T | None:
    """A dataclass field whose default is None."""
    facts = Facts(kind, meaning, low, high, choices)
    return dataclasses.field(default=None, metadata={"facts": facts})


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
    # of whole numbers: what fits in TensorFlow's shapes
    largest: ClassVar[int] = 2**31 - 1

    def __new__(cls: type[C], *values: object, **fields: object) -> C:
        """A misspelt field is the same error wherever it is given: in an hparam set,
        for example, by `dataclasses.replace`.
        """
        cls.check_names(fields)
        return super().__new__(cls)

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = plain(getattr(self, field.name))
            object.__setattr__(self, field.name, value)
            facts = facts_of(field)
            # a field with a limit of its own names that one
            has_limit = facts.kind is int and facts.high is not None
            if type(value) is int and abs(value) > self.largest and not has_limit:
                raise ValueError(
                    f"{field.name} must be a number of at most {self.largest:,}."
                    f" Received: {value}."
                )
            if facts.kind in CHECKED and (
                value is not None or field.default is not None
            ):
                _check_value(field.name, facts, value)

    def override(self: C, text: str) -> C:
        """A copy with the changes in `text`, `field=value,field=value`.

        Spaces around names and values and a trailing comma are ignored. Booleans are
        true, false, 1 or 0, in upper or lower case; strings have no quotes. An unknown
        field, a field set twice, a value of the wrong type or out of range, or a part
        that is not `field=value` raises a ValueError.

        >>> from t2tlite.config import HParams
        >>> HParams().override("batch_size=2048, relu_dropout=0.1").batch_size
        2048
        """
        kinds = {field.name: facts_of(field).kind for field in dataclasses.fields(self)}
        changes: dict[str, Any] = {}
        for name, part in split_changes(text):
            _, equals, value = part.partition("=")
            if not equals or not name:
                raise ValueError(
                    f"Each change must be field=value. Received: {part!r} in {text!r}."
                )
            self.check_names([name])
            if name in changes:
                raise ValueError(
                    f"A field can be set once. Received: {name!r} twice in {text!r}."
                )
            changes[name] = parse_value(name, value, kinds[name])
        return dataclasses.replace(self, **changes)

    @classmethod
    def of(cls: type[C], values: Mapping[str, Any]) -> C:
        """The object with these values by field; a missing field has its default.

        Raises ValueError for an unknown field or a bad value.
        """
        cls.check_names(values)
        return cls(**values)

    @classmethod
    def check_names(cls, names: Iterable[str]) -> None:
        """Raises ValueError if a name is not a field's."""
        fields = [field.name for field in dataclasses.fields(cls)]
        for name in names:
            if name not in fields:
                raise ValueError(
                    f"{cls.called} has no field {name!r}. {did_you_mean(name, fields)}"
                )

    def diff(self: C, other: C) -> dict[str, tuple[Any, Any]]:
        """The fields in which two differ: name -> (value here, value in `other`)."""
        mine, theirs = dataclasses.asdict(self), dataclasses.asdict(other)
        return {
            name: (mine[name], theirs[name])
            for name in mine
            if mine[name] != theirs[name]
        }


def checked(
    name: str,
    kind: type[T],
    value: T,
    low: float | None = None,
    high: float | None = None,
) -> T:
    """The value of an argument as `plain`. Raises ValueError for one of another type,
    or out of range.
    """
    value = plain(value)
    _check_value(name, Facts(kind, "", low, high), value)
    return value


def plain(value: Any) -> Any:
    """A number of NumPy as Python's; other values as they are."""
    if getattr(value, "shape", None) == () and hasattr(value, "item"):
        return value.item()
    return value


def refuse_to_change(self: CheckedFields, name: str, value: object) -> None:
    """Says how to make changed hparams; tensor2tensor's could be assigned to."""
    raise dataclasses.FrozenInstanceError(
        f"cannot assign to field {name!r}, since {self.called} do not change. Write"
        f" dataclasses.replace(hparams, {name}={value!r})."
    )


def split_changes(text: str) -> list[tuple[str, str]]:
    """The changes in the notation of `CheckedFields.override`, each with its field.

    >>> split_changes("batch_size=2048, relu_dropout=0.1")
    [('batch_size', 'batch_size=2048'), ('relu_dropout', 'relu_dropout=0.1')]
    """
    changes = []
    for part in filter(None, map(str.strip, text.split(","))):
        name, equals, value = map(str.strip, part.partition("="))
        changes.append((name, f"{name}{equals}{value}"))
    return changes


def merged_changes(earlier: str, later: str) -> str:
    """The changes of two texts, as one text. A later change of a field replaces an
    earlier one.

    >>> merged_changes("batch_size=2048,num_heads=4", "num_heads=8")
    'batch_size=2048,num_heads=8'
    """
    changes = dict(split_changes(earlier)) | dict(split_changes(later))
    return ",".join(changes.values())


def parse_value(name: str, value: str, kind: type) -> Any:
    """The value of a text in the command line's notation, of one of KINDS. Raises
    ValueError, which calls it `name`, for another text.
    """
    if kind is bool:
        if value.lower() not in ("true", "false", "1", "0"):
            raise ValueError(f"{name} must be true or false. Received: {value!r}.")
        return value.lower() in ("true", "1")
    if kind is str:
        if not value or any(mark in value for mark in "\"'[]"):
            raise ValueError(
                f"{name} takes plain text, without quotes or brackets. Received:"
                f" {value!r}."
            )
        return value
    try:
        return int(value) if kind is int else float(value)
    except ValueError:
        raise ValueError(
            f"{name} must be {KINDS[kind]}. Received: {value!r}."
        ) from None


def _check_value(name: str, facts: Facts, value: Any) -> None:
    if facts.kind is float and type(value) is int:
        value = float(value)
    if type(value) is not facts.kind:
        raise ValueError(
            f"{name} must be of type {facts.kind.__name__}. Received: {value!r}."
        )
    if facts.choices and value not in facts.choices:
        raise ValueError(
            f"{name} must be one of {', '.join(facts.choices)}. Received: {value!r}."
        )
    if isinstance(value, int | float):
        if not facts.in_range(value):
            raise ValueError(f"{name} must be {facts.range}. Received: {value}.")
        if not math.isfinite(value):
            raise ValueError(f"{name} must be a finite number. Received: {value}.")
