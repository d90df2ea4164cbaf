"""Normalisation by statistics of the tensor itself, which NNEF spells out with its moments."""

from __future__ import annotations

from collections.abc import Sequence

from serde.nnef.export_context import ExportContext, Value
from serde.nnef.ops.norm.batch import RelayNorm
from serde.nnef.ops.table import OPS

__all__: list[str] = []


def _emit_standardized(
    ctx: ExportContext, data: Value, axes: Sequence[int], epsilon: float
) -> Value:
    """Write a tensor less its mean over axes, divided by its deviation."""
    mean, variance = ctx.emit_tuple("moments", data, axes=list(axes), outputs=2)
    stabilized = ctx.emit("add", variance, ctx.const(epsilon, ctx.type(data).dtype))
    return ctx.emit("div", ctx.emit("sub", data, mean), ctx.emit("sqrt", stabilized))


@OPS.exports("nn.layer_norm")
def export_layer_norm(
    ctx: ExportContext, data: Value, gamma: Value, beta: Value, *, norm: RelayNorm
) -> Value:
    axis = norm.axis % ctx.type(data).rank
    found = _emit_standardized(ctx, data, [axis], norm.epsilon)
    return norm.finish(ctx, data, found, gamma, beta)


@OPS.exports("nn.instance_norm")
def export_instance_norm(
    ctx: ExportContext, data: Value, gamma: Value, beta: Value, *, norm: RelayNorm
) -> Value:
    rank = ctx.type(data).rank
    axes = [axis for axis in range(1, rank) if axis != norm.axis % rank]
    found = _emit_standardized(ctx, data, axes, norm.epsilon)
    return norm.finish(ctx, data, found, gamma, beta)
