"""A run to report."""

import pytest
from written_report import record_decodes, write_events


@pytest.fixture
def decoded_copy(tiny_run_copy):
    """A copy of the run without events, with a decode of test."""
    write_events(tiny_run_copy, {})
    record_decodes(tiny_run_copy, ["eins"] * 40)
    return tiny_run_copy
