"""What the fuzz tests share: damaged files as Hypothesis strategies, and the check that
an error is one of ours.

Damaged input must give a valid result or an error that the commands print as one
message (bin/command.py), raised by t2tlite itself: a message of another library's does
not say what to do. Nothing may hang or end the interpreter.
"""

import contextlib
import copy
import json
import os
import signal
import traceback
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

import t2tlite
from t2tlite.bin.command import Command
from t2tlite.bin.flags import parse

PACKAGES = tuple(
    str(Path(t2tlite.__file__).resolve().parents[1] / name)
    for name in ("t2tlite", "bin", "problems")
)
# of one case, in which a machine under load cannot run out of them; more is a hang
CPU_SECONDS = 120
LONGEST_MESSAGE = 50_000  # characters
# of each test; 0 for the few of `make test`
EXAMPLES = int(os.environ.get("T2TLITE_FUZZ_EXAMPLES", 0))
settings.register_profile(
    "few",
    max_examples=15,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
settings.register_profile(
    "many",
    settings.get_profile("few"),
    derandomize=False,
    max_examples=max(EXAMPLES, 1),
    print_blob=True,
)
settings.load_profile("many" if EXAMPLES else "few")
# of a test whose cases take a second each
COSTLY = settings(max_examples=-(-EXAMPLES // 10) or 2)
# test -> its cases with a valid result, and with an error
RUN: dict[str, list[int]] = defaultdict(lambda: [0, 0])


def counts() -> list[str]:
    """How many cases each test ran, and how many of these gave a valid result: lines to
    print; none by default.
    """
    if not (EXAMPLES and RUN):
        return []
    rows = [
        *RUN.items(),
        ("all", [sum(column) for column in zip(*RUN.values(), strict=True)]),
    ]
    return [
        f"{ok + refused:8,} cases, {ok:8,} valid, {refused:8,} refused: {test}"
        for test, (ok, refused) in rows
    ]


def survives(call: Callable[[], Any]) -> bool:
    """Whether `call` returns; an error that is not one of ours fails the test."""
    test = os.environ["PYTEST_CURRENT_TEST"].partition("::")[2].removesuffix(" (call)")
    try:
        with _hang_guard(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # as in a command
            call()
    except (ValueError, OSError, ArithmeticError) as error:
        where = Path(traceback.extract_tb(error.__traceback__)[-1].filename).resolve()
        by_the_system = isinstance(error, OSError) and error.filename is not None
        if not (by_the_system or str(where).startswith(PACKAGES)):
            raise AssertionError(
                f"A message of {where}, not of t2tlite: {error}"
            ) from error
        message = str(error).strip()
        message.encode()  # can be printed
        assert by_the_system or message[-1:] in (
            ".",
            "?",
        ), f"not a sentence of ours: {message}"
        assert len(message) < LONGEST_MESSAGE, message
        RUN[test][1] += 1
        return False
    RUN[test][0] += 1
    return True


def run_command(main: Command, *argv: str) -> bool:
    """Whether a command succeeds, given flags of which only the files named may be
    wrong.
    """
    return survives(lambda: main.run(parse(main.flags_class, argv)))


@contextlib.contextmanager
def _hang_guard() -> Iterator[None]:
    def fail(number: int, frame: object) -> None:
        raise AssertionError(f"more than {CPU_SECONDS} s of CPU time for one case")

    before = signal.signal(signal.SIGVTALRM, fail)
    signal.setitimer(signal.ITIMER_VIRTUAL, CPU_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


# text and bytes

# what breaks programs: line ends of other systems, byte order marks, what SentencePiece
# and Moses write, wide and composed characters, right-to-left text, characters outside
# the basic plane
ODD = [
    *"\r\t\n\x0b\x0c\x1c\x85\u2028\u2029\u3000\ufeff\x00\u2581_\\'\"\ufffd\U0001f600\u202e",
    *("|||", "<s>", "</s>", "<pad>", "<unk>", "\\u", "\\8364;", "e\u0301"),
]
TEXTS = st.lists(st.one_of(st.text(max_size=8), st.sampled_from(ODD)), max_size=8).map(
    "".join
)
LINES = TEXTS.map(lambda text: text.replace("\n", " "))


def damaged_bytes(content: bytes, most: int = 4) -> st.SearchStrategy[bytes]:
    """A file cut short, with bits flipped, with bytes inserted, replaced, removed or
    repeated.
    """

    @st.composite
    def make(draw: st.DrawFn) -> bytes:
        data = bytearray(content)
        for _ in range(draw(st.integers(1, most))):
            at = draw(st.integers(0, max(0, len(data) - 1)))
            how = draw(
                st.sampled_from(
                    ["flip", "flip", "set", "insert", "cut", "remove", "repeat"]
                )
            )
            if how == "flip" and data:
                data[at] ^= 1 << draw(st.integers(0, 7))
            elif how == "set":
                data[at : at + 4] = draw(
                    st.sampled_from(
                        [b"\0" * 4, b"\xff" * 4, b"\x7f\xff\xff\xff", b"\x80"]
                    )
                )
            elif how == "insert":
                data[at:at] = draw(st.binary(max_size=8))
            elif how == "cut":
                del data[at:]
            elif how == "remove":
                del data[at : at + draw(st.integers(1, 64))]
            elif how == "repeat":
                data[at:at] = data[at : at + draw(st.integers(1, 64))]
        return bytes(data)

    return make()


# JSON

DEEP = ["[" * depth + "]" * depth for depth in (100, 940, 3000)] + [
    '{"a":' * 3000 + "1" + "}" * 3000
]
VERBATIM = ["9" * 400, "9" * 5000, *"NaN -Infinity 1e999 tru 'x' 01".split(), *DEEP]
VERBATIM += ['"\\ud800"', '"\\u0000"']
POWERS = [31, 53, 63, 64]
NUMBERS = [*range(-3, 8), 0.5, -0.0, 1e-300, 1e18, 1e300, -(2**63), 2**31 - 1]
NUMBERS += [2**power for power in POWERS]
STRINGS = ["", " ", "a" * 300, "\0", "\n", "é"]
STRINGS += "x .. ../x / /dev/null a/b | <b> ` 1".split()
MARK = "\ue000verbatim"  # stands for VERBATIM[i] in a document that is then written
VALUES = st.one_of(
    st.none(), st.booleans(), st.sampled_from(NUMBERS), st.integers(), st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(STRINGS), TEXTS, st.integers(0, len(VERBATIM) - 1).map(lambda i: f"{MARK}{i}"),
    st.sampled_from([[], {}, [[]], [None], {"": 0}, [1, 2, 3], ["a"], {"a": {"b": []}}]),
)  # fmt: skip


def damaged_json(content: bytes) -> st.SearchStrategy[bytes]:
    """A JSON file with values of other types or sizes, fields renamed, lost, added or
    given twice, or damaged bytes.
    """

    @st.composite
    def make(draw: st.DrawFn) -> bytes:
        document = json.loads(content)
        for _ in range(draw(st.integers(1, 3))):
            document = _edited(draw, document)
        text = json.dumps(document, indent=2)
        for i, verbatim in enumerate(VERBATIM):
            text = text.replace(json.dumps(f"{MARK}{i}"), verbatim)
        data = text.encode()
        if draw(st.integers(0, 9)) == 0:
            data = draw(damaged_bytes(data))
        return data

    return make()


def _edited(draw: st.DrawFn, document: Any) -> Any:
    paths = list(_paths(document))
    path = draw(st.sampled_from(paths))
    how = draw(st.sampled_from(["replace"] * 5 + ["move", "remove", "rename", "add"]))
    if not path:
        return (
            draw(VALUES)
            if how == "replace" and draw(st.integers(0, 9)) == 0
            else document
        )
    *above, key = path
    document = copy.deepcopy(document)
    parent = _at(document, above)
    if how == "remove":
        del parent[key]
    elif how == "rename" and isinstance(parent, dict):
        parent[draw(TEXTS)] = parent.pop(key)
    elif how == "add" and isinstance(parent, dict):
        parent[draw(st.sampled_from(["", "x", *map(str, parent)]))] = draw(VALUES)
    elif how == "move":
        parent[key] = copy.deepcopy(_at(document, draw(st.sampled_from(paths))))
    else:
        parent[key] = draw(VALUES)
    return document


def _paths(document: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield above
    if isinstance(document, dict | list):
        for key, value in (
            document.items() if isinstance(document, dict) else enumerate(document)
        ):
            yield from _paths(value, (*above, key))


def _at(document: Any, path: Sequence[Any]) -> Any:
    for key in path:
        document = document[key]
    return document
