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
import importlib
import os
import signal
import sys
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from absl import flags as absl_flags

import t2tlite
from t2tlite.bin.flag_fields import (
    CommandError,
    Flag,
    Flags,
    ProblemOptions,
    all_flags_of,
)
from t2tlite.bin.flag_groups import PackageFlags, TensorFlowFlags
from t2tlite.bin.flag_parser import help_text, parse
from t2tlite.bin.flag_sources import read
from t2tlite.bin.user_package import import_user_package
from t2tlite.console import say
from t2tlite.files.atomic_file import DISK_IS_FULL

F = TypeVar("F", bound=Flags)

HELP = {"--help", "-h", "-help", "--helpfull", "-?"}


@dataclasses.dataclass(frozen=True)
class Command(Generic[F]):
    """A command, which is called as `main(argv=None)`."""

    flags_class: type[F]
    doc: str | None  # its docstring: the first part of --help
    run: Callable[[F], None]  # what to do with the flag values

    def __call__(self, argv: Sequence[str] | None = None) -> int:
        """Parses the command line and runs the command; a user error becomes one
        message without a traceback.

        The arguments are by default those of this process. Returns the exit status: 0;
        1 after a user error; 128 + its number after a signal.
        """
        program = os.path.basename(sys.argv[0]) if argv is None else "t2tlite"
        argv = sys.argv[1:] if argv is None else list(argv)
        flags: Flags | None = None
        try:
            if "--version" in argv:
                return _answer(f"t2tlite {t2tlite.__version__}")
            self._register(argv)
            if HELP & set(argv):
                return _answer(help_text(self.doc, self.flags_class))
            flags = parse(self.flags_class, argv)
            if information := flags.information():
                return _answer(information)
            _prepare(flags)
            self.run(flags)
            sys.stdout.flush()  # an error of a full disk is raised here
        except absl_flags.Error as error:
            end = "" if str(error)[-1] in ".?" else "."
            return _fail(program, f"{error}{end} --help lists the flags.")
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
            if isinstance(flags, TensorFlowFlags) and flags.verbosity == "debug":
                raise
            if isinstance(error, OSError) and error.errno in DISK_IS_FULL:
                _discard_standard_output()  # Python would try again at the end
            return _fail(program, _explained(error))
        except KeyboardInterrupt as error:
            # raised with a message if a signal stopped training
            number = getattr(error, "signal_number", signal.SIGINT)
            return _fail(program, str(error) or "Interrupted.", 128 + number)
        return 0

    @property
    def names(self):
        return (self.flags_class,)

    def known_flags(self) -> dict[str, Flag]:
        """The command's flags, the options of the registered problems included."""
        return all_flags_of(self.flags_class)

    def _register(self, argv: list[str]) -> None:
        """Registers the hparam sets, and the problems whose options are flags of the
        command, those of the user's package included.
        """
        importlib.import_module("t2tlite.hparams")
        if issubclass(self.flags_class, ProblemOptions):
            importlib.import_module("t2tlite.problems")
            package = {"t2t_usr_dir": self.known_flags()["t2t_usr_dir"]}
            values, _ = read(package, argv, known_only=True)
            import_user_package(values["t2t_usr_dir"])


def command(
    flags_class: type[F], doc: str | None
) -> Callable[[Callable[[F], None]], Command[F]]:
    """Makes a command of a function of its flags; for the arguments see `Command`."""
    return functools.partial(Command, flags_class, doc)


def _prepare(flags: Flags) -> None:
    """Sets the log level and imports the user's package, for a command that takes these
    flags.
    """
    if isinstance(flags, TensorFlowFlags):
        flags.set_log_level()
    if isinstance(flags, PackageFlags):
        import_user_package(flags.t2t_usr_dir)


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


def _answer(text: str) -> int:
    """Prints what the user asks of the program itself."""
    print(text, flush=True)
    return 0


def _discard_standard_output() -> None:
    """Discards what is not written yet to standard output, which cannot be written."""
    with contextlib.suppress(OSError, ValueError):  # not a file, as in a notebook
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(program: str, message: str, status: int = 1) -> int:
    say(f"{program}: {message}")
    return status
