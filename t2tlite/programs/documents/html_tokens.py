"""Cuts an HTML document into tags, comments and text, which together are the document.

The rules are those of the HTML standard's tokenizer (13.2.5), so that markup ends where
browsers end it. Quotes count only around the value of an attribute; `-->`, `--!>`,
`<!-->` and `<!--->` end a comment; `<?x>`, `</ >` and `<![CDATA[x]]>` are comments up
to the next `>`. The content of <script>, <style>, <title>, <textarea> and others has no
tags. A tag or comment without an end reaches to the end of the document.

Tokens have offsets, so that markup can be returned as it came. Libraries do not return
it: html5lib's tokenizer has no offsets, and justhtml and lxml have those of elements in
a repaired tree, without stray tags.
"""

from __future__ import annotations

import enum
import html
import re
import string
from collections import Counter
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

# The content of these elements is read as text up to their end tag. <noscript> is read
# as by a browser without scripts, whose user sees it.
RAW_TEXT = frozenset("script style xmp iframe noembed noframes".split())
ESCAPABLE_TEXT = frozenset("title textarea".split())  # has character references
PLAINTEXT = "plaintext"  # has no end
FOREIGN = frozenset("svg math".split())
# elements of SVG and MathML whose content is HTML
INTEGRATION_POINTS = frozenset("foreignobject desc title mi mo mn ms mtext".split())
# HTML elements that end an <svg> or <math> around them
BREAK_OUT = frozenset(
    "b big blockquote body br center code dd div dl dt em embed h1 h2 h3 h4 h5 h6 head"
    " hr i img li listing menu meta nobr ol p pre ruby s small span strong strike sub"
    " sup table tt u ul var".split()
)

SPACES = r"[\t\n\f\r ]*"
TAG_NAME = re.compile(r"</?([a-zA-Z][^\t\n\f\r />]*)")
BETWEEN_ATTRIBUTES = re.compile(r"[\t\n\f\r /]*")
ATTRIBUTE_NAME = re.compile(r"=?[^\t\n\f\r />=]*")
EQUALS = re.compile(f"{SPACES}={SPACES}")
UNQUOTED = re.compile(r"[^\t\n\f\r >]*")
COMMENT_END = re.compile(r"(?<=<!--)-?>|--!?>")
SCRIPT_STEP = re.compile(
    r"<!--|-->|<(/?)script(?=[\t\n\f\r />])", re.IGNORECASE | re.ASCII
)

END_TAGS = {
    name: re.compile(f"</{name}(?=[\\t\\n\\f\\r />])", re.IGNORECASE | re.ASCII)
    for name in RAW_TEXT | ESCAPABLE_TEXT
}
LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
# Python's `unescape` refuses a number of thousands of digits
LONG_NUMBER = re.compile(r"&#0*(\d{1,8})\d*", re.ASCII)
NO_ATTRIBUTES: Mapping[str, str] = MappingProxyType({})


class Kind(enum.Enum):
    """What a token is."""

    TEXT = enum.auto()  # with character references
    RAW = enum.auto()  # the content of a script and the like
    START = enum.auto()
    END = enum.auto()
    OTHER = enum.auto()  # a comment, a declaration, or a tag that does not end


class Token(NamedTuple):
    """A piece of a document, from offset `start` to `end`."""

    kind: Kind
    start: int
    end: int
    name: str = ""  # of a tag, in lower case
    attributes: Mapping[str, str] = NO_ATTRIBUTES  # of a tag, names in lower case
    self_closing: bool = False
    breaks_out: bool = False  # whether this start tag ends the <svg> around it


def tokens(document: str) -> Iterator[Token]:
    """Yields the tokens of a document, in order; joined they are the document.

    >>> [document_token.kind.name for document_token in tokens("<p title=it's>Hi<!-->")]
    ['START', 'TEXT', 'OTHER']
    """
    foreign = _ForeignElements()
    at = 0
    text_start = 0
    while (at := document.find("<", at)) >= 0:
        in_foreign = foreign.has_content
        token = _markup(document, at, in_foreign)
        if token is None:
            at += 1
            continue
        if text_start < at:
            yield Token(Kind.TEXT, text_start, at)
        if in_foreign and token.kind is Kind.START and token.name in BREAK_OUT:
            token = token._replace(breaks_out=True)
        yield token
        at = token.end
        text_start = at
        foreign.note(token)
        if token.kind is not Kind.START or in_foreign:
            continue
        content_end = _content_end(document, at, token.name)
        if content_end is not None:
            kind = Kind.TEXT if token.name in ESCAPABLE_TEXT else Kind.RAW
            if at < content_end:
                yield Token(kind, at, content_end)
            at = content_end
            text_start = at
    if text_start < len(document):
        yield Token(Kind.TEXT, text_start, len(document))


def _markup(document: str, start: int, in_foreign: bool) -> Token | None:
    """The tag, comment or declaration at a `<`, or None if that is text."""
    name = TAG_NAME.match(document, start)
    if name:
        return _tag(document, start, name)
    if document.startswith("<!--", start):
        comment_end = COMMENT_END.search(document, start + len("<!--"))
        end = comment_end.end() if comment_end else len(document)
        return Token(Kind.OTHER, start, end)
    if in_foreign and document.startswith("<![CDATA[", start):
        return Token(Kind.OTHER, start, _behind(document, "]]>", start))
    following = document[start + 1 : start + 2]
    if following in ("!", "?") or (following == "/" and start + 2 < len(document)):
        return Token(Kind.OTHER, start, _behind(document, ">", start))
    return None


def _behind(document: str, ending: str, start: int) -> int:
    """Behind the next `ending`, or the end of the document if there is none."""
    at = document.find(ending, start)
    return len(document) if at < 0 else at + len(ending)


def _tag(document: str, start: int, name: re.Match[str]) -> Token:
    """The tag that begins with this name."""
    attributes: dict[str, str] = {}
    at = name.end()
    while True:
        between = BETWEEN_ATTRIBUTES.match(document, at)
        at = between.end() if between else at
        if document[at : at + 1] == ">":
            break
        attribute = _attribute(document, at)
        if attribute is None:
            return Token(Kind.OTHER, start, len(document))  # browsers ignore it
        key, value, at = attribute
        attributes.setdefault(key, value)
    is_closed = between is not None and between[0].endswith("/")
    kind = Kind.END if document[start + 1] == "/" else Kind.START
    return Token(kind, start, at + 1, _lower(name[1]), attributes, is_closed)


def _attribute(document: str, start: int) -> tuple[str, str, int] | None:
    """The name, the value and the end of an attribute, or None if the document ends
    before.
    """
    name = ATTRIBUTE_NAME.match(document, start)
    if name is None or start == len(document):
        return None
    key = _lower(name[0])
    equals = EQUALS.match(document, name.end())
    if equals is None:
        return key, "", name.end()
    at = equals.end()
    quote = document[at : at + 1]
    if quote in ('"', "'"):
        end = document.find(quote, at + 1)
        if end < 0:
            return None
        return key, unescape(document[at + 1 : end]), end + 1
    unquoted = UNQUOTED.match(document, at)
    value = unquoted[0] if unquoted else ""
    return key, unescape(value), at + len(value)


def unescape(text: str) -> str:
    """A text with its character references replaced, as browsers do: no number of
    eight digits is a character, however many follow.
    """
    return html.unescape(LONG_NUMBER.sub(r"&#\1", text))


def _lower(name: str) -> str:
    """A name with its ASCII letters in lower case; no other letter is changed."""
    return name.translate(LOWER)


class _ForeignElements:
    """The <svg>, <math> and integration points that are open, the innermost last."""

    def __init__(self) -> None:
        self._names: list[str] = []
        self._counts: Counter[str] = Counter()

    @property
    def has_content(self) -> bool:
        """Whether what comes next is SVG or MathML."""
        return bool(self._names) and self._names[-1] in FOREIGN

    def note(self, token: Token) -> None:
        """Opens and closes elements at a token."""
        if token.kind is Kind.END and self._counts[token.name]:
            while self._pop() != token.name:
                pass
        elif token.breaks_out:
            while self.has_content:
                self._pop()
        elif token.kind is Kind.START and not token.self_closing:
            is_point = self.has_content and token.name in INTEGRATION_POINTS
            if is_point or token.name in FOREIGN:
                self._names.append(token.name)
                self._counts[token.name] += 1

    def _pop(self) -> str:
        name = self._names.pop()
        self._counts[name] -= 1
        return name


def _content_end(document: str, start: int, name: str) -> int | None:
    """Where the content of an element without tags inside ends, or None for other
    elements.
    """
    if name == PLAINTEXT:
        return len(document)
    if name == "script":
        return _script_end(document, start)
    if name not in END_TAGS:
        return None
    end = END_TAGS[name].search(document, start)
    return end.start() if end else len(document)


def _script_end(document: str, start: int) -> int:
    """Where a script ends: at its first end tag outside a comment in which another
    script begins.
    """
    is_comment = False
    is_nested = False
    at = start
    while step := SCRIPT_STEP.search(document, at):
        at = step.end()
        if step[0] == "<!--":
            is_comment = True
            at = step.start() + len("<!")  # the same hyphens may end it
        elif step[0] == "-->":
            is_comment = False
            is_nested = False
        elif step[1]:
            if not is_nested:
                return step.start()
            is_nested = False
        elif is_comment:
            is_nested = True
    return len(document)
