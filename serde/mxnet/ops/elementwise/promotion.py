"""The NumPy interface's arithmetic and comparison, with its rules of dtypes.

Beside a float, anything becomes that float's dtype; of two floats or integers
the wider wins; truth values become the other's dtype. Comparisons give bool,
and take operands of one dtype only.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any as AnyValue

import serde.relay as relay
from serde.errors import Unsupported
from serde.mxnet.ops.elementwise.binary import arithmetic
from serde.mxnet.ops.elementwise.scalars import scalar_like, truth, with_scalar
from serde.mxnet.ops.table import OPS, Import
from serde.relay.ir import Expr, is_float

WIDTHS = {
    "bool": 0,
    "uint8": 1,
    "int8": 1,
    "int32": 2,
    "int64": 3,
    "float16": 4,
    "float32": 5,
    "float64": 6,
}
"""dtypes by which of two wins."""

MIXED = {"add": "add", "multiply": "multiply", "power": "power"}
"""Functions that take any two dtypes, truth values among them."""

UNMIXED = {"mod": "floor_mod", "subtract": "subtract"}
"""Functions that take no two different integers, and no truth values alone."""

OF_TRUTHS: dict[str, Callable[[Expr, Expr], Expr]] = {
    "add": relay.logical_or,
    "multiply": relay.logical_and,
    "power": lambda lhs, rhs: relay.logical_or(lhs, relay.logical_not(rhs)),
}

COMPARISONS = ("equal", "greater", "greater_equal", "less", "less_equal", "not_equal")

BITS = ("bitwise_and", "bitwise_or", "bitwise_xor")


def promote(ctx: Import, lhs: Expr, rhs: Expr) -> tuple[Expr, Expr]:
    """Return both operands in the dtype of their result."""
    left, right = ctx.type(lhs).dtype, ctx.type(rhs).dtype
    if left == right:
        return lhs, rhs
    if left not in WIDTHS or right not in WIDTHS or WIDTHS[left] == WIDTHS[right]:
        raise Unsupported(f"MXNet combines no {left} with {right}")
    if WIDTHS[left] < WIDTHS[right]:
        return relay.cast(lhs, right), rhs
    return lhs, relay.cast(rhs, left)


def _import_binary(ctx: Import, lhs: Expr, rhs: Expr, *, name: str, target: str) -> Expr:
    kinds = {ctx.type(lhs).dtype, ctx.type(rhs).dtype}
    if name in UNMIXED and len(kinds) > 1 and not any(is_float(kind) for kind in kinds):
        raise Unsupported(f"MXNet combines no {' with '.join(sorted(kinds))} here")
    left, right = promote(ctx, lhs, rhs)
    if kinds == {"bool"} and name in OF_TRUTHS:
        return OF_TRUTHS[name](left, right)
    return arithmetic(ctx, target, left, right)


def _scalar(target: str, *, swapped: bool = False) -> Callable[..., AnyValue]:
    def import_scalar(ctx: Import, data: Expr, *, scalar: float = 1.0, is_int: bool = True) -> Expr:
        tensor, other = with_scalar(ctx, data, scalar, is_int)
        operands = (other, tensor) if swapped else (tensor, other)
        return arithmetic(ctx, target, *operands)

    return import_scalar


for _name, _target in {**MIXED, **UNMIXED}.items():
    OPS.imports(f"_npi_{_name}")(partial(_import_binary, name=_name, target=_target))
    OPS.imports(f"_npi_{_name}_scalar")(_scalar(_target))
    if _name in ("subtract", "mod", "power"):
        OPS.imports(f"_npi_r{_name}_scalar")(_scalar(_target, swapped=True))


def _as_float(ctx: Import, x: Expr) -> Expr:
    """Return an operand of a true division: whole numbers and truth values become float32."""
    return x if is_float(ctx.type(x).dtype) else relay.cast(x, "float32")


@OPS.imports("_npi_true_divide")
def import_true_divide(ctx: Import, lhs: Expr, rhs: Expr) -> Expr:
    left, right = ctx.type(lhs).dtype, ctx.type(rhs).dtype
    if left != right and is_float(left) == is_float(right):
        raise Unsupported(f"MXNet divides no {left} by {right}")
    return relay.divide(*(_as_float(ctx, x) for x in promote(ctx, lhs, rhs)))


@OPS.imports("_npi_true_divide_scalar")
def import_true_divide_scalar(
    ctx: Import, data: Expr, *, scalar: float = 1.0, is_int: bool = True
) -> Expr:
    tensor = _as_float(ctx, data)
    return relay.divide(tensor, scalar_like(ctx, tensor, scalar))


@OPS.imports("_npi_rtrue_divide_scalar")
def import_rtrue_divide_scalar(
    ctx: Import, data: Expr, *, scalar: float = 1.0, is_int: bool = True
) -> Expr:
    tensor = _as_float(ctx, data)
    return relay.divide(scalar_like(ctx, tensor, scalar), tensor)


def _register_comparison(name: str) -> None:
    compare = getattr(relay, name)

    @OPS.imports(f"_npi_{name}")
    def import_comparison(ctx: Import, lhs: Expr, rhs: Expr) -> Expr:
        return compare(lhs, rhs)

    @OPS.imports(f"_npi_{name}_scalar")
    def import_comparison_scalar(
        ctx: Import, data: Expr, *, scalar: float = 1.0, is_int: bool = True
    ) -> Expr:
        """Beside truth values the scalar becomes one."""
        if ctx.type(data).dtype == "bool":
            return compare(data, scalar_like(ctx, data, scalar))
        return compare(*with_scalar(ctx, data, scalar, is_int))


for _name in COMPARISONS:
    _register_comparison(_name)


def _register_bits(name: str) -> None:
    combine = getattr(relay, name)

    @OPS.imports(f"_npi_{name}")
    def import_bits(ctx: Import, lhs: Expr, rhs: Expr) -> Expr:
        return combine(lhs, rhs)

    @OPS.imports(f"_npi_{name}_scalar")
    def import_bits_scalar(
        ctx: Import, data: Expr, *, scalar: float = 1.0, is_int: bool = True
    ) -> Expr:
        return combine(data, scalar_like(ctx, data, scalar))


for _name in BITS:
    _register_bits(_name)


@OPS.imports("_npi_bitwise_not")
def import_bitwise_not(ctx: Import, data: Expr) -> Expr:
    return relay.bitwise_not(data)


@OPS.imports("_npi_logical_not")
def import_logical_not(ctx: Import, data: Expr) -> Expr:
    return relay.logical_not(truth(ctx, data))


@OPS.imports("_npi_where")
def import_where(ctx: Import, condition: Expr, x: Expr, y: Expr) -> Expr:
    return relay.where(truth(ctx, condition), x, y)


@OPS.imports("_npi_where_lscalar")
def import_where_lscalar(ctx: Import, condition: Expr, x: Expr, *, scalar: float = 0.0) -> Expr:
    """The scalar is what is taken where the condition holds."""
    return relay.where(truth(ctx, condition), scalar_like(ctx, x, scalar), x)


@OPS.imports("_npi_where_rscalar")
def import_where_rscalar(ctx: Import, condition: Expr, y: Expr, *, scalar: float = 0.0) -> Expr:
    return relay.where(truth(ctx, condition), y, scalar_like(ctx, y, scalar))


@OPS.imports("_npi_where_scalar2")
def import_where_scalar2(ctx: Import, condition: Expr, *, x: float = 0.0, y: float = 0.0) -> Expr:
    return relay.where(truth(ctx, condition), relay.const(x, "float32"), relay.const(y, "float32"))
