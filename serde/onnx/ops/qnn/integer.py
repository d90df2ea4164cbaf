"""Sums of products of bytes in int32, and layers that requantise them.

ONNX requantises in float32: the sum times one factor, rounded half to even, and the zero
point added.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as AnyValue

import numpy as np

import serde.relay as relay
from serde.errors import Unsupported
from serde.onnx.export_context import ExportContext, Value
from serde.onnx.import_context import ImportContext
from serde.onnx.ops.conv.direct import AutoPad, padding_of, per_axis
from serde.onnx.ops.conv.windows import SPATIAL, fixed
from serde.onnx.ops.elementwise.convert import cast, filled
from serde.onnx.ops.table import OPS
from serde.relay.ir.dims import Any, Dim, product
from serde.relay.ir.expr import Call, Expr
from serde.relay.ir.registry import call
from serde.relay.ir.shapes import broadcast
from serde.relay.ir.types import TensorType

__all__ = ["integer_conv", "integer_matmul", "requantized", "row_zero_point", "window_of"]


def _has_matmul_form(node: Call) -> bool:
    """ONNX Runtime has one zero point on the left, and one or one for each column on the right."""
    left, right = (x.type for x in node.args[2:])
    whole = not isinstance(left, TensorType) or left.rank == 0 or left.shape == (1,)
    return whole and (not isinstance(right, TensorType) or right.rank <= 1)


@OPS.exports("serde.matmul_integer", when=_has_matmul_form)
def export_matmul_integer(
    ctx: ExportContext, a: Value, b: Value, a_zero_point: Value | None, b_zero_point: Value | None
) -> Value:
    return ctx.emit("MatMulInteger", a, b, a_zero_point, b_zero_point)


@OPS.exports("serde.conv_integer")
def export_conv_integer(
    ctx: ExportContext,
    x: Value,
    w: Value,
    x_zero_point: Value | None,
    w_zero_point: Value | None,
    *,
    strides: tuple[int, ...],
    padding: tuple[int, ...],
    dilation: tuple[int, ...],
    groups: int,
) -> Value:
    """ONNX Runtime has one zero point of the weight; of several, what they take off is summed."""
    shape = fixed(ctx.type(w).shape, "weight")
    attributes = {
        "kernel_shape": shape[2:],
        "strides": strides,
        "pads": padding,
        "dilations": dilation,
        "group": groups,
    }
    if w_zero_point is None or ctx.type(w_zero_point).rank == 0:
        return ctx.emit("ConvInteger", x, w, x_zero_point, w_zero_point, **attributes)
    total = ctx.emit("ConvInteger", x, w, x_zero_point, **attributes)
    ones = filled(ctx, ctx.ints(shape), 1, ctx.type(w).dtype)
    windows = ctx.emit("ConvInteger", x, ones, x_zero_point, **attributes)
    points = ctx.emit(
        "Reshape", cast(ctx, w_zero_point, np.int32), ctx.ints([-1, *[1] * (len(shape) - 2)])
    )
    return ctx.emit("Sub", total, ctx.emit("Mul", windows, points))


def _single(ctx: ImportContext, x: Expr | None) -> Expr | None:
    """Return a vector of one element as a scalar."""
    if x is None or ctx.type(x).shape != (1,):
        return x
    return relay.squeeze(x, axis=[0])


def _point(ctx: ImportContext, x: Expr | None) -> Expr | None:
    """Return a zero point, or None if it is known to be zero."""
    found = None if x is None else ctx.known(x)
    return None if found is not None and not found.any() else _single(ctx, x)


def row_zero_point(ctx: ImportContext, zero_point: Expr | None) -> Expr | None:
    """Return a parameter of the left side, of which a vector has one element a row."""
    zero_point = _single(ctx, zero_point)
    if zero_point is None or ctx.type(zero_point).rank != 1:
        return zero_point
    return relay.expand_dims(zero_point, axis=1)


def integer_matmul(
    ctx: ImportContext, a: Expr, b: Expr, a_zero_point: Expr | None, b_zero_point: Expr | None
) -> Expr:
    """Return NumPy's matmul of bytes, each less its zero point, in int32.

    Args:
        ctx: The context.
        a: Left side.
        b: Right side.
        a_zero_point: In the dtype of `a`; it broadcasts to it.
        b_zero_point: Likewise of `b`.
    """
    a_zero_point, b_zero_point = _point(ctx, a_zero_point), _point(ctx, b_zero_point)
    left, right = ctx.type(a).rank, ctx.type(b).rank
    if right == 1:
        column = integer_matmul(ctx, a, relay.expand_dims(b, axis=1), a_zero_point, b_zero_point)
        return relay.squeeze(column, axis=[left - 1])
    if left == 1 and right > 2:
        row = integer_matmul(ctx, relay.expand_dims(a, axis=0), b, a_zero_point, b_zero_point)
        return relay.squeeze(row, axis=[right - 2])
    if right == 2 or left == right == 3:
        return call("serde.matmul_integer", a, b, a_zero_point, b_zero_point)
    batch = broadcast(ctx.type(a).shape[:-2], ctx.type(b).shape[:-2])
    found = call(
        "serde.matmul_integer",
        _one_batch(ctx, a, batch),
        _one_batch(ctx, b, batch),
        _batched(ctx, a_zero_point, batch),
        _batched(ctx, b_zero_point, batch),
    )
    rows, columns = ctx.type(a).shape[-2], ctx.type(b).shape[-1]
    return relay.reshape(found, _whole_lengths([*batch, rows, columns]))


def _batched(ctx: ImportContext, zero_point: Expr | None, batch: Sequence[Dim]) -> Expr | None:
    if zero_point is None or ctx.type(zero_point).rank <= 2:
        return zero_point
    return _one_batch(ctx, zero_point, batch)


@OPS.imports("MatMulInteger", since=10)
def import_matmul_integer(
    ctx: ImportContext,
    a: Expr,
    b: Expr,
    a_zero_point: Expr | None = None,
    b_zero_point: Expr | None = None,
) -> Expr:
    return integer_matmul(ctx, a, b, row_zero_point(ctx, a_zero_point), b_zero_point)


def window_of(
    ctx: ImportContext,
    x: Expr,
    w: Expr,
    *,
    auto_pad: AutoPad,
    dilations: tuple[int, ...],
    group: int,
    kernel_shape: tuple[int, ...],
    pads: tuple[int, ...],
    strides: tuple[int, ...],
) -> dict[str, AnyValue]:
    """Return strides, padding, dilation and groups of a convolution."""
    ndim = ctx.type(w).rank - 2
    if ndim not in SPATIAL:
        raise Unsupported(f"a convolution over {ndim} axes")
    kernel = kernel_shape or ctx.static_lengths(w, range(2, ndim + 2))
    if kernel != ctx.static_lengths(w, range(2, ndim + 2)):
        raise Unsupported(f"kernel_shape {list(kernel)} with a weight of {ctx.type(w)!r}")
    steps, gaps = per_axis(strides, ndim, "strides"), per_axis(dilations, ndim, "dilations")
    padding = padding_of(ctx, x, kernel, steps, gaps, pads, auto_pad)
    return {"strides": steps, "padding": padding, "dilation": gaps, "groups": group}


def integer_conv(
    ctx: ImportContext,
    x: Expr,
    w: Expr,
    x_zero_point: Expr | None,
    w_zero_point: Expr | None,
    window: dict[str, AnyValue],
) -> Expr:
    """Return a convolution of bytes, each less its zero point, in int32."""
    points = (_point(ctx, each) for each in (x_zero_point, w_zero_point))
    return call("serde.conv_integer", x, w, *points, **window)


@OPS.imports("ConvInteger", since=10)
def import_conv_integer(
    ctx: ImportContext,
    x: Expr,
    w: Expr,
    x_zero_point: Expr | None = None,
    w_zero_point: Expr | None = None,
    *,
    auto_pad: AutoPad = "NOTSET",
    dilations: tuple[int, ...] = (),
    group: int = 1,
    kernel_shape: tuple[int, ...] = (),
    pads: tuple[int, ...] = (),
    strides: tuple[int, ...] = (),
) -> Expr:
    window = window_of(
        ctx,
        x,
        w,
        auto_pad=auto_pad,
        dilations=dilations,
        group=group,
        kernel_shape=kernel_shape,
        pads=pads,
        strides=strides,
    )
    return integer_conv(ctx, x, w, x_zero_point, w_zero_point, window)


def requantized(
    ctx: ImportContext, total: Expr, factor: Expr, zero_point: Expr | None, dtype: str
) -> Expr:
    """Return sums times a factor in a narrow dtype, rounded half to even before the zero point."""
    real = relay.multiply(relay.cast(total, "float32"), factor)
    one = relay.const(np.float32(1))
    point = _single(ctx, zero_point)
    return call("serde.quantize_linear", real, one, point, out_dtype=dtype)


@OPS.imports("QLinearMatMul", since=(10, 21))
def import_qlinear_matmul(
    ctx: ImportContext,
    a: Expr,
    a_scale: Expr,
    a_zero_point: Expr,
    b: Expr,
    b_scale: Expr,
    b_zero_point: Expr,
    y_scale: Expr,
    y_zero_point: Expr,
) -> Expr:
    dtypes = {ctx.type(each).dtype for each in (a, b, y_zero_point)}
    if not dtypes <= {"int8", "uint8"}:
        raise Unsupported(f"a product of {' and '.join(sorted(dtypes))}, of which sums are not "
                          "defined")  # fmt: skip
    sides = (_single(ctx, each) for each in (a_scale, a_zero_point, b_scale, b_zero_point))
    given = [a, b, *sides, _single(ctx, y_scale), _single(ctx, y_zero_point)]
    dtype = ctx.type(y_zero_point).dtype
    ranks = (ctx.type(a).rank, ctx.type(b).rank)
    if ranks in ((2, 2), (3, 3)) and _is_whole(ctx, given, dtype, columns=ranks == (2, 2)):
        return call("serde.qlinear_matmul", *given, out_dtype=dtype)
    total = integer_matmul(ctx, a, b, row_zero_point(ctx, a_zero_point), b_zero_point)
    left = _in_float32(ctx, row_zero_point(ctx, a_scale))
    right, result = (_in_float32(ctx, _single(ctx, each)) for each in (b_scale, y_scale))
    factor = relay.divide(relay.multiply(left, right), result)
    return requantized(ctx, total, factor, y_zero_point, dtype)


def _is_whole(
    ctx: ImportContext, given: Sequence[Expr | None], dtype: str, *, columns: bool = True
) -> bool:
    """Whether one operator says a quantised product, and ONNX Runtime runs what it becomes.

    Args:
        ctx: The context.
        given: Data, weight, and scale and zero point of data, weight and result.
        dtype: That of the result.
        columns: Whether the weight may have a scale for each output.
    """
    types = [ctx.type(each) for each in given if each is not None]
    data, weight, *parameters = types
    if not (data.dtype == "uint8" or weight.dtype == "int8") or dtype != data.dtype:
        return False
    scale, zero = parameters[2:4]
    scalars = [*parameters[:2], *parameters[4:], *([] if columns else [scale, zero])]
    floats = all(each.dtype == "float32" for each in parameters[::2])
    whole = all(each.rank == 0 for each in scalars) and scale.rank == zero.rank
    return floats and whole and scale.rank <= 1


def _in_float32(ctx: ImportContext, x: Expr | None) -> Expr:
    if x is None:
        raise Unsupported("a scale is missing")
    return x if ctx.type(x).dtype == "float32" else relay.cast(x, "float32")


@OPS.imports("QLinearConv", since=10)
def import_qlinear_conv(
    ctx: ImportContext,
    x: Expr,
    x_scale: Expr,
    x_zero_point: Expr,
    w: Expr,
    w_scale: Expr,
    w_zero_point: Expr,
    y_scale: Expr,
    y_zero_point: Expr,
    b: Expr | None = None,
    *,
    auto_pad: AutoPad = "NOTSET",
    dilations: tuple[int, ...] = (),
    group: int = 1,
    kernel_shape: tuple[int, ...] = (),
    pads: tuple[int, ...] = (),
    strides: tuple[int, ...] = (),
) -> Expr:
    window = window_of(
        ctx,
        x,
        w,
        auto_pad=auto_pad,
        dilations=dilations,
        group=group,
        kernel_shape=kernel_shape,
        pads=pads,
        strides=strides,
    )
    dtype = ctx.type(y_zero_point).dtype
    parameters = (x_scale, x_zero_point, w_scale, w_zero_point, y_scale, y_zero_point)
    single = [_single(ctx, each) for each in parameters]
    if ctx.type(w).rank == 4 and _is_whole(ctx, [x, w, *single], dtype):
        return call("serde.qlinear_conv2d", x, w, b, *single, **window, out_dtype=dtype)
    total = integer_conv(ctx, x, w, x_zero_point, w_zero_point, window)
    if b is not None:
        total = relay.nn.bias_add(total, b, axis=1)
    scales = [_in_float32(ctx, _single(ctx, each)) for each in (x_scale, w_scale, y_scale)]
    factor = relay.divide(relay.multiply(scales[0], scales[1]), scales[2])
    if ctx.type(factor).rank:
        factor = relay.expand_dims(factor, axis=1, num_newaxis=ctx.type(w).rank - 2)
    return requantized(ctx, total, factor, y_zero_point, dtype)


def _one_batch(ctx: ImportContext, x: Expr, batch: Sequence[Dim]) -> Expr:
    """Return `x` with the axes before its matrices broadcast to `batch` and joined."""
    shape = ctx.type(x).shape
    own, matrix = shape[:-2], shape[-2:]
    if all(dim == 1 for dim in own):
        return relay.reshape(x, _whole_lengths([1, *matrix]))
    if tuple(own) != tuple(batch):
        if any(isinstance(dim, Any) for dim in (*batch, *matrix)):
            raise Unsupported(f"batches of {shape}, some without a length or a name")
        x = relay.broadcast_to(x, [*batch, *matrix])
    return relay.reshape(x, _whole_lengths([product(batch), *matrix]))


def _whole_lengths(dims: Sequence[Dim]) -> list[Dim]:
    """Return dimensions as an attribute: at most one of them may be what remains.

    Raises:
        Unsupported: More than one is without a length or a name.
    """
    if sum(isinstance(dim, Any) for dim in dims) > 1:
        raise Unsupported(f"several axes without a length or a name: {list(dims)}")
    return [-1 if isinstance(dim, Any) else dim for dim in dims]
