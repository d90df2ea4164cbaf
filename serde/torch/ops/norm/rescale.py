"""Weights as directions and lengths."""

from __future__ import annotations

import math

import serde.relay as relay
from serde.relay.ir.expr import Expr
from serde.torch.export_context import ExportContext, Value
from serde.torch.import_context import ImportContext
from serde.torch.ops.reduce.norm import vector_norm
from serde.torch.ops.table import OPS
from serde.torch.ops.written import dims_of, on_axis


def _lengths(ctx: ImportContext, x: Expr, dim: int) -> Expr:
    """Return the length of each slice along an axis, or for -1 of all, as x has axes."""
    rank = ctx.type(x).rank
    axes = tuple(axis for axis in range(rank) if axis != dim)
    return vector_norm(ctx, x, 2, axes, True)


@OPS.imports("aten::_weight_norm")
def import_weight_norm(ctx: ImportContext, v: Expr, g: Expr, *, dim: int = 0) -> Expr:
    return relay.multiply(v, relay.divide(g, _lengths(ctx, v, dim)))


@OPS.imports("aten::_weight_norm_interface")
def import_weight_norm_interface(
    ctx: ImportContext, v: Expr, g: Expr, *, dim: int = 0
) -> tuple[Expr, Expr]:
    """The lengths beside it."""
    lengths = _lengths(ctx, v, dim)
    return relay.multiply(v, relay.divide(g, lengths)), lengths


@OPS.exports("nn.l2_normalize")
def export_l2_normalize(
    ctx: ExportContext, data: Value, *, eps: float, axis: tuple[int, ...]
) -> Value:
    """PyTorch's bound is that of the root of the sum; TorchScript takes one axis."""
    axes = dims_of(axis or range(ctx.type(data).rank))
    if isinstance(axes, int):
        return ctx.call("F.normalize", data, dim=axes, eps=math.sqrt(eps))
    length = ctx.call("torch.linalg.vector_norm", data, dim=axes, keepdim=True)
    return ctx.infix("/", data, ctx.call("torch.clamp", length, min=math.sqrt(eps)))


@OPS.exports("nn.lrn")
def export_lrn(
    ctx: ExportContext,
    data: Value,
    *,
    size: int,
    axis: int,
    bias: float,
    alpha: float,
    beta: float,
) -> Value:
    def write(x: Value) -> Value:
        return ctx.call("F.local_response_norm", x, size, alpha=alpha, beta=beta, k=bias)

    return on_axis(ctx, data, axis, 1, write)
