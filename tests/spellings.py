"""The same sentence, as people write it: what normalisation must make equal."""

import unicodedata
from collections.abc import Callable


def spread(mark: str) -> Callable[[str], str]:
    """Puts a mark into the middle of every word."""

    def spoil(sentence: str) -> str:
        words = sentence.split(" ")
        return " ".join(word[:2] + mark + word[2:] for word in words)

    return spoil


SPELLINGS: dict[str, Callable[[str], str]] = {
    "no-break spaces": lambda text: text.replace(" ", "\u00a0"),
    "narrow no-break space": lambda text: text.replace(" ", "\u202f", 1),
    "doubled spaces": lambda text: text.replace(" ", "  "),
    "next line": lambda text: text.replace(" ", "\x85", 1),
    "line separator": lambda text: text.replace(" ", "\u2028", 1),
    "ideographic spaces": lambda text: text.replace(" ", "\u3000"),
    "spaces at the ends": lambda text: f"  {text} ",
    "soft hyphens": spread("\u00ad"),
    "zero-width spaces": spread("\u200b"),
    "word joiners": spread("\u2060"),
    "zero-width non-joiners": spread("\u200c"),
    "zero-width character beside a space": lambda text: text.replace(" ", " \u200b "),
    "byte order mark": lambda text: "\ufeff" + text,
    "marks of direction": lambda text: f"\u202a{text}\u202c\u200e",
    "decomposed accents": lambda text: unicodedata.normalize("NFD", text),
}
# which a line of a file with columns cannot have
TABS: dict[str, Callable[[str], str]] = {
    "tab": lambda text: text.replace(" ", "\t", 1),
    "tab at the start": lambda text: "\t" + text,
}
BLANK = ["", " ", "\u00a0", "\u200b", " \u00ad \ufeff", "\u3000\u2060"]
