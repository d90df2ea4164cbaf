"""Short names by which patterns are written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any as AnyValue

from serde.relay.ir import DimLike, Expr, Type, get
from serde.relay.tvm.dataflow_pattern.patterns import (
    AttrPattern,
    ConstantPattern,
    DataTypePattern,
    DFPattern,
    DominatorPattern,
    ExprPattern,
    IfPattern,
    LetPattern,
    ShapePattern,
    TupleGetItemPattern,
    TuplePattern,
    TypePattern,
    VarPattern,
    WildcardPattern,
)

__all__ = [
    "dominates", "has_attr", "has_dtype", "has_shape", "has_type", "is_constant", "is_expr",
    "is_if", "is_let", "is_op", "is_tuple", "is_tuple_get_item", "is_var", "wildcard",
]  # fmt: skip


def wildcard() -> WildcardPattern:
    """Return the pattern of anything."""
    return WildcardPattern()


def is_var(name: str = "") -> VarPattern:
    """Return the pattern of a variable, of this name if one is given."""
    return VarPattern(name)


def is_constant() -> ConstantPattern:
    """Return the pattern of a constant."""
    return ConstantPattern()


def is_expr(expr: Expr) -> ExprPattern:
    """Return the pattern of what is structurally equal to `expr`."""
    return ExprPattern(expr)


def is_op(op_name: str) -> ExprPattern:
    """Return the pattern of an operator; call it for the pattern of its calls.

    Raises:
        RelayError: There is no such operator.
    """
    return ExprPattern(get(op_name))


def is_tuple(fields: Iterable[DFPattern] | None) -> TuplePattern:
    """Return the pattern of a tuple of these fields, or of any tuple."""
    return TuplePattern(fields)


def is_tuple_get_item(tuple_value: DFPattern, index: int | None = None) -> TupleGetItemPattern:
    """Return the pattern of a field of a tuple, of any field without an index."""
    return TupleGetItemPattern(tuple_value, index)


def is_if(cond: DFPattern, true_branch: DFPattern, false_branch: DFPattern) -> IfPattern:
    """Return the pattern of a choice of two values."""
    return IfPattern(cond, true_branch, false_branch)


def is_let(var: DFPattern, value: DFPattern, body: DFPattern) -> LetPattern:
    """Return the pattern of a value bound to a variable inside a body."""
    return LetPattern(var, value, body)


def has_type(ttype: Type, pattern: DFPattern | None = None) -> TypePattern:
    """Return the pattern of what has a type, and matches `pattern` if one is given."""
    return TypePattern(_given(pattern), ttype)


def has_dtype(dtype: AnyValue, pattern: DFPattern | None = None) -> DataTypePattern:
    """Return the pattern of a tensor of a dtype that matches `pattern` if one is given."""
    return DataTypePattern(_given(pattern), dtype)


def has_shape(shape: Iterable[DimLike], pattern: DFPattern | None = None) -> ShapePattern:
    """Return the pattern of a tensor of a shape that matches `pattern` if one is given."""
    return ShapePattern(_given(pattern), shape)


def has_attr(attrs: Mapping[str, AnyValue], pattern: DFPattern | None = None) -> AttrPattern:
    """Return the pattern of what has attributes, and matches `pattern` if one is given."""
    return AttrPattern(_given(pattern), attrs)


def dominates(parent: DFPattern, path: DFPattern, child: DFPattern) -> DominatorPattern:
    """Return the pattern of a child from which every way up leads over `path` to `parent`."""
    return DominatorPattern(parent, path, child)


def _given(pattern: DFPattern | None) -> DFPattern:
    return WildcardPattern() if pattern is None else pattern
