"""Operators of Python on the lengths and numbers of exported programs.

What ``torch.export`` computes of symbols are calls of Python's own ``operator`` and ``math``, and
of functions such as ``torch.sym_max`` that stand for what Python does at once.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from functools import partial, reduce
from typing import Any as AnyValue

import serde.relay as relay
from serde.errors import Unsupported
from serde.relay.ir.expr import Expr
from serde.torch.host.numbers import add, as_number, multiply
from serde.torch.host.registry import EVALUATORS, evaluates
from serde.torch.import_context import ImportContext, Scalar, SymInt

_SAME = {
    **{name: f"aten::{name}.int" for name in ("eq", "ne", "lt", "le", "gt", "ge", "neg")},
    **{name: f"aten::{name}.int" for name in ("add", "floordiv", "mul", "sub")},
    **{"truediv": "aten::div.int", "mod": "aten::remainder.int"},
    **{name: f"aten::{name}.float" for name in ("floor", "ceil", "sqrt")},
    **dict.fromkeys(("_sym_sqrt", "sym_sqrt"), "aten::sqrt.float"),
    **dict.fromkeys(("not_", "sym_not"), "aten::__not__"),
    "and_": "aten::__and__.bool",
    "or_": "aten::__or__.bool",
    "sym_min": "prim::min.int",
    "sym_max": "prim::max.int",
    "sym_float": "aten::Float",
}
"""Operators of TorchScript that compute the same."""

_LARGEST_SHIFT = 62

for _name, _op in _SAME.items():
    evaluates(f"_operator::{_name}")(EVALUATORS[_op])


@evaluates("_operator::pos")
def same_number(ctx: ImportContext, a: Scalar) -> Scalar:
    return a


@evaluates("_operator::trunc", "_operator::sym_int")
def whole_part(ctx: ImportContext, a: Scalar) -> Scalar:
    """The integer towards zero."""
    return as_number(ctx, a, "int64") if isinstance(a, Expr) else int(a.real)


@evaluates("_operator::pow", "_operator::pow_by_natural", "_operator::float_pow")
def raise_to_power(ctx: ImportContext, a: Scalar, b: Scalar) -> Scalar:
    """An integer to the power of one that is known is a product, so that it stays a symbol."""
    if isinstance(b, int) and 0 <= b <= 8:
        return reduce(partial(multiply, ctx), [a] * b, 1)
    return EVALUATORS["aten::pow.float"](ctx, a, b)


@evaluates("_operator::lshift")
def shift_left(ctx: ImportContext, a: Scalar, b: Scalar) -> Scalar:
    return multiply(ctx, a, _power_of_two(b))


@evaluates("_operator::rshift")
def shift_right(ctx: ImportContext, a: Scalar, b: Scalar) -> Scalar:
    return EVALUATORS["_operator::floordiv"](ctx, a, _power_of_two(b))


def _power_of_two(exponent: Scalar) -> int:
    if not isinstance(exponent, int) or not 0 <= exponent <= _LARGEST_SHIFT:
        raise Unsupported(f"a shift by {exponent} bits")
    return operator.lshift(1, exponent)


@evaluates("_operator::sym_ite")
def choose(ctx: ImportContext, condition: Scalar, one: Scalar, other: Scalar) -> Scalar:
    """One of two numbers."""
    if not isinstance(condition, Expr):
        return one if condition else other
    operands = ctx.promote(ctx.number(one), ctx.number(other))
    return ctx.as_number(relay.where(condition, *operands))


@evaluates("_operator::sym_sum")
def sum_up(ctx: ImportContext, numbers: Sequence[AnyValue]) -> Scalar:
    return reduce(partial(add, ctx), numbers, 0)


@evaluates("aten::sym_size", "aten::size.int")
def sym_size(ctx: ImportContext, self: Expr, dim: int) -> SymInt:
    return ctx.size(self, ctx.axis(self, dim))


@evaluates("aten::size")
def size(ctx: ImportContext, self: Expr) -> list[SymInt]:
    return [ctx.size(self, axis) for axis in range(ctx.type(self).rank)]


@evaluates("aten::sym_numel", "aten::numel")
def sym_numel(ctx: ImportContext, self: Expr) -> Scalar:
    return reduce(partial(multiply, ctx), size(ctx, self), 1)


@evaluates("aten::dim")
def dim(ctx: ImportContext, self: Expr) -> int:
    return ctx.type(self).rank


@evaluates(
    "aten::_assert_async",
    "aten::_assert_scalar",
    "aten::_assert_tensor_metadata",
    "aten::_functional_assert_async",
    "aten::_functional_assert_scalar",
    "aten::_functional_sym_constrain_range",
    "aten::_functional_sym_constrain_range_for_size",
    "aten::_linalg_check_errors",
    "aten::_print",
    "aten::sym_constrain_range",
    "aten::sym_constrain_range_for_size",
    "_operator::_set_grad_enabled",
)
def check_nothing(ctx: ImportContext, *arguments: AnyValue) -> None:
    """What only asserts at run time, guides the tracer, or bears on gradients, gives nothing."""
