"""Quantised tensors. ONNX keeps a zero point in the dtype of its data, Relay in int32."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any as AnyValue
from typing import Literal

import numpy as np
import onnx
from onnx import helper

from serde.errors import Unsupported
from serde.onnx.graph import ExportContext as Ctx
from serde.onnx.graph import Value
from serde.onnx.ops.conv import filters, fixed, kernel_shape, pads, require_bytes
from serde.onnx.ops.elementwise import (
    cast,
    export_clip,
    export_round,
    fixed_ratio,
    scaled,
    typed,
)
from serde.onnx.ops.linalg import integer_product
from serde.onnx.ops.shape import arranged, unsqueeze
from serde.onnx.ops.table import OPS
from serde.onnx.versions import CHANGES
from serde.relay.dims import Dim
from serde.relay.expr import Call
from serde.relay.op.qnn.parameters import along_axis, fixed_point
from serde.relay.types import TensorType
from serde.weights import dtype_name, numpy_dtype


def _along(ctx: Ctx, values: Value, like: Value, axis: int) -> Value:
    """Return a scale or zero point in a shape that broadcasts with `like`."""
    rank = ctx.type(like).rank
    if ctx.type(values).rank == 0:
        return values
    if values.data is not None:
        return ctx.const(along_axis(values.data, rank, axis))
    following = rank - 1 - axis % max(1, rank)
    return unsqueeze(ctx, values, range(1, 1 + following)) if following else values


def _saturated(ctx: Ctx, x: Value, like: Value, source: str, dtype: str) -> Value:
    """Return numbers of the dtype `source` in an integer dtype, cut to its range."""
    if dtype == source:
        return x
    info = np.iinfo(dtype)
    limits = {"a_min": float(info.min), "a_max": float(info.max)}
    return cast(ctx, export_clip(ctx, typed(ctx, x, like, source), **limits), dtype)


@OPS.exports("qnn.quantize")
def export_quantize(
    ctx: Ctx,
    x: Value,
    scale: Value,
    zero_point: Value,
    *,
    out_dtype: np.dtype[AnyValue],
    axis: int,
) -> Value:
    """Relay rounds a half away from zero and ONNX to even, so the quotient is rounded first.

    QuantizeLinear then adds the zero point and saturates, where ONNX has the dtype; its scale
    is one.
    """
    quotient = ctx.emit("Div", x, _along(ctx, scale, x, axis))
    whole = export_round(ctx, typed(ctx, quotient, x, "float32"))
    dtype = ctx.result_type().dtype
    if dtype in ("int8", "uint8") and _scalar_within(zero_point, dtype):
        zero = ctx.const(ctx.constant(zero_point).reshape(()), dtype)
        return ctx.emit("QuantizeLinear", whole, ctx.const(1, np.float32), zero)
    shifted = ctx.emit("Add", whole, cast(ctx, _along(ctx, zero_point, x, axis), np.float32))
    return _saturated(ctx, shifted, x, "float32", dtype)


def _scalar_within(zero_point: Value, dtype: str) -> bool:
    """Whether a zero point is one constant number of `dtype`."""
    data = zero_point.data
    if data is None or data.size != 1:
        return False
    return bool(np.iinfo(dtype).min <= data.item() <= np.iinfo(dtype).max)


@OPS.exports("qnn.dequantize")
def export_dequantize(
    ctx: Ctx,
    x: Value,
    scale: Value,
    zero_point: Value,
    *,
    out_dtype: np.dtype[AnyValue],
    axis: int,
) -> Value:
    """DequantizeLinear knows axes from 13 on, 16 bits from 21 on, and int32 without zero point."""
    dtype = ctx.type(x).dtype
    if _has_linear_form(ctx, dtype, scale, zero_point):
        real = _linear(ctx, x, scale, zero_point, axis)
    else:
        wide = cast(ctx, x, np.int32) if dtype != "int32" else x
        shifted = ctx.emit("Sub", wide, _along(ctx, zero_point, x, axis))
        real = ctx.emit("Mul", cast(ctx, shifted, np.float32), _along(ctx, scale, x, axis))
    if out_dtype == np.float32:
        return real
    limit = float(np.finfo(out_dtype).max)
    return cast(
        ctx, export_clip(ctx, typed(ctx, real, x, "float32"), a_min=-limit, a_max=limit), out_dtype
    )


def _has_linear_form(ctx: Ctx, dtype: str, scale: Value, zero_point: Value) -> bool:
    data = zero_point.data
    if data is None or (ctx.version < 13 and (data.size != 1 or ctx.type(scale).size != 1)):
        return False
    if dtype == "int32":
        return not data.any()
    if dtype not in ("int8", "uint8") and ctx.version < 21:
        return False
    return bool((data >= np.iinfo(dtype).min).all() and (data <= np.iinfo(dtype).max).all())


def _linear(ctx: Ctx, x: Value, scale: Value, zero_point: Value, axis: int) -> Value:
    """Emit DequantizeLinear, both parameters in the shape of the longer one."""
    lengths = [each.shape[0] for each in map(ctx.type, (scale, zero_point)) if each.rank]
    length = next((each for each in lengths if each != 1), None)
    zero = ctx.constant(zero_point).astype(ctx.type(x).dtype)
    if length is None:
        scale = ctx.view(scale, ())
        zero = zero.reshape(())
    elif not isinstance(length, int):
        raise Unsupported(f"needs the number of scales, found {length}")
    else:
        zero = np.broadcast_to(zero.reshape(-1), (length,))
        if scale.data is not None:
            scale = ctx.const(np.broadcast_to(scale.data.reshape(-1), (length,)))
        elif ctx.type(scale).size != length:
            scale = ctx.emit("Expand", scale, ctx.ints([length]))
    point = None if ctx.type(x).dtype == "int32" else ctx.const(zero)
    place = None if length is None else axis % ctx.type(x).rank
    return ctx.emit("DequantizeLinear", x, scale, point, axis=place)


@OPS.exports("qnn.requantize")
def export_requantize(
    ctx: Ctx,
    x: Value,
    input_scale: Value,
    input_zero_point: Value,
    output_scale: Value,
    output_zero_point: Value,
    *,
    axis: int,
    rounding: Literal["None", "UPWARD", "TONEAREST"],
    compute_dtype: Literal["None", "int64", "float32", "float64"],
    out_dtype: np.dtype[AnyValue] | None,
) -> Value:
    """The same arithmetic step by step: a pair of linear operators would round half to even."""
    rank = ctx.type(x).rank
    ratio = along_axis(ctx.constant(input_scale), rank, axis).astype(np.float64) / np.float64(
        ctx.constant(output_scale)
    )
    away = rounding == "TONEAREST"
    dtype = ctx.result_type().dtype
    zero = _along(ctx, input_zero_point, x, axis)
    narrow = x if ctx.type(x).dtype == "int32" else cast(ctx, x, np.int32)
    if compute_dtype in ("float32", "float64"):
        wide = np.dtype(compute_dtype)
        shifted = ctx.emit("Sub", cast(ctx, narrow, wide), cast(ctx, zero, wide))
        product = ctx.emit("Mul", shifted, ctx.const(ratio, wide))
        real = ctx.emit("Add", product, cast(ctx, output_zero_point, wide))
        result = cast(ctx, _rounded(ctx, typed(ctx, real, x, wide.name), away), np.int32)
    else:
        shifted = cast(ctx, ctx.emit("Sub", narrow, zero), np.int64)
        numbers = fixed_ratio(ctx, *fixed_point(ratio))
        level = cast(ctx, scaled(ctx, shifted, *numbers, away), np.int32)
        result = ctx.emit("Add", level, output_zero_point)
    return _saturated(ctx, result, x, "int32", dtype)


def _rounded(ctx: Ctx, x: Value, away: bool) -> Value:
    if away:
        return export_round(ctx, x)
    return ctx.emit("Floor", ctx.emit("Add", x, ctx.scalar_like(x, 0.5)))


@OPS.exports("qnn.dense")
def export_dense(
    ctx: Ctx,
    x: Value,
    weight: Value,
    input_zero_point: Value,
    weight_zero_point: Value,
    input_scale: Value,
    weight_scale: Value,
    *,
    units: Dim | None,
    out_dtype: np.dtype[AnyValue] | None,
) -> Value:
    """The scales tell what the sums mean and do not enter them."""
    return integer_product(ctx, x, weight, (input_zero_point, weight_zero_point), turn_y=True)


@OPS.exports("qnn.batch_matmul")
def export_batch_matmul(
    ctx: Ctx,
    x: Value,
    y: Value,
    x_zero_point: Value,
    y_zero_point: Value,
    x_scale: Value,
    y_scale: Value,
    *,
    out_dtype: np.dtype[AnyValue] | None,
    transpose_a: bool,
    transpose_b: bool,
) -> Value:
    """The scales tell what the sums mean and do not enter them."""
    points = (x_zero_point, y_zero_point)
    return integer_product(ctx, x, y, points, turn_x=transpose_a, turn_y=transpose_b)


@OPS.exports("qnn.conv2d")
def export_conv2d(
    ctx: Ctx,
    x: Value,
    weight: Value,
    input_zero_point: Value,
    weight_zero_point: Value,
    input_scale: Value,
    weight_scale: Value,
    *,
    strides: Sequence[Dim],
    padding: Sequence[Dim],
    dilation: Sequence[Dim],
    groups: int,
    channels: Dim | None,
    kernel_size: Sequence[Dim] | None,
    data_layout: str,
    kernel_layout: str,
    out_layout: str,
    out_dtype: np.dtype[AnyValue] | None,
) -> Value:
    """ConvInteger pads with the zero point, too; the scales do not enter the sums."""
    require_bytes(ctx, x, weight)
    result = ctx.emit(
        "ConvInteger",
        arranged(ctx, x, data_layout, "NCHW"),
        filters(ctx, weight, kernel_layout, "OIHW", groups),
        _point(ctx, input_zero_point, x),
        _point(ctx, weight_zero_point, weight),
        kernel_shape=kernel_shape(ctx, weight, kernel_layout, "HW"),
        strides=fixed(strides, "strides"),
        pads=pads(padding, 2),
        dilations=fixed(dilation, "dilation"),
        group=groups,
    )
    if ctx.result_type().dtype == "int64":
        result = cast(ctx, result, np.int64)
    return arranged(ctx, result, "NCHW", out_layout or data_layout)


def _point(ctx: Ctx, zero_point: Value, like: Value) -> Value:
    """Return a constant zero point in the dtype of what it belongs to.

    Raises:
        Unsupported: It is computed at run time, or no number of that dtype.
    """
    dtype = ctx.type(like).dtype
    data = ctx.constant(zero_point)
    limits = np.iinfo(dtype)
    if (data < limits.min).any() or (data > limits.max).any():
        raise Unsupported(f"a zero point of {data.tolist()} is outside {dtype}")
    return ctx.const(data.reshape(()) if data.size == 1 else data, dtype)


def _element(dtype: str) -> str:
    """Return how ONNX's schemas call the type of a tensor."""
    kind = helper.np_dtype_to_tensor_dtype(numpy_dtype(dtype))
    return f"tensor({onnx.TensorProto.DataType.Name(kind).lower()})"


def _allowed(schema: onnx.defs.OpSchema, formal: onnx.defs.OpSchema.FormalParameter) -> set[str]:
    for constraint in schema.type_constraints:
        if constraint.type_param_str == formal.type_str:
            return set(constraint.allowed_type_strs)
    return {formal.type_str}


def _takes(op: str, version: int) -> Callable[[Call], bool]:
    """Return whether an operator, as it stands at a version, is what a call says.

    So it is, too, where that version lacks a type altogether: what the call decomposes into
    would need it as well.
    """
    schema = onnx.defs.get_schema(op, version)
    everything = _allowed(cast_schema := onnx.defs.get_schema("Cast", version),
                          cast_schema.inputs[0])  # fmt: skip

    def takes(node: Call) -> bool:
        types = [*(each.type for each in node.args), node.type]
        formals = [*schema.inputs, schema.outputs[0]]
        bound: dict[str, str] = {}
        fits = True
        for formal, type_ in zip(formals, types, strict=True):
            if not isinstance(type_, TensorType):
                continue
            name = _element(type_.dtype)
            if name not in everything:
                return True
            same = bound.setdefault(formal.type_str, name) == name
            fits = fits and same and name in _allowed(schema, formal)
        scale = node.args[1].type
        vector = isinstance(scale, TensorType) and scale.rank > 0 and scale.size != 1
        if (vector or node.attrs["block_size"]) and "axis" not in schema.attributes:
            return False
        wanted = {"block_size"} if node.attrs["block_size"] else set()
        wanted |= {"precision"} if node.attrs.get("precision") is not None else set()
        return fits and wanted <= set(schema.attributes)

    return takes


def _require_type(ctx: Ctx, dtype: str) -> None:
    schema = onnx.defs.get_schema("Cast", ctx.version)
    if _element(dtype) not in _allowed(schema, schema.inputs[0]):
        raise Unsupported(f"ONNX has no {dtype} at version {ctx.version}")


def export_quantize_linear(
    ctx: Ctx,
    x: Value,
    scale: Value,
    zero_point: Value | None,
    *,
    axis: int,
    block_size: int,
    out_dtype: np.dtype[AnyValue],
    saturate: bool,
    precision: np.dtype[AnyValue] | None,
) -> Value:
    """Before 21 the zero point alone tells the type of the result."""
    dtype = dtype_name(out_dtype)
    _require_type(ctx, dtype)
    kind = helper.np_dtype_to_tensor_dtype(out_dtype)
    told = zero_point is None and dtype != "uint8"
    if told and ctx.version < 21:
        zero_point = ctx.const(np.zeros(ctx.static_shape(scale)), out_dtype)
        told = False
    return ctx.emit(
        "QuantizeLinear",
        x,
        scale,
        zero_point,
        axis=_place(ctx, scale, axis),
        block_size=block_size or None,
        output_dtype=kind if told else None,
        saturate=None if saturate else 0,
        precision=None if precision is None else helper.np_dtype_to_tensor_dtype(precision),
    )


def _place(ctx: Ctx, scale: Value, axis: int) -> int | None:
    return None if ctx.type(scale).rank == 0 else axis


def export_dequantize_linear(
    ctx: Ctx,
    x: Value,
    scale: Value,
    zero_point: Value | None,
    *,
    axis: int,
    block_size: int,
    out_dtype: np.dtype[AnyValue] | None,
) -> Value:
    _require_type(ctx, ctx.type(x).dtype)
    told = out_dtype is not None and dtype_name(out_dtype) != ctx.type(scale).dtype
    return ctx.emit(
        "DequantizeLinear",
        x,
        scale,
        zero_point,
        axis=_place(ctx, scale, axis),
        block_size=block_size or None,
        output_dtype=helper.np_dtype_to_tensor_dtype(out_dtype) if told and out_dtype else None,
    )


for _op, _name, _export in (
    ("QuantizeLinear", "serde.quantize_linear", export_quantize_linear),
    ("DequantizeLinear", "serde.dequantize_linear", export_dequantize_linear),
):
    for _version in CHANGES[_op]:
        if _version <= onnx.defs.onnx_opset_version():
            OPS.exports(_name, since=_version, when=_takes(_op, _version))(_export)


@OPS.exports("serde.dynamic_quantize_linear")
def export_dynamic_quantize_linear(ctx: Ctx, x: Value) -> tuple[Value, ...]:
    return ctx.emit_tuple("DynamicQuantizeLinear", x, outputs=3)
