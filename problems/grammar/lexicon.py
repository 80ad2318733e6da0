"""The words of the grammar in English and German, read from lexicon.txt, which explains
its columns.
"""

import functools
import importlib.resources
from typing import Any

# a word: its labels, and its forms in each language, by name
Forms = dict[str, dict[str, str]]
# a clause or a noun phrase: texts, words and other phrases by name; `up` is the phrase
# that it belongs to
Phrase = dict[str, Any]


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
            columns = [column.strip() for column in line.split("|")]
            sections[-1][1].append(columns)
    return sections


def _forms(names: list[str], column: str) -> dict[str, str]:
    """The forms in a column, and those that options such as `particle=on` give."""
    forms = {}
    words = [word.strip("-").replace("_", " ") for word in column.split()]
    plain = [word for word in words if "=" not in word]
    for index, name in enumerate(names):
        forms[name] = plain[min(index, len(plain) - 1)]
    if "present" in forms:
        forms["base"] = forms["present"].split("/")[-1]
    for word in words[len(plain) :]:
        option, _, value = word.partition("=")
        forms[option] = value
    return forms


def _read_words() -> dict[str, list[Forms]]:
    sections = {}
    for heading, rows in read_sections("lexicon.txt"):
        name, *heads = heading.split(" | ")
        words = []
        for labels, *columns in rows:
            word = {"labels": {label: label for label in labels.split()}}
            for head, column in zip(heads, columns, strict=True):
                language, *names = head.split()
                word[language] = _forms(names, column)
            words.append(word)
        sections[name] = words
    return sections


WORDS = _read_words()


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


AUXILIARIES = {verb["english"]["base"]: verb for verb in WORDS["auxiliary"]}
ENDINGS = {name: word for word in WORDS["endings"] for name in word["labels"]}
