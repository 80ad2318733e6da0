"""A command that runs in the process of the test."""

from types import ModuleType


def run_command(program: ModuleType, *flags: object, status: int = 0) -> None:
    """Runs a command, and checks its exit status."""
    assert program.main([str(flag) for flag in flags]) == status
