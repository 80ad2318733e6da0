"""What is a list of texts, and how another value is shown in a message."""

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

R = TypeVar("R")

# bytes are not yet text
UNDECODED = (bytes, bytearray, memoryview)
MAX_SHOWN = 60  # characters of a wrong value in a message


def as_list(texts: object) -> list[str]:
    """One string, or the strings of a list of texts, as a list. Raises as
    `list_of_texts`.
    """
    if isinstance(texts, str):
        return [texts]
    return list_of_texts(texts, "A string or a list of strings")


def list_of_texts(texts: Any, required: str = "A list of sentences") -> list[str]:
    """The strings of a sequence, an iterator, or an array or column with one axis.

    Raises ValueError for anything else, which may yield something other than its
    texts: a table the names of its columns, a dict its keys, a set another order.
    """
    shape = getattr(texts, "shape", None)  # a DatasetDict has a dict
    is_column = isinstance(shape, tuple) and len(shape) == 1
    is_list = is_column or isinstance(texts, Sequence | Iterator)
    if not is_list or isinstance(texts, (str, *UNDECODED)):
        received = "one string" if isinstance(texts, str) else described(texts)
        raise ValueError(
            f"{required} is required, such as table['en']. Received: {received}."
        )
    strings: list[str] = []
    for text in texts:
        check_text(f"The sentence at index {len(strings)}", text)
        strings.append(text)
    return strings


def one_or_all(texts: object, results: list[R]) -> R | list[R]:
    """The only result if `texts` is one string, otherwise all results."""
    return results[0] if isinstance(texts, str) else results


def check_text(name: str, text: str) -> None:
    """Raises ValueError unless the argument `name` is one string."""
    if not isinstance(text, str):
        raise ValueError(f"{name} must be one string. Received: {described(text)}.")


def described(value: object) -> str:
    """The beginning of a value of a wrong type, for a message."""
    shown = repr(value)
    if "\n" in shown:
        shown = f"a {type(value).__name__}"
    if len(shown) > MAX_SHOWN:
        shown = f"{shown[:MAX_SHOWN]}..."
    if isinstance(value, UNDECODED):
        shown += ", not yet decoded: text.decode('utf-8') makes a string of it"
    return shown
