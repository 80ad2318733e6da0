"""What has arrived is ready at once, in order, and errors come where they happened."""

import threading

import pytest

from t2tlite.files.read_ahead import ReadAhead


def test_items_in_order_then_the_end_again_and_again():
    items = ReadAhead(iter(range(5)))
    assert list(items) == [0, 1, 2, 3, 4]
    assert list(items) == []
    assert items.ready()


def test_an_error_comes_after_the_items_before_it():
    def lines():
        yield "a"
        raise ValueError("line 2 is bad")

    items = ReadAhead(lines())
    assert next(items) == "a"
    with pytest.raises(ValueError, match="line 2 is bad"):
        next(items)


def test_nothing_is_ready_before_it_arrives():
    gate = threading.Event()

    def lines():
        yield "a"
        gate.wait(60)
        yield "b"

    items = ReadAhead(lines())
    assert next(items) == "a"
    assert not items.ready()
    gate.set()
    assert next(items) == "b"
