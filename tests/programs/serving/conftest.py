"""What the tests of the server share: one that serves the tiny run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from running import Running, running, served


@pytest.fixture(scope="session")
def translator(tiny_run, load):
    """The tiny run's model; its language is of words such as `red cat sees dog`."""
    return load(tiny_run.run, None)


@pytest.fixture(scope="session")
def server(translator) -> Iterator[Running]:
    """A server of the tiny run, English to German."""
    with running([served(translator)]) as running_server:
        yield running_server
