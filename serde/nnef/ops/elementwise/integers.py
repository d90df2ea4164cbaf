"""Integers that are compared: as scalars, where these tell the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

import serde.relay as relay
from serde.errors import Unsupported
from serde.nnef.ops.table import OPS
from serde.relay.ir.expr import Call, Constant, Expr
from serde.relay.ir.shapes import is_float
from serde.relay.ir.types import TensorType
from serde.relay.op.elementwise.unary import clip_limits
from serde.walk.expansion.tensors import tensor_type
from serde.walk.takes import of_dtypes

__all__ = ["are_integers", "narrow_as_scalars"]

_EXACT: Final = 2**24
"""float32 holds all whole numbers up to this one."""

_NARROW: Final = ("int8", "uint8", "int16", "uint16")


SCALARS = of_dtypes("floats and bool", lambda dtype: is_float(dtype) or dtype == "bool")


def are_integers(node: Call) -> bool:
    """Whether the first operand of a call holds integers."""
    type_ = node.args[0].type
    return isinstance(type_, TensorType) and type_.dtype != "bool" and not is_float(type_.dtype)


def narrow_as_scalars(x: Expr) -> Expr:
    """Return integers as scalars that are all exact.

    Raises:
        Unsupported: They have more than 16 bits.
    """
    dtype = tensor_type(x).dtype
    if dtype not in _NARROW:
        raise Unsupported(
            f"NNEF has no arithmetic of integers, and scalars do not hold every {dtype}",
            hint="cast to float32 before if all values are below 2**24",
        )
    return relay.cast(x, "float32")


def _as_scalars(lhs: Expr, rhs: Expr) -> tuple[Expr, Expr]:
    """Return integers as scalars that compare alike.

    However scalars round a number beyond what they hold, it stays on its side of one that they do.

    Raises:
        Unsupported: Both sides may be beyond.
    """
    sides = (lhs, rhs)
    narrow = all(tensor_type(each).dtype in _NARROW for each in sides)
    if not narrow and not any(map(_is_small, sides)):
        raise Unsupported(
            f"NNEF compares scalars only, which do not hold every {tensor_type(lhs).dtype}",
            hint="cast to float32 before if all values are below 2**24",
        )
    return relay.cast(lhs, "float32"), relay.cast(rhs, "float32")


def _is_small(x: Expr) -> bool:
    """Whether a constant and its neighbours are whole numbers that scalars hold."""
    if not isinstance(x, Constant):
        return False
    return not x.data.size or max(abs(int(x.data.min())), abs(int(x.data.max()))) < _EXACT


def _comparison(build: Callable[[Expr, Expr], Expr]) -> Callable[[Expr, Expr], Expr]:
    def expand_comparison(lhs: Expr, rhs: Expr) -> Expr:
        return build(*_as_scalars(lhs, rhs))

    return expand_comparison


for _name in ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"):
    OPS.expands(_name)(_comparison(getattr(relay, _name)))


@OPS.expands("maximum")
def expand_maximum(lhs: Expr, rhs: Expr) -> Expr:
    """The side that is selected stays an integer."""
    return relay.where(relay.greater(*_as_scalars(lhs, rhs)), lhs, rhs)


@OPS.expands("minimum")
def expand_minimum(lhs: Expr, rhs: Expr) -> Expr:
    """The side that is selected stays an integer."""
    return relay.where(relay.less(*_as_scalars(lhs, rhs)), lhs, rhs)


@OPS.expands("clip")
def expand_clip(a: Expr, *, a_min: float, a_max: float) -> Expr:
    """A bound that the dtype has anyway is left out."""
    dtype = tensor_type(a).dtype
    low, high = clip_limits(np.dtype(dtype), a_min, a_max)
    if low > np.iinfo(dtype).min:
        a = relay.maximum(a, relay.const(low, dtype))
    return relay.minimum(a, relay.const(high, dtype)) if high < np.iinfo(dtype).max else a


OPS.refuses_calls(
    "fixed_point_multiply",
    "fixed_point_multiply_per_axis",
    "left_shift",
    "reinterpret",
    "right_shift",
    "unravel_index",
    reason="NNEF has no arithmetic of integers and their bits",
)
