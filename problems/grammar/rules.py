"""What is done by the text files beside this one, which explain their lines: words are
read (lexicon.txt), what a sentence says is drawn (content.txt), and it is said in a
language (rules.txt).
"""

import functools
import importlib.resources
import random
import re
from collections.abc import Callable
from typing import Any, NamedTuple

ITEM = re.compile(r"([\w.]*)([+=:<])(\S*)")
SLOT = re.compile(r"{([\w.]+):?(\w*)}")

# a word: its labels, and its forms in each language, by name
Forms = dict[str, dict[str, str]]
# a clause or a noun phrase: texts, words and other phrases by name; `up` is the phrase
# that it belongs to
Phrase = dict[str, Any]
Path = tuple[str, ...]  # of a field: a.b.c
# what rules call by a name: a constituent or form of a phrase in a case
Named = dict[str, Callable[[Phrase, str], Any]]


def read_sections(name: str) -> list[tuple[str, list[list[str]]]]:
    """Reads a text file beside this one: the heading and the columns of each
    "[section]".
    """
    file = importlib.resources.files(__package__).joinpath(name)
    sections: list[tuple[str, list[list[str]]]] = []
    for line in file.read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            sections.append((line.strip("[]"), []))
        elif line and not line.startswith("#"):
            columns = list(map(str.strip, line.split("|")))
            sections[-1][1].append(columns)
    return sections


def _forms(names: list[str], column: str) -> dict[str, str]:
    """The forms in a column, and those that options such as `particle=on` give."""
    plain = []
    forms = {}
    for word in column.split():
        form, is_option, value = word.strip("-").replace("_", " ").partition("=")
        if is_option:
            forms[form] = value
        else:
            plain.append(form)
    for index, name in enumerate(names):
        forms[name] = plain[min(index, len(plain) - 1)]
    if "present" in forms:
        forms.setdefault("base", forms["present"].split("/")[-1])
    return forms


def _read_words() -> dict[str, list[Forms]]:
    sections: dict[str, list[Forms]] = {}
    for heading, rows in read_sections("lexicon.txt"):
        name, *heads = heading.split(" | ")
        sections[name] = words = []
        for labels, *columns in rows:
            word = {"labels": dict.fromkeys(labels.split(), "yes")}
            for head, column in zip(heads, columns, strict=True):
                language, *names = head.split()
                word[language] = _forms(names, column)
            words.append(word)
    return sections


WORDS = _read_words()
AUXILIARIES = {verb["english"]["base"]: verb for verb in WORDS["auxiliary"]}


@functools.cache
def words_of(section: str, labels: str) -> tuple[Forms, ...]:
    """The words of a section that have one of these labels, separated by commas; all
    without labels.
    """
    wanted = set(labels.split(","))
    words = []
    for word in WORDS[section]:
        if not labels or wanted.intersection(word["labels"]):
            words.append(word)
    return tuple(words)


def _path(text: str) -> Path:
    return tuple(text.split("."))


def _find(node: Any, path: Path, named: Named, case: str = "") -> Any:
    """What is named by the end of a path from a node, or a field; "" if there is
    none.
    """
    *owners, name = path
    for owner in owners:
        node = node.get(owner, "")
        if not node:
            return ""
    return named[name](node, case) if name in named else node.get(name, "")


class Condition(NamedTuple):
    """That a field has a value, `negation=not`, or any, `object`, or not, `!object`."""

    path: Path
    value: str  # "" is any
    is_wanted: bool


def _conditions(texts: str) -> list[Condition]:
    conditions = []
    for text in texts.split():
        path, _, value = text.lstrip("!").partition("=")
        conditions.append(Condition(_path(path), value, not text.startswith("!")))
    return conditions


def _are_met(conditions: list[Condition], node: Phrase, named: Named) -> bool:
    for path, required, is_wanted in conditions:
        value = _find(node, path, named)
        is_so = value == required if required else bool(value)
        if is_so is not is_wanted:
            return False
    return True


class Addition(NamedTuple):
    """A line of content.txt."""

    share: int
    conditions: list[Condition]
    # field, operator, value
    items: list[tuple[str, str, str]]


def _read_tables() -> dict[str, list[Addition]]:
    tables: dict[str, list[Addition]] = {}
    for table, rows in read_sections("content.txt"):
        tables[table] = []
        for share, conditions, items in rows:
            line = Addition(int(share), _conditions(conditions), ITEM.findall(items))
            tables[table].append(line)
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
        lines = []
        shares = 0
        for line in TABLES[table]:
            if _are_met(line.conditions, node, {}):
                lines.append(line)
                shares += line.share
        roll = self._random() * shares
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
                owner, _, name = path.rpartition(".")
                to = _find(node, _path(owner), {}) if owner else node
                to[name] = _value(node, value)

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


def _value(node: Phrase, text: str) -> Any:
    """A text, or the field at a path that begins with a dot."""
    return _find(node, _path(text[1:]), {}) if text.startswith(".") else text


class Rule(NamedTuple):
    """A line of rules.txt."""

    conditions: list[Condition]
    text: str  # with %s for each slot
    # what is said there, and its case
    slots: list[tuple[Path, str]]


class Language:
    """Says nodes in a language, "english" or "german", by the rules of rules.txt."""

    def __init__(self, language: str, forms: Named) -> None:
        """`forms` are what rules call by a name, beside the language's own rules."""
        self._language = language
        self._named: Named = {
            "form": self._form,
            "in_past": functools.partial(self.conjugated, "past"),
            "in_present": functools.partial(self.conjugated, "present"),
            **forms,
        }
        for heading, rows in read_sections("rules.txt"):
            of_language, _, name = heading.partition(" ")
            if of_language != language:
                continue
            rules = []
            for conditions, text in rows:
                slots = []
                for path, case in SLOT.findall(text):
                    slots.append((_path(path), case))
                rules.append(Rule(_conditions(conditions), SLOT.sub("%s", text), slots))
            self._named[name] = functools.partial(self._constituent, rules)

    def sentence(self, clause: Phrase) -> str:
        """A whole sentence, neither spelled nor capitalised."""
        text: str = self._named["sentence"](clause, "")
        return re.sub(r" +(?=[ )])", "", text)

    def conjugated(self, tense: str, clause: Phrase, name: str) -> str:
        """The present or past of a verb in a field of a clause, or of an auxiliary."""
        verb = clause.get(name) or AUXILIARIES[name]
        forms: list[str] = verb[self._language][tense].split("/")
        person = min(int(clause["person"]), len(forms) - 1)
        return forms[person]

    def _form(self, phrase: Phrase, case: str) -> str:
        """A name or pronoun."""
        form: str = phrase["word"][self._language][case]
        return form

    def _constituent(self, rules: list[Rule], node: Phrase, case: str) -> str:
        """A constituent by its first rule whose conditions are met; or nothing."""
        for rule in rules:
            if _are_met(rule.conditions, node, self._named):
                words = []
                for path, own_case in rule.slots:
                    words.append(_find(node, path, self._named, own_case or case))
                return (rule.text % tuple(words)).strip()
        return ""
