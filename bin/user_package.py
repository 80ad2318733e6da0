"""A Python package of the user's, which registers problems and hparam sets
(--t2t_usr_dir).
"""

from __future__ import annotations

import importlib.util
import os
import re
import sys
import traceback
from pathlib import Path


def import_user_package(path: str | None) -> None:
    """Imports the package in folder `path`, if one is given.

    Its name is the folder's, with `_` for characters that a Python name cannot have.
    Raises ValueError if there is no such package, another module has its name, or it
    raises an exception.
    """
    if path is None:
        return
    folder = Path(os.path.abspath(os.path.expanduser(path)))
    file, name = folder / "__init__.py", re.sub(r"\W", "_", folder.name)
    if not path or not file.is_file():
        raise ValueError(
            "--t2t_usr_dir must be a folder with an __init__.py. Received:"
            f" {path or 'an empty name'}."
        )
    if name in sys.modules:
        where = getattr(sys.modules[name], "__file__", None)
        if where != str(file):
            raise ValueError(
                "--t2t_usr_dir must have a name that no other module has. Received:"
                f" {path}, and the module {name} ({where or 'built into Python'})."
                " Rename the folder."
            )
        return
    spec = importlib.util.spec_from_file_location(
        name, file, submodule_search_locations=[str(folder)]
    )
    module = sys.modules[name] = importlib.util.module_from_spec(spec)  # type: ignore[arg-type]
    sys.path.insert(0, str(folder.parent))
    try:
        spec.loader.exec_module(module)  # type: ignore[union-attr]
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        frames = traceback.extract_tb(error.__traceback__)
        inside = [
            frame for frame in frames if Path(frame.filename).is_relative_to(folder)
        ]
        at = f" ({inside[-1].filename}, line {inside[-1].lineno})" if inside else ""
        raise ValueError(
            f"--t2t_usr_dir={path} cannot be imported{at}: {type(error).__name__}:"
            f" {error}"
        ) from error
    finally:
        sys.path.remove(str(folder.parent))
