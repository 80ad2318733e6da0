"""The data that a command's flags name: made, and opened."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from t2tlite import registry
from t2tlite.bin import flags

if TYPE_CHECKING:
    from t2tlite.data.dataset import Dataset
    from t2tlite.data.generate import Generated


def make_data(args: flags.Args) -> Generated:
    """Makes the problem's data as t2t-datagen does, unless it is complete."""
    # imported late: each encoding process imports the command's module, and needs nothing of this
    from t2tlite.data.generate import generate

    flags.require(args, "problem")
    problem = registry.problem(args.problem, **args.options)
    tmp_dir = None if args.tmp_dir is None else Path(args.tmp_dir).expanduser()
    return generate(problem, flags.data_dir(args), tmp_dir, args.num_processes)


def open_data(args: flags.Args) -> Dataset:
    """Opens the data to train on, and makes it first if --generate_data is given.

    Raises CommandError for options of the data without --generate_data, FileNotFoundError with the command that makes
    the data if there is none, and ValueError for an unknown problem, or if none is named and the data holds several.
    """
    from t2tlite.data.dataset import open_dataset

    if args.generate_data:
        print(make_data(args), file=sys.stderr)
    elif args.options:
        given = ", ".join(f"--{name}" for name in args.options)
        raise flags.CommandError(f"{given}: options of the data go with --generate_data, or to t2t-datagen.")
    try:
        return open_dataset(flags.data_dir(args), args.problem or None, datagen_command(args))
    except FileNotFoundError as error:
        if args.problem:
            registry.problem(args.problem)  # an unknown name is the mistake to report
        raise FileNotFoundError(f"{error} Or add --generate_data to this command.") from error


def datagen_command(args: flags.Args) -> str:
    """The command that makes the problem's data; FOLDER and FILE stand for what only the user knows."""
    values = {name: getattr(args, name) for name in ("tmp_dir", "t2t_usr_dir") if getattr(args, name) is not None}
    cls = registry.problem_classes().get((args.problem or "").removesuffix("_rev"))
    for name in getattr(cls, "needed_flags", ()):
        values.setdefault(name, "FOLDER" if name.endswith("_dir") else "FILE")
    given = {"problem": args.problem or "PROBLEM", "data_dir": flags.data_dir(args), **values}
    return shlex.join(["t2t-datagen", *(f"--{name}={value}" for name, value in given.items())])
