"""Which of many sentences are shown as examples."""

from __future__ import annotations


def evenly_spaced(count: int, wanted: int) -> list[int]:
    """`wanted` indices below `count`, evenly spaced; all if there are no more."""
    return [i * count // wanted for i in range(wanted)] if count > wanted else list(range(count))
