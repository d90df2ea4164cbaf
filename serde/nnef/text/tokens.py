"""The words of a text of NNEF, as Khronos' lexer takes them apart."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from typing import Final

from serde.core.records import dataclass
from serde.errors import FormatError

__all__ = ["NUMBER", "WORDS", "Token", "lines_and_columns", "place_of", "text_fault", "tokens_of"]

WORDS: Final = frozenset(
    (
        "version", "extension", "graph", "fragment", "tensor", "integer", "scalar", "logical",
        "string", "true", "false", "for", "in", "if", "else", "yield", "length_of", "shape_of",
        "range_of",
    )
)  # fmt: skip
"""What the language reserves."""

_BLANK: Final = r"[ \t\n\v\f\r]"
NUMBER: Final = r"[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?"
"""Pattern of a number without its sign."""

_MOST_BLANKS: Final = 64
_MOST_NUMBERS: Final = 1000
"""Most runs of blanks, and most numbers, in one match, which has memory for each of them."""

_NUMBERS: Final = rf"{NUMBER}(?:{_BLANK}*,{_BLANK}*-?{_BLANK}*{NUMBER}){{0,{_MOST_NUMBERS}}}"


def _pattern(number: str) -> re.Pattern[str]:
    """Return what matches a token with the blanks and comments before it, or those at the end."""
    # As the lexer of the parser reads: strings and comments end where they end there.
    return re.compile(
        rf"""(?:{_BLANK}+|\#[^\r\n]*){{0,{_MOST_BLANKS}}}
        (?: (?P<string>'[^']*'|"[^"]*")
          | (?P<number>{number})
          | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
          | (?P<generic><{_BLANK}*(?:integer|scalar|logical|string|\?){_BLANK}*>)
          | (?P<minus>-(?={_BLANK}*[0-9]))
          | (?P<sign>->|[()\[\]{{}}<>=+*/^!&|,;:?-])
          | (?P<blank>(?={_BLANK}|\#))
          | (?P<end>\Z)
          | (?P<other>.))""",
        re.VERBOSE | re.DOTALL,
    )


_TOKEN: Final = _pattern(NUMBER)
_TOKEN_OR_NUMBERS: Final = _pattern(_NUMBERS)
_LINE_END: Final = re.compile(r"\r\n|\r|\n")


@dataclass(slots=True)
class Token:
    """A word, a literal or a sign.

    Attributes:
        kind: ``string``, ``number``, ``name``; ``generic`` for a type in angle brackets; ``minus``
            before a number, ``sign`` otherwise; ``other`` for what the language has not.
        text: Its characters.
        start: Where it is.
    """

    kind: str
    text: str
    start: int


def tokens_of(text: str, *, join_numbers: bool = False) -> Iterator[Token]:
    """Yield the tokens of a text, without blanks and comments.

    Args:
        text: The text.
        join_numbers: Whether numbers with commas between them are one token, of bounded length.
    """
    pattern = _TOKEN_OR_NUMBERS if join_numbers else _TOKEN
    for match in pattern.finditer(text):
        kind = match.lastgroup or "end"
        if kind not in ("blank", "end"):
            yield Token(kind, match[kind], match.start(kind))


def lines_and_columns(text: str, starts: Sequence[int]) -> list[tuple[int, int]]:
    """Return the lines and columns of some characters, from 1.

    Args:
        text: The text.
        starts: Where the characters are, ascending.
    """
    found = []
    line, begin = 1, 0
    ends = (match.end() for match in _LINE_END.finditer(text))
    end = next(ends, None)
    for start in starts:
        while end is not None and end <= start:
            line, begin, end = line + 1, end, next(ends, None)
        found.append((line, start - begin + 1))
    return found


def place_of(text: str, start: int) -> str:
    """Return the line and column of a character, for messages."""
    ((line, column),) = lines_and_columns(text, [start])
    return f"line {line}, column {column}"


def text_fault(
    text: str, start: int, path: str | os.PathLike[str] | None, message: str
) -> FormatError:
    """Return an error about what begins somewhere in a text."""
    return FormatError(f"{place_of(text, start)}: {message}", path=path)
