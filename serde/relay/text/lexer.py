"""Tokens of Relay text."""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import cached_property
from typing import Final, NamedTuple

from serde.core.limits import MAX_GRAPH_TEXT_BYTES
from serde.errors import ParseError

__all__ = ["Lexer", "Token"]

# The engine of `re` keeps a place for each turn of a repeated group, so that those here are few.
_SPACE: Final = re.compile(r"[ \t\r\n]*")
_LINE: Final = re.compile(r"[^\n]*")
_STRING_END: Final = re.compile(r'["\\]')
_COMMENT: Final = re.compile(r"/\*|\*/")
_TOKEN: Final = re.compile(
    r"""
    (?P<local>%[A-Za-z_/][A-Za-z0-9_/]*)
  | (?P<graph>%[0-9]+)
  | (?P<global>@[A-Za-z_][A-Za-z0-9_/]*)
  | (?P<ident>[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*){0,100})
  | (?P<number>[0-9][A-Za-z0-9.]*(?:(?<=[eE])[+-][0-9][A-Za-z0-9.]*)?)
  | (?P<string>")
  | (?P<punct>->|==|!=|<=|>=|[-+*/<>=,;:?.(){}\[\]])
    """,
    re.VERBOSE | re.DOTALL,
)
_HEADER: Final = re.compile(r'#\[version[ \t]*=[ \t]*"([^"\n]{0,100})"\]')
_METADATA: Final = re.compile(r"^#\[metadata\]", re.MULTILINE)
_VERSIONS: Final = ("0.0.5",)


class Token(NamedTuple):
    """A token: its kind, its text and where it starts."""

    kind: str
    text: str
    position: int


class Lexer:
    """Yields the tokens of a text one by one; comments and spaces fall away.

    Args:
        text: The whole text.
        name: What errors call it.

    Raises:
        ParseError: The text is longer than any that serde reads.
    """

    def __init__(self, text: str, name: str) -> None:
        self._text = text
        self._name = name
        self._at = 0
        if len(text) > MAX_GRAPH_TEXT_BYTES:
            raise self.error(f"a text of {len(text)} characters is longer than serde reads", 0)
        found = _METADATA.search(text)
        self._end = found.start() if found else len(text)
        self.metadata = text[found.end() :] if found else ""
        self.metadata_position = self._end
        self._ahead: list[Token] = []

    def error(self, message: str, position: int) -> ParseError:
        """Return an error at a place in the text."""
        line, column = self.place(position)
        return ParseError(message, line=line, column=column, name=self._name)

    def place(self, position: int) -> tuple[int, int]:
        """Return line and column, both from 1."""
        line = bisect_right(self._lines, position)
        return line, position - self._lines[line - 1] + 1

    @cached_property
    def _lines(self) -> list[int]:
        """Where each line begins."""
        return [0, *(match.end() for match in re.finditer("\n", self._text))]

    def header(self, *, required: bool) -> None:
        """Read the version line.

        Raises:
            ParseError: It is absent though required, or names another version.
        """
        self._skip()
        match = _HEADER.match(self._text, self._at, self._end)
        if match is None:
            if required:
                raise self.error('expected #[version = "0.0.5"]', self._at)
            return
        if match[1] not in _VERSIONS:
            raise self.error(f"expected text of version 0.0.5, found {match[1]}", self._at)
        self._at = match.end()

    def peek(self, offset: int = 0) -> Token:
        """Return a token that comes next, without taking it."""
        while len(self._ahead) <= offset:
            self._ahead.append(self._read_token())
        return self._ahead[offset]

    def take(self) -> Token:
        """Return the next token and go past it."""
        return self._ahead.pop(0) if self._ahead else self._read_token()

    def _read_token(self) -> Token:
        self._skip()
        if self._at >= self._end:
            return Token("end", "the end of the text", self._end)
        match = _TOKEN.match(self._text, self._at, self._end)
        if match is None:
            raise self.error(f"unexpected character {self._text[self._at]!r}", self._at)
        start, kind = self._at, match.lastgroup or ""
        self._at = self._after_string(start) if kind == "string" else match.end()
        return Token(kind, self._text[start : self._at], start)

    def _after_string(self, start: int) -> int:
        at = start + 1
        while (match := _STRING_END.search(self._text, at, self._end)) is not None:
            if match[0] == '"':
                return match.end()
            at = match.end() + 1
        raise self.error("a string does not end", start)

    def _skip(self) -> None:
        text, end = self._text, self._end
        while True:
            match = _SPACE.match(text, self._at, end)
            if match is not None:
                self._at = match.end()
            if not text.startswith("/", self._at, end):
                return
            if text.startswith("//", self._at, end):
                line = _LINE.match(text, self._at, end)
                self._at = end if line is None else line.end()
            elif text.startswith("/*", self._at, end):
                self._at = self._after_comment(self._at)
            else:
                return

    def _after_comment(self, start: int) -> int:
        depth = 0
        for match in _COMMENT.finditer(self._text, start, self._end):
            depth += 1 if match[0] == "/*" else -1
            if depth == 0:
                return match.end()
        raise self.error("a comment does not end", start)
