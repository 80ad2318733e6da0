"""The tasks by the name that manifests record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from t2tlite.registry import did_you_mean
from t2tlite.tasks.parsing import ParsingTask
from t2tlite.tasks.task import Task, TranslationTask

TASKS: dict[str, type[Task]] = {task.name: task for task in (TranslationTask, ParsingTask)}


def open_task(name: str, options: Mapping[str, Any]) -> Task:
    """The task of this name for a problem with these options; ValueError if there is no such task."""
    if name not in TASKS:
        raise ValueError(f"There is no task {name!r}. {did_you_mean(name, TASKS)}")
    return TASKS[name].from_options(options)
