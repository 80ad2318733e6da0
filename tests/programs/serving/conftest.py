"""What the tests of the server share: one that serves the tiny run."""

from collections.abc import Iterator

import pytest
from imported_model import imported_parser
from running import Running, running, served


@pytest.fixture(scope="session")
def translator(tiny_run, load):
    """The tiny run's model; its language is of words such as `red cat sees dog`."""
    return load(tiny_run.run, None)


@pytest.fixture(scope="session")
def parsing_translator(fixtures, load, tmp_path_factory):
    """A parser that tensor2tensor trained, with its vocabulary."""
    return load(imported_parser(fixtures, tmp_path_factory.mktemp("parser")), None)


@pytest.fixture(scope="session")
def server(translator) -> Iterator[Running]:
    """A server of the tiny run, English to German."""
    with running([served(translator)]) as running_server:
        yield running_server
