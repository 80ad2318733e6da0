"""Frozen dataclasses with checked values, overrides in the command line's notation, and JSON."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from t2tlite.registry import did_you_mean

LARGEST = 2**31 - 1  # the largest whole number that fits in TensorFlow's shapes

H = TypeVar("H", bound="CheckedFields")


def checked_field(
    default: Any, meaning: str, low: float | None = None, high: float | None = None, choices: tuple[str, ...] = ()
) -> Any:
    """A dataclass field whose value must be in [low, high], or be one of `choices`; `meaning` says what it is."""
    metadata = {"meaning": meaning, "low": low, "high": high, "choices": choices}
    return dataclasses.field(default=default, metadata=metadata)


class CheckedFields:
    """What HParams and DecodeHParams share: checked values, overrides, JSON."""

    called = "hparams"  # in messages

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):  # type: ignore[arg-type]
            _check_value(field, getattr(self, field.name))

    def override(self: H, text: str) -> H:
        """A copy with the changes in `text`, `field=value,field=value`.

        Spaces around names and values and a trailing comma are ignored. Booleans are true, false, 1 or 0, in upper or
        lower case; strings have no quotes. An unknown field, a field set twice, a value of the wrong type or out of
        range, or a part that is not `field=value` raises a ValueError.

        >>> from t2tlite.config import HParams
        >>> HParams().override("batch_size=2048, relu_dropout=0.1").batch_size
        2048
        """
        fields = {field.name: field for field in dataclasses.fields(self)}  # type: ignore[arg-type]
        changes: dict[str, Any] = {}
        for part in [p for p in map(str.strip, text.split(",")) if p]:
            name, equals, value = (piece.strip() for piece in part.partition("="))
            if not equals or not name:
                raise ValueError(f"Each change must be field=value. Received: {part!r} in {text!r}.")
            self.check_names([name])
            if name in changes:
                raise ValueError(f"A field can be set once. Received: {name!r} twice in {text!r}.")
            changes[name] = _parse(name, value, type(fields[name].default))
        return dataclasses.replace(self, **changes)  # type: ignore[type-var]

    def to_json(self) -> str:
        """Every field, as a JSON object."""
        return json.dumps(dataclasses.asdict(self), indent=2) + "\n"  # type: ignore[call-overload]

    @classmethod
    def from_json(cls: type[H], text: str) -> H:
        """The object that `to_json` wrote; a missing field has its default.

        Text that is not a JSON object, an unknown field or a bad value raises a ValueError.
        """
        try:
            values = json.loads(text)
        except (ValueError, RecursionError) as error:  # not JSON, a number of thousands of digits, brackets as deep
            raise ValueError(f"The hparams must be a JSON object. Received text that is not: {error}.") from error
        if not isinstance(values, dict):
            raise ValueError(f"The hparams must be a JSON object. Received: a {type(values).__name__}.")
        return cls.of(values)

    @classmethod
    def of(cls: type[H], values: Mapping[str, Any]) -> H:
        """The object with these values by field; a missing field has its default.

        Raises ValueError for an unknown field or a bad value.
        """
        cls.check_names(values)
        return cls(**values)

    @classmethod
    def check_names(cls, names: Iterable[str]) -> None:
        """Raises ValueError if a name is not a field's."""
        fields = {field.name for field in dataclasses.fields(cls)}  # type: ignore[arg-type]
        for name in names:
            if name not in fields:
                raise ValueError(f"{cls.called} has no field {name!r}. {did_you_mean(name, fields)}")

    def diff(self: H, other: H) -> dict[str, tuple[Any, Any]]:
        """The fields in which two differ: name -> (value here, value in `other`)."""
        mine, theirs = dataclasses.asdict(self), dataclasses.asdict(other)  # type: ignore[call-overload]
        return {name: (mine[name], theirs[name]) for name in mine if mine[name] != theirs[name]}


def _parse(name: str, value: str, kind: type) -> Any:
    if kind is bool:
        if value.lower() not in ("true", "false", "1", "0"):
            raise ValueError(f"{name} must be true or false. Received: {value!r}.")
        return value.lower() in ("true", "1")
    if kind is str:
        if not value or any(mark in value for mark in "\"'[]"):
            raise ValueError(f"{name} takes plain text, without quotes or brackets. Received: {value!r}.")
        return value
    try:
        return kind(value)
    except ValueError:
        what = {int: "a whole number", float: "a number"}[kind]
        raise ValueError(f"{name} must be {what}. Received: {value!r}.") from None


def _check_value(field: dataclasses.Field[Any], value: Any) -> None:
    kind = type(field.default)
    if type(value) is int and abs(value) > LARGEST:
        raise ValueError(f"{field.name} must be a number of at most {LARGEST:,}. Received: {value}.")
    if kind is float and type(value) is int:
        value = float(value)
    if type(value) is not kind:
        raise ValueError(f"{field.name} must be of type {kind.__name__}. Received: {value!r}.")
    low, high, choices = (field.metadata.get(key) for key in ("low", "high", "choices"))
    if choices and value not in choices:
        raise ValueError(f"{field.name} must be one of {', '.join(choices)}. Received: {value!r}.")
    if (low is not None and not value >= low) or (high is not None and not value <= high):
        upper = "" if high is None else f" and at most {high}"
        raise ValueError(f"{field.name} must be at least {low}{upper}. Received: {value}.")
    if value in (float("inf"), float("-inf")) or value != value:
        raise ValueError(f"{field.name} must be a finite number. Received: {value}.")
