"""What a pattern may say of an expression: TVM's pattern language of Relay.

Patterns are compared by identity: the same pattern at two places stands for the same expression.
The fields have TVM's names.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any as AnyValue

from serde.core.weights import dtype_name
from serde.relay.ir import DimLike, Expr, TensorType, Type, get

__all__ = [
    "AltPattern", "AndPattern", "AttrPattern", "CallPattern", "ConstantPattern", "DFPattern",
    "DataTypePattern", "DominatorPattern", "ExprPattern", "FunctionPattern", "IfPattern",
    "LetPattern", "ShapePattern", "TupleGetItemPattern", "TuplePattern", "TypePattern",
    "VarPattern", "WildcardPattern",
]  # fmt: skip


def _accept(_expr: Expr) -> bool:
    return True


class DFPattern:
    """Root of all patterns."""

    __slots__ = ()

    @property
    def inputs(self) -> tuple[DFPattern, ...]:
        """The patterns directly below this one, in TVM's order."""
        return ()

    def __call__(self, *args: DFPattern | None) -> CallPattern:
        """Return the pattern of a call of this; ``None`` alone leaves the arguments open."""
        if len(args) == 1 and args[0] is None:
            return CallPattern(self, None)
        return CallPattern(self, [arg for arg in args if arg is not None])

    def __or__(self, other: DFPattern) -> AltPattern:
        return AltPattern(self, other)

    def __and__(self, other: DFPattern) -> AndPattern:
        return AndPattern(self, other)

    def __add__(self, other: DFPattern) -> CallPattern:
        return CallPattern(ExprPattern(get("add")), [self, other])

    def __sub__(self, other: DFPattern) -> CallPattern:
        return CallPattern(ExprPattern(get("subtract")), [self, other])

    def __mul__(self, other: DFPattern) -> CallPattern:
        return CallPattern(ExprPattern(get("multiply")), [self, other])

    def __truediv__(self, other: DFPattern) -> CallPattern:
        return CallPattern(ExprPattern(get("divide")), [self, other])

    def has_attr(self, attrs: Mapping[str, AnyValue]) -> AttrPattern:
        """Return this pattern, of an operator, a call or a function with these attributes."""
        return AttrPattern(self, attrs)

    def has_type(self, ttype: Type) -> TypePattern:
        """Return this pattern, of a value of this type."""
        return TypePattern(self, ttype)

    def has_dtype(self, dtype: AnyValue) -> DataTypePattern:
        """Return this pattern, of a tensor with elements of this dtype."""
        return DataTypePattern(self, dtype)

    def has_shape(self, shape: Iterable[DimLike]) -> ShapePattern:
        """Return this pattern, of a tensor of this shape."""
        return ShapePattern(self, shape)

    def dominates(self, parent: DFPattern, path: DFPattern | None = None) -> DominatorPattern:
        """Return the pattern in which every way up from this one comes to `parent`.

        Args:
            parent: The value that all ways start from.
            path: What stands in between; anything if left out.
        """
        return DominatorPattern(parent, WildcardPattern() if path is None else path, self)

    def optional(self, option_constructor: Callable[[DFPattern], DFPattern]) -> AltPattern:
        """Return this pattern, or what `option_constructor` makes of it."""
        return self | option_constructor(self)

    def match(self, expr: Expr) -> bool:
        """Whether `expr` matches; see :func:`serde.relay.dataflow_pattern.match`."""
        found: bool = _above("matching").match(self, expr)
        return found

    def partition(
        self,
        expr: Expr,
        attrs: Mapping[str, AnyValue] | None = None,
        check: Callable[[Expr], bool] = _accept,
    ) -> Expr:
        """Move what matches into functions; see :func:`serde.relay.dataflow_pattern.partition`."""
        found: Expr = _above("rewriting").partition(self, expr, attrs, check)
        return found

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self.inputs)} inputs)"


def _above(module: str) -> AnyValue:
    """Return a module that is built upon this one."""
    return importlib.import_module(f"serde.relay.tvm.dataflow_pattern.{module}")


class ExprPattern(DFPattern):
    """An expression that is structurally equal to a given one."""

    __slots__ = ("expr",)

    def __init__(self, expr: Expr) -> None:
        self.expr = expr

    def __repr__(self) -> str:
        return f"ExprPattern({self.expr!r})"


class VarPattern(DFPattern):
    """A variable, of a given name or of any."""

    __slots__ = ("name",)

    def __init__(self, name_hint: str = "") -> None:
        self.name = name_hint

    @property
    def name_hint(self) -> str:
        """The name."""
        return self.name

    def __repr__(self) -> str:
        return f"VarPattern({self.name})"


class ConstantPattern(DFPattern):
    """A constant."""

    __slots__ = ()


class WildcardPattern(DFPattern):
    """Anything."""

    __slots__ = ("pattern",)

    def __init__(self) -> None:
        self.pattern: DFPattern | None = None

    @property
    def inputs(self) -> tuple[DFPattern, ...]:
        """What the wildcard was redirected to."""
        return () if self.pattern is None else (self.pattern,)

    def redirect_to(self, pattern: DFPattern) -> None:
        """Let `pattern`, which may contain this one, stand here: that is how patterns recur."""
        self.pattern = pattern


class CallPattern(DFPattern):
    """A call.

    Args:
        op: What is called.
        args: The arguments, or None for any.
    """

    __slots__ = ("args", "op")

    def __init__(self, op: DFPattern, args: Iterable[DFPattern] | None) -> None:
        self.op = op
        self.args: tuple[DFPattern, ...] | None = None if args is None else tuple(args)

    @property
    def inputs(self) -> tuple[DFPattern, ...]:
        """What is called, then the arguments."""
        return (self.op, *(self.args or ()))


class FunctionPattern(DFPattern):
    """A function.

    Args:
        params: The parameters, or None for any.
        body: The body.
    """

    __slots__ = ("body", "params")

    def __init__(self, params: Iterable[DFPattern] | None, body: DFPattern) -> None:
        self.params: tuple[DFPattern, ...] | None = None if params is None else tuple(params)
        self.body = body

    @property
    def inputs(self) -> tuple[DFPattern, ...]:
        """The parameters, then the body."""
        return (*(self.params or ()), self.body)


class IfPattern(DFPattern):
    """A choice of two values."""

    __slots__ = ("cond", "false_branch", "true_branch")

    def __init__(self, cond: DFPattern, true_branch: DFPattern, false_branch: DFPattern) -> None:
        self.cond = cond
        self.true_branch = true_branch
        self.false_branch = false_branch

    @property
    def inputs(self) -> tuple[DFPattern, ...]:
        """The condition, then the branches."""
        return (self.cond, self.true_branch, self.false_branch)


class LetPattern(DFPattern):
    """A value bound to a variable."""

    __slots__ = ("body", "value", "var")

    def __init__(self, var: DFPattern, value: DFPattern, body: DFPattern) -> None:
        self.var = var
        self.value = value
        self.body = body

    @property
    def inputs(self) -> tuple[DFPattern, ...]:
        """The variable, its value, then the body."""
        return (self.var, self.value, self.body)


class TuplePattern(DFPattern):
    """A tuple.

    Args:
        fields: The fields, or None for any.
    """

    __slots__ = ("fields",)

    def __init__(self, fields: Iterable[DFPattern] | None) -> None:
        self.fields: tuple[DFPattern, ...] | None = None if fields is None else tuple(fields)

    @property
    def inputs(self) -> tuple[DFPattern, ...]:
        """The fields."""
        return self.fields or ()

    def __getitem__(self, index: int) -> DFPattern:
        return self.inputs[index]

    def __len__(self) -> int:
        return len(self.inputs)

    def __iter__(self) -> Iterator[DFPattern]:
        return iter(self.inputs)


class TupleGetItemPattern(DFPattern):
    """A field of a tuple.

    Args:
        tuple_value: The tuple.
        index: Which field, or None for any; kept as -1.
    """

    __slots__ = ("index", "tuple")

    def __init__(self, tuple_value: DFPattern, index: int | None = None) -> None:
        self.tuple = tuple_value
        self.index = -1 if index is None else index

    @property
    def inputs(self) -> tuple[DFPattern, ...]:
        """The tuple."""
        return (self.tuple,)


class _Pair(DFPattern):
    __slots__ = ("left", "right")

    def __init__(self, left: DFPattern, right: DFPattern) -> None:
        self.left = left
        self.right = right

    @property
    def inputs(self) -> tuple[DFPattern, ...]:
        """Both patterns."""
        return (self.left, self.right)


class AltPattern(_Pair):
    """What matches either of two patterns; the left one is tried first."""

    __slots__ = ()


class AndPattern(_Pair):
    """What matches two patterns; TVM has none such for Relay."""

    __slots__ = ()


class _Condition(DFPattern):
    __slots__ = ("pattern",)

    def __init__(self, pattern: DFPattern) -> None:
        self.pattern = pattern

    @property
    def inputs(self) -> tuple[DFPattern, ...]:
        """The pattern that is restricted."""
        return (self.pattern,)


class TypePattern(_Condition):
    """What matches a pattern and has a type."""

    __slots__ = ("type",)

    def __init__(self, pattern: DFPattern, ttype: Type) -> None:
        super().__init__(pattern)
        self.type = ttype


class DataTypePattern(_Condition):
    """A tensor that matches a pattern, with elements of a dtype."""

    __slots__ = ("dtype",)

    def __init__(self, pattern: DFPattern, dtype: AnyValue) -> None:
        super().__init__(pattern)
        self.dtype = dtype_name(dtype)


class ShapePattern(_Condition):
    """A tensor that matches a pattern, of a shape."""

    __slots__ = ("shape",)

    def __init__(self, pattern: DFPattern, shape: Iterable[DimLike]) -> None:
        super().__init__(pattern)
        self.shape = TensorType(shape).shape


class AttrPattern(_Condition):
    """An operator, a call or a function that matches a pattern and has attributes.

    An operator has ``TOpPattern``, a number as :class:`~serde.relay.ir.traits.FusionPattern` has.
    """

    __slots__ = ("attrs",)

    def __init__(self, pattern: DFPattern, attrs: Mapping[str, AnyValue]) -> None:
        super().__init__(pattern)
        self.attrs = dict(attrs)


class DominatorPattern(DFPattern):
    """A child from which every way up leads, over a path, to one parent.

    Args:
        parent: The value that all ways start from.
        path: What each node in between matches.
        child: The value that they end in.
    """

    __slots__ = ("child", "parent", "path")

    def __init__(self, parent: DFPattern, path: DFPattern, child: DFPattern) -> None:
        self.parent = parent
        self.path = path
        self.child = child

    @property
    def inputs(self) -> tuple[DFPattern, ...]:
        """The parent, the path, then the child."""
        return (self.parent, self.path, self.child)
