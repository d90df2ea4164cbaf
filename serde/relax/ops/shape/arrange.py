"""Elements repeated, in another order, spread over larger shapes, and summed back."""

from __future__ import annotations

from typing import Any as AnyValue, Literal

import serde.relay as relay
from serde.relax.dynamic import make_spread
from serde.relax.ops.shape.reshape import flatten
from serde.relax.ops.table import OPS, Export, Import, Shape, Value
from serde.relay.ir import Any, Dim, Expr, Tuple
from serde.walk.pairs import reads

__all__ = ["spread"]


@OPS.exports("tile")
def export_tile(ctx: Export, data: Value, *, reps: tuple[int, ...]) -> Value:
    if not reps:
        return data
    if 0 in reps:
        return ctx.emit("zeros", ctx.shape_expr(ctx.result_type().shape), ctx.type(data).dtype)
    return ctx.emit("tile", data, list(reps))


@OPS.imports("relax.tile")
def import_tile(ctx: Import, data: Expr, *, repeats: tuple[int, ...]) -> Expr:
    return relay.tile(data, repeats) if repeats else data


@OPS.exports("repeat")
def export_repeat(ctx: Export, data: Value, *, repeats: int, axis: int | None) -> Value:
    if axis is not None:
        return ctx.emit("repeat", data, repeats, axis % ctx.type(data).rank)
    return ctx.emit("repeat", flatten(ctx, data), repeats, 0)


@OPS.imports("relax.repeat")
def import_repeat(ctx: Import, data: Expr, *, repeats: int, axis: int | None) -> Expr:
    if axis is None:
        data, axis = relay.reshape(data, (-1,)), 0
    return relay.repeat(data, repeats, axis=axis)


@OPS.exports("reverse_sequence")
def export_reverse_sequence(
    ctx: Export, data: Value, seq_lengths: Value, *, seq_axis: int, batch_axis: int
) -> Value:
    te, tir = ctx.framework.te, ctx.framework.tir
    rank = ctx.type(data).rank
    time, batch = seq_axis % rank, batch_axis % rank

    def reverse_sequence(x: AnyValue, lengths: AnyValue) -> AnyValue:
        def one(*indices: AnyValue) -> AnyValue:
            length = tir.min(lengths(indices[batch]).astype("int64"), x.shape[time])
            step = indices[time]
            source = tir.Select(step < length, length - 1 - step, step)
            return x(*indices[:time], source, *indices[time + 1 :])

        return te.compute(x.shape, one, name="reverse_sequence")

    return ctx.emit_te(reverse_sequence, data, seq_lengths)


@OPS.imports(
    "relax.builtin.stop_lift_params",
    "relax.grad.end_checkpoint",
    "relax.grad.no_grad",
    "relax.grad.start_checkpoint",
    "relax.memory.ensure_zero_offset",
)
@OPS.imports("relax.hint_on_device", ignored=("device_type", "index", "memory_scope"))
@OPS.imports("relax.to_vdevice", ignored=("dst_vdevice",))
def import_identity(ctx: Import, x: Expr) -> Expr:
    return x


OPS.pairs(
    reads("relax.flatten", "reshape", fixed={"newshape": (-1,)}),
    reads("relax.nn.batch_flatten", "nn.batch_flatten"),
    reads("relax.permute_dims", "transpose", axes=None),
    reads("relax.flip", "reverse", "axis"),
    reads("relax.reverse_sequence", "reverse_sequence", "seq_axis", "batch_axis"),
)


def spread(ctx: Export, data: Value, lengths: list[AnyValue]) -> Value:
    """Write `data` spread over a shape; which of its axes are spread may show at run time only."""
    return ctx.emit_te(make_spread(ctx.framework), data, ctx.wide(lengths))


@OPS.exports("broadcast_to", ignored=("dtype",))
def export_broadcast_to(ctx: Export, data: Value, *, shape: tuple[Dim, ...] | None) -> Value:
    wanted = tuple(shape or ())
    offset = len(wanted) - ctx.type(data).rank
    own = ctx.named_shape(data)
    wanted = tuple(
        own[index - offset] if isinstance(dim, Any) and index >= offset else dim
        for index, dim in enumerate(wanted)
    )
    return _broadcast(ctx, data, ctx.dims(wanted))


@OPS.imports("relax.broadcast_to")
def import_broadcast_to(ctx: Import, x: Expr, *, shape: Shape) -> Expr:
    return ctx.broadcast_to(x, shape)


@OPS.exports("broadcast_to_like")
def export_broadcast_to_like(ctx: Export, data: Value, broadcast_type: Value) -> Value:
    return _broadcast(ctx, data, ctx.extents(broadcast_type))


def _broadcast(ctx: Export, data: Value, lengths: list[AnyValue]) -> Value:
    """Use Relax's operator where it is known which axes are spread."""
    own, offset = ctx.extents(data), len(lengths) - ctx.type(data).rank
    for have, want in zip(own, lengths[offset:], strict=True):
        if not isinstance(have, int) and not ctx.framework.are_equal(have, want):
            return spread(ctx, data, lengths)
    shape = ctx.framework.relax.ShapeExpr(ctx.wide(lengths))
    return ctx.emit("broadcast_to", data, shape)


@OPS.imports("relax.meshgrid")
def import_meshgrid(
    ctx: Import, tensors: Expr, *, indexing: Literal["ij", "xy"] | None
) -> list[Expr]:
    fields = ctx.fields(tensors)
    found = relay.meshgrid(Tuple(fields), indexing=indexing or "ij")
    return [found[index] for index in range(len(fields))]
