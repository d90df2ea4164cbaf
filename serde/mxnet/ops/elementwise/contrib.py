"""Functions of MXNet's ``contrib`` namespace, some of which are special in their gradients only."""

from __future__ import annotations

import serde.relay as relay
from serde.mxnet.import_context import ImportContext
from serde.mxnet.ops.elementwise.arithmetic import scalar_like
from serde.mxnet.ops.table import OPS
from serde.relay.ir.expr import Expr
from serde.relay.ir.shapes import is_float


@OPS.imports("_contrib_round_ste")
def import_round_ste(ctx: ImportContext, data: Expr) -> Expr:
    """A half goes away from zero."""
    return relay.round(data) if is_float(ctx.type(data).dtype) else data


@OPS.imports("_contrib_sign_ste")
def import_sign_ste(ctx: ImportContext, data: Expr) -> Expr:
    return relay.sign(data)


@OPS.imports("_contrib_gradientmultiplier", ignored=("scalar", "is_int"))
def import_gradient_multiplier(ctx: ImportContext, data: Expr) -> Expr:
    return data


@OPS.imports("_contrib_quadratic")
def import_quadratic(
    ctx: ImportContext, data: Expr, *, a: float = 0.0, b: float = 0.0, c: float = 0.0
) -> Expr:
    """Integers are rounded towards zero at the end."""
    dtype = ctx.type(data).dtype
    x = data if is_float(dtype) else relay.cast(data, "float32")
    inner = relay.add(relay.multiply(x, scalar_like(ctx, x, a)), scalar_like(ctx, x, b))
    return relay.cast(relay.add(relay.multiply(x, inner), scalar_like(ctx, x, c)), dtype)


@OPS.imports("_contrib_allclose")
def import_allclose(
    ctx: ImportContext,
    a: Expr,
    b: Expr,
    *,
    rtol: float = 1e-5,
    atol: float = 1e-8,
    equal_nan: bool = True,
) -> Expr:
    """Anything is close to an infinity, whatever its sign, as both sides of the bound are one."""
    if not is_float(ctx.type(a).dtype):
        a, b = relay.cast(a, "float64"), relay.cast(b, "float64")
    bound = relay.multiply(relay.abs(b), scalar_like(ctx, b, rtol))
    bound = relay.add(bound, scalar_like(ctx, b, atol))
    near = relay.less_equal(relay.abs(relay.subtract(a, b)), bound)
    close = relay.logical_or(relay.equal(a, b), near)
    if equal_nan:
        close = relay.logical_or(close, relay.logical_and(relay.isnan(a), relay.isnan(b)))
    return relay.cast(relay.all(close), "uint8")
