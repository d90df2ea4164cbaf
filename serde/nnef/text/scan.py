"""A look at a text of NNEF before Khronos' parser sees it.

The parser recurses over brackets and expressions, wraps integers that are too large, takes control
characters for words of the language, divides by zero and expands fragments that invoke themselves
without end. Such texts are refused here, with the place, or marked to be parsed apart.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Collection
from typing import Final

from serde.core import MAX_NESTING, budget, dataclass, field
from serde.errors import FormatError
from serde.nnef.text.flat import FlatForm
from serde.nnef.text.tokens import NUMBER, text_fault, tokens_of

__all__ = ["EXPANSION", "Declarations", "check_expansion", "scan_quantization", "scan_text"]

_OPEN: Final = "([{"
_CLOSE: Final = ")]}"
_OPERATORS: Final = frozenset("+-*/^!<>&|")
_WORDS: Final = frozenset(("for", "if", "in", "length_of", "range_of", "shape_of"))
"""Words of expressions."""

_NO_ELEMENTS: Final = ("?", "string")
"""Types that elements of a tensor cannot have."""

_SUSPICIOUS: Final = re.compile(r"[0-9]{10}|[eE]")
"""What numbers have that may be too large."""

_NUMBER: Final = re.compile(NUMBER)
_MAX_INTEGER: Final = 2**31 - 1
_MAX_SCALAR: Final = 3.4028235677973366e38
"""The least number that rounds to more than what float32 holds."""

_MAX_OPERATORS: Final = 2000
"""Most operators in one assignment: the parser recurses over them."""

_FREE: Final = 20
"""Operations that may come of each that is written, by fragments and lists, before they count."""

EXPANSION: Final = "what fragments and lists expand to"

_VERSION: Final = (1, 0)


@dataclass(slots=True)
class Declarations:
    """What a text declares.

    Attributes:
        extended: Whether it names an extension of the language.
        calls: How often the body of each fragment, and that of the graph under its name, surely
            invokes which others.
        recursions: Fragments that invoke themselves, surely or on a condition, and where.
        expression: Where it stops being flat; None if all of it is.
        graph: Name of the graph.
        operators: How many signs of expressions stand in bodies, each of which is an operation.
    """

    extended: bool = False
    calls: dict[str, Counter[str]] = field(default_factory=dict)
    recursions: dict[str, int] = field(default_factory=dict)
    expression: int | None = None
    graph: str = ""
    operators: int = 0

    def count_expanded(self, operations: int) -> int:
        """Return how many operations of a graph count as made: those far beyond what is written."""
        written = sum(calls.total() for calls in self.calls.values()) + self.operators
        return max(operations - _FREE * written, 0)

    @property
    def fragments(self) -> set[str]:
        """The names of fragments with a body."""
        return self.calls.keys() - {self.graph}


class _Scanner:
    """One pass over a text."""

    def __init__(
        self, text: str, path: str | os.PathLike[str] | None, *, quantization: bool = False
    ) -> None:
        self._text = text
        self._path = path
        self._form = FlatForm(quantization=quantization)
        self.found = Declarations()
        self._depth = 0
        self._operators = 0
        self._names_next = ""
        self._owner = ""
        self._in_graph = False
        self._has_body = False
        self._calls: list[tuple[str, int]] = []
        self._conditional = False
        self._percent: int | None = None
        self._previous = ""

    def run(self) -> Declarations:
        """Return what the text declares."""
        if "\0" in self._text:
            raise self.fault("a null character", self._text.index("\0"))
        for token in tokens_of(self._text, join_numbers=True):
            self._see(token.kind, token.text, token.start)
            self._form.see(token)
            self._previous = token.text
        if self._percent is not None and self.found.extended:
            # Errors inside fragments are formats to the parser.
            raise self.fault("a text with % beside an extension of the language", self._percent)
        self.found.expression = self._form.finish()
        return self.found

    def _see(self, kind: str, text: str, start: int) -> None:
        if kind == "number":
            self._check_numbers(text, start)
        elif kind == "name":
            self._see_name(text, start)
        elif kind == "generic":
            self._see_generic(text, start)
        elif kind == "minus":
            self._see_minus(start)
        elif kind == "sign":
            self._see_sign(text, start)
        elif kind == "other":
            what = f"unexpected character {text!r}"
            raise self.fault("a string that does not end" if text in "'\"" else what, start)
        elif self._percent is None and "%" in text:
            self._percent = start

    def _check_numbers(self, text: str, start: int) -> None:
        if self._previous == "version":
            self._check_version(text, start)
        if not _SUSPICIOUS.search(text):
            return
        for match in _NUMBER.finditer(text):
            self._check_number(match.group(), start + match.start())

    def _check_number(self, token: str, start: int) -> None:
        if token.isdigit():
            if int(token[:400]) > _MAX_INTEGER:
                raise self.fault(
                    f"expected an integer of at most {_MAX_INTEGER}, found {token[:40]}", start
                )
        elif len(token) > 400 or float(token) >= _MAX_SCALAR:
            raise self.fault(f"expected a number in float32, found {token[:40]}", start)

    def _check_version(self, token: str, start: int) -> None:
        major, _, minor = token.partition(".")
        found = (major[:9], minor[:9])
        if not all(map(str.isdigit, found)) or tuple(map(int, found)) != _VERSION:
            raise self.fault(f"expected version 1.0, found {token[:40]}", start)

    def _see_name(self, token: str, start: int) -> None:
        if self._names_next:
            self._begin(token)
        elif token in ("fragment", "graph") and not self._depth:
            self._names_next = token
        elif token == "extension" and not self._depth:
            self.found.extended = True
        elif token in _WORDS:
            self._conditional = self._conditional or token in ("if", "for")
            self._count_operator(start)

    def _begin(self, name: str) -> None:
        """Enter the declaration of a fragment or a graph."""
        self._in_graph = self._names_next == "graph"
        self._owner, self._names_next, self._has_body = name, "", False
        if self._in_graph:
            self.found.graph = name

    def _see_generic(self, token: str, start: int) -> None:
        element = token[1:-1].strip()
        if self._in_graph and element in _NO_ELEMENTS:
            raise self.fault(f"no tensor has elements of type {element}", start)
        if self._depth and self._has_body and self._previous.isidentifier():
            self._calls.append((self._previous, start))

    def _see_minus(self, start: int) -> None:
        if self._previous not in ("(", "[", ",", "=", ":"):
            self._count_operator(start)

    def _see_sign(self, token: str, start: int) -> None:
        if token in _OPEN:
            self._open(token, start)
        elif token in _CLOSE:
            self._depth -= 1
        elif token in _OPERATORS:
            self._conditional = self._conditional or token in "&|"
            self._count_operator(start)
        if token in (";", "}"):
            self._end_assignment()
        if token == "}" and self._depth == 0:
            self._owner, self._has_body = "", False

    def _open(self, token: str, start: int) -> None:
        self._depth += 1
        if self._depth > MAX_NESTING:
            raise self.fault(f"more than {MAX_NESTING} brackets inside each other", start)
        follows_name = self._previous.isidentifier()
        if token == "{" and self._depth == 1:
            self._has_body = True
            self.found.calls.setdefault(self._owner, Counter())
        elif token == "(" and self._has_body and follows_name:
            self._calls.append((self._previous, start))
        elif token == "[" and self._previous == "]":
            # A subscript, or a list of lists as type.
            self._count_operator(start)

    def _count_operator(self, start: int) -> None:
        self._operators += 1
        if self._operators > _MAX_OPERATORS:
            raise self.fault(f"more than {_MAX_OPERATORS} operators in one assignment", start)

    def _end_assignment(self) -> None:
        if self._owner and self._has_body:
            surely = self.found.calls[self._owner]
            for name, start in self._calls:
                if name == self._owner:
                    self.found.recursions.setdefault(name, start)
                if not self._conditional:
                    surely[name] += 1
        if self._percent is not None and self._in_graph and len(self._calls) == 1:
            ((name, start),) = self._calls
            if name == "variable" and start < self._percent:
                self._percent = None  # A label, which no fragment is given.
        self.found.operators += self._operators if self._has_body else 0
        self._operators = 0
        self._calls.clear()
        self._conditional = False

    def fault(self, message: str, start: int) -> FormatError:
        """Return an error about what begins somewhere."""
        return text_fault(self._text, start, self._path, message)


def scan_text(text: str, path: str | os.PathLike[str] | None) -> Declarations:
    """Return what a text declares.

    Args:
        text: Of a ``graph.nnef``.
        path: The file, for messages.

    Raises:
        FormatError: The parser would not survive it, or misread a number.
    """
    return _Scanner(text, path).run()


def scan_quantization(
    text: str, path: str | os.PathLike[str] | None
) -> tuple[dict[str, int], int | None]:
    """Return which tensors a text of quantisation speaks of, and where; and where it computes.

    Args:
        text: Of a ``graph.quant``.
        path: The file, for messages.

    Raises:
        FormatError: The parser would not survive it, or misread a number.
    """
    found = _Scanner(text, path, quantization=True).run()
    names: dict[str, int] = {}
    last: tuple[str, int] | None = None
    for token in tokens_of(text):
        if last is not None and token.text == ":":
            names.setdefault(*last)
        last = (token.text[1:-1], token.start) if token.kind == "string" else None
    return names, found.expression


def check_expansion(
    text: str, found: Declarations, expanded: Collection[str], path: str | os.PathLike[str] | None
) -> None:
    """Refuse fragments that surely invoke themselves, or grow beyond what may be expanded.

    Args:
        text: The text.
        found: What it declares.
        expanded: The fragments that are.
        path: The file, for messages.

    Raises:
        FormatError: There is a fragment that invokes itself.
        LimitError: The graph surely has more operations than the conversion may make.
    """
    # The parser knows only fragments that are declared before, so each size is there in time.
    sizes: dict[str, int] = {}
    for owner, calls in found.calls.items():
        if calls[owner] and owner in expanded:
            raise text_fault(
                text, found.recursions[owner], path, f"fragment {owner} invokes itself"
            )
        size = sum(count * sizes.get(each, 1) for each, count in calls.items())
        sizes[owner] = max(size, 1) if owner in expanded or owner == found.graph else 1
    budget().check("nodes", found.count_expanded(sizes.get(found.graph, 0)), EXPANSION)
