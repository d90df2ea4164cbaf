"""Borders around tensors, and gaps between elements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import serde.allocation as allocation
import serde.relay as relay
from serde.errors import Unsupported
from serde.mxnet.builder import Value
from serde.mxnet.export_context import ExportContext
from serde.mxnet.import_context import ImportContext
from serde.mxnet.ops.elementwise.scalars import scalar_like
from serde.mxnet.ops.index.slicing import LAST
from serde.mxnet.ops.table import OPS
from serde.relay.ir.expr import Expr, tensor_type
from serde.relay.ir.shapes import is_float
from serde.relay.ir.types import TensorType
from serde.walk.expansion.tensors import require_no_cut


@OPS.imports("Pad")
def import_pad(
    ctx: ImportContext,
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
    ctx: ImportContext,
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


def _mirror(ctx: ImportContext, data: Expr, axis: int, widths: tuple[int, int], edge: bool) -> Expr:
    """Continue an axis by its mirror image, again and again where the widths are longer."""
    length = ctx.type(data).shape[axis]
    if not isinstance(length, int) or max(widths) <= length - (not edge):
        pairs = [widths if i == axis else (0, 0) for i in range(ctx.type(data).rank)]
        return relay.nn.mirror_pad(data, pairs, "SYMMETRIC" if edge else "REFLECT")
    indices = allocation.pad(
        allocation.arange(length), [widths], mode="symmetric" if edge else "reflect"
    )
    return relay.take(data, relay.Constant(indices), axis=axis, mode="fast")


@OPS.exports("nn.pad")
def export_pad(
    ctx: ExportContext,
    data: Value,
    pad_val: Value,
    *,
    pad_width: tuple[tuple[int, int], ...],
    pad_mode: Literal["constant", "edge", "reflect"],
) -> Value:
    """MXNet pads the trailing axes of floats of rank 4 and 5; others get axes of length 1."""
    require_no_cut(pad_width)
    type_ = ctx.type(data)
    computed = pad_mode == "constant" and pad_val.data is None
    if computed or not is_float(type_.dtype):
        return _padded_by_parts(ctx, data, pad_val, pad_width, pad_mode)
    if type_.rank > 5 or (type_.rank > 3 and any(map(any, pad_width[:2]))):
        return _padded_by_parts(ctx, data, pad_val, pad_width, pad_mode)
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


def _padded_by_parts(
    ctx: ExportContext,
    data: Value,
    pad_val: Value,
    pad_width: Sequence[tuple[int, int]],
    pad_mode: str,
) -> Value:
    """Put blocks of the value around each axis, or look the indices of the border up."""

    def build(x: Expr, value: Expr) -> Expr:
        for axis, widths in enumerate(pad_width):
            if any(widths) and pad_mode == "constant":
                x = _between_blocks(x, value, axis, widths)
            elif any(widths) and not isinstance(ctx.type(data).shape[axis], int):
                x = _between_mirrors(x, axis, widths, pad_mode)
            elif any(widths):
                (length,) = ctx.static_lengths(data, [axis])
                mode: Literal["edge", "reflect"] = "edge" if pad_mode == "edge" else "reflect"
                indices = allocation.pad(allocation.arange(length), [widths], mode=mode)
                x = relay.take(x, relay.Constant(indices), axis=axis, mode="clip")
        return x

    return ctx.spell(build, data, pad_val)


def _between_blocks(data: Expr, value: Expr, axis: int, widths: tuple[int, int]) -> Expr:
    type_ = tensor_type(data)
    if 0 in type_.shape:
        shape = [type_.shape[:axis], type_.shape[axis + 1 :]]
        sides = [relay.full(value, [*shape[0], n, *shape[1]], type_.dtype) for n in widths]
    else:
        one = relay.full_like(relay.strided_slice(data, [0], [1], axes=[axis]), value)
        sides = [relay.repeat(one, max(width, 1), axis) for width in widths]
    return _between(data, axis, widths, sides)


def _between_mirrors(data: Expr, axis: int, widths: tuple[int, int], mode: str) -> Expr:
    """Put copies of what is at both ends of an open axis around it."""
    before, after = widths
    if mode == "edge":
        sides = [
            relay.repeat(
                relay.strided_slice(data, [begin], [end], axes=[axis]), max(width, 1), axis
            )
            for begin, end, width in ((0, 1, before), (-1, LAST, after))
        ]
    else:
        sides = [
            relay.reverse(relay.strided_slice(data, [begin], [end], axes=[axis]), axis)
            for begin, end in ((1, before + 1), (-after - 1, -1))
        ]
    return _between(data, axis, widths, sides)


def _between(data: Expr, axis: int, widths: Sequence[int], sides: Sequence[Expr]) -> Expr:
    before, after = sides
    return relay.concatenate([*[before] * (widths[0] > 0), data, *[after] * (widths[1] > 0)], axis)


@OPS.exports("nn.mirror_pad")
def export_mirror_pad(
    ctx: ExportContext,
    data: Value,
    *,
    mode: Literal["SYMMETRIC", "REFLECT"],
    pad_width: tuple[tuple[int, int], ...],
) -> Value:
    """MXNet mirrors without the border only; where it cannot, the indices are looked up."""
    type_ = ctx.type(data)
    inner = type_.rank in (4, 5) and not any(map(any, pad_width[:2]))
    if mode == "REFLECT" and inner and is_float(type_.dtype):
        widths = [each for pair in pad_width for each in pair]
        return ctx.emit_bytes("Pad", data, mode="reflect", pad_width=widths)

    def build(x: Expr) -> Expr:
        for axis, widths in enumerate(pad_width):
            if any(widths):
                (length,) = ctx.static_lengths(data, [axis])
                kind: Literal["symmetric", "reflect"] = (
                    "symmetric" if mode == "SYMMETRIC" else "reflect"
                )
                indices = allocation.pad(allocation.arange(length), [widths], mode=kind)
                x = relay.take(x, relay.Constant(indices), axis=axis, mode="clip")
        return x

    return ctx.spell(build, data)
