"""The frame in which every command runs and reports mistakes.

    @command(AverageFlags, __doc__)
    def main(flags: AverageFlags) -> None: ...

Each call of `main` has flag values of its own, so that several commands can run in one
process.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import gc
import importlib
import importlib.util
import io
import logging
import os
import re
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar

from absl import flags as absl_flags

import t2tlite
from t2tlite.bin.flag_fields import Flags, flags_of, takes_options
from t2tlite.bin.flag_parser import help_text, parse, read_flags
from t2tlite.bin.groups import PackageFlags, TensorFlowFlags
from t2tlite.console import say
from t2tlite.files.atomic_file import DISK_IS_FULL
from t2tlite.quiet import import_tensorflow

F = TypeVar("F", bound=Flags)

SIGPIPE = 13  # its number; Windows has no such signal
HELP = {"--help", "-h", "-help", "--helpfull", "-?"}


@dataclasses.dataclass(frozen=True)
class Command(Generic[F]):
    """A command, which is called as `main(argv=None)`."""

    flags_class: type[F]
    doc: str | None  # its docstring: the first part of --help
    run: Callable[[F], None]  # gets the flag values

    def __call__(self, argv: Sequence[str] | None = None) -> int:
        """Parses the command line and runs the command; a user error becomes one
        message without a traceback.

        The arguments are by default those of this process. Returns the exit status: 0;
        1 after a user error; 128 + its number after a signal.
        """
        program = "t2tlite"
        if argv is None:
            program, *argv = sys.argv
            program = os.path.basename(program)
            _use_utf8()
        flags: Flags | None = None
        message, status = "", 1
        try:
            _check_unicode(argv)
            if "--version" in argv:
                return _answer(f"t2tlite {t2tlite.__version__}")
            self._register(argv)
            if HELP & set(argv):
                return _answer(help_text(self.doc, self.flags_class))
            flags = parse(self.flags_class, argv)
            _prepare(flags)
            self.run(flags)
            sys.stdout.flush()  # an error of a full disk is raised here
            return 0
        except absl_flags.Error as error:
            end = "" if str(error)[-1] in ".?" else "."
            message = f"{error}{end} --help lists the flags."
        except BrokenPipeError:
            # the program that reads the output, such as head, has closed it
            _discard_standard_output()
            return 128 + SIGPIPE
        except (ValueError, OSError, ArithmeticError, MemoryError) as error:
            if isinstance(flags, TensorFlowFlags) and flags.verbosity == "debug":
                raise
            message = _explained(error)
        except KeyboardInterrupt as error:
            # has a message if a signal stopped training
            message = str(error) or "Interrupted."
            status = 128 + getattr(error, "signal_number", signal.SIGINT)
        say(f"{program}: {message}")
        return status

    def _register(self, argv: Sequence[str]) -> None:
        """Registers the hparam sets, and the problems if their options are flags of the
        command; those of the user's package too.
        """
        importlib.import_module("t2tlite.hparams")
        if takes_options(self.flags_class):
            importlib.import_module("t2tlite.problems")
            values, _ = read_flags(flags_of(PackageFlags), argv, known_only=True)
            import_user_package(values["t2t_usr_dir"])


def command(
    flags_class: type[F], doc: str | None
) -> Callable[[Callable[[F], None]], Command[F]]:
    """Makes a command of a function of its flags; for the arguments see `Command`."""
    return functools.partial(Command, flags_class, doc)


def _check_unicode(argv: Sequence[str]) -> None:
    """Raises ValueError for an argument that is not UTF-8."""
    try:
        "".join(argv).encode()
    except UnicodeEncodeError:
        raise ValueError(
            f"Arguments must be UTF-8. Received: {argv!a}. Rename the file, or set"
            " LC_ALL=C.UTF-8."
        ) from None


def _prepare(flags: Flags) -> None:
    """Sets the log level and imports the user's package, for a command that takes these
    flags.
    """
    if isinstance(flags, TensorFlowFlags):
        hides = flags.verbosity in ("warning", "error")
        os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3" if hides else "0"
        logging.getLogger("tensorflow").setLevel(flags.verbosity.upper())
    if isinstance(flags, PackageFlags):
        import_user_package(flags.t2t_usr_dir)


def load_tensorflow() -> None:
    """Imports TensorFlow, which takes seconds."""
    if "tensorflow" not in sys.modules:
        import_tensorflow()
        # neither garbage collection nor the end of the process looks through its
        # objects
        gc.freeze()


def import_user_package(path: str | None) -> None:
    """Imports the package in folder `path`, if one is given.

    Its name is the folder's, with `_` for characters that a Python name cannot have.
    Raises ValueError if there is no such package, another module has its name, or it
    raises an exception.
    """
    if path is None:
        return
    folder = Path(os.path.abspath(os.path.expanduser(path)))
    file = folder / "__init__.py"
    name = re.sub(r"\W", "_", folder.name)
    taken = getattr(sys.modules.get(name), "__file__", "Python")
    if name in sys.modules and taken == str(file):
        return
    if not path or not file.is_file() or name in sys.modules:
        raise ValueError(
            "--t2t_usr_dir must be a folder with an __init__.py, and named unlike any"
            f" other module. Received: {path or 'an empty name'}."
        )
    spec: Any = importlib.util.spec_from_file_location(name, file)
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(folder.parent))
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        at = ""
        for frame in traceback.extract_tb(error.__traceback__):
            if Path(frame.filename).is_relative_to(folder):
                at = f" ({frame.filename}, line {frame.lineno})"
        raise ValueError(
            f"--t2t_usr_dir={path} cannot be imported{at}: {type(error).__name__}:"
            f" {error}"
        ) from error
    finally:
        sys.path.remove(str(folder.parent))


def _explained(error: Exception) -> str:
    """Returns the message of an error. An operating system's message, such as `[Errno
    2] ...: '/proc/x'`, is replaced by one that says what to do.
    """
    if isinstance(error, OSError) and error.errno in DISK_IS_FULL:
        _discard_standard_output()  # Python would try again at the end
        return (
            f"{error.strerror}: {error.filename or 'standard output'}. Free some space"
            " and run the same command again."
        )
    if isinstance(error, OSError) and error.errno and error.filename:
        return (
            f"{error.filename} cannot be used: {error.strerror}. Use another path, or"
            " change its permissions."
        )
    return str(error)


def _use_utf8() -> None:
    """Reads and prints UTF-8 also on Windows, whose default is an older encoding."""
    if os.name != "nt":
        return
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8")


def _answer(text: str) -> int:
    """Prints a text that the user asked for, and returns the exit status."""
    print(text, flush=True)
    return 0


def _discard_standard_output() -> None:
    """Discards buffered output, when standard output can no longer be written."""
    with contextlib.suppress(OSError, ValueError):  # not a file, as in a notebook
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
