"""Rewrites of sums, products and quotients."""

from __future__ import annotations

from math import sqrt
from typing import Final

from serde.relay.ir import Call, Constant, Expr, FusionPattern, TensorType, call
from serde.relay.transform.evaluate_constants import evaluated
from serde.relay.tvm.dataflow_pattern.language import has_attr, is_constant, is_op, wildcard
from serde.relay.tvm.dataflow_pattern.rewriting import DFPatternCallback, NodeMap
from serde.relay.tvm.passes.simplify_shapes import any_of
from serde.relay.tvm.passes.typed import is_scalar, operator_of, scalar

__all__ = [
    "FILLED",
    "EliminateIdentity", "FullElementwise", "SimplifyAdd", "SimplifyAdjacentMultiplyOrAdd",
    "SimplifyBinomial", "SimplifyRSqrt", "SwitchAddMultiply",
]  # fmt: skip


FILLED: Final = {"full", "full_like", "ones", "ones_like", "zeros", "zeros_like"}
"""Operators whose result is one value everywhere; without them nothing is to be done for those."""


def _dtype(node: Expr) -> str:
    return node.type.dtype if isinstance(node.type, TensorType) else ""


def _operand_type(pre: Expr, post: Expr, operand: Expr) -> object:
    """Return the type that an operand of a match had, given what it became."""
    if not isinstance(pre, Call) or not isinstance(post, Call):
        return None
    return pre.args[1 if post.args[1] is operand else 0].type


class EliminateIdentity(DFPatternCallback):
    """Adding or subtracting zero and multiplying or dividing by one changes nothing."""

    def __init__(self) -> None:
        super().__init__()
        self._data, self._constant = wildcard(), is_constant()
        zero = any_of(is_op("zeros")(), is_op("zeros_like")(wildcard()), self._constant)
        one = any_of(is_op("ones")(), is_op("ones_like")(wildcard()), self._constant)
        self.pattern = any_of(
            is_op("add")(self._data, zero),
            is_op("multiply")(self._data, one),
            is_op("subtract")(self._data, zero),
            is_op("divide")(self._data, one),
        )

    def callback(self, pre: Expr, post: Expr, node_map: NodeMap) -> Expr:
        """Return the other operand if it has the type of the result."""
        data = node_map[self._data][0]
        constant = node_map.get(self._constant)
        if constant:
            neutral = 0 if operator_of(post) in ("add", "subtract") else 1
            value = constant[0]
            if not isinstance(value, Constant) or not is_scalar(value):
                return post
            if complex(value.data.reshape(())) != neutral:
                return post
        return data if _operand_type(pre, post, data) == pre.type else post


class FullElementwise(DFPatternCallback):
    """Beside an operator that broadcasts, a tensor of one value is that value."""

    def __init__(self) -> None:
        super().__init__()
        self._data, self._value, like = wildcard(), is_constant(), wildcard()
        self._full = is_op("full")(self._value) | is_op("full_like")(like, self._value)
        self._ones = is_op("ones")() | is_op("ones_like")(like)
        zeros = is_op("zeros")() | is_op("zeros_like")(like)
        filled = any_of(self._full, self._ones, zeros)
        broadcast = has_attr({"TOpPattern": int(FusionPattern.BROADCAST)})
        self.pattern = broadcast(filled, self._data) | broadcast(self._data, filled)

    def callback(self, pre: Expr, post: Expr, node_map: NodeMap) -> Expr:
        """Return the operator with a scalar, if the other operand has the result's type."""
        data = node_map[self._data][0]
        if not isinstance(post, Call) or _operand_type(pre, post, data) != pre.type:
            return post
        if self._full in node_map:
            value = node_map[self._value][0]
        else:
            value = scalar(1 if self._ones in node_map else 0, _dtype(pre))
        if not is_scalar(value):
            return post
        args = (value, data) if post.args[1] is data else (data, value)
        return call(operator_of(post), *args, span=post.span, **post.attrs)


class SimplifyAdd(DFPatternCallback):
    """A tensor added to itself is twice that tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.pattern = is_op("add")(wildcard(), wildcard())

    def callback(self, pre: Expr, post: Expr, node_map: NodeMap) -> Expr:
        """Return the product."""
        if not isinstance(post, Call) or post.args[0] is not post.args[1]:
            return post
        return call("multiply", post.args[0], scalar(2, _dtype(pre)), span=post.span)


class SimplifyRSqrt(DFPatternCallback):
    """A quotient by a square root is a product with its reciprocal."""

    def __init__(self) -> None:
        super().__init__()
        self._data, self._numerator = wildcard(), wildcard()
        self.pattern = is_op("divide")(self._numerator, is_op("sqrt")(self._data))

    def callback(self, pre: Expr, post: Expr, node_map: NodeMap) -> Expr:
        """Return the product."""
        root = call("rsqrt", node_map[self._data][0])
        return call("multiply", node_map[self._numerator][0], root, span=post.span)


class SwitchAddMultiply(DFPatternCallback):
    """A sum with a constant before a product with one becomes a product before a sum."""

    def __init__(self) -> None:
        super().__init__()
        self._data, self._term, self._factor = wildcard(), is_constant(), is_constant()
        self.pattern = (self._data + self._term) * self._factor

    def callback(self, pre: Expr, post: Expr, node_map: NodeMap) -> Expr:
        """Return the sum."""
        data, term, factor = (node_map[each][0] for each in (self._data, self._term, self._factor))
        if isinstance(data, Constant):
            return post
        shift = evaluated(call("multiply", term, factor))
        return call("add", call("multiply", data, factor), shift, span=post.span)


class SimplifyAdjacentMultiplyOrAdd(DFPatternCallback):
    """Two products with constants in a row become one, and two sums."""

    def __init__(self) -> None:
        super().__init__()
        self._data, self._first, self._second = wildcard(), is_constant(), is_constant()
        product = self._data * self._first * self._second
        self.pattern = product | (self._data + self._first + self._second)

    def callback(self, pre: Expr, post: Expr, node_map: NodeMap) -> Expr:
        """Return one call."""
        data = node_map[self._data][0]
        if isinstance(data, Constant):
            return post
        name = operator_of(post)
        both = call(name, node_map[self._first][0], node_map[self._second][0])
        return call(name, data, evaluated(both), span=post.span)


class SimplifyBinomial(DFPatternCallback):
    """A quadratic form of two tensors with real roots is a product of two sums."""

    def __init__(self) -> None:
        super().__init__()
        add, mul = is_op("add"), is_op("multiply")
        self._x, self._y = x, y = wildcard(), wildcard()
        self._factors = a, b, c = is_constant(), is_constant(), is_constant()
        squares = any_of(mul(a, mul(x, x)), mul(x, mul(a, x)), mul(x, x))
        mixed = any_of(mul(b, mul(x, y)), mul(x, mul(b, y)), mul(y, mul(b, x)), mul(x, y))
        others = any_of(mul(c, mul(y, y)), mul(y, mul(c, y)), mul(y, y))
        self.pattern = any_of(
            add(add(mixed, squares), others),
            add(add(mixed, others), squares),
            add(add(squares, others), mixed),
        )

    def callback(self, pre: Expr, post: Expr, node_map: NodeMap) -> Expr:
        """Return the product; the form as it was where its roots are not numbers of its dtype."""
        x, y = node_map[self._x][0], node_map[self._y][0]
        factors = [_number(node_map, each) for each in self._factors]
        if None in factors:
            return post
        a, b, c = (1.0 if each is None else each for each in factors)
        if c == 1 and a > 1:
            x, y, a, c = y, x, c, a
        square = b * b - 4 * a * c
        if square < 0 or a == 0:
            return post
        dtype, double = _dtype(pre), square < 10e-5
        roots = [(b + sqrt(square)) / (2 * a), (b - sqrt(square)) / (2 * a)]
        if "int" in dtype and not all(root.is_integer() for root in (a, *roots)):
            return post
        first = _term(x, y, roots[0], dtype)
        second = first if double else _term(x, y, roots[1], dtype)
        product = call("multiply", first, second)
        return call("multiply", scalar(a, dtype), product, span=post.span)


def _number(node_map: NodeMap, pattern: object) -> float | None:
    """Return the factor that a pattern stands for: 1 without one, None if it is no scalar."""
    found = [nodes for known, nodes in node_map.items() if known is pattern]
    if not found:
        return 1.0
    value = found[0][0]
    return (
        float(value.data.reshape(())) if isinstance(value, Constant) and is_scalar(value) else None
    )


def _term(x: Expr, y: Expr, factor: float, dtype: str) -> Expr:
    return call("add", x, call("multiply", y, scalar(factor, dtype)))
