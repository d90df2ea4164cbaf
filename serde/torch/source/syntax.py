"""Python as a tree, read as data: bounded before and after it is parsed."""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Final

from serde.errors import FormatError
from serde.limits import MAX_NESTING

__all__ = ["Unit", "assigned", "last_reads", "leaves", "loads", "parse"]

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
    """

    def __init__(self, text: str, name: str, *, is_own: bool = False) -> None:
        self.name = name
        self.is_own = is_own
        self._lines = text.splitlines()
        self.tree = parse(text, name)

    def fault(self, node: ast.AST, expected: str) -> FormatError:
        """Return an error about a node."""
        line = getattr(node, "lineno", 1)
        text = self._lines[line - 1] if line <= len(self._lines) else ""
        end = node.end_col_offset if getattr(node, "end_lineno", None) == line else None
        found = text.encode()[getattr(node, "col_offset", 0) : end].decode("utf-8", "replace")
        return fault(self.name, line, expected, found.strip()[:80])


def fault(name: str, line: int, expected: str, found: str) -> FormatError:
    """Return an error about a line."""
    return FormatError(f"{name}:{line}: expected {expected}, found {found}")


def parse(text: str, name: str) -> ast.Module:
    """Return a module as a tree.

    Raises:
        FormatError: It is no Python, or larger or deeper than what nets are.
    """
    if len(text) > MAX_SOURCE_BYTES:
        raise fault(name, 1, f"at most {MAX_SOURCE_BYTES:,} characters", f"{len(text):,}")
    try:
        _check_statements(text, name)
        tree = ast.parse(text)
    except (SyntaxError, tokenize.TokenError, ValueError) as error:
        line = getattr(error, "lineno", None) or 1
        raise fault(name, line, "Python", str(getattr(error, "msg", error))[:100]) from None
    except (RecursionError, MemoryError):
        raise fault(name, 1, "statements of few levels", "deeper ones") from None
    _check_depth(tree, name)
    return tree


def _check_statements(text: str, name: str) -> None:
    count = 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        count = 0 if token.type == tokenize.NEWLINE else count + 1
        if count > MAX_STATEMENT_TOKENS:
            found = f"more than {MAX_STATEMENT_TOKENS:,}"
            raise fault(name, token.start[0], "a statement of few tokens", found)


def _check_depth(tree: ast.Module, name: str) -> None:
    level: list[ast.AST] = [tree]
    for _ in range(MAX_NESTING):
        level = [inner for each in level for inner in ast.iter_child_nodes(each)]
        if not level:
            return
    line = next((x.lineno for x in level if hasattr(x, "lineno")), 1)
    raise fault(name, line, f"at most {MAX_NESTING} levels", "deeper ones")


# What statements do with names. Functions inside them are taken with what they read.


@lru_cache(maxsize=1024)
def _names(statement: ast.AST) -> tuple[frozenset[str], frozenset[str]]:
    read, written = set(), set()
    for each in ast.walk(statement):
        if isinstance(each, ast.Name):
            (read if isinstance(each.ctx, ast.Load) else written).add(each.id)
        if isinstance(each, ast.AugAssign) and isinstance(each.target, ast.Name):
            read.add(each.target.id)
        if isinstance(each, ast.FunctionDef):
            written.add(each.name)
    return frozenset(read), frozenset(written)


def loads(body: Iterable[ast.AST]) -> set[str]:
    """Return the names that statements read."""
    return {name for each in body for name in _names(each)[0]}


def last_reads(body: Sequence[ast.AST]) -> dict[str, int]:
    """Return the place of the last statement that reads each name."""
    return {name: place for place, each in enumerate(body) for name in _names(each)[0]}


def assigned(body: Iterable[ast.AST]) -> dict[str, None]:
    """Return the names that statements assign, in order."""
    return {name: None for each in body for name in sorted(_names(each)[1])}


@lru_cache(maxsize=1024)
def leaves(statement: ast.stmt) -> bool:
    """Whether a statement may leave the block that it is in."""
    return any(isinstance(x, (ast.Return, ast.Break, ast.Continue)) for x in _inside(statement))


def _inside(statement: ast.stmt) -> Iterator[ast.stmt]:
    """Yield a statement and those inside its branches; what loops leave stays in them."""
    pending = [statement]
    while pending:
        each = pending.pop()
        yield each
        if isinstance(each, ast.If):
            pending += [*each.body, *each.orelse]
        elif isinstance(each, (ast.For, ast.While)):
            pending += [x for x in _all(each.body) if isinstance(x, ast.Return)]


def _all(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    pending = list(body)
    while pending:
        each = pending.pop()
        yield each
        if isinstance(each, (ast.If, ast.For, ast.While)):
            pending += [*each.body, *each.orelse]
