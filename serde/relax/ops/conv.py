"""Convolutions over one to three spatial axes: direct, transposed, at learned places."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from typing import Any as AnyValue

import numpy as np

import serde.relay as relay
from serde.core import dataclass, dtype_name
from serde.relax.framework import Framework
from serde.relax.ops.table import OPS, Export, Import, Value
from serde.relay.ir import Call, Expr, split_padding, tensor_type
from serde.relay.lowering.conv import CONVOLUTIONS, TRANSPOSED
from serde.relay.op.conv.windows import Convolution, TransposedConvolution

__all__ = ["add_bias", "cast", "sum_dtype"]


def cast(ctx: Export, x: Value, before: str, dtype: str) -> Value:
    """Write `x`, which is of the dtype `before`, in another dtype."""
    return x if before == dtype else ctx.emit("astype", x, dtype)


def sum_dtype(dtype: str, out_dtype: np.dtype[AnyValue] | None) -> str:
    """Return the dtype in which products of tensors of a dtype are summed."""
    wanted = dtype if out_dtype is None else dtype_name(out_dtype)
    return "float32" if wanted in ("float16", "bfloat16") else wanted


def add_bias(ctx: Export, x: Value, bias: Value | None, rank: int) -> Value:
    """Write the addition of a bias to an image of `rank` spatial axes, channels first."""
    if bias is None:
        return x
    (channels,) = ctx.type(bias).shape
    column = ctx.emit("reshape", bias, ctx.shape_expr([1, channels, *[1] * rank]))
    return ctx.emit("add", x, column)


def _read_between(
    framework: Framework,
    image: AnyValue,
    before: Sequence[AnyValue],
    places: Sequence[AnyValue],
    dtype: str,
) -> AnyValue:
    """Return what lies between pixels: zero before the first, fading to zero after the last."""
    tir = framework.tir
    zero, one = tir.const(0.0, dtype), tir.const(1.0, dtype)
    lengths = image.shape[2:]
    ends = [tir.const(float(n), dtype) if isinstance(n, int) else n.astype(dtype) for n in lengths]
    near = [tir.all(p >= zero, p < end) for p, end in zip(places, ends, strict=True)]
    total = zero
    for corner in product((0, 1), repeat=2):
        index, weight, inside = [], one, list(near)
        for place, end, length, offset in zip(places, ends, lengths, corner, strict=True):
            low = tir.floor(place)
            weight = weight * (place - low if offset else one - (place - low))
            inside.append(low + tir.const(float(offset), dtype) < end)
            held = tir.max(tir.min(low, end), zero).astype("int64") + offset
            index.append(tir.min(held, length - 1))
        read = image[(*before, *index)] * weight
        total = total + tir.if_then_else(tir.all(*inside), read, zero)
    return total


def _is_open(node: Call) -> bool:
    """Whether a length is not fixed; else products of matrices take a 24th of the time."""
    return not all(isinstance(n, int) for each in node.args for n in tensor_type(each).shape)


@OPS.exports(
    "nn.deformable_conv2d", when=_is_open, ignored=("channels", "kernel_size", "out_dtype")
)
def export_deformable_conv2d(
    ctx: Export, data: Value, offset: Value, weight: Value,
    *, strides: tuple[int, ...], padding: tuple[int, ...], dilation: tuple[int, ...],
    deformable_groups: int, groups: int,
) -> Value:  # fmt: skip
    """What all taps read is a stage of its own."""
    framework, dtype = ctx.framework, ctx.type(data).dtype
    te, tir = framework.te, framework.tir
    wide = sum_dtype(dtype, None)
    before, _ = split_padding(padding, 2)

    def deformable_conv2d(image: AnyValue, shifts: AnyValue, filters: AnyValue) -> AnyValue:
        batch, inputs = image.shape[:2]
        outputs, part, height, width = filters.shape
        rows, columns = shifts.shape[2:]
        some = tir.floordiv(inputs, deformable_groups)

        def read(n: AnyValue, c: AnyValue, k: AnyValue, y: AnyValue, x: AnyValue) -> AnyValue:
            tap = (tir.floordiv(c, some) * (height * width) + k) * 2
            steps = (tir.floordiv(k, width), tir.floormod(k, width))
            places = []
            for axis, (at, step) in enumerate(zip((y, x), steps, strict=True)):
                regular = at * strides[axis] + step * dilation[axis] - before[axis]
                places.append(regular.astype(wide) + shifts[n, tap + axis, y, x])
            return _read_between(framework, image, (n, c), places, wide)

        shape = (batch, inputs, height * width, rows, columns)
        taps = te.compute(shape, read, name="taps")
        channel = te.reduce_axis((0, part), name="c")
        tap = te.reduce_axis((0, height * width), name="k")

        def add_up(n: AnyValue, o: AnyValue, y: AnyValue, x: AnyValue) -> AnyValue:
            group = tir.floordiv(o, tir.floordiv(outputs, groups))
            factor = filters[o, channel, tir.floordiv(tap, width), tir.floormod(tap, width)]
            found = taps[n, group * part + channel, tap, y, x]
            return te.sum(found * factor, axis=[channel, tap])

        return te.compute((batch, outputs, rows, columns), add_up, name="deformable_conv2d")

    operands = [cast(ctx, each, dtype, wide) for each in (data, offset, weight)]
    made = ctx.emit_te(deformable_conv2d, *operands)
    return cast(ctx, made, wide, ctx.result_type().dtype)


@OPS.exports(*CONVOLUTIONS)
def export_conv(
    ctx: Export, data: Value, weight: Value, bias: Value | None = None, *, conv: Convolution
) -> Value:
    """Sums are of float32 at least."""
    rank = len(conv.strides)
    before, after = split_padding(conv.padding, rank)
    total = sum_dtype(ctx.type(data).dtype, conv.out_dtype)
    made = ctx.emit(
        f"nn.conv{rank}d", data, weight, strides=list(conv.strides), padding=[*before, *after],
        dilation=list(conv.dilation), groups=conv.groups, data_layout=conv.data_layout,
        kernel_layout=conv.kernel_layout, out_dtype=total,
    )  # fmt: skip
    return add_bias(ctx, cast(ctx, made, total, ctx.result_type().dtype), bias, rank)


@dataclass(frozen=True, kw_only=True)
class ConvAttributes:
    """What all convolutions have."""

    strides: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    groups: int
    data_layout: str
    kernel_layout: str
    out_layout: str
    out_dtype: str | None

    def keywords(self) -> dict[str, object]:
        """Return them as Relay's builders take them."""
        same = self.out_layout == self.data_layout
        found = {**vars(self), "out_layout": "" if same else self.out_layout}
        return found if self.out_dtype is not None else {**found, "out_dtype": ""}


def _import_conv(ctx: Import, data: Expr, weight: Expr, *, op: str, attrs: ConvAttributes) -> Expr:
    return getattr(relay.nn, op)(data, weight, **attrs.keywords())


def _import_transposed(
    ctx: Import,
    data: Expr,
    weight: Expr,
    *,
    op: str,
    output_padding: tuple[int, ...],
    attrs: ConvAttributes,
) -> Expr:
    build = getattr(relay.nn, op)
    return build(data, weight, output_padding=output_padding, **attrs.keywords())


for _op in ("conv1d", "conv2d", "conv3d"):
    OPS.imports(f"relax.nn.{_op}")(partial(_import_conv, op=_op))
    _transposed = f"{_op}_transpose"
    OPS.imports(f"relax.nn.{_transposed}")(partial(_import_transposed, op=_transposed))


@OPS.exports(*TRANSPOSED)
def export_conv_transpose(
    ctx: Export,
    data: Value,
    weight: Value,
    bias: Value | None = None,
    *,
    conv: TransposedConvolution,
) -> Value:
    """Relax's own of one or two axes; TVM computes no others in all releases, nor dilated ones."""
    rank, dtype = len(conv.strides), ctx.type(data).dtype
    before, after = split_padding(conv.padding, rank)
    total = sum_dtype(dtype, conv.out_dtype)
    steps = zip(conv.output_padding, conv.strides, strict=True)
    spans = zip(ctx.type(weight).shape[2:], conv.dilation, before, after, strict=True)
    if (
        rank < 3
        and set(conv.dilation) == {1}
        and all(extra < step for extra, step in steps)
        and all(isinstance(n, int) and max(b, a) < n for n, _, b, a in spans)
    ):
        x, w = (cast(ctx, each, dtype, total) for each in (data, weight))
        made = ctx.emit(
            f"nn.conv{rank}d_transpose", x, w, strides=list(conv.strides),
            padding=[*before, *after], output_padding=list(conv.output_padding),
            dilation=list(conv.dilation), groups=conv.groups, data_layout=conv.data_layout,
            kernel_layout=conv.kernel_layout,
        )  # fmt: skip
    else:
        compute = conv_transpose(
            ctx.framework, conv.strides, before, after, conv.output_padding, conv.dilation,
            conv.groups, total,
        )  # fmt: skip
        made = ctx.emit_te(compute, data, weight)
    return add_bias(ctx, cast(ctx, made, total, ctx.result_type().dtype), bias, rank)


def conv_transpose(
    framework: Framework, strides: Sequence[int], before: Sequence[int], after: Sequence[int],
    output_padding: Sequence[int], dilation: Sequence[int], groups: int, dtype: str,
) -> Callable[..., AnyValue]:  # fmt: skip
    """Return what computes a transposed convolution: one of data spread out by its strides."""
    te, tir = framework.te, framework.tir
    rank = len(strides)

    def conv_transpose(data: AnyValue, weight: AnyValue) -> AnyValue:
        batch, inputs, *space = data.shape
        outputs, kernel = weight.shape[1], weight.shape[2:]
        fronts = [(k - 1) * d - b for k, d, b in zip(kernel, dilation, before, strict=True)]
        lengths = [
            (n - 1) * s + (k - 1) * d + 1 + e - b - a
            for n, s, k, d, e, b, a in zip(
                space, strides, kernel, dilation, output_padding, before, after, strict=True
            )
        ]

        def spread(n: AnyValue, c: AnyValue, *indices: AnyValue) -> AnyValue:
            moved = [p - front for p, front in zip(indices, fronts, strict=True)]
            held = [tir.floordiv(m, s) for m, s in zip(moved, strides, strict=True)]
            hits = [m >= 0 for m in moved]
            hits += [tir.floormod(m, s) == 0 for m, s in zip(moved, strides, strict=True)]
            hits += [each < length for each, length in zip(held, space, strict=True)]
            read = data[(n, c, *held)].astype(dtype)
            return tir.if_then_else(tir.all(*hits), read, tir.const(0, dtype))

        spans = [n + (k - 1) * d for n, k, d in zip(lengths, kernel, dilation, strict=True)]
        wide = te.compute((batch, inputs, *spans), spread, name="spread")
        part = tir.floordiv(inputs, groups)
        channel = te.reduce_axis((0, part), name="c")
        taps = [te.reduce_axis((0, kernel[i]), name=f"k{i}") for i in range(rank)]

        def add_up(n: AnyValue, o: AnyValue, *indices: AnyValue) -> AnyValue:
            source = tir.floordiv(o, outputs) * part + channel
            read = [p + k * d for p, k, d in zip(indices, taps, dilation, strict=True)]
            turned = [length - 1 - k for length, k in zip(kernel, taps, strict=True)]
            factor = weight[(source, tir.floormod(o, outputs), *turned)].astype(dtype)
            return te.sum(wide[(n, source, *read)] * factor, axis=[channel, *taps])

        return te.compute((batch, outputs * groups, *lengths), add_up, name="conv_transpose")

    return conv_transpose
