"""Borders around tensors, and gaps between elements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import serde.relay as relay
from serde.errors import Unsupported
from serde.mxnet.ops.elementwise.scalars import scalar_like
from serde.mxnet.ops.table import OPS, Export, Import, Value
from serde.relay.ir import Call, Constant, Expr, TensorType, is_float, tensor_type
from serde.relay.lowering.shape import continued
from serde.walk.takes import Takes, ranks


@OPS.imports("Pad")
def import_pad(
    ctx: Import,
    data: Expr,
    *,
    mode: Literal["constant", "edge", "reflect"],
    pad_width: tuple[int, ...],
    constant_value: float = 0.0,
) -> Expr:
    """Widths come as one row: before and after, axis by axis."""
    rank = ctx.type(data).rank
    if len(pad_width) != 2 * rank:
        raise Unsupported(f"pad_width: expected {2 * rank} values, found {len(pad_width)}")
    widths = list(zip(pad_width[::2], pad_width[1::2], strict=True))
    return relay.nn.pad(data, widths, scalar_like(ctx, data, constant_value), pad_mode=mode)


Mode = Literal["constant", "edge", "maximum", "minimum", "reflect", "symmetric"]


@OPS.imports("_npi_pad", ignored=("reflect_type",))
def import_np_pad(
    ctx: Import,
    data: Expr,
    *,
    pad_width: tuple[tuple[int, ...] | int, ...],
    mode: Mode = "constant",
    constant_value: float = 0.0,
) -> Expr:
    """Of a vector the widths come in a row. MXNet does not look at ``reflect_type``: it is even."""
    rank = ctx.type(data).rank
    widths = _widths(pad_width, rank)
    if mode in ("constant", "edge"):
        return relay.nn.pad(data, widths, scalar_like(ctx, data, constant_value), pad_mode=mode)
    for axis, (before, after) in enumerate(widths):
        if not before and not after:
            continue
        if mode in ("maximum", "minimum"):
            reduction = relay.max if mode == "maximum" else relay.min
            most = reduction(data, axis=(axis,), keepdims=True)
            sides = [relay.repeat(most, n, axis) if n > 1 else most for n in (before, after)]
            parts = [*sides[: before > 0], data, *([sides[1]] if after else [])]
            data = relay.concatenate(parts, axis)
        else:
            data = _mirror(ctx, data, axis, (before, after), mode == "symmetric")
    return data


def _widths(pad_width: Sequence[Sequence[int] | int], rank: int) -> list[tuple[int, int]]:
    """Return the widths before and after each axis; MXNet wants those of a vector as (b, a)."""
    rows = [(each,) if isinstance(each, int) else tuple(each) for each in pad_width]
    if rank == 1 and len(rows) == 2:
        return [(rows[0][0], rows[1][0])]
    if not rank or len(rows) != rank or any(len(row) != 2 for row in rows):
        raise Unsupported(f"pad_width: expected {rank} pairs, found {pad_width}")
    return [(row[0], row[1]) for row in rows]


def _mirror(ctx: Import, data: Expr, axis: int, widths: tuple[int, int], edge: bool) -> Expr:
    """Continue an axis by its mirror image, again and again where the widths are longer."""
    length = ctx.type(data).shape[axis]
    pairs = [widths if i == axis else (0, 0) for i in range(ctx.type(data).rank)]
    if not isinstance(length, int) or max(widths) <= length - (not edge):
        return relay.nn.mirror_pad(data, pairs, "SYMMETRIC" if edge else "REFLECT")
    return continued(data, pairs, "symmetric" if edge else "reflect")


def _is_around_last_axes(node: Call) -> bool:
    """Whether floats get a border, of rank 4 and 5 around the trailing axes."""
    type_, widths = tensor_type(node.args[0]), node.attrs["pad_width"]
    if not is_float(type_.dtype) or type_.rank > 5 or any(min(pair) < 0 for pair in widths):
        return False
    return type_.rank < 4 or not any(map(any, widths[:2]))


def _is_padded(node: Call) -> bool:
    known = node.attrs["pad_mode"] != "constant" or isinstance(node.args[1], Constant)
    return known and _is_around_last_axes(node)


@OPS.exports("nn.pad", when=_is_padded)
def export_pad(
    ctx: Export,
    data: Value,
    pad_val: Value,
    *,
    pad_width: tuple[tuple[int, int], ...],
    pad_mode: Literal["constant", "edge", "reflect"],
) -> Value:
    """MXNet pads tensors of rank 4 and 5; others get axes of length 1."""
    type_ = ctx.type(data)
    value = float(ctx.constant(pad_val)) if pad_mode == "constant" else None
    more = max(0, 5 - type_.rank) if type_.rank < 4 else 0
    wide = [*[(0, 0)] * more, *pad_width]
    data = ctx.reshape(data, (*[1] * more, *type_.shape))
    result = ctx.emit_bytes(
        "Pad", data, mode=pad_mode, pad_width=[each for pair in wide for each in pair],
        constant_value=value,
    )  # fmt: skip
    if not more:
        return result
    shape = ctx.result_type().shape
    return ctx.reshape(replace(result, type=TensorType((*[1] * more, *shape), type_.dtype)), shape)


_REFLECTED = Takes(data=ranks(4, math.inf), mode="REFLECT")


@OPS.exports("nn.mirror_pad", takes=_REFLECTED, when=_is_around_last_axes)
def export_mirror_pad(ctx: Export, data: Value, *, pad_width: tuple[tuple[int, int], ...]) -> Value:
    widths = [each for pair in pad_width for each in pair]
    return ctx.emit_bytes("Pad", data, mode="reflect", pad_width=widths)
