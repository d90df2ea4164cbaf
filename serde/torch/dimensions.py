"""Lengths of axes as PyTorch writes them, and the numbers between which they lie.

``.pt2`` archives have them as SymPy prints its trees, ``Mul(Integer(2), Symbol('s77'))``, and
live programs as formulas, ``2*s77``. What a dimension of Relay cannot say is an anonymous one.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from serde.relay.ir.dims import Any, Dim, DimLike, FloorDiv, SymDim, as_dim

__all__ = ["Range", "bounds", "fixed_symbols", "other_lengths", "parse_dim"]

_LONGEST: Final = 10_000
"""Characters of a formula, beyond which nobody wants to read it."""

_MOST_TERMS: Final = 1000
_LARGEST_POWER: Final = 16


def parse_dim(text: str) -> Dim:
    """Return a formula as a dimension: anonymous where Relay has no such operation.

    Raises:
        ValueError: It is no formula.
    """
    if len(text) > _LONGEST:
        return Any()
    try:
        return _dim(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, RecursionError, MemoryError, ValueError):
        raise ValueError(f"expected the length of an axis, found {text[:100]!r}") from None


def _dim(node: ast.expr) -> Dim:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    if isinstance(node, ast.Name):
        return as_dim(node.id)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return _dim(node.operand) * -1
    if isinstance(node, ast.BinOp):
        apply = _INFIX.get(type(node.op))
        left, right = _dim(node.left), _dim(node.right)
        return Any() if apply is None else apply(left, right)
    if isinstance(node, ast.Call):
        return _call(node)
    raise ValueError(ast.dump(node)[:100])


def _call(node: ast.Call) -> Dim:
    """Return what SymPy prints as a call: a symbol, a number or an operation."""
    name = node.func.id if isinstance(node.func, ast.Name) else ""
    if name == "Symbol":
        (first, *_) = node.args
        if not isinstance(first, ast.Constant) or not isinstance(first.value, str):
            raise ValueError("a symbol without a name")
        if not first.value.isidentifier():
            raise ValueError(f"a symbol called {first.value[:100]!r}")
        return as_dim(first.value)
    args = [_dim(each) for each in node.args]
    apply = _CALLS.get(name)
    if name == "Integer" and len(args) == 1:
        return args[0]
    if apply is None or not args:
        return Any()
    total = args[0]
    for each in args[1:]:
        total = apply(total, each)
    return total


def _add(left: Dim, right: Dim) -> Dim:
    return left + right if _terms(left) + _terms(right) <= _MOST_TERMS else Any()


def _multiply(left: Dim, right: Dim) -> Dim:
    return left * right if _terms(left) * _terms(right) <= _MOST_TERMS else Any()


def _power(base: Dim, exponent: Dim) -> Dim:
    if not isinstance(exponent, int) or not 0 <= exponent <= _LARGEST_POWER:
        return Any()
    total: Dim = 1
    for _ in range(exponent):
        total = _multiply(total, base)
    return total


def _divide(left: Dim, right: Dim) -> Dim:
    return Any() if right == 0 else left // right


def _terms(dim: Dim) -> int:
    return len(dim.terms) if isinstance(dim, SymDim) else 1


_CALLS: Final[dict[str, Callable[[Dim, Dim], Dim]]] = {
    "Add": _add,
    "Mul": _multiply,
    "Pow": _power,
    "FloorDiv": _divide,
    "CleanDiv": _divide,
}

_INFIX: Final[dict[type[ast.operator], Callable[[Dim, Dim], Dim]]] = {
    ast.Add: _add,
    ast.Sub: operator.sub,
    ast.Mult: _multiply,
    ast.FloorDiv: _divide,
    ast.Pow: _power,
}


Range = tuple[int, int | None]
"""The least and the greatest value of a symbol; None for no limit."""


def fixed_symbols(ranges: Mapping[str, Range]) -> dict[str, Dim]:
    """Return symbols that can have one value only."""
    return {name: low for name, (low, high) in ranges.items() if low == high}


def other_lengths(
    name: str, given: Sequence[DimLike], exported: Sequence[DimLike], ranges: Mapping[str, Range]
) -> list[str]:
    """Return what is wrong with lengths for which a program was not exported.

    Nothing is with the entries of a batch of one: no number in a program comes from them, but for
    literals of shapes, which :mod:`serde.conversion.opening` finds.
    """
    found = []
    for axis, (length, own) in enumerate(zip(given, exported, strict=True)):
        least, greatest = bounds(as_dim(own), ranges)
        if own == 1 and axis == 0:
            continue
        if isinstance(own, int) and length != own:
            found.append(
                f"axis {axis} of {name} is {length}, but the program was exported for {own}: "
                "numbers in it that come from this length stay as they are"
            )
        elif isinstance(length, int) and (
            (least is not None and length < least) or (greatest is not None and length > greatest)
        ):
            limit = f"from {least} to {greatest}" if greatest is not None else f"from {least} on"
            found.append(
                f"axis {axis} of {name} is {length}, but the program was exported for lengths "
                f"{limit}"
            )
    return found


def bounds(dim: Dim, ranges: Mapping[str, Range]) -> tuple[int | None, int | None]:
    """Return the least and the greatest value of a dimension, None where it is not known."""
    if isinstance(dim, int):
        return dim, dim
    if isinstance(dim, Any):
        return None, None
    low, high = _end(dim, ranges, greatest=False), _end(dim, ranges, greatest=True)
    return low, high


def _end(dim: Dim, ranges: Mapping[str, Range], *, greatest: bool) -> int | None:
    """Return one end; products of what is not negative grow with each of their factors."""
    if isinstance(dim, int):
        return dim
    if not isinstance(dim, SymDim):
        return None
    total = 0
    for monomial, count in dim.terms:
        value = 1
        for atom, power in monomial:
            least = _atom(atom, ranges, greatest=False)
            end = _atom(atom, ranges, greatest=True) if greatest == (count > 0) else least
            if end is None or least is None or least < 0:
                return None
            value *= end**power
        total += count * value
    return total


def _atom(atom: str | FloorDiv, ranges: Mapping[str, Range], *, greatest: bool) -> int | None:
    if isinstance(atom, str):
        return ranges[atom][int(greatest)] if atom in ranges else None
    above = _end(atom.numerator, ranges, greatest=greatest)
    below = _end(atom.denominator, ranges, greatest=not greatest)
    return None if above is None or not below or below < 0 else above // below
