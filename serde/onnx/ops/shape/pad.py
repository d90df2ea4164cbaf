"""Padding and dilation."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Literal

import numpy as np

import serde.relay as relay
from serde.core.weights import numpy_dtype
from serde.errors import Unsupported
from serde.onnx.ops.elementwise.convert import cast, scalar_like, to_int64
from serde.onnx.ops.shape.reshape import as_scalar, emit_lengths, unsqueeze
from serde.onnx.ops.table import OPS, Export, Import, Value
from serde.relay.ir import Call, Expr, call, normalize_axes
from serde.relay.lowering.shape import continued
from serde.walk.takes import Takes

PAD_DTYPES = {"bool": "uint8", "int16": "int32", "uint16": "int32"}
"""Dtypes of which not every version of Pad is in ONNX Runtime, and one that holds each."""


def emit_pad(
    ctx: Export, x: Value, dtype: str, widths: Value, value: Value | None, mode: str = "constant"
) -> Value:
    """Return `x`, of `dtype`, padded; `widths` has all before the axes first."""
    work = PAD_DTYPES.get(dtype)
    if work is None:
        return ctx.emit("Pad", x, widths, value, mode=mode)
    filler = None if value is None else cast(ctx, value, work)
    return cast(ctx, ctx.emit("Pad", cast(ctx, x, work), widths, filler, mode=mode), dtype)


FAR = 2**31 - 1
"""An end behind every axis."""


@OPS.exports("nn.pad")
def export_pad(
    ctx: Export, x: Value, value: Value, *, pad_width: tuple[tuple[int, int], ...], pad_mode: str
) -> Value:
    """ONNX lists all widths before the axes first, then those behind them."""
    widths = ctx.ints([w[0] for w in pad_width] + [w[1] for w in pad_width])
    dtype = ctx.type(x).dtype
    if pad_mode != "constant":
        return emit_pad(ctx, x, dtype, widths, None, pad_mode)
    if ctx.type(value).dtype != dtype:
        value = ctx.scalar_like(x, ctx.constant(value).item())
    return emit_pad(ctx, x, dtype, widths, value)


@OPS.exports("nn.mirror_pad", takes=Takes(mode="REFLECT"))
def export_mirror_pad(ctx: Export, x: Value, *, pad_width: tuple[tuple[int, int], ...]) -> Value:
    widths = ctx.ints([w[0] for w in pad_width] + [w[1] for w in pad_width])
    return emit_pad(ctx, x, ctx.type(x).dtype, widths, None, "reflect")


Mode = Literal["constant", "reflect", "edge", "wrap"]


def _spread_pads(ctx: Import, pads: Expr, axes: Expr | None, rank: int) -> Expr:
    """Return the widths before and behind every axis, int64: ``(2, rank)``."""
    count = rank if axes is None else ctx.axis_count(axes)
    given = relay.reshape(relay.cast(pads, "int64"), [2, count])
    if axes is None:
        return given
    length = relay.Constant(np.array(rank, np.int64))
    indices = relay.floor_mod(relay.cast(axes, "int64"), length)
    rows = relay.equal(relay.expand_dims(indices, axis=1), relay.Constant(np.arange(rank)))
    return relay.nn.matmul(given, relay.cast(rows, "int64"))


def _several_axes(node: Call) -> bool:
    return sum(stride != 1 for stride in node.attrs["strides"]) > 1


@OPS.exports("nn.dilate", when=_several_axes)
def export_dilate(
    ctx: Export, x: Value, *, strides: tuple[int, ...], dilation_value: float
) -> Value:
    """Each element gets an axis of its own to be padded on; what follows the last is cut off."""
    type_ = ctx.type(x)
    wide = [axis for axis, stride in enumerate(strides) if stride != 1]
    value = np.asarray(dilation_value).astype(numpy_dtype(type_.dtype))
    single = unsqueeze(ctx, x, [axis + 1 + number for number, axis in enumerate(wide)])
    behind = []
    for stride in strides:
        behind += [0] if stride == 1 else [0, stride - 1]
    widths = ctx.ints([*[0] * len(behind), *behind])
    expanded = emit_pad(ctx, single, type_.dtype, widths, ctx.const(value, type_.dtype))
    shape = ctx.emit("Mul", emit_lengths(ctx, x, range(type_.rank)), ctx.ints(strides))
    joined = ctx.emit("Reshape", expanded, shape)
    starts, ends = ctx.ints([0] * len(wide)), ctx.ints(1 - strides[axis] for axis in wide)
    return ctx.emit("Slice", joined, starts, ends, ctx.ints(wide))


def pad_or_cut(ctx: Import, x: Expr, pads: Sequence[int], mode: Mode, value: Expr) -> Expr:
    """Return `x` with its sides padded, or cut where a width is negative.

    Args:
        ctx: The node.
        x: The tensor.
        pads: All widths before the axes, then those behind them.
        mode: What is put there.
        value: A scalar.
    """
    rank = ctx.type(x).rank
    if len(pads) != 2 * rank:
        raise Unsupported(f"expected {2 * rank} widths, found {len(pads)}")
    pairs = list(zip(pads[:rank], pads[rank:], strict=True))
    if any(width < 0 for pair in pairs for width in pair):
        cut = [axis for axis, pair in enumerate(pairs) if min(pair) < 0]
        begin = [max(0, -pairs[axis][0]) for axis in cut]
        end = [min(0, pairs[axis][1]) or FAR for axis in cut]
        x = relay.strided_slice(x, begin, end, axes=cut)
        pairs = [(max(0, low), max(0, high)) for low, high in pairs]
    if not any(width for pair in pairs for width in pair):
        return x
    if mode == "wrap":
        return continued(x, pairs, "wrap")
    return relay.nn.pad(x, pairs, value, pad_mode=mode)


@OPS.imports("CenterCropPad", since=18)
def import_center_crop_pad(
    ctx: Import, x: Expr, shape: Expr, *, axes: tuple[int, ...] = ()
) -> Expr:
    """Of an odd number of entries to cut or to add, the greater half is behind."""
    rank = ctx.type(x).rank
    named = normalize_axes(axes, rank) if axes else tuple(range(rank))
    lengths = relay.shape_of(x, dtype="int64")
    given = relay.cast(shape, "int64")
    order = [named.index(each) if each in named else len(named) + each for each in range(rank)]
    both = relay.concatenate([given, lengths], axis=0)
    wanted = relay.take(both, relay.Constant(np.array(order, np.int64)), axis=0, mode="fast")
    zero, two = relay.Constant(np.int64(0)), relay.Constant(np.int64(2))
    excess = relay.maximum(relay.subtract(lengths, wanted), zero)
    begin = relay.floor_divide(excess, two)
    end = relay.add(begin, relay.minimum(lengths, wanted))
    missing = relay.maximum(relay.subtract(wanted, lengths), zero)
    before = relay.floor_divide(missing, two)
    cut = relay.strided_slice(x, ctx.fold(begin), ctx.fold(end), axes=tuple(range(rank)))
    widths = relay.stack([before, relay.subtract(missing, before)], axis=1)
    filler = relay.Constant(np.zeros((), numpy_dtype(ctx.type(x).dtype)))
    return relay.nn.pad(cut, ctx.fold(widths), filler)


@OPS.exports("dyn.nn.pad")
def export_dyn_pad(ctx: Export, x: Value, widths: Value, value: Value, *, pad_mode: str) -> Value:
    transposed = ctx.emit("Transpose", to_int64(ctx, widths), perm=[1, 0])
    sides = ctx.emit("Reshape", transposed, ctx.ints([-1]))
    dtype = ctx.type(x).dtype
    if pad_mode != "constant":
        return emit_pad(ctx, x, dtype, sides, None, pad_mode)
    filler = value if ctx.type(value).dtype == dtype else cast(ctx, value, dtype)
    return emit_pad(ctx, x, dtype, sides, filler)


@OPS.imports("Pad", since=1, renamed={"paddings": "pads"})
@OPS.imports("Pad", since=2)
def import_pad_v2(
    ctx: Import, x: Expr, *, pads: tuple[int, ...], mode: Mode = "constant", value: float = 0.0
) -> Expr:
    return pad_or_cut(ctx, x, pads, mode, scalar_like(ctx, x, value))


@OPS.imports("Pad", since=(11, 13, 18, 19, 21, 23, 24, 25))
def import_pad(
    ctx: Import,
    x: Expr,
    pads: Expr,
    constant_value: Expr | None = None,
    axes: Expr | None = None,
    *,
    mode: Mode = "constant",
) -> Expr:
    """Widths and axes that are computed become operands; ``wrap`` then gathers axis by axis."""
    value = scalar_like(ctx, x, 0) if constant_value is None else constant_value
    value = as_scalar(ctx, value)
    rank = ctx.type(x).rank
    if ctx.is_constant(pads) and (axes is None or ctx.is_constant(axes)):
        along = range(rank) if axes is None else normalize_axes(ctx.ints(axes), rank)
        given = ctx.ints(pads)
        if len(given) != 2 * len(along):
            raise Unsupported(f"expected {2 * len(along)} widths, found {len(given)}")
        widths = [0] * (2 * rank)
        for width, (side, axis) in zip(given, product((0, 1), along), strict=True):
            widths[axis + side * rank] = width
        return pad_or_cut(ctx, x, widths, mode, value)
    sides = _spread_pads(ctx, pads, axes, rank)
    if mode != "wrap":
        return call("dyn.nn.pad", x, relay.transpose(sides, axes=[1, 0]), value, pad_mode=mode)
    lengths = relay.shape_of(x, dtype="int64")
    for axis in range(rank):
        low, high, length = (
            relay.reshape(
                relay.take(each, relay.const(position, "int32"), mode="fast"), newshape=()
            )
            for each, position in ((sides, axis), (sides, rank + axis), (lengths, axis))
        )
        one = relay.Constant(np.int64(1))
        indices = relay.arange(relay.negative(low), relay.add(length, high), one, "int64")
        x = relay.take(x, indices, axis=axis, mode="wrap")
    return x
