"""Code and documents say what a thing is, in the field's words: names and words that
have better ones are refused.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from documents import DOCUMENTS, ROOT

FOLDERS = ("t2tlite", "problems", "hparams", "bin", "tests", "benchmarks")
FILES = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))

# A name, and what to write instead.
NAMES = {
    r"found": "what it is: hypotheses, match, checkpoint, response",
    r"told": "stderr, message",
    r"one|own|asked": "output, ..._of_request, request: the noun",
    r"MOST_.*|LONGEST_S|LARGEST_SIZE": "MAX_...",
    r"YOURS|MAKE_AGAIN|TOGETHER": "USER_PACKAGE_HINT, REGENERATE_HINT, ONE_BATCH",
}
ANY_NAME = re.compile("|".join(NAMES))
TEST_NAME_LENGTH = 60

# A word in a document or a docstring, and the field's word for it.
WORDS = {
    r"end marks?": "end-of-sentence token (EOS)",
    r"processors?": "CPU, core, device",
    r"(goes|went|going) on with": "resumes, continues",
    r"true previous tokens?": "teacher forcing",
    r"what hides later positions": "causal mask",
    r"handed out": "sharded, distributed",
    r"lives on": "alive hypothesis",
    r"words of one's own": "the field's term",
    r"as much room as": "capacity",
}


def bound_names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """The names that a module binds, each with its line: variables, arguments, and
    names of imports.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            yield from (
                (node.lineno, alias.asname) for alias in node.names if alias.asname
            )


def docstrings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """The docstrings of a module, its classes and functions, each with the line where
    it is.
    """
    for node in ast.walk(tree):
        if isinstance(
            node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        ):
            text = ast.get_docstring(node, clean=False)
            if text is not None:
                yield node.body[0].lineno, text


def words_to_replace(text: str, first_line: int) -> Iterator[tuple[int, str]]:
    """Each word of `WORDS` in a text: its line, and what to write."""
    for word, instead in WORDS.items():
        for match in re.finditer(rf"\b(?:{word})\b", text, re.IGNORECASE):
            yield (
                first_line + text.count("\n", 0, match.start()),
                f"{match[0]!r}: write {instead}",
            )


def names_to_replace(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Each bound name of `NAMES`: its line, and what to write."""
    for line, name in bound_names(tree):
        if ANY_NAME.fullmatch(name):
            instead = next(
                instead
                for pattern, instead in NAMES.items()
                if re.fullmatch(pattern, name)
            )
            yield line, f"{name!r}: write {instead}"


def long_test_names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Each name of a test that is too long, with its line."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.FunctionDef)
            and node.name.startswith("test_")
            and len(node.name) > TEST_NAME_LENGTH
        ):
            yield (
                node.lineno,
                (
                    f"{node.name!r}: write at most {TEST_NAME_LENGTH} characters, the"
                    " subject first"
                ),
            )


def listed(path: Path, offenders: Iterator[tuple[int, str]]) -> list[str]:
    """Offenders as FILE:LINE and what to do."""
    return [f"{path.relative_to(ROOT)}:{line}: {what}" for line, what in offenders]


@pytest.fixture(scope="module")
def trees() -> dict[Path, ast.AST]:
    """Every Python file, parsed; not this one, which has the words."""
    return {
        path: ast.parse(path.read_text(encoding="utf-8"))
        for path in FILES
        if path != Path(__file__)
    }


def report(offenders: list[str]) -> None:
    """Fails with one offender a line."""
    if offenders:
        pytest.fail(
            "\n".join([f"{len(offenders)} to change:", *offenders]), pytrace=False
        )


def test_names_say_what_a_thing_is(trees):
    report(
        [
            line
            for path, tree in trees.items()
            for line in listed(path, names_to_replace(tree))
        ]
    )


def test_names_of_tests_are_short(trees):
    tests = {
        path: tree for path, tree in trees.items() if ROOT / "tests" in path.parents
    }
    report(
        [
            line
            for path, tree in tests.items()
            for line in listed(path, long_test_names(tree))
        ]
    )


def test_docstrings_have_the_words_of_the_field(trees):
    report(
        [
            line
            for path, tree in trees.items()
            for start, text in docstrings(tree)
            for line in listed(path, words_to_replace(text, start))
        ]
    )


def test_documents_have_the_words_of_the_field():
    texts = {path: path.read_text(encoding="utf-8") for path in DOCUMENTS}
    report(
        [
            line
            for path, text in texts.items()
            for line in listed(path, words_to_replace(text, 1))
        ]
    )


def test_offenders_are_listed_and_others_are_not():
    code = (
        '"""It hides the\nend mark."""\nfound = 1\ndef f(told, MAX_X):\n    return'
        " founder, told.MOST_X\n"
    )
    tree = ast.parse(code)
    assert [line for line, _ in names_to_replace(tree)] == [3, 4]
    assert [
        what
        for start, text in docstrings(tree)
        for what in words_to_replace(text, start)
    ] == [(2, "'end mark': write end-of-sentence token (EOS)")]
    assert list(long_test_names(ast.parse(f"def test_{'x' * 56}(): ..."))) != []
    assert list(long_test_names(ast.parse(f"def test_{'x' * 55}(): ..."))) == []
