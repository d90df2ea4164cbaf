"""Python as a tree, read as data: bounded before and after it is parsed."""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Final

from serde.core import MAX_NESTING, pause_garbage_collection
from serde.errors import FormatError

__all__ = ["MAX_SOURCE_BYTES", "Unit", "assigned", "last_reads", "leaves", "loads"]

MAX_SOURCE_BYTES: Final = 8 * 2**20
"""Longest module: room for some 100,000 lines."""

MAX_STATEMENT_TOKENS: Final = 20_000
"""Most tokens of one statement, of which a parser may call itself for each."""


class Unit:
    """A file of Python.

    Args:
        text: What is in it.
        name: What messages call it.
        is_own: Whether it is a part of serde, of which messages tell no line.

    Raises:
        FormatError: It is no Python, or larger or deeper than what nets are.
    """

    def __init__(self, text: str, name: str, *, is_own: bool = False) -> None:
        self.name = name
        self.is_own = is_own
        self._lines = text.splitlines()
        try:
            self._check_statements(text)
            with pause_garbage_collection():  # Finalizers of others fail at the limit of recursion.
                self.tree = ast.parse(text)
        except (SyntaxError, tokenize.TokenError, ValueError) as error:
            reason = str(getattr(error, "msg", error))[:100]
            raise self._error(getattr(error, "lineno", None) or 1, "Python", reason) from None
        except (RecursionError, MemoryError):
            raise self._error(1, "statements of few levels", "deeper ones") from None
        self.size = self._check_depth()

    def fault(self, node: ast.AST, expected: str) -> FormatError:
        """Return an error about a node."""
        line = getattr(node, "lineno", 1)
        text = self._lines[line - 1] if line <= len(self._lines) else ""
        end = getattr(node, "end_col_offset", None)
        end = end if getattr(node, "end_lineno", None) == line else None
        found = text.encode()[getattr(node, "col_offset", 0) : end].decode("utf-8", "replace")
        return self._error(line, expected, found.strip()[:80])

    def _error(self, line: int, expected: str, found: str) -> FormatError:
        return FormatError(f"{self.name}:{line}: expected {expected}, found {found}")

    def _check_statements(self, text: str) -> None:
        count = 0
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            count = 0 if token.type == tokenize.NEWLINE else count + 1
            if count > MAX_STATEMENT_TOKENS:
                raise self._error(token.start[0], "a statement of few tokens", f"{count:,}")

    def _check_depth(self) -> int:
        """Return how many nodes the tree has."""
        level: list[ast.AST] = [self.tree]
        count = 0
        for _ in range(MAX_NESTING):
            level = [inner for each in level for inner in ast.iter_child_nodes(each)]
            count += len(level)
            if not level:
                return count
        line = next((x.lineno for x in level if hasattr(x, "lineno")), 1)
        raise self._error(line, f"at most {MAX_NESTING} levels", "deeper ones")


@lru_cache(maxsize=4096)
def _names(statement: ast.AST) -> tuple[frozenset[str], frozenset[str]]:
    """Return the names that a statement reads and assigns, functions inside it included."""
    read: set[str] = set()
    written: set[str] = set()
    for each in ast.walk(statement):
        if isinstance(each, ast.Name):
            (read if isinstance(each.ctx, ast.Load) else written).add(each.id)
        if isinstance(each, ast.AugAssign) and isinstance(each.target, ast.Name):
            read.add(each.target.id)
        if isinstance(each, ast.FunctionDef):
            written.add(each.name)
    return frozenset(read), frozenset(written)


def loads(statement: ast.AST) -> frozenset[str]:
    """Return the names that a statement reads."""
    return _names(statement)[0]


def last_reads(body: Sequence[ast.AST]) -> dict[str, int]:
    """Return the place of the last statement that reads each name."""
    return {name: place for place, each in enumerate(body) for name in _names(each)[0]}


def assigned(body: Iterable[ast.AST]) -> list[str]:
    """Return the names that statements assign, in order."""
    return list(dict.fromkeys(name for each in body for name in sorted(_names(each)[1])))


@lru_cache(maxsize=4096)
def leaves(statement: ast.stmt) -> bool:
    """Whether a statement may leave the block that it is in; what a loop holds leaves that."""
    return any(
        isinstance(each, ast.Return) or (not deep and isinstance(each, (ast.Break, ast.Continue)))
        for each, deep in _inside(statement)
    )


def _inside(statement: ast.stmt) -> Iterator[tuple[ast.stmt, bool]]:
    """Yield a statement and those inside it, and whether a loop is between."""
    pending = [(statement, False)]
    while pending:
        each, deep = pending.pop()
        yield each, deep
        if isinstance(each, (ast.If, ast.For, ast.While)):
            inner = deep or not isinstance(each, ast.If)
            pending += [(x, inner) for x in (*each.body, *each.orelse)]
