"""docs/api.md, the reference of the Python API: each name in it exists, and what its
docstrings and signatures name is in it too.
"""

import importlib
import inspect
import re
import typing
from collections.abc import Iterator
from types import ModuleType
from typing import Any, NamedTuple

import pytest
import yaml
from documents import ROOT

from t2tlite import config

ENTRY = re.compile(r"^::: ([\w.]+)\n((?:    .*\n)*)", re.MULTILINE)
NAME = re.compile(r"`([A-Za-z][\w.]*)`")
# values that docstrings name, and Python's own names
OTHERS = {"field", "value", "self"}


class Entry(NamedTuple):
    """An object that the page describes."""

    name: str  # "t2tlite.tasks.task.Task"
    value: Any
    members: list[str]  # those shown, if it is a class


def resolved(name: str) -> Any:
    """The object of a dotted name."""
    module, *rest = name.split(".")
    value: Any = importlib.import_module(module)
    for part in rest:
        if isinstance(value, ModuleType) and not hasattr(value, part):
            value = importlib.import_module(f"{value.__name__}.{part}")
        else:
            value = getattr(value, part)
    return value


def public(value: Any) -> list[str]:
    return [name for name in vars(value) if not name.startswith("_")]


def entries() -> Iterator[Entry]:
    text = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    for name, options in ENTRY.findall(text):
        value = resolved(name)
        members = public(value) if inspect.isclass(value) else []
        if options:
            members = yaml.safe_load(options)["options"]["members"] or []
        yield Entry(name, value, members)


ENTRIES = list(entries())
SHORT_NAMES = {entry.name.rpartition(".")[2] for entry in ENTRIES}


def functions(entry: Entry) -> Iterator[tuple[str, Any]]:
    """The functions that an entry shows, each with its name."""
    if inspect.isfunction(entry.value):
        yield entry.name, entry.value
    for name in entry.members:
        member = inspect.getattr_static(entry.value, name)
        member = getattr(member, "__func__", member)
        if isinstance(member, property):
            member = member.fget
        if inspect.isfunction(member):
            yield f"{entry.name}.{name}", member


def fields(entry: Entry) -> set[str]:
    """The fields of a class, which its docstring or theirs describe."""
    annotations = getattr(entry.value, "__annotations__", {})
    return {name for name in annotations if not name.startswith("_")}


def test_the_page_describes_what_a_model_returns():
    returned = {"Translator", "Attention", "Output", "Tree"}
    assert returned <= SHORT_NAMES


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_members_exist_and_have_docstrings(entry):
    for name in entry.members:
        assert hasattr(entry.value, name) or name in fields(entry), name
    # the page leaves out what has none
    described = [
        name for name, function in functions(entry) if inspect.getdoc(function)
    ]
    assert described or not [*functions(entry)]
    assert inspect.getdoc(entry.value)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_names_in_docstrings_lead_somewhere(entry):
    """A name between backquotes is a parameter, a member of a class of the page, or an
    entry of it.
    """
    everywhere = {entry.name for entry in ENTRIES} | SHORT_NAMES | OTHERS
    for other in ENTRIES:
        everywhere |= fields(other) | set(other.members)
        short = other.name.rpartition(".")[2]
        everywhere |= {f"{short}.{member}" for member in other.members}
    unknown = []
    documented = [(entry.name, entry.value), *functions(entry)]
    for name, value in documented:
        known = set(everywhere)
        if inspect.isfunction(value) or inspect.isclass(value):
            known |= set(inspect.signature(value).parameters)
        docstring = inspect.getdoc(value) if callable(value) else ""
        spans = NAME.findall(docstring or "")
        unknown += [f"{name}: {span}" for span in spans if span not in known]
    assert unknown == []


def classes_in(annotation: Any) -> Iterator[type]:
    """The classes of this project that a type is made of."""
    for part in typing.get_args(annotation):
        yield from classes_in(part)
    # keyword arguments are the fields of a class of the page
    is_own = inspect.isclass(annotation) and annotation.__module__.startswith("t2tlite")
    if is_own and not typing.is_typeddict(annotation):
        yield annotation


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_types_in_signatures_are_on_the_page(entry):
    missing = []
    # t2tlite imports types of its functions for type checkers alone
    of_page = {other.name.rpartition(".")[2]: other.value for other in ENTRIES}
    for name, function in functions(entry):
        names = of_page | vars(config) | vars(inspect.getmodule(function))
        for annotation in typing.get_type_hints(function, names).values():
            shown = [kind.__name__ for kind in classes_in(annotation)]
            missing += [f"{name}: {kind}" for kind in shown if kind not in SHORT_NAMES]
    assert missing == []
