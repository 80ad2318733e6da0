"""The frame in which every command runs and reports mistakes; and what flag values
stand for.

A command names its flags, which `bin/definitions.py` defines and `bin/command_line.py`
parses. A class of `CheckedFields` among the names stands for a flag for each field;
`filled` makes an object of that class.

    @flags.command(__doc__, "problem data_dir problem_options", LoopConfig, "verbosity")
    def main(args: flags.Args) -> None: ...

Each call of `main` has flag values of its own, so that several commands can run in one
process.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import gc
import importlib
import os
import shlex
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from absl import flags as absl_flags

import t2tlite
from t2tlite import registry
from t2tlite.bin.command_line import (
    Names,
    as_option,
    definitions,
    help_text,
    own_flags,
    parse,
    unknown_flag,
)
from t2tlite.bin.definitions import (
    DATA_DIR,
    DEFINITIONS,
    PROBLEM_OPTIONS,
    RUNS_DIR,
    Args,
)
from t2tlite.bin.old_sources import read
from t2tlite.bin.show_hparams import show_hparams
from t2tlite.bin.user_package import import_user_package
from t2tlite.checked_fields import CheckedFields
from t2tlite.console import say
from t2tlite.data.beam_pipeline import Pipeline
from t2tlite.files.atomic_file import DISK_IS_FULL
from t2tlite.quiet import import_tensorflow

if TYPE_CHECKING:
    from t2tlite.data.dataset import Dataset
    from t2tlite.data.generate import Generated
    from t2tlite.programs.runs.translator import Translator
    from t2tlite.run_folder import RunFolder

C = TypeVar("C", bound=CheckedFields)


class CommandError(Exception):
    """A user error other than a bad value or a missing file, such as flags that exclude
    each other.
    """


class Command(NamedTuple):
    """A command, which is called as `main(argv=None)`."""

    doc: str | None  # its docstring: the first part of --help
    # the flags it takes: names in DEFINITIONS, PROBLEM_OPTIONS, classes
    names: Sequence[Names]
    run: Callable[[Args], None]  # what to do with the flag values
    # raises for wrong values, runs, files or data, before TensorFlow is imported
    check: Callable[[Args], object] | None = None

    def __call__(self, argv: Sequence[str] | None = None) -> int:
        """Parses the command line and runs the command; a user error becomes one
        message without a traceback.

        The arguments are by default those of this process. Returns the exit status: 0;
        1 after a user error; 128 + its number after a signal.
        """
        program = os.path.basename(sys.argv[0]) if argv is None else "t2tlite"
        argv = sys.argv[1:] if argv is None else list(argv)
        args = Args()
        try:
            if "--version" in argv:
                print(f"t2tlite {t2tlite.__version__}", flush=True)
                return 0
            importlib.import_module("t2tlite.hparams")  # registers the sets
            if PROBLEM_OPTIONS in own_flags(self.names):
                _register_problems(argv)
            if {"--help", "-h", "-help", "--helpfull", "-?"} & set(argv):
                print(help_text(self.doc, self.names), flush=True)
                return 0
            args = parse(self.names, argv)
            if information := _information(args):
                print(information, flush=True)
                return 0
            _prepare(args)
            if self.check:
                self.check(args)
            _load_tensorflow(args)
            self.run(args)
            sys.stdout.flush()  # an error of a full disk is raised here
        except absl_flags.Error as error:
            unknown = isinstance(error, absl_flags.UnrecognizedFlagError)
            message = (
                unknown_flag(error, definitions(self.names)) if unknown else str(error)
            )
            return _fail(
                program,
                f"{message}{'' if message[-1] in '.?' else '.'} --help lists the"
                " flags.",
            )
        except BrokenPipeError:
            # the program that reads the output, such as head, has closed it
            _discard_standard_output()
            return 128 + signal.SIGPIPE
        except (
            ValueError,
            OSError,
            ArithmeticError,
            MemoryError,
            CommandError,
        ) as error:
            if getattr(args, "verbosity", "") == "debug":
                raise
            if isinstance(error, OSError) and error.errno in DISK_IS_FULL:
                _discard_standard_output()  # Python would try again at the end
            return _fail(program, _explained(error))
        except KeyboardInterrupt as error:
            # raised with a message if a signal stopped training
            number = getattr(error, "signal_number", signal.SIGINT)
            return _fail(program, str(error) or "Interrupted.", 128 + number)
        return 0


def command(
    doc: str | None, *names: Names, check: Callable[[Args], object] | None = None
) -> Callable[[Callable[[Args], None]], Command]:
    """Makes a command of a function of the flag values; for the arguments see
    `Command`.
    """
    return functools.partial(Command, doc, names, check=check)


def require(args: Args, *names: str, example: str = "") -> list[str]:
    """The values of flags that must be given. Raises CommandError that names those that
    are not.
    """
    values = {f"--{name}": getattr(args, name) for name in names}
    missing = [name for name, value in values.items() if _is_missing(value)]
    if missing:
        shown = f" Example: {example}." if example else ""
        raise CommandError(
            f"{' and '.join(missing)} must be given. --help explains the flags.{shown}"
        )
    return list(values.values())


def _is_missing(value: Any) -> bool:
    """Whether a flag is not given, or given without a value, as by --name=$UNSET."""
    is_list = isinstance(value, list)
    return value in (None, "", []) or (is_list and "" in value)


# what flag values stand for


def run_folder(args: Args) -> RunFolder:
    """The run that --output_dir names, or --problem and --hparams_set; CommandError
    without either.
    """
    from t2tlite.run_folder import RunFolder

    if args.output_dir is None and args.problem and args.hparams_set:
        return RunFolder(Path(RUNS_DIR) / f"{args.problem}-{args.hparams_set}")
    if not args.output_dir:
        raise CommandError(
            "--output_dir must be given, or --problem and --hparams_set for the run in"
            f" {RUNS_DIR}/PROBLEM-HPARAMS_SET."
        )
    return RunFolder(args.output_dir)


def check_data(args: Args) -> None:
    """Raises as `open_data` if data to train on is missing and is not made first, or if
    a problem or an option is unknown.
    """
    if args.generate_data:
        registry.get_problem(*require(args, "problem"), **args.options)
    else:
        open_data(args)


def data_dir(args: Args) -> Path:
    """The folder that --data_dir names, or by default `data`."""
    return Path(args.data_dir or DATA_DIR)


def make_data(args: Args, pipeline: Pipeline | None = None) -> Generated:
    """Makes the problem's data as t2t-datagen does, unless it is complete."""
    from t2tlite.data.generate import generate

    example = "t2t-datagen --problem=grammar_ende; --registry_help lists the problems"
    problem = registry.get_problem(
        *require(args, "problem", example=example), **args.options
    )
    importlib.import_module("t2tlite.tasks")
    registry.get_task(problem.task)  # raises if there is none, before hours of work
    tmp_dir = None if args.tmp_dir is None else Path(args.tmp_dir)
    return generate(problem, data_dir(args), tmp_dir, args.num_processes, pipeline)


def pipeline(args: Args) -> Pipeline | None:
    """The pipeline of --beam_runner, or None; CommandError for --beam_options without a
    runner.
    """
    if args.beam_options and not args.beam_runner:
        raise CommandError(
            f"--beam_options go with --beam_runner. Received: {args.beam_options}"
            " alone."
        )
    return Pipeline(args.beam_runner, args.beam_options) if args.beam_runner else None


def load_run(
    folder: RunFolder,
    checkpoint_path: str | None,
    engine: str = "tensorflow",
    quantization: str | None = None,
) -> Translator:
    """Loads the model of a run, and prints notes on its checkpoint. Raises as
    t2tlite.load does.
    """
    from t2tlite.programs.runs.checkpoint_choice import checkpoint_notes
    from t2tlite.programs.runs.load import load

    model = load(folder.path, checkpoint_path, engine, quantization, report=say)
    for note in checkpoint_notes(folder, model.checkpoint):
        say(note)
    return model


def open_data(args: Args) -> Dataset:
    """Opens the data to train on, and makes it first if --generate_data is given.

    Raises CommandError for options of the data without --generate_data,
    FileNotFoundError with the command that makes the data if there is none, and
    ValueError for an unknown problem, or if none of several is named.
    """
    from t2tlite.data.dataset import open_dataset
    from t2tlite.vocabularies.encoders import reading_notes

    if args.generate_data:
        say(str(make_data(args)))
    elif args.options:
        given = ", ".join(f"--{name}" for name in args.options)
        raise CommandError(
            f"{given}: options of the data need --generate_data, or belong to"
            " t2t-datagen."
        )
    try:
        dataset = open_dataset(
            data_dir(args), args.problem or None, datagen_command(args)
        )
    except FileNotFoundError as error:
        if args.problem:
            # an unknown name is the mistake to report
            registry.get_problem(args.problem)
        raise FileNotFoundError(
            f"{error} Or add --generate_data to this command."
        ) from error
    if not args.generate_data:  # otherwise said already
        for note in reading_notes(dataset.encoders, dataset.manifest.options):
            say(note)
    return dataset


def datagen_command(args: Args) -> str:
    """The command that makes the problem's data; FOLDER and FILE stand for what only
    the user knows.
    """
    values = {name: getattr(args, name) for name in ("tmp_dir", "t2t_usr_dir")}
    values = {name: value for name, value in values.items() if value is not None}
    cls = registry.problem_classes().get((args.problem or "").removesuffix("_rev"))
    for name in getattr(cls, "needed_flags", ()):
        values.setdefault(name, "FOLDER" if name.endswith("_dir") else "FILE")
    given = {"problem": args.problem or "PROBLEM", "data_dir": data_dir(args), **values}
    return shlex.join(
        ["t2t-datagen", *(f"--{name}={value}" for name, value in given.items())]
    )


def filled(cls: type[C], args: Args, **others: Any) -> C:
    """An object whose fields are flags of the command; `others` are values for those
    not given.
    """
    values = {}
    for field in dataclasses.fields(cls):
        value = getattr(args, field.name, None)
        if value is not None:
            values[field.name] = as_option(value)
    return cls(**(others | values))


def words(args: Args, defaults: bool = False) -> list[str]:
    """The flags that were given, as --name=value; with `defaults`, all flags that have
    a value.
    """
    words = []
    for name, value in {**vars(args), **args.options}.items():
        if name == "options" or value is None or value is False:
            continue
        shown = _joined(value) if isinstance(value, list | tuple) else value
        default = DEFINITIONS[name].default if name in DEFINITIONS else None
        if shown != "" and (defaults or shown != default):
            words.append(f"--{name}={shown}")
    return words


def _joined(values: Sequence[str]) -> str:
    """Values of a list flag as one text, in quotes where they contain a comma."""
    return absl_flags.CsvListSerializer(",").serialize(list(values))


def set_verbosity(verbosity: str) -> None:
    """Hides TensorFlow's start-up messages unless it is info or debug. Call before
    TensorFlow is imported.
    """
    levels = {"debug": "0", "info": "0", "warning": "3", "error": "3"}
    if verbosity not in levels:
        raise ValueError(
            f"--verbosity must be one of {', '.join(levels)}. Received: {verbosity!r}."
        )
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = levels[verbosity]


def _prepare(args: Args) -> None:
    """Sets the log level and imports the user's package, for a command that takes these
    flags.
    """
    verbosity = getattr(args, "verbosity", None)
    if verbosity is not None:
        set_verbosity(verbosity)
    import_user_package(getattr(args, "t2t_usr_dir", None))


def _load_tensorflow(args: Args) -> None:
    """Imports TensorFlow, for a command that takes the flag of its log level."""
    verbosity = getattr(args, "verbosity", None)
    # starts sooner without TensorFlow
    other_engine = getattr(args, "engine", "tensorflow") != "tensorflow"
    if verbosity is None or other_engine:
        return
    if "tensorflow" not in sys.modules:
        import_tensorflow()
        # neither garbage collection nor the end of the process looks through its
        # objects
        gc.freeze()
    import tensorflow as tf

    tf.get_logger().setLevel(verbosity.upper())


def _information(args: Args) -> str:
    """What --registry_help or --show_hparams prints; empty if neither is given."""
    if getattr(args, "registry_help", False):
        return registry.registry_help()
    if hparam_set := getattr(args, "show_hparams", None):
        return show_hparams(hparam_set, args.hparams)
    return ""


def _register_problems(argv: Sequence[str]) -> None:
    """Imports our problems and those of --t2t_usr_dir, whose options become flags."""
    importlib.import_module("t2tlite.problems")
    name = "t2t_usr_dir"
    values, _ = read({name: DEFINITIONS[name]}, argv, known_only=True)
    import_user_package(values[name])


def _explained(error: Exception) -> str:
    """The message of an error; an operating system's own, such as `[Errno 2] ...:
    '/proc/x'`, with what to do.
    """
    if not isinstance(error, OSError):
        return str(error)
    if error.errno in DISK_IS_FULL and error.strerror:
        return (
            f"The disk of {error.filename or 'standard output'} is full. Free some"
            " space and run the same command again."
        )
    if error.errno and error.filename:
        return (
            f"{error.filename} cannot be used: {error.strerror}. Use another path, or"
            " change its permissions."
        )
    return str(error)


def _discard_standard_output() -> None:
    """Discards what is not written yet to standard output, which cannot be written."""
    with contextlib.suppress(OSError, ValueError):  # not a file, as in a notebook
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(program: str, message: str, status: int = 1) -> int:
    say(f"{program}: {message}")
    return status
