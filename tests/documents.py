"""The documents, the blocks of code in them, and the commands in those blocks."""

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "SECURITY.md",
    ROOT / "CHANGELOG.md",
    *sorted(
        path for path in (ROOT / "docs").iterdir() if path.suffix in (".md", ".ipynb")
    ),
]
PYPROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
# program -> module
SCRIPTS = dict(re.findall(r'^(t2t-[\w-]+) = "([\w.]+):main"$', PYPROJECT, re.MULTILINE))
# of the shell: they end a command
OPERATORS = frozenset({"|", "||", "&&", "&", ";", ">", ">>", "<", "(", ")"})
BLOCK = re.compile(
    r"^(?:<!-- test: ([^\n]*?) -->\n)?( *)```([^\n]*)\n(.*?)^ *```$",
    re.MULTILINE | re.DOTALL,
)


class Block(NamedTuple):
    """A fenced block of a document, or a cell of a notebook."""

    line: int  # of the document; the number of the cell
    language: str  # "" for commands, "python", "yaml", ...
    text: str
    test: str  # what `<!-- test: ... -->` above it says


class Command(NamedTuple):
    """A command line of this project's."""

    program: str  # "t2t-trainer"
    words: list[str]  # its arguments


def blocks(document: Path) -> list[Block]:
    """Every block of a document."""
    text = document.read_text(encoding="utf-8")
    if document.suffix == ".ipynb":
        cells = [
            cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"
        ]
        return [
            Block(number, "python", "".join(cell["source"]), "")
            for number, cell in enumerate(cells, start=1)
        ]
    return [
        Block(
            text.count("\n", 0, match.start()) + 1,
            match[3].strip(),
            match[4],
            match[1] or "",
        )
        for match in BLOCK.finditer(text)
    ]


def lines(text: str) -> list[str]:
    """The lines of a shell's text, continued ones joined; in a notebook's cell those
    that `!` hands to the shell.
    """
    return [
        line.strip().removeprefix("!").strip()
        for line in text.replace("\\\n", "").split("\n")
    ]


def commands(line: str, variables: Mapping[str, str] = {}) -> Iterator[Command]:
    """The commands of this project's in a line, whatever stands before them: a
    variable, srun, another command.
    """
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;<>()")
    lexer.whitespace_split, lexer.commenters = True, "#"
    try:
        words = [
            re.sub(r"\$\{?(\w+)\}?", lambda name: variables.get(name[1], name[0]), word)
            for word in lexer
        ]
    except ValueError:  # a quotation over several lines
        return
    command: Command | None = None
    for word in [*words, ";"]:
        if word in OPERATORS:
            if command:
                yield command
            command = None
        elif command:
            command.words.append(word)
        elif (program := word.rpartition("/")[2]) in SCRIPTS:
            command = Command(program, [])
