"""Quantisation as ONNX has it."""

from __future__ import annotations

from typing import Any as AnyValue

import numpy as np
from onnx import helper

import serde.relay as relay
from serde.core import dtype_name, zeros
from serde.errors import Unsupported
from serde.onnx.ops.elementwise.convert import FLOAT8
from serde.onnx.ops.table import OPS, Export, Import, Value
from serde.onnx.schemas import require_dtype
from serde.relay.ir import Expr, TupleGetItem, call, const, tensor_type
from serde.relay.op.qnn.parameters import narrow_zero_point, spread
from serde.relay.op.qnn.rescale import quantize_body
from serde.walk.takes import ONE, Takes


def export_quantize_linear(
    ctx: Export, x: Value, scale: Value, zero_point: Value | None,
    *, axis: int, block_size: int, out_dtype: np.dtype[AnyValue], saturate: bool,
    precision: np.dtype[AnyValue] | None,
) -> Value:  # fmt: skip
    """Before 21 the zero point alone gives the type of the result; integers always saturate."""
    dtype = dtype_name(out_dtype)
    require_dtype(dtype, ctx.version)
    kind = helper.np_dtype_to_tensor_dtype(out_dtype)
    explicit = zero_point is None and dtype != "uint8"
    if explicit and ctx.version < 21:
        zero_point = ctx.const(zeros(ctx.static_shape(scale)), out_dtype)
        explicit = False
    return ctx.emit(
        "QuantizeLinear", x, scale, zero_point, axis=_axis_or_none(ctx, scale, axis),
        block_size=block_size or None, output_dtype=kind if explicit else None,
        saturate=0 if dtype in FLOAT8 and not saturate else None,
        precision=None if precision is None else helper.np_dtype_to_tensor_dtype(precision),
    )  # fmt: skip


@OPS.imports("QuantizeLinear", since=(19, 21, 23, 24, 25, 28))
def import_quantize_linear(
    ctx: Import, x: Expr, scale: Expr, zero_point: Expr | None = None,
    *, axis: int = 1, block_size: int = 0, output_dtype: int = 0, saturate: bool = True,
    precision: int = 0,
) -> Expr:  # fmt: skip
    """``y = saturate(round(x / scale) + zero_point)``, in the type of the zero point if given."""
    dtype = ctx.dtype(output_dtype) if output_dtype else "uint8"
    if zero_point is not None:
        given = ctx.type(zero_point).dtype
        if output_dtype and given != dtype:
            raise Unsupported(f"output_dtype {dtype} with a zero point of {given}")
        dtype = given
    return call(
        "serde.quantize_linear", x, scale, _match_rank(ctx, scale, zero_point),
        axis=_normalize_axis(ctx, scale, axis), block_size=block_size, out_dtype=dtype,
        saturate=saturate, precision=ctx.dtype(precision) if precision else None,
    )  # fmt: skip


@OPS.imports("QuantizeLinear", since=(10, 13))
def import_quantize_linear_v10(
    ctx: Import, x: Expr, scale: Expr, zero_point: Expr | None = None, *, axis: int = 1
) -> Expr:
    return import_quantize_linear(ctx, x, scale, zero_point, axis=axis)


def _axis_or_none(ctx: Export, scale: Value, axis: int) -> int | None:
    return None if ctx.type(scale).rank == 0 else axis


def export_dequantize_linear(
    ctx: Export, x: Value, scale: Value, zero_point: Value | None,
    *, axis: int, block_size: int, out_dtype: np.dtype[AnyValue] | None,
) -> Value:  # fmt: skip
    """ONNX Runtime takes codes without a zero point as uint8 where it moves the operator."""
    dtype = ctx.type(x).dtype
    require_dtype(dtype, ctx.version)
    if zero_point is None and dtype in ("int8", "int16") and not ctx.type(scale).rank:
        zero_point = ctx.const(0, dtype)
    explicit = out_dtype is not None and dtype_name(out_dtype) != ctx.type(scale).dtype
    return ctx.emit(
        "DequantizeLinear",
        x,
        scale,
        zero_point,
        axis=_axis_or_none(ctx, scale, axis),
        block_size=block_size or None,
        output_dtype=helper.np_dtype_to_tensor_dtype(out_dtype) if explicit and out_dtype else None,
    )


@OPS.imports("DequantizeLinear", since=(10, 13, 19, 21, 23, 24, 25, 28))
def import_dequantize_linear(
    ctx: Import, x: Expr, scale: Expr, zero_point: Expr | None = None,
    *, axis: int = 1, block_size: int = 0, output_dtype: int = 0,
) -> Expr:  # fmt: skip
    return call(
        "serde.dequantize_linear",
        x,
        scale,
        _match_rank(ctx, scale, zero_point),
        axis=_normalize_axis(ctx, scale, axis),
        block_size=block_size,
        out_dtype=ctx.dtype(output_dtype) if output_dtype else None,
    )


_TAKEN: tuple[tuple[int, dict[str, AnyValue]], ...] = (
    (10, {"scale": ONE, "block_size": 0}),
    (13, {"block_size": 0}),
    (21, {}),
)
for _since, _taken in _TAKEN:
    OPS.exports(
        "serde.dequantize_linear", since=_since, takes=Takes(**_taken), op="DequantizeLinear"
    )(export_dequantize_linear)
    _taken |= {"precision": None}
    OPS.exports("serde.quantize_linear", since=_since, takes=Takes(**_taken), op="QuantizeLinear")(
        export_quantize_linear
    )
OPS.exports("serde.quantize_linear", since=23, op="QuantizeLinear")(export_quantize_linear)


@OPS.exports("serde.dynamic_quantize_linear")
def export_dynamic_quantize_linear(ctx: Export, x: Value) -> tuple[Value, ...]:
    return ctx.emit_tuple("DynamicQuantizeLinear", x, outputs=3)


@OPS.imports("DynamicQuantizeLinear", since=11)
def import_dynamic_quantize_linear(ctx: Import, x: Expr) -> list[Expr]:
    found = call("serde.dynamic_quantize_linear", x)
    return [TupleGetItem(found, index) for index in range(3)]


def _match_rank(ctx: Import, scale: Expr, zero_point: Expr | None) -> Expr | None:
    """Return a zero point in the rank of its scale; a vector of one element is a scalar, too."""
    if zero_point is None or ctx.type(zero_point).rank == ctx.type(scale).rank:
        return zero_point
    if {ctx.type(scale).shape, ctx.type(zero_point).shape} != {(), (1,)}:
        return zero_point
    if ctx.type(zero_point).rank:
        return relay.squeeze(zero_point, axis=[0])
    return relay.expand_dims(zero_point, axis=0)


def _normalize_axis(ctx: Import, scale: Expr, axis: int) -> int:
    """Return the axis, which has no meaning for one scale."""
    shape = ctx.type(scale).shape
    return axis if shape and shape != (1,) else 1


@OPS.expands("qnn.quantize")
def expand_quantize(
    data: Expr,
    output_scale: Expr,
    output_zero_point: Expr,
    *,
    out_dtype: np.dtype[AnyValue],
    axis: int,
) -> Expr:
    """Relay rounds a half away from zero and ONNX to even, so the quotient is rounded first.

    QuantizeLinear then adds the zero point and saturates, where ONNX has the dtype; its scale
    is one.
    """
    zero = narrow_zero_point(output_zero_point, out_dtype.name)
    if zero is None or zero.data.ndim or out_dtype.itemsize > 1:
        return quantize_body(data, output_scale, output_zero_point, out_dtype=out_dtype, axis=axis)
    quotient = call("divide", data, spread(output_scale, tensor_type(data).rank, axis))
    one = const(1.0)
    return call("serde.quantize_linear", call("round", quotient), one, zero, out_dtype=out_dtype)
