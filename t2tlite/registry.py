"""Problems, tasks, models, metrics and hparam sets by name.

Problems, tasks, models and metrics are classes, an hparam set is a function without
arguments; a decorator registers each under its name. --registry_help prints the first
paragraph of each docstring. CONTRIBUTING.md has examples.

Only `t2tlite.bin` and the Python API (`t2tlite/__init__.py`, `programs/runs/start.py`)
look up problems and hparam sets; the rest of the library receives objects. Manifests
name tasks, and hparams name models, which the library looks up.
"""

from __future__ import annotations

import dataclasses
import difflib
import importlib
import inspect
import os
import re
import traceback
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from t2tlite import tensor2tensor_names

T = TypeVar("T")

HPARAMS = "hparams"  # what HParams call themselves in messages

# the end of a message on an unknown name
USER_PACKAGE_HINT = "If it is defined in your own package, add --t2t_usr_dir=FOLDER."

_problems: dict[str, type] = {}
_tasks: dict[str, type] = {}
_models: dict[str, type] = {}
# t2tlite's models -> the modules that register them, which need Keras
MODELS = {"transformer": "t2tlite.models.transformer"}
_metrics: dict[str, Callable[..., Any]] = {}
_hparams: dict[str, Callable[[], object]] = {}


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Returns the end of an error message: the known names similar to `name`, or all
    names if none is similar.
    """
    known = sorted(known)
    similar = difflib.get_close_matches(name, known, n=3, cutoff=0.6)
    if similar:
        return f"Did you mean {' or '.join(map(repr, similar))}?"
    return f"Known: {', '.join(known)}."


def snake_case(name: str) -> str:
    """`ParallelText` -> `parallel_text`; `WMTEnde` -> `wmt_ende`."""
    name = re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1_\2", name)
    return re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name).lower()


def register_problem(cls: type[T]) -> type[T]:
    """Registers a Problem class under its name in snake case. The name with `_rev`
    swaps source and target.

    Raises ValueError if the name is taken or ends in `_rev`, or the class is written
    for tensor2tensor.
    """
    _check_decorated("problem", cls)
    name = snake_case(cls.__name__)
    for attribute in dir(cls):
        hint = tensor2tensor_names.answer(tensor2tensor_names.ATTRIBUTES, attribute)
        if hint:
            raise ValueError(f"{cls.__name__} must be a problem of t2tlite. {hint}")
    if name.endswith("_rev"):
        raise ValueError(
            "A problem's name must not end in '_rev', which reverses a problem."
            f" Received: {name!r}."
        )
    _add(_problems, name, cls, "problem")
    return cls


def register_task(cls: type[T]) -> type[T]:
    """Registers a Task class under its `name`. Raises ValueError if that is taken or
    missing.
    """
    _check_decorated("task", cls)
    name = vars(cls).get("name")
    if not isinstance(name, str) or not name:
        raise ValueError(
            f"A task needs a class attribute `name`, a text. Received: {cls.__name__}"
            f" with {name!r}."
        )
    _add(_tasks, name, cls, "task")
    return cls


def register_model(cls: type[T]) -> type[T]:
    """Registers a Model class under its name in snake case. Raises ValueError if the
    name is taken.
    """
    _check_decorated("model", cls)
    _add(_models, snake_case(cls.__name__), cls, "model")
    return cls


def register_metric(metric: Callable[..., T]) -> Callable[..., T]:
    """Registers a class or function that makes one of sacrebleu's metrics from
    `MetricOptions`, under its name in snake case. Raises ValueError if that is taken.
    """
    _check_decorated("metric", metric)
    _add(_metrics, snake_case(metric.__name__), metric, "metric")
    return metric


def register_hparams(function: Callable[[], T]) -> Callable[[], T]:
    """Registers a function that returns HParams under its name. Raises ValueError if
    the name is taken.
    """
    _check_decorated("hparams", function)
    _add(_hparams, function.__name__, function, "hparam set")
    return function


def get_task(name: str) -> Any:
    """The class of a registered task. Raises ValueError if there is no such task."""
    if name not in _tasks:
        raise _unknown("task", name, _tasks)
    return _tasks[name]


def check_model(name: str) -> None:
    """Raises ValueError for an unknown model."""
    if name not in MODELS and name not in _models:
        raise _unknown("model", name, {*MODELS, *_models})


def get_model(name: str) -> Any:
    """The class of a registered model. Raises ValueError for an unknown one."""
    check_model(name)
    if name in MODELS:
        importlib.import_module(MODELS[name])
    return _models[name]


def get_metric(name: str) -> Callable[..., Any]:
    """What makes a registered metric. Raises ValueError for an unknown one."""
    if name not in _metrics:
        raise _unknown("metric", name, _metrics)
    return _metrics[name]


def problem_classes() -> dict[str, type]:
    """The registered problem classes by name, without the `_rev` names."""
    return dict(_problems)


def option_fields(cls: type) -> list[dataclasses.Field[Any]]:
    """Returns the fields of a problem that are its options: all except `reverse`,
    which the name sets.
    """
    return [
        field
        for field in dataclasses.fields(cls)
        if field.init and field.name != "reverse"
    ]


def get_problem(name: str, **options: object) -> Any:
    """Makes the problem of a registered name, reversed if the name ends in `_rev`.

    The options are values for its fields, such as `vocab_size=8000`. One value alone,
    or a list, is enough for an option of several. Raises ValueError if there is no such
    problem or option.
    """
    base = name.removesuffix("_rev")
    if name not in list_problems():
        raise _unknown("problem", name, list_problems())
    cls: Any = _problems[base]
    fields = {field.name: field for field in option_fields(cls)}
    values = {}
    for option, value in options.items():
        if option not in fields:
            raise ValueError(
                f"Problem {base!r} has no option {option!r}. Its options:"
                f" {', '.join(sorted(fields)) or 'none'}."
            )
        several = isinstance(fields[option].default, tuple)
        values[option] = _several(option, value) if several else value
    return cls(reverse=name != base, **values)


def get_hparams(name: str) -> Any:
    """The HParams of a registered set.

    Raises ValueError if there is no such set, or if its function raises an exception or
    returns something else.
    """
    if name not in _hparams:
        raise _unknown("hparam set", name, _hparams)
    function = _hparams[name]
    try:
        result = function()
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[1:2]
        place = "".join(f"{frame.filename}, line {frame.lineno}" for frame in where)
        reason = str(error)
        if not isinstance(error, ValueError):
            reason = f"{type(error).__name__}: {reason.rstrip('.')}."
        raise ValueError(
            f"The hparam set {name!r} cannot be made: {reason} Correct its function,"
            f" {place or function.__module__}."
        ) from error
    if getattr(result, "called", None) != HPARAMS:
        raise ValueError(
            f"The function of the hparam set {name!r} must return HParams. Received:"
            f" {result!r:.80}. Write return dataclasses.replace(transformer_base(),"
            " ...)."
        )
    return result


def hparams_doc(name: str) -> str:
    """The docstring of a registered set: its purpose and expected results."""
    return _hparams[name].__doc__ or ""


def list_problems() -> dict[str, str]:
    """Every problem's name and one-line description, `_rev` names included."""
    names: dict[str, str] = {}
    for name, text in summaries(_problems).items():
        names |= {name: text, f"{name}_rev": f"{name} with source and target swapped."}
    return names


def list_hparams() -> dict[str, str]:
    return summaries(_hparams)


def registry_help() -> str:
    """Returns the text of --registry_help: a line for each problem and hparam set."""
    tables = {"Problems": list_problems(), "Hparam sets": list_hparams()}
    lines = []
    for title, entries in tables.items():
        width = max(map(len, entries), default=0)
        lines.append(f"{title}:")
        for name, text in entries.items():
            lines.append(f"  {name:<{width}}  {text}")
        lines.append("")
    return "\n".join(lines)


def _several(option: str, value: object) -> tuple[str, ...]:
    """One text or path, or a list of them, as a tuple of texts."""
    if isinstance(value, str | os.PathLike):
        value = [value]
    if not isinstance(value, list | tuple):
        raise ValueError(
            f"{option} must be a text or path, or a list of them. Received: a value of"
            f" type {type(value).__name__}. Sentences are read from files: write them"
            " to one."
        )
    texts = []
    for item in value:
        texts.append(os.fspath(item) if isinstance(item, os.PathLike) else item)
    return tuple(texts)


def _unknown(kind: str, name: str, known: Iterable[str]) -> ValueError:
    """The error that no `kind` has this name."""
    table = {
        "problem": tensor2tensor_names.PROBLEMS,
        "hparam set": tensor2tensor_names.HPARAM_SETS,
    }.get(kind, {})
    hint = tensor2tensor_names.answer(table, name) or did_you_mean(name, known)
    return ValueError(f"There is no {kind} {name!r}. {hint} {USER_PACKAGE_HINT}")


def _check_decorated(kind: str, item: object) -> None:
    """Raises TypeError for a decorator with a name, as tensor2tensor's may have."""
    if not callable(item):
        raise TypeError(
            f"register_{kind} names what it stands above. Received: {item!r}. Write"
            f" @register_{kind} without a name."
        )


def _add(table: dict[str, T], name: str, item: T, kind: str) -> None:
    modules = {table.get(name, item).__module__, item.__module__}
    # a notebook's cell, which may run again, is in __main__
    if name in table and modules != {"__main__"}:
        raise ValueError(
            f"Each {kind} needs a name of its own. Received: {name!r} from"
            f" {item.__module__}, already registered by {table[name].__module__}."
            " Rename one of them."
        )
    table[name] = item


def summaries(table: Mapping[str, Any]) -> dict[str, str]:
    """The first paragraph of each entry's docstring, on one line."""
    summary = {}
    for name, item in sorted(table.items()):
        paragraph = inspect.cleandoc(item.__doc__ or "").partition("\n\n")[0]
        # a dataclass without a docstring gets its signature
        if not paragraph or paragraph.startswith(f"{item.__name__}("):
            paragraph = f"({item.__module__}.{item.__name__} has no docstring.)"
        summary[name] = " ".join(paragraph.split())
    return summary
