"""Normalisation by statistics of the tensor itself, which NNEF spells out with its moments."""

from __future__ import annotations

from collections.abc import Sequence

import serde.allocation as allocation
import serde.relay as relay
from serde.nnef.export_context import ExportContext, Value
from serde.nnef.ops.norm.batch import RelayNorm
from serde.nnef.ops.table import OPS
from serde.relay.ir.expr import Expr, tensor_type
from serde.relay.op.norm.plain import GroupNorm

__all__: list[str] = []


def _emit_standardized(
    ctx: ExportContext, data: Value, axes: Sequence[int], epsilon: float
) -> Value:
    """Write a tensor less its mean over axes, divided by its deviation."""
    mean, variance = ctx.emit_tuple("moments", data, axes=list(axes), outputs=2)
    stabilized = ctx.emit("add", variance, ctx.const(epsilon, ctx.type(data).dtype))
    return ctx.emit("div", ctx.emit("sub", data, mean), ctx.emit("sqrt", stabilized))


@OPS.exports("nn.dropout")
def export_dropout(ctx: ExportContext, data: Value, *, rate: float) -> tuple[Value, Value]:
    """At inference nothing is dropped, and the mask is of ones."""
    type_ = ctx.type(data)
    return data, ctx.const(allocation.ones(ctx.static_shape(data)), type_.dtype)


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


@OPS.expands("nn.group_norm")
def expand_group_norm(data: Expr, gamma: Expr, beta: Expr, *, norm: GroupNorm) -> Expr:
    """Each group becomes a row of its own, of which the elements are normalised."""
    axis = norm.axis
    shape = tensor_type(data).shape
    axis %= len(shape)
    split = (*shape[:axis], norm.num_groups, shape[axis] // norm.num_groups, *shape[axis + 1 :])
    axes = tuple(each for each in range(1, len(split)) if each != axis)
    rows = relay.reshape(data, split)
    mean = relay.mean(rows, axis=axes, keepdims=True)
    spread = relay.variance(rows, axis=axes, keepdims=True, with_mean=mean)
    deviation = relay.sqrt(relay.add(spread, relay.const(norm.epsilon, tensor_type(data).dtype)))
    found = relay.reshape(relay.divide(relay.subtract(rows, mean), deviation), shape)
    following = len(shape) - 1 - axis
    if norm.scale:
        found = relay.multiply(found, _trail(gamma, following))
    return relay.add(found, _trail(beta, following)) if norm.center else found


def _trail(vector: Expr, following: int) -> Expr:
    """Return a vector with axes of 1 behind its own."""
    return relay.expand_dims(vector, 1, following) if following else vector
