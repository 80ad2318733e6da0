"""docs/reference.md: every flag of every command, every hparam, decoding option,
problem and hparam set.

`python tests/test_reference.py` writes it anew.
"""

import dataclasses
import html
import importlib
import inspect
import re
import subprocess
import sys
from collections.abc import Iterable, Sequence

from documents import ROOT, SCRIPTS

from t2tlite import registry
from t2tlite.bin.flags import (
    GENERAL_HELP,
    Flag,
    as_text,
    flags_of,
    problem_flags,
    takes_options,
)
from t2tlite.checked_fields import (
    AUTO,
    CheckedFields,
    Facts,
    default_of,
    facts_of,
)
from t2tlite.config import DecodeHParams, HParams

PAGE = ROOT / "docs" / "reference.md"
START = """\
# Flags, hparams and sets

<!-- `python tests/test_reference.py` writes this page. -->

What `--help` of each command and `t2t-trainer --registry_help` say, on one page, and every hparam.
"""
KINDS = {
    str: "text",
    int: "whole number",
    float: "number",
    bool: "true or false",
    tuple: "list, with commas",
}
FLAG = re.compile(r"(?<![\w`'])--\w+(?:=[\w.]+)?")


def inline(text: str) -> str:
    """Text as Markdown in a cell of a table, with flags as code."""
    text = html.escape(" ".join(text.split()), quote=False)
    text = re.sub(r"([*|\[\]`])", r"\\\1", text)
    return FLAG.sub(r"`\g<0>`", text)


def code(value: object) -> str:
    """A value as code; nothing if there is none."""
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return "" if value in (None, "", (), []) else f"`{value}`"


def table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(titles) + " |", "|---" * len(titles) + "|"]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines)


def values(facts: Facts) -> str:
    """The values that a flag or field takes."""
    if facts.choices:
        return ", ".join(map(code, facts.choices))
    shown = KINDS.get(facts.kind, facts.kind.__name__)
    if facts.auto:
        shown = f"{code(AUTO)}, {shown}"
    if facts.low is not None and facts.high is not None:
        return f"{shown}, {facts.low} to {facts.high}"
    if facts.low is not None:
        return f"{shown}, at least {facts.low}"
    return shown


def flag_row(name: str, flag: Flag) -> list[str]:
    """The row of a flag in the table of its command."""
    facts = facts_of(flag)
    meaning = inline(facts.meaning)
    if name == "decode_hparams":
        meaning = "How to decode, field=value,...: [decoding](#decoding)."
    elif name == "hparams":
        meaning += " ([hparams](#hparams))"
    default = default_of(flag)
    if isinstance(default, tuple):
        default = as_text(default)
    return [code(f"--{name}"), values(facts), code(default), meaning]


def command_section(program: str) -> str:
    """A command: the first paragraph of its help, and its flags."""
    command = importlib.import_module(SCRIPTS[program]).main
    summary = (command.doc or "").strip().split("\n\n")[0]
    rows = [flag_row(*entry) for entry in flags_of(command.flags_class).items()]
    parts = [f"### {program}", inline(summary)]
    parts.append(table(["flag", "value", "default", "meaning"], rows))
    if takes_options(command.flags_class):
        parts.append("And the [options of problems](#options-of-problems).")
    return "\n\n".join(parts)


def options_section() -> str:
    """The flags that are options of problems; their help says which problems."""
    rows = []
    for name, flag in problem_flags().items():
        facts = facts_of(flag)
        rows.append([code(f"--{name}"), values(facts), inline(facts.meaning)])
    return table(["flag", "value", "meaning"], rows)


def fields_section(cls: type[CheckedFields]) -> str:
    rows = []
    for field in dataclasses.fields(cls):
        facts = facts_of(field)
        meaning = inline(facts.meaning)
        if facts.model:
            meaning += " (part of the model)"
        default = code(default_of(field))
        rows.append([code(field.name), values(facts), default, meaning])
    return table(["field", "value", "default", "meaning"], rows)


def problems_section() -> str:
    rows = []
    for name, summary in registry.summaries(registry.problem_classes()).items():
        rows.append([code(name), inline(summary)])
    return table(["problem", "what it is"], rows)


def sets_section() -> str:
    """Each hparam set: its docstring, and where it differs from transformer_base."""
    sections = []
    base = HParams()
    for name in registry.list_hparams():
        changes = []
        for field, (value, _) in registry.get_hparams(name).diff(base).items():
            changes.append(code(f"{field}={value}"))
        text = inspect.cleandoc(registry._hparams[name].__doc__ or "")
        paragraphs = [prose(paragraph) for paragraph in text.split("\n\n")]
        differences = ", ".join(changes) or "none: it is the paper's base model"
        sections += [
            f"### {name}",
            *paragraphs,
            f"Fields that differ from transformer_base: {differences}.",
        ]
    return "\n\n".join(sections)


def prose(text: str) -> str:
    """A paragraph of a docstring as Markdown: as `inline`, with its own code."""
    parts = re.split(r"(`[^`]*`)", " ".join(text.split()))
    return "".join(
        part if part.startswith("`") else inline_part(part) for part in parts
    )


def inline_part(text: str) -> str:
    """`inline`, with the spaces at both ends."""
    before = text[: len(text) - len(text.lstrip())]
    after = text[len(text.rstrip()) :] if text.strip() else ""
    return f"{before}{inline(text)}{after}"


def page() -> str:
    """The page, with our problems and hparam sets."""
    importlib.import_module("t2tlite.hparams")
    importlib.import_module("t2tlite.problems")
    general = [[code(flag), inline(text)] for flag, text in GENERAL_HELP.items()]
    parts = [
        START.rstrip(),
        "## Commands",
        "Every command also takes:",
        table(["flag", "meaning"], general),
        *map(command_section, SCRIPTS),
        "## Options of problems",
        "Flags of `t2t-datagen`, and of `t2t-trainer --generate_data`. A meaning that"
        " begins with names of problems is theirs alone.",
        options_section(),
        "## Hparams",
        "`--hparams=field=value,...` changes them. The defaults are those of"
        " `transformer_base`, the paper's base model. A run resumes only with the same"
        " values of fields that are part of the model.",
        fields_section(HParams),
        "## Decoding",
        "`--decode_hparams=field=value,...`, and arguments of the Python API. A problem"
        " may have other defaults; [decoding.md](decoding.md) explains them.",
        fields_section(DecodeHParams),
        "## Problems",
        "`--problem=NAME`; `NAME_rev` swaps source and target.",
        problems_section(),
        "## Hparam sets",
        "`--hparams_set=NAME`.",
        sets_section(),
    ]
    return "\n\n".join(parts) + "\n"


def test_the_page_is_up_to_date():
    """In a process of its own, in which no other test has registered problems."""
    program = "import test_reference as t; print(t.page(), end='')"
    result = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT / "tests",
        capture_output=True,
        text=True,
        check=True,
    )
    assert PAGE.read_text(encoding="utf-8") == result.stdout, (
        "Flags, hparams or sets have changed: python tests/test_reference.py writes the"
        " page anew."
    )


def test_the_page_has_every_flag_hparam_and_set():
    text = PAGE.read_text(encoding="utf-8")
    for program, module in SCRIPTS.items():
        section = text.partition(f"### {program}\n")[2].partition("\n##")[0]
        for name in flags_of(importlib.import_module(module).main.flags_class):
            assert f"| `--{name}` |" in section
    for cls in (HParams, DecodeHParams):
        for field in dataclasses.fields(cls):
            assert f"| `{field.name}` |" in text
    for name in ("transformer_base", "transformer_big_enfr", "transformer_h1"):
        assert f"\n### {name}\n" in text


def test_text_in_cells_keeps_its_meaning():
    assert inline("a|b ** c <BT> --x_y=1,\n '--z'") == (
        "a\\|b \\*\\* c &lt;BT&gt; `--x_y=1`, '--z'"
    )
    assert prose("Trained by `a | b` (--x).") == "Trained by `a | b` (`--x`)."


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
