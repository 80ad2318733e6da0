"""Documents that are made of a template and facts: a README, a page, a chart."""

import importlib.resources
from collections.abc import Callable, Mapping
from typing import Any


def package_text(path: str) -> str:
    """A text file of this package, by its path in it."""
    file = importlib.resources.files("t2tlite").joinpath(*path.split("/"))
    return file.read_text(encoding="utf-8")


def fill_in(
    path: str,
    facts: Mapping[str, object],
    filters: Mapping[str, Callable[..., Any]] | None = None,
    **settings: Any,
) -> str:
    """The document of a template of this package, which also knows these filters.
    `settings` are of the environment, `jinja2.Environment`.
    """
    import jinja2  # importing it takes a tenth of the time of --help

    environment = jinja2.Environment(trim_blocks=True, lstrip_blocks=True, **settings)
    environment.filters |= filters or {}
    return environment.from_string(package_text(path)).render(facts)
