"""What has arrived is ready at once, in order, and errors come where they happened."""

import threading

import pytest

from t2tlite.files.text_files import ReadAhead


def test_items_in_order_then_the_end_again_and_again():
    items = ReadAhead(iter(range(5)))
    assert list(items) == [0, 1, 2, 3, 4]
    assert list(items) == []
    assert items.ready()


def test_errors_come_in_their_place():
    gate = threading.Event()

    def lines():
        yield "a"
        gate.wait(60)
        raise ValueError("line 2 is bad")

    items = ReadAhead(lines())
    assert next(items) == "a"
    assert not items.ready()
    gate.set()
    with pytest.raises(ValueError, match="line 2 is bad"):
        next(items)
