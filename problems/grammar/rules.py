"""The two things that are done by rules: drawing what a sentence says (content.txt) and
saying it in a language (rules.txt). Both files explain their lines.
"""

import functools
import random
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from t2tlite.problems.grammar.lexicon import Forms, Phrase, read_sections, words_of

ITEM = re.compile(r"([\w.]*)([+=:<])(\S*)")
SLOT = re.compile(r"{([\w.]+):?(\w*)}")

# a field of a node, or a constituent or form of it in a case
Getter = Callable[[Phrase, str], Any]
Condition = Callable[[Phrase], bool]


def _getter(path: str, named: Mapping[str, Getter]) -> Getter:
    """What finds `name` in `a.b.name`: the getter of this name, or a field; "" if there
    is none.
    """
    *owners, name = path.split(".")
    find = named.get(name, lambda node, case: node.get(name, ""))
    if not owners:
        return find

    def find_in_owner(node: Phrase, case: str) -> Any:
        for owner in owners:
            node = node.get(owner, "")
            if not node:
                return ""
        return find(node, case)

    return find_in_owner


def _all_met(conditions: str, named: Mapping[str, Getter]) -> Condition:
    """Whether a node meets all conditions: that a field has a value, `negation=not`, or
    any, `object`, or not, `!object`.
    """
    tests = []
    for text in conditions.split():
        path, _, required = text.lstrip("!").partition("=")
        tests.append((_getter(path, named), required, not text.startswith("!")))

    def are_met(node: Phrase) -> bool:
        for find, required, wanted in tests:
            value = find(node, "")
            is_so = value == required if required else bool(value)
            if is_so is not wanted:
                return False
        return True

    return are_met


class Line(NamedTuple):
    """A line of content.txt."""

    share: int
    is_met: Condition
    items: list[tuple[str, str, str]]  # field, operator, value


def _read_tables() -> dict[str, list[Line]]:
    tables = {}
    for table, rows in read_sections("content.txt"):
        lines = []
        for share, conditions, items in rows:
            is_met = _all_met(conditions, {})
            lines.append(Line(int(share), is_met, ITEM.findall(items)))
        tables[table] = lines
    return tables


TABLES = _read_tables()


class Sampler:
    """Draws what sentences say; equal random number generators give equal sentences."""

    def __init__(self, generator: random.Random) -> None:
        self._random = generator.random

    def sentence(self) -> Phrase:
        """The main clause of a new sentence."""
        clause: Phrase = {}
        self._draw("sentence", clause)
        return clause

    def _draw(self, table: str, node: Phrase) -> None:
        """Adds to a node what one of the lines of a table says."""
        lines = [line for line in TABLES[table] if line.is_met(node)]
        roll = self._random() * sum([line.share for line in lines])
        for line in lines:
            roll -= line.share
            if roll < 0:
                break
        for path, operator, value in line.items:
            if operator == "+":
                self._draw(value, node)
            elif operator == ":":
                node[path] = {"up": node}
                self._draw(value, node[path])
            elif operator == "<":
                node[path] = self._word(node, value)
            else:
                *owners, name = path.split(".")
                _field(node, owners)[name] = _value(node, value)

    def _word(self, node: Phrase, value: str) -> Forms:
        """A word of a section of lexicon.txt, `transitive`, that has one of some
        labels: `transitive/what`, `transitive/.noun.labels`.
        """
        section, _, of = value.partition("/")
        labels = _value(node, of)
        if isinstance(labels, dict):
            labels = ",".join(labels)
        words = words_of(section, labels)
        # three times as fast as random.choice
        return words[int(self._random() * len(words))]


def _field(node: Any, path: list[str]) -> Any:
    for name in path:
        node = node.get(name, "")
    return node


def _value(node: Phrase, text: str) -> Any:
    """A text, or the field at a path that begins with a dot."""
    return _field(node, text[1:].split(".")) if text.startswith(".") else text


class Language:
    """Says nodes in a language, "english" or "german", by the rules of rules.txt."""

    def __init__(self, language: str, forms: Mapping[str, Getter]) -> None:
        """`forms` are what rules call by a name, beside the language's own rules."""
        self._named = dict(forms)
        sections = []
        for heading, rows in read_sections("rules.txt"):
            of_language, _, name = heading.partition(" ")
            if of_language == language:
                lines: list[Any] = []
                self._named[name] = functools.partial(_constituent, lines)
                sections.append((lines, rows))
        # constituents name each other, so all names are known first
        for lines, rows in sections:
            for conditions, text in rows:
                slots = []
                for path, case in SLOT.findall(text):
                    slots.append((_getter(path, self._named), case))
                is_met = _all_met(conditions, self._named)
                lines.append((is_met, SLOT.sub("%s", text), slots))

    def sentence(self, clause: Phrase) -> str:
        """A whole sentence, neither spelled nor capitalised."""
        text: str = self._named["sentence"](clause, "")
        return re.sub(r" +(?=[ )])", "", text)


def _constituent(lines: list[Any], node: Phrase, case: str) -> str:
    """A constituent by its first rule whose conditions are met; or nothing."""
    for is_met, text, slots in lines:
        if is_met(node):
            words = [find(node, own_case or case) for find, own_case in slots]
            return (text % tuple(words)).strip()
    return ""
