"""Problems, tasks, models, metrics and hparam sets by name.

Problems, tasks, models and metrics are classes, an hparam set is a function without
arguments; a decorator registers each under its name. --registry_help prints the first
paragraph of each docstring. CONTRIBUTING.md has examples.

Only `t2tlite.bin` and the Python API (`t2tlite/__init__.py`,
`programs/runs/training.py`) look up problems and hparam sets; the rest of the library
receives objects. Manifests name tasks, and hparams name models, which the library looks
up.
"""

import dataclasses
import difflib
import importlib
import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from t2tlite import tensor2tensor_names

T = TypeVar("T", bound=Callable[..., Any])

HPARAMS = "hparams"  # what HParams call themselves in messages

_problems: dict[str, type] = {}
_tasks: dict[str, type] = {}
# the text is the module that registers the model, and that needs Keras
_models: dict[str, Any] = {"transformer": "t2tlite.models.transformer"}
_metrics: dict[str, Callable[..., Any]] = {}
_hparams: dict[str, Callable[[], object]] = {}


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Returns the end of an error message: the known names similar to `name`, or all
    names if none is similar.
    """
    known = sorted(known)
    similar = difflib.get_close_matches(name, known)
    if similar:
        return f"Did you mean {' or '.join(map(repr, similar))}?"
    return f"Known: {', '.join(known)}."


def snake_case(name: str) -> str:
    """`ParallelText` -> `parallel_text`; `WMTEnde` -> `wmt_ende`."""
    name = re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1_\2", name)
    return re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name).lower()


def register_problem(cls: T) -> T:
    """Registers a Problem class under its name in snake case. The name with `_rev`
    swaps source and target.

    Raises ValueError if the name is taken or ends in `_rev`, or the class is written
    for tensor2tensor.
    """
    for attribute in dir(cls):
        hint = tensor2tensor_names.answer(tensor2tensor_names.ATTRIBUTES, attribute)
        if hint:
            raise ValueError(f"{cls.__name__} must be a problem of t2tlite. {hint}")
    return _register("problem", _problems, cls)


def register_task(cls: T) -> T:
    """Registers a Task class under its `name`. Raises ValueError if that is taken or
    missing.
    """
    return _register("task", _tasks, cls, getattr(cls, "name", ""))


def register_model(cls: T) -> T:
    """Registers a Model class under its name in snake case. Raises ValueError if the
    name is taken.
    """
    return _register("model", _models, cls)


def register_metric(metric: T) -> T:
    """Registers a class or function that makes one of sacrebleu's metrics from
    `MetricOptions`, under its name in snake case. Raises ValueError if that is taken.
    """
    return _register("metric", _metrics, metric)


def register_hparams(function: T) -> T:
    """Registers a function that returns HParams under its name. Raises ValueError if
    the name is taken.
    """
    return _register("hparam set", _hparams, function)


def get_task(name: str) -> Any:
    """The class of a registered task. Raises ValueError if there is no such task."""
    return _registered("task", _tasks, name)


def check_model(name: str) -> None:
    """Raises ValueError for an unknown model."""
    _registered("model", _models, name)


def get_model(name: str) -> Any:
    """The class of a registered model. Raises ValueError for an unknown one."""
    model = _registered("model", _models, name)
    if isinstance(model, str):
        importlib.import_module(model)
    return _models[name]


def get_metric(name: str) -> Callable[..., Any]:
    """What makes a registered metric. Raises ValueError for an unknown one."""
    return _registered("metric", _metrics, name)


def problem_classes() -> dict[str, type]:
    """The registered problem classes by name, without the `_rev` names."""
    return dict(_problems)


def option_fields(cls: type) -> list[dataclasses.Field[Any]]:
    """Returns the fields of a problem that are its options: all except `reverse`,
    which the name sets.
    """
    fields = dataclasses.fields(cls)
    return [field for field in fields if field.init and field.name != "reverse"]


def get_problem(name: str, **options: object) -> Any:
    """Makes the problem of a registered name, reversed if the name ends in `_rev`.

    The options are values for its fields, such as `vocab_size=8000`. Raises ValueError
    if there is no such problem or option.
    """
    _registered("problem", list_problems(), name)
    base = name.removesuffix("_rev")
    return _problems[base](reverse=name != base, **options)


def get_hparams(name: str) -> Any:
    """The HParams of a registered set.

    Raises ValueError if there is no such set, or if its function raises an exception or
    returns something else.
    """
    function = _registered("hparam set", _hparams, name)
    try:
        hparams = function()
        if getattr(hparams, "called", None) != HPARAMS:
            raise TypeError(f"it must return HParams. Received: {hparams!r:.80}.")
    except Exception as error:
        raise ValueError(f"The hparam set {name!r} has a mistake: {error}") from error
    return hparams


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
    text = ""
    for title, entries in tables.items():
        width = max(map(len, entries), default=0)
        text += f"{title}:\n"
        for name, summary in entries.items():
            text += f"  {name:<{width}}  {summary}\n"
        text += "\n"
    return text.rstrip("\n")


def summaries(table: Mapping[str, Any]) -> dict[str, str]:
    """The first paragraph of each entry's docstring, on one line."""
    summary = {}
    for name, item in sorted(table.items()):
        paragraph = inspect.cleandoc(item.__doc__ or "").partition("\n\n")[0]
        summary[name] = " ".join(paragraph.split())
    return summary


def _register(kind: str, table: dict[str, Any], item: T, name: str | None = None) -> T:
    """Adds an item to a table, by default under its name in snake case."""
    if name is None:
        name = snake_case(getattr(item, "__name__", ""))
    module = getattr(item, "__module__", "")
    taken = table.get(name, "")
    # a cell of a notebook may run again; the text is a module to import
    is_free = isinstance(taken, str) or taken.__module__ == module == "__main__"
    if not name or not is_free or name.endswith("_rev"):
        raise ValueError(
            f"Each {kind} needs a name of its own, without _rev at its end, and its"
            f" decorator none. Received: {name!r} from {module or repr(item)}."
        )
    table[name] = item
    return item


def _registered(kind: str, table: Mapping[str, Any], name: str) -> Any:
    """The entry of a table. Raises ValueError if there is none of this name."""
    if name in table:
        return table[name]
    answers = tensor2tensor_names.NAMES.get(kind, {})
    hint = tensor2tensor_names.answer(answers, name) or did_you_mean(name, table)
    raise ValueError(
        f"There is no {kind} {name!r}. {hint} If your own package defines it, add"
        " --t2t_usr_dir=FOLDER."
    )
