"""A command that runs in the process of the test."""

from types import ModuleType
from typing import Any


def run_command(program: ModuleType, *flags: object, status: int = 0) -> None:
    """Runs a command, and checks its exit status."""
    assert program.main([str(flag) for flag in flags]) == status


def said(capsys: Any, program: ModuleType, *flags: object, status: int = 0) -> Any:
    """Runs a command, and returns what it prints: (out, err)."""
    capsys.readouterr()
    run_command(program, *flags, status=status)
    return capsys.readouterr()


def refusal(capsys: Any, program: ModuleType, *flags: object) -> str:
    """The message of a command that refuses its flags: one line."""
    out, err = said(capsys, program, *flags, status=1)
    assert (out, err.count("\n"), "Traceback" in err) == ("", 1, False), err
    return err
