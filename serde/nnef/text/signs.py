"""Signs in expressions, as the standard means them.

Khronos' parser lets a sign or ``!`` stand for all of the expression behind it: it reads ``-x + 1``
as ``-(x + 1)``, and ``-r if c else s`` as ``-(r if c else s)``. The bodies of the standard's own
fragments (``zero_point_linear_quantize``) need the narrow reading, so brackets are put around.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from serde.nnef.text.tokens import Token, lines_and_columns, text_fault, tokens_of

__all__ = ["SignedText", "bracket_signs"]

_OPEN: Final = {"(": ")", "[": "]", "{": "}"}
_SIGNS: Final = ("-", "!")
_BEFORE: Final = frozenset(("if", "else", "yield", "in"))
"""Words that no operand ends with."""

_AFTER: Final = frozenset((*"+-*/^<>&|!=", "if", "in"))
"""What goes on with an expression."""


class SignedText:
    """A text with brackets around what signs stand for.

    Attributes:
        text: The text.
    """

    def __init__(self, text: str, inserted: Sequence[tuple[int, str]]) -> None:
        ordered = sorted(inserted)
        cuts = [0, *(start for start, _ in ordered), len(text)]
        parts = [text[a:b] for a, b in pairwise(cuts)]
        marks = [mark for _, mark in ordered]
        self.text = "".join(part + mark for part, mark in zip(parts, [*marks, ""], strict=True))
        self._places = lines_and_columns(text, [start for start, _ in ordered])

    def column(self, line: int, column: int) -> int:
        """Return the column of the original text for one of this."""
        shift = 0
        for at_line, at_column in self._places:
            if at_line == line and at_column + shift < column:
                shift += 1
        return column - shift


def bracket_signs(text: str, path: str | os.PathLike[str] | None) -> SignedText:
    """Return a text whose signs stand for the operand behind them only.

    Args:
        text: Of a ``graph.nnef``.
        path: The file, for messages.

    Raises:
        FormatError: A sign stands before a power, which may be read either way.
    """
    tokens = [*tokens_of(text), Token("end", "", len(text))]
    ends = _matching(tokens)
    inserted: list[tuple[int, str]] = []
    for index, stop in _signed_operands(tokens, ends):
        following = tokens[stop].text
        if following == "^":
            what = "a sign before a power: put brackets around one of them"
            raise text_fault(text, tokens[index].start, path, what)
        if following in _AFTER and not (tokens[stop].text == "=" and tokens[stop + 1].text != "="):
            last = tokens[stop - 1]
            inserted += [(tokens[index].start, "("), (last.start + len(last.text), ")")]
    return SignedText(text, inserted)


def _matching(tokens: Sequence[Token]) -> dict[int, int]:
    """Return where brackets close, by where they open."""
    found: dict[int, int] = {}
    opened: list[int] = []
    for index, token in enumerate(tokens):
        if token.kind != "sign":
            continue
        if token.text in _OPEN:
            opened.append(index)
        elif opened and _OPEN[tokens[opened[-1]].text] == token.text:
            found[opened.pop()] = index
    return found


def _signed_operands(tokens: Sequence[Token], ends: dict[int, int]) -> Iterator[tuple[int, int]]:
    """Yield where an operand with signs begins, and what stands behind it."""
    for index, token in enumerate(tokens):
        if token.text not in _SIGNS or not _begins(tokens, index):
            continue
        at = index
        while at < len(tokens) and tokens[at].text in _SIGNS:
            at += 1
        if at not in ends:
            at += 1
        while at in ends or (at < len(tokens) and tokens[at].kind == "generic"):
            at = ends.get(at, at) + 1
        if at < len(tokens):
            yield index, at


def _begins(tokens: Sequence[Token], index: int) -> bool:
    """Whether what stands there begins an operand."""
    if not index:
        return False
    before = tokens[index - 1]
    if before.kind == "name":
        return before.text in _BEFORE
    return before.kind in ("sign", "minus") and before.text not in (")", "]", "}")
