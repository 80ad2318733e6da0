"""The frame in which every command runs and reports mistakes.

    @command
    def main(flags: AverageFlags) -> None: ...

Each call of `main` has flag values of its own, so that several commands can run in one
process.
"""

import contextlib
import dataclasses
import gc
import importlib
import io
import logging
import os
import re
import signal
import sys
import traceback
import typing
from collections.abc import Callable, Sequence
from pathlib import Path

from absl import flags as absl_flags

import t2tlite
from t2tlite import registry
from t2tlite.bin import flags as flag_values
from t2tlite.bin.groups import PackageFlags, TensorFlowFlags
from t2tlite.console import say
from t2tlite.files.atomic_file import DISK_IS_FULL
from t2tlite.machine import import_tensorflow

SIGPIPE = 13  # its number; Windows has no such signal
HELP = {"--help", "-h", "-help", "--helpfull", "-?"}
# TensorFlow and Keras import them if they are installed; no command needs that
OPTIONAL = ("IPython", "jax", "matplotlib", "pandas", "scipy", "sklearn")


@dataclasses.dataclass(frozen=True)
class Command:
    """A command, which is called as `main(argv=None)`."""

    flags_class: type[flag_values.Flags]
    doc: str | None  # its docstring: the first part of --help
    run: Callable[[typing.Any], None]  # gets the flag values

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
        status = 1
        try:
            self._run(argv)
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
            if logging.getLogger("tensorflow").level == logging.DEBUG:
                raise  # with its traceback
            message = _explained(error)
        except KeyboardInterrupt as error:
            # has a message if a signal stopped training
            message = str(error) or "Interrupted."
            status = 128 + getattr(error, "signal_number", signal.SIGINT)
        say(f"{program}: {message}")
        return status

    def _run(self, argv: Sequence[str]) -> None:
        if any(re.search("[\ud800-\udfff]", word) for word in argv):
            raise ValueError(
                f"Arguments must be UTF-8, as with LC_ALL=C.UTF-8. Received: {argv!a}."
            )
        if "--version" in argv:
            print(f"t2tlite {t2tlite.__version__}")
            return
        importlib.import_module("t2tlite.hparams")
        if flag_values.takes_options(self.flags_class):
            importlib.import_module("t2tlite.problems")
        if issubclass(self.flags_class, PackageFlags):
            # whose problems have options, which are flags
            known = flag_values.flags_of(PackageFlags)
            given = flag_values.read_flags(known, argv, known_only=True)
            import_user_package(given.get("t2t_usr_dir"))
        if HELP & set(argv):
            print(flag_values.help_text(self.doc, self.flags_class))
            return
        values = flag_values.parse(self.flags_class, argv)
        if getattr(values, "registry_help", False):
            print(registry.registry_help())
            return
        if isinstance(values, TensorFlowFlags):
            hides = values.verbosity in ("warning", "error")
            os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3" if hides else "0"
            logging.getLogger("tensorflow").setLevel(values.verbosity.upper())
        self.run(values)


def command(run: Callable[[typing.Any], None]) -> Command:
    """Makes a command of the function of a module, whose docstring is its help."""
    flags_class = typing.get_type_hints(run)["flags"]
    return Command(flags_class, sys.modules[run.__module__].__doc__, run)


def load_tensorflow() -> None:
    """Imports TensorFlow, which takes seconds; 1.3 s more with all of `OPTIONAL`."""
    if "tensorflow" in sys.modules:
        return
    hidden = [name for name in OPTIONAL if name not in sys.modules]
    sys.modules.update(dict.fromkeys(hidden))  # type: ignore[arg-type]
    try:
        import_tensorflow()
    finally:
        for name in hidden:
            del sys.modules[name]
    # neither garbage collection nor the end of the process looks through its objects
    gc.freeze()


def import_user_package(path: str | None) -> None:
    """Imports the package in folder `path`, if one is given.

    Raises ValueError if there is no such package, another module has its name, or it
    raises an exception.
    """
    if path is None:
        return
    folder = Path(path).expanduser().absolute()
    file = folder / "__init__.py"
    module = sys.modules.get(folder.name)
    if getattr(module, "__file__", None) == str(file):
        return
    if not file.is_file() or module or "." in folder.name:
        raise ValueError(
            "--t2t_usr_dir must be a folder with an __init__.py, whose name no module"
            f" has, without dots. Received: {path!r}."
        )
    sys.path.insert(0, str(folder.parent))
    try:
        importlib.import_module(folder.name)
    except (Exception, SystemExit) as error:
        place = ""
        for frame in traceback.extract_tb(error.__traceback__):
            if Path(frame.filename).is_relative_to(folder):
                place = f" ({frame.filename}, line {frame.lineno})"
        raise ValueError(
            f"--t2t_usr_dir={path} cannot be imported{place}: {type(error).__name__}:"
            f" {error}"
        ) from error
    finally:
        sys.path.remove(str(folder.parent))


def _explained(error: Exception) -> str:
    """Returns the message of an error. An operating system's message, such as `[Errno
    2] ...: '/proc/x'`, is replaced by one that says what to do.
    """
    if not isinstance(error, OSError):
        return str(error)
    if error.errno in DISK_IS_FULL:
        _discard_standard_output()  # Python would try again at the end
        return (
            f"{error.strerror}: {error.filename or 'standard output'}. Free some space"
            " and run the same command again."
        )
    if error.errno and error.filename:
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


def _discard_standard_output() -> None:
    """Discards buffered output, when standard output can no longer be written."""
    with contextlib.suppress(OSError, ValueError):  # not a file, as in a notebook
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
