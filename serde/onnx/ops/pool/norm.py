"""Norms over sliding windows."""

from __future__ import annotations

import serde.relay as relay
from serde.errors import Unsupported
from serde.onnx.export_context import ExportContext, Value
from serde.onnx.import_context import ImportContext
from serde.onnx.ops.conv.windows import to_onnx_pads
from serde.onnx.ops.elementwise.convert import scalar_like
from serde.onnx.ops.pool.geometry import DilatedPoolAttributes, extend_padding, read_window
from serde.onnx.ops.table import OPS
from serde.relay.ir.expr import Expr
from serde.relay.ir.registry import call
from serde.walk.takes import Takes, all_are


@OPS.exports("serde.lp_pool", since=18, ignored=("layout",))
@OPS.exports(
    "serde.lp_pool", takes=Takes(dilation=all_are(1), ceil_mode=False), ignored=("layout",)
)
def export_lp_pool(
    ctx: ExportContext,
    x: Value,
    *,
    p: int,
    pool_size: tuple[int, ...],
    strides: tuple[int, ...],
    dilation: tuple[int, ...],
    padding: tuple[int, ...],
    ceil_mode: bool,
) -> Value:
    """``ceil_mode`` and dilation came with 18; before, such a pooling is decomposed."""
    late = ceil_mode or any(each != 1 for each in dilation)
    ndim = len(pool_size)
    steps, gaps = (each * ndim if len(each) == 1 else each for each in (strides, dilation))
    return ctx.emit(
        "LpPool",
        x,
        p=p,
        kernel_shape=list(pool_size),
        strides=list(steps),
        pads=to_onnx_pads(padding, ndim),
        dilations=list(gaps) if late else None,
        ceil_mode=int(ceil_mode) if late else None,
    )


@OPS.imports("LpPool", since=(1, 2, 11, 18, 22))
def import_lp_pool(
    ctx: ImportContext,
    x: Expr,
    *,
    p: float = 2,
    pool: DilatedPoolAttributes,
) -> Expr:
    """The first version has a number for `p` that need not be whole."""
    if p != int(p):
        raise Unsupported(f"p={p} is no whole number")
    attrs, past = read_window(ctx, x, pool)
    return call(
        "serde.lp_pool", x, p=int(p), **{**attrs, "padding": extend_padding(attrs["padding"], past)}
    )


@OPS.imports("GlobalLpPool", since=(1, 2, 22))
def import_global_lp_pool(ctx: ImportContext, x: Expr, *, p: float = 2) -> Expr:
    axes = tuple(range(2, ctx.type(x).rank))
    if p in (1, 2):
        return call(f"serde.reduce_l{int(p)}", x, axis=axes, keepdims=True)
    powers = relay.power(relay.abs(x), scalar_like(ctx, x, p))
    total = relay.sum(powers, axis=axes, keepdims=True)
    return relay.power(total, scalar_like(ctx, x, 1 / p))
